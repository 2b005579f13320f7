"""The build: what is executed again, what stops it, and that a good book is never replaced by a bad one."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from nbclient.exceptions import DeadKernelError
from rankrouting.companion import book, execute, repository, state
from rankrouting.companion.book import BuildFailed, build

from faults import executed_by  # isort: skip
from minibook import add_chapter, claim_cells, make_book, notebook, outputs  # isort: skip

pytestmark = pytest.mark.slow


@pytest.fixture
def root(built: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may break."""
    copy = tmp_path / "ein Büchlein"
    shutil.copytree(built, copy)
    return copy


def page_of(root: Path, name: str = "alpha") -> str:
    return (root / "_build" / "default" / "html" / "book" / f"{name}.html").read_text("utf-8")


def rebuilt(root: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Build again, without pages, and return the chapters that were executed."""
    monkeypatch.setattr(book.pages, "make", lambda *_, **__: None)
    return executed_by(root, monkeypatch)


def test_a_build_makes_pages_downloads_and_claims(built: Path) -> None:
    folder = built / "_build" / "default"
    html = folder / "html"
    assert (html / "index.html").is_file()
    assert "alpha-mean" in page_of(built) and "holds" in page_of(built)
    assert (html / "results" / "alpha" / "numbers.csv").read_text() == "n,upsilon\n200,1.0\n"
    assert "claims.json" in {path.name for path in (html / "results" / "beta").iterdir()}
    assert (html / "_sources" / "book" / "alpha.ipynb").is_file()
    facts = json.loads((folder / "results" / "alpha" / "run.json").read_text())
    assert facts["parameters"] == {"n": 200, "upsilon": 1.0}
    assert facts["seconds"] > 0 and facts["peak_memory_bytes"] > 10_000_000


def test_no_path_of_this_machine_and_no_address_is_published(built: Path) -> None:
    html = built / "_build" / "default" / "html"
    for path in [*html.rglob("*.html"), *html.rglob("*.ipynb"), *html.rglob("*.json"), *html.rglob("*.csv")]:
        text = path.read_text("utf-8")
        assert str(built) not in text and str(Path(sys.prefix)) not in text, path
        assert not re.search(r'<(script|link|img)[^>]+(src|href)="(https?:)?//', text), path


def test_nothing_is_executed_again_when_nothing_has_changed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rebuilt(root, monkeypatch) == []


def test_unchanged_pages_are_not_made_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("made the pages again"))
    build("default", root=root, progress=False)


def set_profile(root: Path) -> None:
    (root / "book" / "profiles" / "default.yml").write_text("alpha:\n  n: 300\n", "utf-8")


def set_source(root: Path) -> None:
    add_chapter(root, "alpha", notebook("alpha", [*claim_cells("alpha"), "1 + 1"]))


def lose_result(root: Path) -> None:
    (root / "_build" / "default" / "results" / "alpha" / "numbers.csv").unlink()


def touch_result(root: Path) -> None:
    (root / "_build" / "default" / "results" / "alpha" / "numbers.csv").write_text("n\n1\n")


def lose_notebook(root: Path) -> None:
    (root / "_build" / "default" / "executed" / "alpha.ipynb").unlink()


@pytest.mark.parametrize("change", [set_profile, set_source, lose_result, touch_result, lose_notebook])
def test_what_has_changed_is_executed_again(
    root: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    change(root)
    assert rebuilt(root, monkeypatch) == ["alpha", "intro"]


def test_a_chapter_is_executed_again_when_the_files_it_reads_have_changed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = root / "book" / "alpha.ipynb"
    chapter = json.loads(source.read_text("utf-8"))
    chapter["metadata"]["rankrouting"] = {"reads": ["data"]}
    source.write_text(json.dumps(chapter), "utf-8")
    (root / "data").mkdir()
    for content in ("1", "2"):
        (root / "data" / "x.csv").write_text(content)
        assert "alpha" in rebuilt(root, monkeypatch)
    assert rebuilt(root, monkeypatch) == []


def test_a_change_of_the_library_executes_everything(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "environment_hash", lambda: "another library")
    assert sorted(rebuilt(root, monkeypatch)) == ["alpha", "beta", "intro"]


def test_every_source_of_the_library_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "rankrouting"
    shutil.copytree(Path(state.__file__).parents[1], package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(state, "__file__", str(package / "companion" / "state.py"))
    hashes = set()
    for name in (None, "model.py", "cli.py"):
        if name is not None:
            (package / name).write_text((package / name).read_text("utf-8") + "# changed\n", "utf-8")
        hashes.add(state.environment_hash.__wrapped__())
    monkeypatch.setattr(state, "installed_versions", lambda: {"numpy": "0"})
    hashes.add(state.environment_hash.__wrapped__())
    assert len(hashes) == 4


def test_a_failing_cell_stops_the_build_and_leaves_the_good_pages(root: Path) -> None:
    before = page_of(root)
    add_chapter(root, "alpha", notebook("alpha", ["1 + 1", "# why\n1 / 0"]))
    with pytest.raises(
        BuildFailed, match=r"chapter alpha, cell In \[5\] \('# why'\): ZeroDivisionError: division by zero"
    ):
        build("default", root=root, progress=False)
    kept = root / "_build" / "default" / "broken" / "alpha.ipynb"
    assert "ZeroDivisionError" in outputs(kept)
    assert page_of(root) == before
    # Mended, it builds, and what was broken is gone.
    add_chapter(root, "alpha", notebook("alpha", claim_cells("alpha")))
    build("default", root=root, progress=False)
    assert not kept.exists()


def failing(root: Path, cells: list[str]) -> str:
    add_chapter(root, "alpha", notebook("alpha", cells))
    with pytest.raises(BuildFailed) as caught:
        build("default", root=root, progress=False)
    return str(caught.value)


def test_a_false_claim_fails_the_build_even_if_its_chapter_does_not_ask(root: Path) -> None:
    cells = claim_cells("alpha")
    wrong = cells[1].replace("predicted=1 / upsilon", "predicted=9 / upsilon")
    assert "ClaimFailed: 1 of 1 claims fail: alpha-mean: predicted 9" in failing(root, [cells[0], wrong, cells[2]])
    add_chapter(root, "intro", notebook("intro", ["1"], collects=True))
    assert "1 of 2 claims fail: alpha-mean: predicted 9" in failing(root, [cells[0], wrong])


def test_a_chapter_that_does_not_save_its_claims_fails_the_build(root: Path) -> None:
    add_chapter(root, "intro", notebook("intro", ["1"], collects=True))
    text = claim_cells("alpha")[1].replace("ledger.save()\n", "")
    assert "alpha has left no claims" in failing(root, [text])


def test_a_kernel_that_dies_is_reported_with_its_cell(root: Path) -> None:
    said = failing(root, ["1", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"])
    assert "chapter alpha, cell In [" in said and "import os, signal" in said and "Kernel died" in said


def test_a_warning_on_a_page_fails_the_build(root: Path) -> None:
    said = failing(root, ["import warnings\nwarnings.warn('look out')"])
    assert "wrote to standard error" in said and "look out" in said


@pytest.mark.parametrize(
    "shown", ["object()", "[object()]", "type('Text', (), {'__repr__': lambda self: 'Text(1, 2)'})()"]
)
def test_an_object_shown_on_a_page_fails_the_build(root: Path, shown: str) -> None:
    assert "shows an object" in failing(root, [shown])


def test_a_path_of_this_machine_on_a_page_fails_the_build(root: Path) -> None:
    assert "path of this machine" in failing(root, ["import sys\nprint(sys.executable)"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{cite}`Nobody1900`", "Nobody1900"),
        ("{prf:ref}`thm-nowhere`", "thm-nowhere"),
        ("{eq}`eq-nowhere`", "eq-nowhere"),
        ("[there](nowhere.ipynb)", "nowhere.ipynb"),
    ],
)
def test_a_broken_reference_fails_every_time(root: Path, text: str, said: str) -> None:
    before = page_of(root)
    source = notebook("alpha", claim_cells("alpha")).replace("It holds.", f"It holds, see {text}.")
    add_chapter(root, "alpha", source)
    for _ in range(2):
        with pytest.raises(BuildFailed, match="the pages have errors") as caught:
            build("default", root=root, progress=False)
        assert said in str(caught.value)
    assert page_of(root) == before


def test_a_kernel_that_dies_at_its_start_is_started_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = []

    def dying(*_: Any, **__: Any) -> None:
        starts.append(1)
        if len(starts) <= deaths:
            raise DeadKernelError("Kernel died")
        (tmp_path / "out.ipynb").write_text(notebook("alpha", []), "utf-8")

    monkeypatch.setattr(execute.papermill, "execute_notebook", dying)
    job = (tmp_path / "x", tmp_path / "out.ipynb", {}, tmp_path)
    deaths = 1
    assert execute.execute(*job) is None
    starts.clear()
    deaths = 2
    (tmp_path / "out.ipynb").unlink()
    failure = execute.execute(*job)
    assert failure is not None and failure.error == "Kernel died"
    assert len(starts) == 2


@pytest.fixture
def sleeping(root: Path, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A build whose kernels sleep, and the process of one of them."""
    note = f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))"
    sleep = f"import os, pathlib, time\n{note}\ntime.sleep(600)"
    add_chapter(root, "alpha", notebook("alpha", [sleep]))
    process = subprocess.Popen(
        [sys.executable, "-m", "rankrouting.cli", "book"],
        env=os.environ | {repository.ROOT_VARIABLE: str(root)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + 120
    while not ((tmp_path / "pid").is_file() and (tmp_path / "pid").read_text()):
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.2)
    yield process, int((tmp_path / "pid").read_text())
    if process.poll() is None:
        process.kill()
    process.communicate()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_build_ends_with_its_kernels(
    sleeping: tuple[subprocess.Popen[str], int], how: signal.Signals
) -> None:
    process, kernel = sleeping
    process.send_signal(how)
    process.communicate(timeout=30)
    assert process.returncode == (-9 if how == signal.SIGKILL else 130)
    until = time.monotonic() + 15
    while psutil.pid_exists(kernel) and psutil.Process(kernel).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until, "the kernel lives on"
        time.sleep(0.2)


def test_two_builds_of_one_profile_do_not_mix(root: Path) -> None:
    set_profile(root)
    command = [sys.executable, "-m", "rankrouting.cli", "book"]
    environment = os.environ | {repository.ROOT_VARIABLE: str(root), "PYTHONUTF8": "1"}
    both = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [one.communicate(timeout=400) for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    assert sum("waiting for another build" in errors for _, errors in said) == 1
    assert said[0][0] == said[1][0] == f"{root / '_build/default/html/book/intro.html'}\n"


def test_plain_jupyter_book_runs_collecting_chapters_last(tmp_path: Path) -> None:
    root = make_book(tmp_path / "à la main")
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", ".", "-W", "-n"]
    done = subprocess.run(
        command,
        cwd=root,
        env=os.environ | {"PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=400,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    html = root / "_build" / "html"
    assert (html / "results" / "alpha" / "numbers.csv").read_text() == "n,upsilon\n100,1.0\n"
    assert "alpha-mean" in (html / "book" / "alpha.html").read_text("utf-8")
