"""Sweeps: what they refuse, that their numbers are the same anywhere, and that nothing finished is lost."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from filelock import FileLock
from rankrouting import System, jsq, marginal_power_of_d, mjsq, msblb, power_of_d, queues, random_routing, sweep
from rankrouting.policies import MAKERS, Policy, Shortest, made_by
from rankrouting.sweep import Cell, Paths, Stationary, SweepFailed
from rankrouting.sweep import store as store_module
from rankrouting.sweep.cells import compute
from rankrouting.sweep.file import read_sweep
from rankrouting.sweep.store import Store

from faults import wait_for  # isort: skip
from sweeping import GRID, command_line, yml  # isort: skip

COSTS = ["cpu_seconds", "wall_seconds"]
POLICIES = [mjsq(2.0), msblb(2.0, [0.7, 0.3]), jsq(), random_routing(), power_of_d(2), marginal_power_of_d(2.0, 2)]

# Twenty cells of about an eighth of a second.
SLOWER = GRID | {"n": [10_000], "times": [0.5, 2.0], "quantities": ["total", "ranked"], "seed": list(range(20))}
SLOWER["replications"] = 100


def cells_of(**changes: Any) -> list[Cell]:
    """Eight quick cells."""
    estimate = changes.pop("estimate", Paths([0.5, 1.0], ["total", "ranked"], replications=8))
    axes = {"n": [100, 400], "K": [2, 3], "upsilon": [1.0], "policy": [mjsq(2.0), jsq()], "seed": [1]} | changes
    return sweep.grid(**axes, estimate=estimate)


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns=COSTS)


def same(one: pd.DataFrame, other: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(numbers(one), numbers(other), check_exact=True)


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rankrouting.cli", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=cwd, stdout=pipe, stderr=pipe, text=True, encoding="utf-8")


def finished_cells(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.cells/*.parquet"))


class Counting(ThreadPoolExecutor):
    """Threads that count what they are given, and fail from the `fails_from`-th on."""

    def __init__(self, workers: int = 2, fails_from: int = 10**9) -> None:
        super().__init__(workers)
        self.given: list[Cell] = []
        self.fails_from = fails_from

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.given.append(args[0])
        return super().submit(fn if len(self.given) < self.fails_from else self.fail, *args, **kwargs)

    @staticmethod
    def fail(*_: Any) -> None:
        raise MemoryError("no\nmemory")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    return command_line(tmp_path, monkeypatch)


def test_the_interface_refuses_too(tmp_path: Path) -> None:
    system = System(100, 2, 1.0, jsq())
    cell = Cell(system, Paths([1.0]))
    with pytest.raises(ValueError, match="seed"):
        Cell(system, Paths([1.0]), 2**63)
    with pytest.raises(ValueError, match="made by one of mjsq"):
        Cell(System(100, 2, 1.0, Policy("my own", Shortest(), 1.0)), Paths([1.0]))
    with pytest.raises(ValueError, match="must be a Stationary or a Paths"):
        Cell(system, "paths")  # type: ignore[arg-type]
    for cells, keywords, said in [
        ([], {}, "at least one Cell"),
        ([cell, cell], {}, "given twice"),
        ([cell], {"level": 0}, "level"),
        ([cell], {"threads": 0}, "threads"),
        ([cell], {"threads": 1, "executor": Counting()}, "not together"),
    ]:
        with pytest.raises(ValueError, match=said):
            sweep.sweep(cells, tmp_path / "t.parquet", **keywords)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ModuleNotFoundError, match=r"rankrouting\[cluster\]"), sweep.connected(workers=1):
        pass


# What is computed.


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_a_policy_is_made_again_from_its_name(policy: Policy) -> None:
    name, arguments = made_by(policy)
    assert MAKERS[name][0](**arguments) == policy
    odd = msblb(1.0, np.array([0.1] * 3 + [0.7]) * (1 + 1e-10))
    assert MAKERS["msblb"][0](**made_by(odd)[1]).rank_law.probabilities(4) == pytest.approx([0.1, 0.1, 0.1, 0.7])


def test_rows_are_what_the_simulators_say(tmp_path: Path) -> None:
    system = System(100, 3, 1.0, mjsq(2.0))
    means = Cell(system, Stationary(["mean_ranked", "idle_servers"], replications=4), seed=5)
    paths = Cell(system, Paths([0.0, 1.0], ["ranked", "total"], x0=2.0, replications=4), seed=5)
    table = sweep.sweep([means, paths], tmp_path / "t.parquet", level=0.9)
    direct = queues.simulate_stationary(system, replications=4, seed=means.random())
    rows = table[table.estimate == "stationary"]
    assert rows["quantity"].tolist() == ["mean_ranked"] * 3 + ["idle_servers"]
    assert rows["rank"].tolist()[:3] == [1, 2, 3] and np.isnan(rows["rank"].iloc[3])
    assert rows["value"].tolist() == [*direct.mean_ranked, direct.idle_servers]
    low, high = direct.confidence_interval("mean_ranked", 0.9)
    assert rows["low"].tolist()[:3] == low.tolist() and rows["high"].tolist()[:3] == high.tolist()
    means = Cell(system, Stationary(["mean_ranked", "idle_servers"], replications=4, controls=True), seed=5)
    rows = sweep.sweep([means], tmp_path / "c.parquet")
    best, plain = direct.estimate("mean_ranked", controls=True), direct.estimate("idle_servers")
    assert rows["value"].tolist() == [*best.value, plain.value]
    assert rows["standard_error"].tolist() == [*best.standard_error, plain.standard_error]
    assert set(rows["horizon"]) == {direct.run.horizon} and set(rows["method"]) == {direct.run.method}
    lengths = queues.simulate_paths(system, [0.0, 1.0], 2.0, 4, paths.random())
    rows = table[table.estimate == "paths"]
    ranked, total = rows[rows.quantity == "ranked"], rows[rows.quantity == "total"]
    assert np.array_equal(ranked["value"].to_numpy().reshape(2, 3), np.sort(lengths, axis=2).mean(axis=0))
    assert np.array_equal(total["value"], lengths.sum(axis=2).mean(axis=0))
    assert total["value"].iloc[0] == 6.0 and total["standard_error"].iloc[0] == 0.0
    assert rows["horizon"].isna().all()


def test_the_table_says_what_where_and_at_which_cost(tmp_path: Path) -> None:
    cells = cells_of(K=[2], policy=POLICIES, n=[100])
    table = sweep.sweep(cells, tmp_path / "t.parquet")
    schema = pq.read_schema(tmp_path / "t.parquet")
    assert schema.names == list(table.columns) and all(schema.field(name).metadata[b"meaning"] for name in schema.names)
    assert set(schema.names) == {name for name, *_ in store_module._COLUMNS + store_module._INTERVAL}
    assert set(table["policy"]) == set(MAKERS)
    assert len(table) == 6 * 2 * 3 and list(dict.fromkeys(table["cell"])) == [cell.key for cell in cells]
    assert (table["cpu_seconds"] > 0).all() and (table["wall_seconds"] >= 0.9 * table["cpu_seconds"]).all()
    assert set(table["library"]) == {cells[0].describe()["library"]} and "numpy" in table["versions"].iloc[0]
    given = table[table.policy == "msblb"]["p"].iloc[0]
    assert given.tolist() == [0.7, 0.3] and table[table.policy == "power_of_d"]["d"].eq(2).all()
    assert str(tmp_path) not in (tmp_path / "t.parquet").read_bytes().decode("latin1")


def test_random_numbers_depend_on_the_system_and_the_seed_only() -> None:
    one, again, longer = (
        Cell(System(100, 2, upsilon, mjsq(1)), estimate, 1)
        for upsilon, estimate in [(1, Paths([1.0])), (1.0, Paths([1])), (1.0, Paths([2.0]))]
    )
    other = Cell(System(100, 2, 1.5, mjsq(1)), Paths([1.0]), 1)
    assert one.content == again.content and one.key == again.key and one.key != longer.key
    assert one.stream == longer.stream != other.stream
    # As long as this holds, tables of any version can be made again.
    assert one.stream == "2dbad16d7c7afd63"


def test_the_numbers_are_the_same_on_any_number_of_threads_and_in_any_order(tmp_path: Path) -> None:
    cells = cells_of()
    once = sweep.sweep(cells, tmp_path / "1.parquet", threads=1)
    same(once, sweep.sweep(cells, tmp_path / "3.parquet", threads=3))
    backwards = sweep.sweep(cells[::-1], tmp_path / "b.parquet")
    order = [i for cell in cells for i in np.flatnonzero(backwards["cell"] == cell.key)]
    same(once, backwards.iloc[order].reset_index(drop=True))
    same(once, pd.read_parquet(tmp_path / "1.parquet"))


@pytest.mark.slow
def test_the_numbers_are_the_same_on_processes(tmp_path: Path) -> None:
    cells = cells_of()
    once = sweep.sweep(cells, tmp_path / "t.parquet")
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        same(once, sweep.sweep(cells, tmp_path / "p.parquet", executor=executor))


# What survives.


def test_a_finished_cell_is_not_computed_again(tmp_path: Path) -> None:
    cells, output = cells_of(), tmp_path / "t.parquet"
    first = sweep.sweep(cells[:5], output)
    with Counting() as executor:
        larger = sweep.sweep(cells, output, executor=executor)
    assert sorted(map(str, executor.given)) == sorted(map(str, cells[5:]))
    same(first, larger[larger["cell"].isin([cell.key for cell in cells[:5]])])
    assert (first["cpu_seconds"].to_numpy() == larger["cpu_seconds"].to_numpy()[: len(first)]).all()
    with Counting() as executor:
        narrower = sweep.sweep(cells, output, executor=executor, level=0.5)
    assert executor.given == [] and (narrower["low"] > larger["low"]).all()


def test_progress_shows_the_time_and_the_cells_that_are_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    cells = cells_of()
    sweep.sweep(cells[:2], tmp_path / "t.parquet", progress=False)
    assert capsys.readouterr().err == ""
    sweep.sweep(cells, tmp_path / "t.parquet", progress=True)
    shown = capsys.readouterr().err
    assert "6 of 8 cells left" in shown and re.search(r"100%.* left, 0 of 6 cells left", shown)


def test_a_cell_that_is_damaged_or_of_another_library_is_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells, output = cells_of(), tmp_path / "t.parquet"
    first = sweep.sweep(cells, output)
    files = finished_cells(tmp_path)
    files[0].write_bytes(files[0].read_bytes()[:-100])
    files[1].write_bytes(files[2].read_bytes())
    files[3].unlink()
    with Counting() as executor:
        same(first, sweep.sweep(cells, output, executor=executor))
    assert len(executor.given) == 3
    monkeypatch.setattr("rankrouting._jit.library_hash", lambda: "another")
    with Counting() as executor:
        sweep.sweep(cells, output, executor=executor)
    assert len(executor.given) == len(cells)


def test_a_worker_with_another_library_is_refused() -> None:
    with pytest.raises(SweepFailed, match="another version of rankrouting"):
        compute(cells_of()[0], "another")


def test_a_cell_that_fails_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    cells, output = cells_of(), tmp_path / "t.parquet"
    with Counting(1, fails_from=4) as executor, pytest.raises(SweepFailed) as caught:
        sweep.sweep(cells, output, executor=executor)
    said = str(caught.value)
    assert "MemoryError: no memory; 3 of 8 cells were finished and are kept" in said and said.startswith("n = ")
    assert not output.exists() and len(finished_cells(tmp_path)) == 3
    with Counting() as executor:
        sweep.sweep(cells, output, executor=executor)
    assert len(executor.given) == 5


def test_no_half_written_file_is_ever_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells, output, seen, stop = cells_of(seed=[1, 2]), tmp_path / "t.parquet", set(), threading.Event()

    def look() -> None:
        while not stop.is_set():
            for path in [*finished_cells(tmp_path), *tmp_path.glob("*.parquet")]:
                seen.add((path.name, pq.read_table(path).num_rows))

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        sweep.sweep(cells, output)
        stop.set()
        looking.result()
    assert len({name for name, _ in seen}) == len(seen) > 1

    def interrupted(table: Any, path: Any, **_: Any) -> None:
        Path(path).write_bytes(b"PAR1 half of a")
        raise KeyboardInterrupt

    before = output.read_bytes()
    monkeypatch.setattr(store_module.pq, "write_table", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep.sweep([*cells, *cells_of(seed=[3])], output)
    assert output.read_bytes() == before and len(finished_cells(tmp_path)) == len(cells)
    assert [path.name for path in tmp_path.rglob(".*")] == [".lock"]


def test_one_sweep_at_a_time_writes_a_table(tmp_path: Path) -> None:
    store = Store(tmp_path / "t.parquet")
    with store.opened(), pytest.raises(SweepFailed, match="another sweep is writing it"):
        sweep.sweep(cells_of(), tmp_path / "t.parquet")
    assert not FileLock(store.folder / ".lock").is_locked


def test_what_a_killed_process_left_is_taken_away_and_nothing_else(tmp_path: Path) -> None:
    cells, output = cells_of()[:1], tmp_path / "t.parquet"
    Store(output).folder.mkdir()
    left = Store(output).folder / f".{cells[0].key}.parquet.abcd_123"
    mine = [tmp_path / ".t.parquet.backup", tmp_path / ".other.parquet.abcd_123", Store(output).folder / "notes.txt"]
    for path in [left, tmp_path / ".t.parquet.abcd_123", *mine]:
        path.write_text("x")
    sweep.sweep(cells, output)
    assert not left.exists() and not (tmp_path / ".t.parquet.abcd_123").exists()
    assert all(path.exists() for path in mine)


@pytest.mark.slow
def test_after_a_kill_only_the_unfinished_cells_are_computed(tmp_path: Path) -> None:
    file, output = yml(tmp_path, SLOWER), tmp_path / "mine.parquet"
    process = start("sweep", file.name, "--threads", "2", cwd=tmp_path)
    wait_for(lambda: len(finished_cells(tmp_path)) >= 3)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = {path: path.stat().st_mtime_ns for path in finished_cells(tmp_path)}
    cells, _ = read_sweep(file)
    assert 3 <= len(kept) < len(cells) and not output.exists()
    with Counting() as executor:
        table = sweep.sweep(cells, output, executor=executor)
    assert len(executor.given) == len(cells) - len(kept)
    assert {cell.key for cell in executor.given}.isdisjoint(path.stem for path in kept)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    (tmp_path / "new").mkdir()
    same(table, sweep.sweep(cells, tmp_path / "new" / "t.parquet"))


@pytest.mark.slow
def test_an_interrupt_ends_the_command_at_once_and_keeps_what_is_finished(tmp_path: Path) -> None:
    long = SLOWER | {"n": [10**4, 10**8], "seed": [1]}
    process = start("sweep", yml(tmp_path, long).name, "--threads", "2", cwd=tmp_path)
    wait_for(lambda: finished_cells(tmp_path))
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and out == "" and "finished cells are kept" in errors, errors
    assert time.monotonic() - begin < 30 and len(finished_cells(tmp_path)) == 1


# A real Dask cluster.


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start a scheduler and two workers, each a process of its own; yield the address and the workers."""
    where = folder / "scheduler.json"
    quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    run = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    command = [*run, "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(where)]
    processes = [subprocess.Popen(command, **quiet)]  # type: ignore[call-overload]
    try:
        wait_for(lambda: where.is_file() and where.read_text())
        address = json.loads(where.read_text())["address"]
        for _ in range(2):
            worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny"]
            processes.append(subprocess.Popen([*worker, "--no-dashboard"], **quiet))  # type: ignore[call-overload]
        yield address, processes[1:]
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_no_number(tmp_path: Path, command: Callable[..., Any]) -> None:
    file = yml(tmp_path, SLOWER)
    cells, _ = read_sweep(file)
    with cluster(tmp_path) as (address, workers), ThreadPoolExecutor(1) as pool:
        sweeping = pool.submit(command, file.name, "--scheduler", address)
        wait_for(lambda: len(finished_cells(tmp_path)) >= 2 or sweeping.done())
        workers[0].send_signal(signal.SIGKILL)
        assert 2 <= len(finished_cells(tmp_path)) < len(cells) - 2
        shown = sweeping.result(timeout=300)
        assert shown.exit_code == 0, shown.output
        assert workers[0].wait() == -signal.SIGKILL and workers[1].poll() is None
    dashboard, said = shown.stdout.splitlines()
    assert dashboard.startswith("dashboard: http://127.0.0.1:")
    assert said == f"mine.parquet ({len(cells)} cells, {len(cells) * 6} rows)"
    same(sweep.sweep(cells, tmp_path / "threads.parquet"), pd.read_parquet(tmp_path / "mine.parquet"))


@pytest.mark.slow
def test_a_cluster_of_this_machine_can_be_started(tmp_path: Path, command: Callable[..., Any]) -> None:
    file = yml(tmp_path, GRID | {"seed": [1, 2, 3]})
    shown = command(file.name, "--local-cluster", "1", "-o", "dask.parquet")
    assert shown.exit_code == 0 and "dashboard: http://127.0.0.1:" in shown.stdout, shown.output
    same(sweep.sweep(read_sweep(file)[0], tmp_path / "t.parquet"), pd.read_parquet(tmp_path / "dask.parquet"))


def test_where_no_scheduler_is_the_command_says_so(
    tmp_path: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rankrouting.sweep.run._CONNECT_SECONDS", 0.2)
    shown = command(str(yml(tmp_path, GRID)), "--scheduler", "tcp://127.0.0.1:9")
    assert shown.exit_code == 1 and "no Dask scheduler answers there" in shown.stderr
    assert len(shown.stderr.strip().splitlines()) == 1, shown.stderr
