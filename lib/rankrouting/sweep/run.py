"""Compute the cells of a sweep on an executor, and write the table."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from .. import _jit, checks
from .._threads import Pool
from .cells import Cell, SweepFailed, check_size, compute
from .store import Store

_CONNECT_SECONDS = 10


def sweep(
    cells: Iterable[Cell],
    output: str | Path | None = None,
    *,
    executor: Executor | None = None,
    threads: int | None = None,
    level: float = 0.95,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Compute the cells that are not finished yet, and write the table of all.

    Parameters
    ----------
    cells : iterable of Cell
        For instance from `grid`. No cell twice.
    output : path, optional
        The table, a file that ends in ``.parquet``; the folder with the ending ``.cells`` beside it has the
        finished cells. Without it nothing is kept.
    executor : concurrent.futures.Executor, optional
        Where cells are computed, one thread a cell; it stays open. Default: threads of this process. For Dask,
        ``client.get_executor(pure=False)``.
    threads : int, optional
        How many threads without an executor; default: one a processor.
    level : float, default 0.95
        Of the intervals.
    progress : bool, optional
        Whether to show a bar with the time left; by default on a terminal.

    Returns
    -------
    DataFrame
        One row an estimate, in the order of the cells; values in limit units, times in units of time, costs of
        the whole cell in seconds. The schema of the Parquet file has the meaning of each column.

    Raises
    ------
    ValueError
        If an argument is out of range, or a cell is given twice.
    PermissionError
        If the table cannot be written there.
    SweepFailed
        If a cell fails, the executor breaks, or another sweep writes the same table. What was finished is kept.

    Examples
    --------
    >>> import tempfile
    >>> from rankrouting import System, mjsq, sweep
    >>> cell = sweep.Cell(System(n=100, K=2, upsilon=1.0, policy=mjsq(c=2.0)), sweep.Paths([0.5, 1.0]), seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = sweep.sweep([cell], f"{folder}/mine.parquet")
    >>> table[["quantity", "time"]].values.tolist()
    [['total', 0.5], ['total', 1.0]]
    """
    cells = list(cells) if isinstance(cells, Iterable) else []
    if not cells or not all(isinstance(cell, Cell) for cell in cells):
        raise ValueError("cells: must be at least one Cell, and nothing else")
    twice = checks.repeated(cell.key for cell in cells)
    if twice is not None:
        raise ValueError(f"cells: {next(str(cell) for cell in cells if cell.key == twice)} is given twice")
    check_size(cells)
    level = checks.confidence(level)
    if executor is not None and threads is not None:
        raise ValueError(f"threads = {threads}: not together with an executor")
    threads = checks.whole("threads", os.cpu_count() or 1 if threads is None else threads, at_most=checks.MOST_THREADS)
    progress = None if progress is None else checks.flag("progress", progress)
    with _store(output) as store, store.opened():
        waiting = [cell for cell in cells if store.load(cell) is None]
        # The longest first, so that none is left alone at the end.
        waiting.sort(key=lambda cell: -_expected(cell))
        with _bar(cells, waiting, progress) as bar:
            if executor is not None:
                _compute(waiting, executor, store, bar)
            elif waiting:
                pool = Pool(min(threads, len(waiting)), "sweep")
                try:
                    _compute(waiting, pool, store, bar)
                finally:
                    # After an interrupt, do not wait for the cells that are running.
                    pool.shutdown(wait=False, cancel_futures=True)
        return store.assemble(cells, level).to_pandas()


@contextmanager
def _store(output: str | Path | None) -> Iterator[Store]:
    """Yield where cells are kept: at `output`, or for the time of the sweep."""
    if output is not None:
        yield Store(output)
        return
    with tempfile.TemporaryDirectory(prefix="rankrouting-") as folder:
        yield Store(Path(folder) / "table.parquet")


def _compute(cells: Sequence[Cell], executor: Executor, store: Store, bar: Any) -> None:
    """Compute cells on an executor and store each as soon as it is finished."""
    library = _jit.library_hash()
    futures = {executor.submit(compute, cell, library): cell for cell in cells}
    finished = 0
    try:
        for future in as_completed(list(futures)):
            cell = futures.pop(future)
            try:
                outcome = future.result()
            except SweepFailed as error:
                raise SweepFailed(f"{error}; {_kept(finished, cells)}") from None
            except CancelledError:
                raise SweepFailed(
                    f"{cell}: was cancelled, or the scheduler is gone; {_kept(finished, cells)}"
                ) from None
            except Exception as error:
                said = " ".join(str(error).split()) or "no message"
                raise SweepFailed(f"{cell}: {type(error).__name__}: {said[:500]}; {_kept(finished, cells)}") from error
            store.save(cell, outcome)
            finished += 1
            bar.set_postfix_str(f"{len(cells) - finished} of {len(cells)} cells left", refresh=False)
            bar.update(_expected(cell))
    finally:
        for future in futures:
            future.cancel()


def _kept(finished: int, cells: Sequence[Cell]) -> str:
    return f"{finished} of {len(cells)} cells were finished and are kept: run it again to go on"


def _expected(cell: Cell) -> float:
    # Storing and sending it takes about as long as a few milliseconds of simulation.
    return cell.estimate.expected_seconds(cell.system) + 0.02


def _bar(cells: Sequence[Cell], waiting: Sequence[Cell], progress: bool | None) -> Any:
    """Return a bar whose unit is expected work, so that the time left is that of the cells that are left."""
    bar = tqdm(
        total=sum(map(_expected, waiting)),
        disable=None if progress is None else not progress,
        smoothing=0.0,
        bar_format="{percentage:3.0f}%|{bar}| {elapsed}, {remaining} left{postfix}",
    )
    bar.set_postfix_str(f"{len(waiting)} of {len(cells)} cells left")
    return bar


@contextmanager
def connected(scheduler: str | None = None, *, workers: int | None = None) -> Iterator[Any]:
    """Connect to a Dask cluster, or start one on this machine.

    Parameters
    ----------
    scheduler : str, optional
        Address of a scheduler that runs, such as ``tcp://10.0.0.1:8786``. It can run any code on its workers and
        send any to this process: connect to your own only.
    workers : int, optional
        Without an address: worker processes to start here, one thread each. They end with the block.

    Yields
    ------
    distributed.Client
        Its `dashboard_link` is a page that shows what the workers do.

    Raises
    ------
    ModuleNotFoundError
        If dask is not installed.
    ValueError
        If an argument is not as it should be.
    SweepFailed
        If no scheduler answers at the address within ten seconds.
    """
    if (scheduler is None) == (workers is None):
        raise ValueError("connected: needs either the address of a scheduler or a number of workers")
    if scheduler is not None and not re.fullmatch(
        r"((tcp|tls|ws|wss)://)?(\[[\da-fA-F:.]+\]|[\w.-]+):\d{1,5}", scheduler
    ):
        raise ValueError(f"scheduler = {checks.shown(scheduler)}: must be an address such as tcp://10.0.0.1:8786")
    count = None if workers is None else checks.whole("workers", workers)
    try:
        from distributed import Client, LocalCluster
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"a Dask cluster needs {error.name}, which is not installed: pip install 'rankrouting[cluster]'"
        ) from None
    if scheduler is not None:
        try:
            client = Client(scheduler, timeout=_CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise SweepFailed(f"scheduler = {scheduler}: no Dask scheduler answers there ({error})") from None
        with client:
            yield client
        return
    here = "127.0.0.1"
    with (
        LocalCluster(n_workers=count, threads_per_worker=1, host=here, dashboard_address=f"{here}:0") as cluster,
        Client(cluster) as client,
    ):
        yield client
