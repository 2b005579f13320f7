"""The command line: what it shows, and what it refuses before any kernel starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest
from rankrouting.cli import _joined
from rankrouting.companion import repository

from minibook import make_book, notebook, outputs  # isort: skip


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return make_book(tmp_path / "a bóok")


def rankrouting(root: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != repository.RESULTS_VARIABLE}
    return subprocess.run(
        [sys.executable, "-m", "rankrouting.cli", *arguments],
        env=environment | {repository.ROOT_VARIABLE: str(root), "PYTHONUTF8": "1"},
        cwd=cwd or root,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )


@pytest.mark.parametrize(
    ("arguments", "joined"),
    [
        (["run", "a", "-p", "x", "1"], ["run", "a", "-p", "x=1"]),
        (["run", "a", "-p", "x", "-1", "-o", "b"], ["run", "a", "-p", "x=-1", "-o", "b"]),
        (["run", "a", "-p", "x=y=z"], ["run", "a", "-p", "x=y=z"]),
        (["run", "a", "-p", "x", "y=z"], ["run", "a", "-p", "x=y=z"]),
        (["list"], ["list"]),
    ],
)
def test_parameters_are_two_words(arguments: list[str], joined: list[str]) -> None:
    assert _joined(arguments) == joined


def test_the_list_shows_parameters_with_type_default_range_and_meaning(book: Path) -> None:
    shown = rankrouting(book, "list", "alpha")
    assert shown.returncode == 0
    assert "alpha: On alpha" in shown.stdout
    assert shown.stdout.splitlines()[1].split() == "n int 100 >= 1 jobs per unit time".split()
    assert "profiles: default" in rankrouting(book, "list").stdout


REFUSED: list[tuple[Sequence[str], str]] = [
    (["run", "alpah"], "did you mean 'alpha'"),
    (["list", "alpah"], "did you mean 'alpha'"),
    (["run", "alpha", "-p", "upsilom", "1"], "did you mean 'upsilon'"),
    (["run", "alpha", "-p", "n", "2.5"], "n = '2.5': must be a whole number"),
    (["run", "alpha", "-p", "n", "1e400"], "must be a whole number"),
    (["run", "alpha", "-p", "upsilon", "-1"], "[> 0]"),
    (["run", "alpha", "-p", "n"], "needs a value"),
    (["run", "alpha", "-f", "absent.yml"], "absent.yml"),
    (["run", "alpha", "-f", "bad.yml"], "not YAML"),
    (["run", "alpha", "-f", "tuple.yml"], "not YAML"),
    (["run", "alpha", "-o", "absent/out.ipynb"], "cannot be written"),
    (["run", "alpha", "-o", "out.txt"], "must end in .ipynb"),
    (["run", "alpha", "-o", "book/alpha.ipynb"], "the chapters of the book are there"),
    (["book", "--profile", "defualt"], "did you mean 'default'"),
    (["claims", "--profile", "default"], "has not been built"),
]


@pytest.mark.parametrize(
    ("arguments", "said"), REFUSED, ids=lambda value: "-".join(value) if isinstance(value, list) else ""
)
def test_it_is_refused_in_one_sentence(book: Path, arguments: Sequence[str], said: str) -> None:
    (book / "bad.yml").write_text("n: [1\n", "utf-8")
    (book / "tuple.yml").write_text("n: !!python/tuple [1]\n", "utf-8")
    shown = rankrouting(book, *arguments)
    assert shown.returncode == 2
    assert said in shown.stderr and len(shown.stderr.strip().splitlines()) == 1, shown.stderr
    assert not (book / "_build").exists() and "Traceback" not in shown.stderr


@pytest.mark.slow
def test_a_chapter_runs_with_parameters_of_ones_own(book: Path, tmp_path: Path) -> None:
    cell = 'results.save_csv("all", {"n": n, "upsilon": upsilon, "flag": flag})\nprint((n, upsilon, flag, name))'
    parameters = "n: int = 1  # x [>= 1]\nupsilon: float = 1.0  # x\nflag: bool = True  # x\nname: str = 'a=b'  # x\n"
    (book / "book" / "alpha.ipynb").write_text(notebook("alpha", [cell], parameters=parameters), "utf-8")
    (tmp_path / "mine.yml").write_text("upsilon: 1e-3\nn: 7\n", "utf-8")
    words = ["run", "alpha", "-f", str(tmp_path / "mine.yml"), "-p", "n", "1e3", "-p", "flag", "false"]
    shown = rankrouting(book, *words, "-p", "name", "x=y", "-o", "out.ipynb", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "(1000, 0.001, False, 'x=y')" in outputs(tmp_path / "out.ipynb")
    assert (book / "_build" / "results" / "alpha" / "all.csv").read_text() == "n,upsilon,flag\n1000,0.001,False\n"
    text = (tmp_path / "out.ipynb").read_text("utf-8")
    assert str(tmp_path) not in text and "papermill" not in nbformat.reads(text, 4).metadata


@pytest.mark.slow
def test_a_failing_cell_is_named_and_its_notebook_kept(book: Path, tmp_path: Path) -> None:
    (book / "book" / "alpha.ipynb").write_text(notebook("alpha", ["1 + 1", "y = 0\n1 / y"]), "utf-8")
    shown = rankrouting(book, "run", "alpha", "-o", str(tmp_path / "out.ipynb"))
    assert shown.returncode == 1
    assert "chapter alpha, cell In [4] ('y = 0'): ZeroDivisionError: division by zero" in shown.stderr
    assert (tmp_path / "out.broken.ipynb").is_file() and not (tmp_path / "out.ipynb").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n": 2.5}, "n = 2.5: must be a whole number in [>= 1]"),
        ({"m": 1}, "no parameter 'm'"),
    ],
)
def test_plain_papermill_is_checked_too(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], said: str
) -> None:
    command = [sys.executable, "-m", "papermill", "book/alpha.ipynb", str(tmp_path / "o.ipynb"), "-k", "python3"]
    for name, value in arguments.items():
        command += ["-p", name, str(value)]
    environment = os.environ | {repository.ROOT_VARIABLE: str(book), "PYTHONUTF8": "1"}
    done = subprocess.run(
        command, cwd=book, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=300
    )
    assert done.returncode != 0 and said in done.stderr
