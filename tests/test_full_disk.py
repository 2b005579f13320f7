"""Disks that are full or cannot be written: nothing half written, one sentence, and the next build is whole."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pyarrow.parquet as pq
import pytest
from rankrouting import cli
from rankrouting._cache import cache_folder
from rankrouting._files import replacing
from rankrouting.companion import book, pages, repository
from rankrouting.companion.book import BuildFailed, build
from rankrouting.companion.results import Results
from rankrouting.companion.runner import Run
from typer.testing import CliRunner

from faults import assert_nothing_is_half_written, executed_by, finished, made_since, numbers_of, start, visible  # isort: skip
from minibook import add_chapter, claim_cells, notebook, outputs  # isort: skip


# A full disk.


class Full:
    """A disk that is full from its `fails`-th operation on, for as many operations as one failure makes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails: int) -> None:
        self.count, self.fails = 0, fails
        for owner, name in (
            *((Path, one) for one in ("replace", "rename", "write_text", "write_bytes")),
            *((shutil, one) for one in ("copyfile",)),
        ):
            monkeypatch.setattr(owner, name, self.counted(getattr(owner, name)))

    def counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*arguments: Any, **options: Any) -> Any:
            self.count += 1
            if self.count > self.fails:
                if real.__name__.startswith("write"):
                    real(arguments[0], arguments[1][: len(arguments[1]) // 2], *arguments[2:], **options)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*arguments, **options)

        return operation


def imitated(chapter: Any, parameters: Any, output: Path, **_: Any) -> Run:
    """Leave what a chapter leaves, without a kernel."""
    Results(chapter.name).save_csv("numbers", parameters)
    with replacing(output) as beside:
        beside.write_text(nbformat.writes(nbformat.read(chapter.path, as_version=4)), "utf-8")
    return Run(1.0, 1)


def test_wherever_the_disk_is_full_nothing_is_half_written_and_the_next_build_is_whole(
    built: Path, changed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book, "_check_claims", lambda *_: None)
    for heavy in ("_build/default/html", "_build/staged", "book/_static"):
        shutil.rmtree(changed / heavy)

    def make(places: book.Places, sources: Any, **_: Any) -> None:
        pages._stage(places, sources)
        new = Path(shutil.copytree(places.results, places.folder / ".pages-x" / "html"))
        pages._replace_folder(new, places.html)

    monkeypatch.setattr(book.pages, "make", make)
    monkeypatch.setattr(book.runner, "run_chapter", imitated)

    def attempt(name: str, fails: int) -> tuple[Path, int, BaseException | None]:
        copy = Path(shutil.copytree(changed, tmp_path / name))
        with monkeypatch.context() as patch:
            disk = Full(patch, fails)
            try:
                build("default", jobs=1, root=copy, progress=False)
            except (OSError, BuildFailed) as error:
                return copy, disk.count, error
        return copy, disk.count, None

    whole, operations, error = attempt("whole", 10**9)
    assert error is None and operations > 20
    for fails in range(operations):
        copy, _, error = attempt(f"full-{fails}", fails)
        assert error is not None and "No space left on device" in str(error) and len(str(error).splitlines()) == 1
        for path in visible(copy / "_build" / "default"):
            if path.suffix in (".json", ".ipynb"):
                json.loads(path.read_text("utf-8"))
            if path.name == "numbers.csv":
                assert path.read_text() in ("n,upsilon\n200,1.0\n", "n,upsilon\n100,1.0\n", *numbers_of(whole).values())
        made = made_since(copy, built)
        executed = executed_by(copy, monkeypatch, imitated)
        assert made.isdisjoint(executed) and numbers_of(copy) == numbers_of(whole), fails
        monkeypatch.setattr(book.runner, "run_chapter", imitated)
        shutil.rmtree(copy)


@pytest.mark.slow
@pytest.mark.parametrize("file_size", [100, 3_000, 30_000])
def test_when_no_file_can_grow_the_commands_say_so_and_the_good_pages_stay(changed: Path, file_size: int) -> None:
    before = {path: path.read_bytes() for path in visible(changed / "_build" / "default" / "html")}
    code, _, errors = finished(start("book", cwd=changed, root=changed, file_size=file_size))
    assert code == 1 and "Traceback" not in errors and len(errors.splitlines()[-1]) < 600, errors
    assert {path: path.read_bytes() for path in visible(changed / "_build" / "default" / "html")} == before
    assert_nothing_is_half_written(changed)


@pytest.mark.slow
def test_when_no_file_can_grow_a_run_and_a_sweep_say_so(changed: Path, tmp_path: Path) -> None:
    sweep = {
        "estimate": "paths",
        "n": [100],
        "K": [2],
        "upsilon": [1],
        "policy": ["jsq"],
        "seed": [1, 2],
        "times": [0.1],
    }
    (tmp_path / "mine.yml").write_text(json.dumps(sweep), "utf-8")
    for words in (["run", "alpha"], ["sweep", "mine.yml"]):
        process = start(*words, cwd=tmp_path, root=changed, file_size=1000, NUMBA_DISABLE_JIT="1")
        code, out, errors = finished(process)
        assert code == 1 and out == "" and "Traceback" not in errors, errors
        assert "File too large" in errors and errors.splitlines()[-1].startswith("rankrouting: "), errors
    assert not (tmp_path / "mine.parquet").exists() and not (tmp_path / "alpha.ipynb").exists()
    assert list((tmp_path / "mine.cells").glob("*.parquet")) == []
    assert finished(start("sweep", "mine.yml", cwd=tmp_path))[0] == 0
    assert pq.read_table(tmp_path / "mine.parquet").num_rows == 2


# Where nothing can be written.


@pytest.mark.slow
def test_a_chapter_runs_where_neither_the_caches_nor_the_home_can_be_written(changed: Path, tmp_path: Path) -> None:
    cell = (
        "from rankrouting import System, jsq, plots, queues\n"
        "queues.simulate_paths(System(9, 2, 1.0, jsq()), [0.1]).shape"
    )
    add_chapter(changed, "alpha", notebook("alpha", [cell, *claim_cells("alpha")]))
    nowhere = dict.fromkeys(("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "XDG_CONFIG_HOME"), "/proc/nowhere")
    code, _, errors = finished(start("run", "alpha", cwd=tmp_path, root=changed, **nowhere))
    assert code == 0, errors
    assert "(1, 1, 2)" in outputs(tmp_path / "alpha.ipynb")


def test_old_machine_code_is_removed_when_new_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for name in ("old", "used", "new"):
        (cache_folder(name) / "code").write_text("x")
    for name in ("old", "used"):
        os.utime(tmp_path / "rankrouting" / name, (0, 0))
    cache_folder("used")
    cache_folder("newer")
    assert {path.name for path in (tmp_path / "rankrouting").iterdir()} == {"used", "new", "newer"}


def test_there_is_a_cache_wherever_one_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, "/proc/nowhere")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cache_folder("x") == tmp_path / "rankrouting" / "x"
    monkeypatch.setattr("tempfile.tempdir", "/proc/nowhere")
    assert cache_folder("x") is None
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder("x") == tmp_path / "xdg" / "rankrouting" / "x"


@pytest.fixture
def closed(changed: Path) -> Iterator[Path]:
    """A checkout in which no build can be written: a file is where its folder should be."""
    shutil.rmtree(changed / "_build")
    (changed / "_build").write_text("")
    yield changed


@pytest.mark.parametrize("words", [["run", "alpha", "-o", "out.ipynb"], ["book"]])
def test_a_checkout_that_cannot_be_written_is_one_sentence(
    closed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv(repository.ROOT_VARIABLE, str(closed))
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(cli.app, words)
    assert shown.exit_code in (1, 2) and len(shown.stderr.strip().splitlines()) == 1, shown.stderr
    assert "_build" in shown.stderr and "Traceback" not in shown.stderr
    with pytest.raises(PermissionError, match="set RANKROUTING_RESULTS to a folder"):
        Results("alpha")
    monkeypatch.setenv(repository.RESULTS_VARIABLE, str(tmp_path / "mine"))
    Results("alpha").save_csv("numbers", {"n": 1})
    assert (tmp_path / "mine" / "alpha" / "numbers.csv").is_file()


def _full(*places: Any) -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), *places)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OSError(errno.EROFS, os.strerror(errno.EROFS), "/a/_build"), 2, "/a/_build: Read-only file system"),
        (_full("/a/b"), 1, "/a/b: No space left on device"),
        (_full("/tmp/a", None, "/a/b"), 1, "/a/b: No space left on device"),
        (_full(), 1, "No space left on device"),
        (
            shutil.Error([("/tmp/a", "/a/b", str(_full("/tmp/a", None, "/a/b")))] * 99),
            1,
            "/a/b: No space left on device",
        ),
    ],
)
def test_a_disk_that_takes_nothing_is_one_sentence(
    changed: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, code: int, said: str
) -> None:
    monkeypatch.setenv(repository.ROOT_VARIABLE, str(changed))
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)

    def fails(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(book, "build", fails)
    shown = CliRunner().invoke(cli.app, ["book"])
    assert shown.exit_code == code and shown.stderr == f"rankrouting: {said}\n"
