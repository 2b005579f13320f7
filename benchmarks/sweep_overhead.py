"""What an executor adds to the cells of a sweep: ``python -m benchmarks.sweep_overhead``.

The overhead is the share of the workers' time in which they are not inside a cell: handing out, sending back,
storing, assembling the table, and waiting for the last cell. Starting a cluster is left out, and so is compiling.
"""

from __future__ import annotations

import sys
import tempfile
import time
from concurrent.futures import Executor
from pathlib import Path

import pandas as pd
from rankrouting import System, mjsq, sweep
from rankrouting.sweep import Cell, Paths


def cells_of(seconds: float, count: int) -> list[Cell]:
    """Return equal cells that take about so long each, measured with one that is shorter."""
    system = System(n=10_000, K=10, upsilon=1.0, policy=mjsq(c=2.0))
    with tempfile.TemporaryDirectory() as folder:
        trial = Cell(system, Paths([5.0], replications=64, method="events"))
        cost = sweep.sweep([trial], Path(folder) / "t.parquet", threads=1)["cpu_seconds"].iloc[0]
    estimate = Paths([5.0], replications=max(2, round(64 * seconds / cost)), method="events")
    return [Cell(system, estimate, seed) for seed in range(count)]


def overhead(executor: Executor | None, workers: int, cells: list[Cell]) -> dict[str, float]:
    """Run the cells on an executor of so many workers (None: threads), and return times and overhead.

    ``a cell (s)`` and ``its CPU (s)`` are the mean times of a cell, ``elapsed (s)`` is that of the sweep, and
    ``overhead`` is ``elapsed · workers / Σ cells − 1``.
    """
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        threads = workers if executor is None else None
        table = sweep.sweep(cells, Path(folder) / "t.parquet", executor=executor, threads=threads, progress=False)
        elapsed = time.perf_counter() - begin
    inside = float(table["wall_seconds"].sum())
    return {
        "a cell (s)": inside / len(cells),
        "its CPU (s)": float(table["cpu_seconds"].mean()),
        "elapsed (s)": elapsed,
        "overhead": elapsed * workers / inside - 1,
    }


def measure(workers: int = 2, seconds: tuple[float, ...] = (0.1, 1.0), count: int = 20) -> pd.DataFrame:
    """Return the overhead of threads and of Dask on local processes, for cells of these lengths."""
    rows = []
    with sweep.connected(workers=workers) as client:
        dask = client.get_executor(pure=False)
        overhead(dask, workers, cells_of(0.01, 4 * workers))  # compiles on all workers
        for length in seconds:
            cells = cells_of(length, count * workers)
            for name, executor in (("threads", None), ("Dask", dask)):
                rows.append({"executor": name, "workers": workers, "cells": len(cells)})
                rows[-1] |= overhead(executor, workers, cells)
    return pd.DataFrame(rows)


if __name__ == "__main__":
    print(measure().to_string(index=False, float_format="{:.3f}".format))
    sys.exit()
