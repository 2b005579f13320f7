"""Faults that a program survives: kills, interrupts, and two or sixteen runs at the same time."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import psutil
import pytest
from rankrouting import _threads
from rankrouting.companion import book, execute, repository, results
from rankrouting.companion.book import BuildFailed, build
from rankrouting.companion.results import Results
from rankrouting.companion.runner import ExecutionFailed

from faults import (  # isort: skip
    all_gone,
    assert_nothing_is_half_written,
    descendants,
    executed_by,
    finished,
    made_since,
    numbers_of,
    start,
    wait_for,
)
from minibook import add_chapter, make_book, notebook  # isort: skip


# Killed.


@pytest.mark.slow
def test_a_build_that_is_killed_again_and_again_comes_to_the_same_end(
    built: Path, changed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(changed, whole)
    began = time.monotonic()
    build("default", root=whole, progress=False)
    seconds = time.monotonic() - began
    # The runner itself, and then whichever of its processes was started last: a worker, a kernel or Jupyter Book.
    for share, victim in ((0.15, -1), (0.3, 0), (0.5, -1), (0.7, 0), (0.9, -1)):
        process = start("book", cwd=changed, root=changed)
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
        assert_nothing_is_half_written(changed)
    made = made_since(changed, built)
    executed = executed_by(changed, monkeypatch)
    assert made.isdisjoint(executed) and made | set(executed) == {"alpha", "beta", "intro"}
    assert numbers_of(changed) == numbers_of(whole)
    assert_nothing_is_half_written(changed)
    left = [path.name for path in (changed / "_build" / "default").rglob(".*")]
    assert [name for name in left if name not in (".lock", ".buildinfo", ".nojekyll", ".doctrees")] == []


def test_pages_that_a_killed_build_had_put_aside_come_back(changed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = changed / "_build" / "default"
    (folder / "html").rename(folder / ".html-old")
    (folder / ".pages-abcd1234").mkdir()
    (folder / ".pages-abcd1234" / "half").write_text("x")
    with monkeypatch.context() as patch, pytest.raises(BuildFailed, match="stop"):
        patch.setattr(book.runner, "run_chapter", lambda *_, **__: (_ for _ in ()).throw(ExecutionFailed("stop")))
        build("default", root=changed, progress=False)
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
def test_a_chapter_runs_where_the_folder_for_temporary_files_has_a_long_name(changed: Path, tmp_path: Path) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    code, _, errors = finished(start("run", "alpha", cwd=tmp_path, root=changed, TMPDIR=long))
    assert (code, errors) == (0, "") and (tmp_path / "alpha.ipynb").is_file()
