"""``rankrouting verify``: it finds what is the same, every number that is not, and what else has changed."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from rankrouting import cli
from rankrouting.companion import chapters, provenance, repository, runner, state
from rankrouting.companion.book import Places, _execute_all
from rankrouting.companion.verify import Difference, Published, Verification, compare
from typer.testing import CliRunner

from minibook import add_chapter, claim_cells, make_book, notebook  # isort: skip

MEAN_CELL = """from rankrouting import System, mjsq, queues
from rankrouting.replications import mean_of
system = System(n=n, K=2, upsilon=upsilon, policy=mjsq(1.0))
paths = queues.simulate_paths(system, [0.5], replications=20, seed=seed)
mean = mean_of(paths.sum(axis=-1))
results.save_csv("mean", {"n": n, "mean (1)": mean.value, "standard error (1)": mean.standard_error, "time (s)": 1.5})
"""
PARAMETERS = "n: int = 100  # x [>= 1]\nupsilon: float = 1.0  # x [> 0]\nseed: int = 1  # x [>= 0]\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def differences(tmp_path: Path, old: str, new: str, name: str = "a.csv") -> list[str]:
    return list(map(str, compare(write(tmp_path / "old" / name, old), write(tmp_path / "new" / name, new))))


# What is compared, and how.


def test_cells_of_a_table_are_compared_digit_by_digit(tmp_path: Path) -> None:
    head = "n,mean (1),standard error (1),other\n"
    old = head + "4,0.5,0.01,7.0\n9,0.7,0.02,7.0\n"
    assert differences(tmp_path, old, old) == []
    assert differences(tmp_path, old, head + "4,0.5,0.01,7.0\n9,0.73,0.02,7.000000000000001\n") == [
        "a.csv, row 2, mean (1): 0.7 published, 0.73 now (1.5 standard errors)",
        "a.csv, row 2, other: 7.0 published, 7.000000000000001 now",
    ]
    assert differences(tmp_path, old, head + "4,0.5,0.02,7.0\n9,,0.02,7.0\n") == [
        "a.csv, row 1, standard error (1): 0.01 published, 0.02 now",
        "a.csv, row 2, mean (1): 0.7 published, nothing now",
    ]


def test_each_mean_has_the_standard_error_after_it(tmp_path: Path) -> None:
    head = "one: mean,one: standard error,two: mean,two: standard_error\n"
    found = differences(tmp_path, head + "1.0,0.1,1.0,0.2\n", head + "1.1,0.1,1.1,0.2\n")
    assert [one.partition(" now ")[2] for one in found] == ["(1 standard errors)", "(0.5 standard errors)"]


def test_measured_times_are_left_out_and_other_shapes_are_not(tmp_path: Path) -> None:
    head = "n,seconds per unit of time,time (s),peak memory (MB)\n"
    assert differences(tmp_path, head + "1,2,3,4\n", head + "1,9,9,9\n") == []
    assert len(differences(tmp_path, head + "1,2,3,4\n", head + "2,9,9,9\n")) == 1
    assert "1 rows of n, seconds" in differences(tmp_path, head + "1,2,3,4\n", head)[0]
    assert "0 rows of n" in differences(tmp_path, head, "n\n")[0]
    assert len(differences(tmp_path, "x", "y", "other.txt")) == 1
    (tmp_path / "new" / "other.txt").unlink()
    assert [str(one) for one in compare(tmp_path / "old" / "other.txt", tmp_path / "new" / "other.txt")] == [
        "other.txt: a file published, no file now"
    ]


def test_claims_are_compared_by_their_ids(tmp_path: Path) -> None:
    claim = {"id": "a-mean", "predicted": 1.0, "measured": 1.2, "standard_error": 0.1, "z": 2.0, "allowance": math.nan}
    other = claim | {"id": "a-other"}
    assert differences(tmp_path, json.dumps([claim]), json.dumps([claim], indent=1), "claims.json") == []
    changed = claim | {"measured": 1.25, "z": 2.5}
    assert differences(tmp_path, json.dumps([claim]), json.dumps([changed, other]), "claims.json") == [
        "claim a-mean, measured: 1.2 published, 1.25 now (0.5 standard errors)",
        "claim a-mean, z: 2.0 published, 2.5 now",
        "claim a-other: not made published, made now",
    ]


def test_a_long_report_is_cut() -> None:
    found = Verification("a", 1, (), tuple(Difference(f"row {i}", "0", "1") for i in range(30)))
    assert not found.same and list(found.lines(most=3))[-1] == "  and 27 more"
    assert Verification("a", 1, ("numpy: 1 then, 2 now",), ()).same
    assert not Verification("a", 0, (), (), "cell In [1]").same


# A published book.


def execute(root: Path) -> None:
    """Execute the chapters of a book as a build does, without pages."""
    with pytest.MonkeyPatch.context() as patch:
        for name in (repository.ROOT_VARIABLE, repository.RESULTS_VARIABLE):
            patch.delenv(name, raising=False)
        parameters = chapters.load_profile("default", root)
        _execute_all(Places(root, "default"), chapters.all_chapters(root), parameters, 2, False)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_book(tmp_path_factory.mktemp("books") / "un livre")
    add_chapter(root, "alpha", notebook("alpha", [MEAN_CELL, *claim_cells("alpha")], parameters=PARAMETERS))
    write(root / "book" / "profiles" / "default.yml", "alpha:\n  n: 200\n  seed: 7\n")
    execute(root)
    return root


@pytest.fixture
def root(published: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may tamper with."""
    copy = tmp_path / "book"
    shutil.copytree(published, copy)
    return copy


@pytest.fixture
def command(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv(repository.ROOT_VARIABLE, str(root))
    monkeypatch.delenv(repository.RESULTS_VARIABLE, raising=False)
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    return lambda *arguments: CliRunner().invoke(cli.app, ["verify", *arguments])


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def record(root: Path, name: str = "alpha") -> tuple[Path, Any]:
    path = root / "_build" / "default" / "executed" / f"{name}.ipynb"
    return path, nbformat.read(path, as_version=4)


@pytest.mark.slow
def test_an_executed_notebook_says_what_it_was_made_with(published: Path) -> None:
    run = record(published)[1].metadata["rankrouting"]["run"]
    assert run["chapter"] == "alpha" and run["seed"] == 7
    assert run["parameters"] == {"n": 200, "upsilon": 1.0, "seed": 7}
    assert run["code"] == state.code_hash() and len(run["source"]) == 64
    assert run["versions"].items() >= {**provenance.versions(), "processor": provenance.processor()}.items()
    collecting = record(published, "intro")[1].metadata["rankrouting"]
    assert collecting["collects"] is True and collecting["run"]["seed"] is None


@pytest.mark.slow
def test_an_untouched_book_is_the_same(root: Path, command: Callable[..., Any]) -> None:
    # Other parameters now: a chapter is executed with those that it was published with.
    write(root / "book" / "profiles" / "default.yml", "alpha:\n  n: 300\n")
    before = files(root)
    shown = command()
    assert shown.exit_code == 0, shown.output
    assert [line.partition(" (")[0] for line in shown.stdout.splitlines()] == [
        "intro: the same",
        "alpha: the same",
        "beta: the same",
        "3 chapters, 0 different",
    ]
    assert "alpha: the same (5 files and claims compared)" in shown.stdout
    assert files(root) == before


@pytest.mark.slow
def test_a_tampered_number_is_named(root: Path, command: Callable[..., Any]) -> None:
    results = root / "_build" / "default" / "results" / "alpha"
    head, row = (results / "mean.csv").read_text().splitlines()
    n, mean, error, seconds = row.split(",")
    tampered = float(mean) + 2 * float(error)
    write(results / "mean.csv", f"{head}\n{n},{tampered},{error},99\n")
    claims = (results / "claims.json").read_text()
    write(results / "claims.json", claims.replace('"predicted": 1.0', '"predicted": 1.1'))
    shown = command("alpha", "beta")
    assert shown.exit_code == 1, shown.output
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("alpha: DIFFERENT")
    assert lines[3:] == ["beta: the same (4 files and claims compared)", "2 chapters, 1 different"]
    assert "claim alpha-mean, predicted: 1.1 published, 1.0 now" in lines[1]
    assert lines[2] == f"  mean.csv, row 1, mean (1): {tampered} published, {mean} now (2 standard errors)"
    assert seconds == "1.5"


TABLE_CELL = """from rankrouting.companion.repository import tables_folder
taken = tables_folder() / "number.txt"
results.save_csv("number", {"number (1)": [float(taken.read_text()) if taken.exists() else 1.0]})
"""


@pytest.mark.slow
def test_what_was_taken_from_a_table_is_computed_again(root: Path, command: Callable[..., Any]) -> None:
    add_chapter(root, "beta", notebook("beta", [TABLE_CELL, *claim_cells("beta")]))
    write(root / "_build" / "tables" / "number.txt", "2.0")
    execute(root)
    shown = command("beta")
    assert shown.exit_code == 1 and "number (1): 2.0 published, 1.0 now" in shown.stdout, shown.output


@pytest.mark.slow
def test_the_pages_of_a_book_can_be_verified_elsewhere(root: Path, tmp_path: Path, command: Callable[..., Any]) -> None:
    build, pages = root / "_build" / "default", tmp_path / "pages"
    shutil.copytree(build / "executed", pages / "_sources" / "book")
    shutil.copytree(build / "results", pages / "results")
    shutil.rmtree(root / "_build")
    shown = command("alpha", "--against", str(pages))
    assert shown.exit_code == 0, shown.output
    assert not (root / "_build").exists()


@pytest.mark.slow
def test_other_versions_code_and_sources_are_named(root: Path, command: Callable[..., Any]) -> None:
    path, book = record(root)
    run = book.metadata["rankrouting"]["run"]
    run["versions"]["numpy"], run["code"] = "1.0", "0" * 64
    nbformat.write(book, path)
    cells = [MEAN_CELL.replace("seed=seed", "seed=seed + 1"), *claim_cells("alpha")]
    add_chapter(root, "alpha", notebook("alpha", cells, parameters=PARAMETERS))
    shown = command("alpha")
    assert shown.exit_code == 1
    assert "with another numpy: 1.0 then" in shown.stdout
    assert "with another code of the library: 000000000000 then" in shown.stdout
    assert "with another source of the chapter" in shown.stdout
    assert "mean.csv, row 1, mean (1)" in shown.stdout and "standard errors)" in shown.stdout


@pytest.mark.slow
def test_a_chapter_that_no_longer_runs_is_different(root: Path, command: Callable[..., Any]) -> None:
    add_chapter(root, "alpha", notebook("alpha", ["1 / 0"], parameters=PARAMETERS))
    shown = command("alpha")
    assert shown.exit_code == 1 and "ZeroDivisionError" in shown.stdout and "/broken" not in shown.stdout


@pytest.mark.slow
def test_what_is_not_published_is_refused(
    root: Path, tmp_path: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "run_chapter", lambda *_, **__: pytest.fail("something ran"))
    path, book = record(root)
    for words, said in [
        (["alpah"], "did you mean 'alpha'"),
        (["--profile", "defualt"], "did you mean 'default'"),
        (["--against", str(tmp_path / "absent")], "chapter intro is not published in"),
    ]:
        shown = command(*words)
        assert shown.exit_code == 2 and said in shown.stderr and len(shown.stderr.splitlines()) == 1, shown.stderr
    del book.metadata["rankrouting"]
    nbformat.write(book, path)
    shown = command("alpha")
    assert shown.exit_code == 2 and "has no record of its run" in shown.stderr
    shutil.rmtree(root / "_build" / "default" / "results" / "beta")
    shown = command("beta")
    assert shown.exit_code == 2 and "has no published results" in shown.stderr


def test_published_is_a_build_or_its_pages(tmp_path: Path) -> None:
    pages = write(tmp_path / "_sources" / "book" / "a.ipynb", "{}")
    assert Published(tmp_path).notebook("a") == pages
    build = write(tmp_path / "executed" / "a.ipynb", "{}")
    assert Published(tmp_path).notebook("a") == build
    with pytest.raises(FileNotFoundError, match="neither"):
        Published(tmp_path).notebook("b")
