"""Programs that are ended from outside, and what a book looks like after it."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import psutil
import pyarrow.parquet as pq
import pytest
from rankrouting.companion import book, repository, runner
from rankrouting.companion.book import build


def start(*arguments: str, cwd: Path, root: Path | None = None, **changes: Any) -> subprocess.Popen[str]:
    """Start the command line, with variables changed (None: without it) and a limit on the size of files."""
    limit = changes.pop("file_size", None)
    environment = os.environ | {"PYTHONUTF8": "1"} | changes
    if root is not None:
        environment[repository.ROOT_VARIABLE] = str(root)
    return subprocess.Popen(
        [sys.executable, "-m", "rankrouting.cli", *arguments],
        cwd=cwd,
        env={name: str(value) for name, value in environment.items() if value is not None},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
        preexec_fn=None if limit is None else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )


def finished(process: subprocess.Popen[str], seconds: float = 400.0) -> tuple[int, str, str]:
    out, errors = process.communicate(timeout=seconds)
    return process.returncode, out, errors


def wait_for(what: Callable[[], Any], seconds: float = 120.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
    return found


def descendants(process: subprocess.Popen[str]) -> list[psutil.Process]:
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def all_gone(processes: list[psutil.Process]) -> bool:
    return not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in processes)


def visible(folder: Path) -> list[Path]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in paths if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


def assert_nothing_is_half_written(folder: Path) -> None:
    """Every file that a build or a run shows can be read to its end."""
    for path in visible(folder):
        if path.suffix == ".ipynb" and "staged" not in path.parts:
            nbformat.validate(nbformat.read(path, as_version=4))
        elif path.suffix == ".json" and path.parent.name in ("executed", "alpha", "beta"):
            json.loads(path.read_text("utf-8"))
        elif path.suffix == ".csv" and "results" in path.parts:
            assert path.read_text("utf-8").endswith("\n") and len(pd.read_csv(path))
        elif path.suffix == ".parquet":
            assert pq.read_table(path).num_rows
    for html in folder.glob("_build/*/html"):
        # The pages are put there as a whole.
        assert (html / "book" / "beta.html").read_text("utf-8").rstrip().endswith("</html>")
        assert (html / "results" / "beta" / "numbers.csv").is_file()


def numbers_of(root: Path) -> dict[str, str]:
    """What the chapters of a build have computed, by file."""
    where = root / "_build" / "default" / "results"
    return {str(path.relative_to(where)): path.read_text() for path in visible(where) if path.name != "run.json"}


def made_since(root: Path, built: Path) -> set[str]:
    """Return the chapters that have been executed to their end since the copy `root` of `built` was made."""

    def record(where: Path, name: str) -> str:
        path = where / f"_build/default/executed/{name}.json"
        return path.read_text("utf-8") if path.is_file() else ""

    return {one for one in ("alpha", "beta", "intro") if record(root, one) not in ("", record(built, one))}


def executed_by(root: Path, monkeypatch: pytest.MonkeyPatch, execute: Any = None) -> list[str]:
    """Build again and return the chapters that were executed."""
    executed: list[str] = []
    real = execute or runner.run_chapter

    def noting(chapter: Any, *arguments: Any, **options: Any) -> Any:
        executed.append(chapter.name)
        return real(chapter, *arguments, **options)

    monkeypatch.setattr(book.runner, "run_chapter", noting)
    build("default", None if execute is None else 1, root=root, progress=False)
    return executed
