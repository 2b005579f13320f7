"""Faults that a program survives: kills, a full disk, a read-only one, no home, and sixteen runs at the same time."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import psutil
import pyarrow.parquet as pq
import pytest
from rankrouting import _threads, cli
from rankrouting._cache import cache_folder
from rankrouting._files import replacing
from rankrouting.companion import book, execute, pages, repository, results, runner
from rankrouting.companion.book import BuildFailed, build
from rankrouting.companion.results import Results
from rankrouting.companion.runner import ExecutionFailed, Run
from typer.testing import CliRunner

from minibook import add_chapter, claim_cells, make_book, notebook, outputs  # isort: skip


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (repository.ROOT_VARIABLE, repository.RESULTS_VARIABLE):
        monkeypatch.delenv(name, raising=False)


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


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_book(tmp_path_factory.mktemp("books") / "book")
    build("default", root=root, progress=False)
    return root


@pytest.fixture
def root(built: Path, tmp_path: Path) -> Path:
    """A copy of a book that was built, of which all chapters have changed since."""
    copy = tmp_path / "book"
    shutil.copytree(built, copy, symlinks=True)
    (copy / "book" / "profiles" / "default.yml").write_text("alpha:\n  n: 300\nbeta:\n  n: 400\n", "utf-8")
    return copy


def made_since(root: Path, built: Path) -> set[str]:
    """Return the chapters that have been executed to their end since the copy was made."""

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


# Killed.


@pytest.mark.slow
def test_a_build_that_is_killed_again_and_again_comes_to_the_same_end(
    built: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(root, whole)
    began = time.monotonic()
    build("default", root=whole, progress=False)
    seconds = time.monotonic() - began
    # The runner itself, and then whichever of its processes was started last: a worker, a kernel or Jupyter Book.
    for share, victim in ((0.15, -1), (0.3, 0), (0.5, -1), (0.7, 0), (0.9, -1)):
        process = start("book", cwd=root, root=root)
        time.sleep(share * seconds)
        others = descendants(process)
        if victim == 0 or not others:
            process.kill()
        else:
            with contextlib.suppress(psutil.NoSuchProcess):
                others[victim].kill()
        code, _, errors = finished(process)
        assert "Traceback" not in errors and (code != 0 or victim != 0 or not others)
        wait_for(lambda others=others: all_gone(others), 30)
        assert_nothing_is_half_written(root)
    made = made_since(root, built)
    executed = executed_by(root, monkeypatch)
    assert made.isdisjoint(executed) and made | set(executed) == {"alpha", "beta", "intro"}
    assert numbers_of(root) == numbers_of(whole)
    assert_nothing_is_half_written(root)
    left = [path.name for path in (root / "_build" / "default").rglob(".*")]
    assert [name for name in left if name not in (".lock", ".buildinfo", ".nojekyll", ".doctrees")] == []


def test_pages_that_a_killed_build_had_put_aside_come_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = root / "_build" / "default"
    (folder / "html").rename(folder / ".html-old")
    (folder / ".pages-abcd1234").mkdir()
    (folder / ".pages-abcd1234" / "half").write_text("x")
    with monkeypatch.context() as patch, pytest.raises(BuildFailed, match="stop"):
        patch.setattr(book.runner, "run_chapter", lambda *_, **__: (_ for _ in ()).throw(ExecutionFailed("stop")))
        build("default", root=root, progress=False)
    assert (folder / "html" / "index.html").is_file()
    assert not (folder / ".html-old").exists() and not (folder / ".pages-abcd1234").exists()


@pytest.mark.slow
def test_an_interrupted_run_ends_at_once_with_a_kernel_that_is_busy_with_machine_code(tmp_path: Path) -> None:
    root = make_book(tmp_path / "book")
    busy = (
        "from rankrouting import System, jsq, queues\nimport pathlib\n"
        f"queues.simulate_paths(System(100, 2, 1.0, jsq()), [0.1])\npathlib.Path({str(tmp_path / 'go')!r}).touch()\n"
        "queues.simulate_paths(System(10**9, 2, 1.0, jsq()), [20.0], replications=8)"
    )
    add_chapter(root, "alpha", notebook("alpha", [busy]))
    process = start("run", "alpha", cwd=tmp_path, root=root)
    wait_for((tmp_path / "go").is_file, 240)
    others = descendants(process)
    assert len(others) >= 2
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    code, out, errors = finished(process, 30)
    assert (code, out, errors) == (130, "", "rankrouting: interrupted\n")
    wait_for(lambda: all_gone(others), 15)
    assert time.monotonic() - began < 30 and not (tmp_path / "alpha.ipynb").exists()


LONG = {
    "paths": "queues.simulate_paths(system, [10.0], replications=8)",
    "sweep": "sweep.sweep([sweep.Cell(system, sweep.Paths([10.0], replications=2))], 't.parquet')",
    "exact": "exact.transient(System(10**4, 2, 1.0, jsq()), 0, [10.0])",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", LONG)
def test_an_interrupt_does_not_wait_for_machine_code(tmp_path: Path, what: str) -> None:
    script = (
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from rankrouting import System, exact, jsq, queues, sweep\nsystem = System(10**9, 2, 1.0, jsq())\n"
        "queues.simulate_paths(System(100, 2, 1.0, jsq()), [0.1])\n"
        "exact.transient(System(9, 2, 1.0, jsq()), 0, [0.1])\nprint('go', flush=True)\n"
    )
    command = [sys.executable, "-c", script + LONG[what]]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "go\n"
        time.sleep(2)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT and errors.strip().endswith("KeyboardInterrupt")


def test_what_waits_for_threads_can_be_left_and_what_waits_in_them_does_not_begin() -> None:
    begun: list[int] = []
    pool = _threads.Pool(1)
    futures = [pool.submit(lambda i=i: begun.append(i) or time.sleep(0.2)) for i in range(5)]
    wait_for(lambda: begun)
    pool.shutdown(wait=False, cancel_futures=True)
    assert [one.cancelled() for one in futures[1:]] == [True] * 4
    pool.shutdown()
    assert begun == [0]
    with pytest.raises(ZeroDivisionError):
        _threads.interruptible(lambda: 1 / 0)


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
    built: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book, "_check_claims", lambda *_: None)
    for heavy in ("_build/default/html", "_build/staged", "book/_static"):
        shutil.rmtree(root / heavy)

    def make(places: book.Places, sources: Any, **_: Any) -> None:
        pages._stage(places, sources)
        new = Path(shutil.copytree(places.results, places.folder / ".pages-x" / "html"))
        pages._replace_folder(new, places.html)

    monkeypatch.setattr(book.pages, "make", make)
    monkeypatch.setattr(book.runner, "run_chapter", imitated)

    def attempt(name: str, fails: int) -> tuple[Path, int, BaseException | None]:
        copy = Path(shutil.copytree(root, tmp_path / name))
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
def test_when_no_file_can_grow_the_commands_say_so_and_the_good_pages_stay(root: Path, file_size: int) -> None:
    before = {path: path.read_bytes() for path in visible(root / "_build" / "default" / "html")}
    code, _, errors = finished(start("book", cwd=root, root=root, file_size=file_size))
    assert code == 1 and "Traceback" not in errors and len(errors.splitlines()[-1]) < 600, errors
    assert {path: path.read_bytes() for path in visible(root / "_build" / "default" / "html")} == before
    assert_nothing_is_half_written(root)


@pytest.mark.slow
def test_when_no_file_can_grow_a_run_and_a_sweep_say_so(root: Path, tmp_path: Path) -> None:
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
        process = start(*words, cwd=tmp_path, root=root, file_size=1000, NUMBA_DISABLE_JIT="1")
        code, out, errors = finished(process)
        assert code == 1 and out == "" and "Traceback" not in errors, errors
        assert "File too large" in errors and errors.splitlines()[-1].startswith("rankrouting: "), errors
    assert not (tmp_path / "mine.parquet").exists() and not (tmp_path / "alpha.ipynb").exists()
    assert list((tmp_path / "mine.cells").glob("*.parquet")) == []
    assert finished(start("sweep", "mine.yml", cwd=tmp_path))[0] == 0
    assert pq.read_table(tmp_path / "mine.parquet").num_rows == 2


# Two and sixteen at the same time.


def test_two_runs_of_a_chapter_never_mix_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(repository.RESULTS_VARIABLE, str(tmp_path))
    place, stop, seen = tmp_path / "alpha", False, set()

    def run(number: int) -> None:
        for i in range(40):
            results._publish(dict.fromkeys(("a.csv", "b.csv", "c.csv"), f"{number} {i}".encode()), place)

    def look() -> None:
        while not stop:
            try:
                handle = os.open(place, os.O_RDONLY)
            except FileNotFoundError:
                continue
            try:
                found = set()
                for name in os.listdir(handle):
                    with open(os.open(name, os.O_RDONLY, dir_fd=handle)) as file:
                        found.add(file.read())
                seen.add(frozenset(found))
            except FileNotFoundError:
                pass  # that folder was taken away
            finally:
                os.close(handle)

    with ThreadPoolExecutor(3) as pool:
        looking = pool.submit(look)
        for one in [pool.submit(run, number) for number in (1, 2)]:
            one.result()
        stop = True
        looking.result()
    assert all(len(found) <= 1 for found in seen) and len(seen) > 3
    assert len({path.read_text() for path in place.iterdir()}) == 1 and len(list(place.iterdir())) == 3
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_numbers_of_a_run_are_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(repository.RESULTS_VARIABLE, str(tmp_path))
    mine = Results("alpha")
    mine.save_csv("one", {"n": 1})
    other = "from rankrouting.companion.results import Results; Results('alpha').save_csv('other', {'n': 9})"
    subprocess.run([sys.executable, "-c", other], check=True)
    assert [path.name for path in (tmp_path / "alpha").iterdir()] == ["other.csv"]
    Results("alpha").save_csv("two", {"n": 2})
    assert sorted(path.name for path in (tmp_path / "alpha").iterdir()) == ["one.csv", "two.csv"]
    assert (tmp_path / "alpha").stat().st_mode & 0o777 == 0o777 & ~current_umask()


def current_umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


@pytest.mark.slow
def test_sixteen_runs_at_once_with_cold_caches_and_without_a_home_all_work(tmp_path: Path) -> None:
    root = make_book(tmp_path / "book")
    cells = [
        "from rankrouting import System, jsq, plots, queues\n"
        "paths = queues.simulate_paths(System(100, 2, 1.0, jsq()), [0.1], seed=1)",
        'results.save_csv("first", {"n": [n]})',
        'drawing, ax = plots.figure()\nax.plot([0, n], [0, 1])\nax.set(xlabel="n", ylabel="y")\n'
        'plots.show(drawing, caption="c", alt="a", name="figure", results=results)',
        'results.save_csv("last", {"n": [n], "mean": [paths.mean()]})',
    ]
    add_chapter(root, "alpha", notebook("alpha", cells))
    cold = {"NUMBA_CACHE_DIR": tmp_path / "cold", "HOME": "/nonexistent", "XDG_CACHE_HOME": None, "MPLCONFIGDIR": None}
    runs = [
        start("run", "alpha", "-p", "n", str(i), "-o", f"{i}.ipynb", cwd=tmp_path, root=root, **cold)
        for i in range(1, 17)
    ]
    ended = [finished(one, 1200) for one in runs]
    assert [(code, errors) for code, _, errors in ended] == [(0, "")] * 16
    place = root / "_build" / "results" / "alpha"
    first, last = pd.read_csv(place / "first.csv"), pd.read_csv(place / "last.csv")
    assert first["n"].iloc[0] == last["n"].iloc[0] and (place / "figure.svg").is_file()
    for i in range(1, 17):
        assert f"n = {i}" in (tmp_path / f"{i}.ipynb").read_text("utf-8")
    assert [path.name for path in place.parent.iterdir()] == ["alpha"]
    assert any((tmp_path / "cold").rglob("*.nbi"))


def test_kernels_speak_by_sockets_of_their_own_where_the_folder_has_a_short_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as short:
        monkeypatch.setenv("JUPYTER_RUNTIME_DIR", f"{short}/runtime")
        one, two = execute._transport(), execute._transport()
        assert one["transport"] == "ipc" and one["ip"] != two["ip"] and Path(one["ip"]).parent.is_dir()
    long = tmp_path / ("x" * 100)
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(long))
    assert execute._transport() == {} and not long.exists()


@pytest.mark.slow
def test_a_chapter_runs_where_the_folder_for_temporary_files_has_a_long_name(root: Path, tmp_path: Path) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    code, _, errors = finished(start("run", "alpha", cwd=tmp_path, root=root, TMPDIR=long))
    assert (code, errors) == (0, "") and (tmp_path / "alpha.ipynb").is_file()


# Where nothing can be written.


@pytest.mark.slow
def test_a_chapter_runs_where_neither_the_caches_nor_the_home_can_be_written(root: Path, tmp_path: Path) -> None:
    cell = (
        "from rankrouting import System, jsq, plots, queues\n"
        "queues.simulate_paths(System(9, 2, 1.0, jsq()), [0.1]).shape"
    )
    add_chapter(root, "alpha", notebook("alpha", [cell, *claim_cells("alpha")]))
    nowhere = dict.fromkeys(("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "XDG_CONFIG_HOME"), "/proc/nowhere")
    code, _, errors = finished(start("run", "alpha", cwd=tmp_path, root=root, **nowhere))
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
def closed(root: Path) -> Iterator[Path]:
    """A checkout in which no build can be written: a file is where its folder should be."""
    shutil.rmtree(root / "_build")
    (root / "_build").write_text("")
    yield root


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
    root: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, code: int, said: str
) -> None:
    monkeypatch.setenv(repository.ROOT_VARIABLE, str(root))
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)

    def fails(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(book, "build", fails)
    shown = CliRunner().invoke(cli.app, ["book"])
    assert shown.exit_code == code and shown.stderr == f"rankrouting: {said}\n"
