"""Where a sweep keeps its finished cells, and the table that is assembled from them.

Beside ``mine.parquet`` the folder ``mine.cells`` has one small Parquet file for each finished cell, named by
`Cell.key`. A file is written beside its place, flushed to the disk and then renamed, so it is either whole or
absent, whenever the program is killed. Another library or another setting is another key: old cells stay and are
found again when one goes back. Used by `sweep`; no chapter uses it directly.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from .. import checks
from .._files import replacing
from ..replications import Estimate
from .cells import Cell, Outcome, SweepFailed

# Name, type and meaning of each column of a cell's file, and of those that the table has besides.
_COLUMNS = [
    ("estimate", pa.string(), "stationary or paths"),
    ("quantity", pa.string(), "what is estimated"),
    ("rank", pa.int32(), "which queue by length, 1 = shortest; null for a number of the whole system"),
    ("time", pa.float64(), "when, in units of time; null for stationary means"),
    ("n", pa.int64(), "jobs that a server completes per unit time"),
    ("K", pa.int32(), "queues"),
    ("upsilon", pa.float64(), "slack, in √n jobs per unit time"),
    ("policy", pa.string(), "the function of rankrouting.policies that makes the policy"),
    ("c", pa.float64(), "rate of the ranked jobs, in √n jobs per unit time; null when every job is ranked"),
    ("d", pa.int32(), "queues that a ranked job looks at; null when all"),
    ("p", pa.list_(pa.float64()), "probabilities of the ranks, when they are given"),
    ("seed", pa.int64(), "seed"),
    ("value", pa.float64(), "the estimate, in limit units (jobs over √n)"),
    ("standard_error", pa.float64(), "its standard error, in the same units"),
    ("replications", pa.int32(), "independent replications; the interval has one degree of freedom less"),
    ("method", pa.string(), "how it was simulated"),
    ("controls", pa.bool_(), "whether controls were used where there are some; null for paths"),
    ("horizon", pa.float64(), "observed time of a replication, in units of time"),
    ("warmup", pa.float64(), "discarded time of a replication, in units of time"),
    ("spacing", pa.float64(), "time between observations, in units of time"),
    ("cpu_seconds", pa.float64(), "processor time of the whole cell"),
    ("wall_seconds", pa.float64(), "time of the whole cell by the clock"),
    ("cell", pa.string(), "hash of all that decides the numbers: the rows of a cell have it in common"),
    ("stream", pa.string(), "the random numbers are those of SeedSequence([seed, int(stream, 16)])"),
    ("library", pa.string(), "hash of rankrouting's sources and of the versions that it computes with"),
    ("versions", pa.string(), "versions where the cell was computed"),
]
_INTERVAL = [
    ("low", pa.float64(), "lower end of the Student interval"),
    ("high", pa.float64(), "upper end of the Student interval"),
    ("level", pa.float64(), "level of the interval"),
]
_CONTENT = b"rankrouting.cell"


def _schema(columns: Sequence[tuple[str, Any, str]]) -> Any:
    return pa.schema([pa.field(name, kind, metadata={"meaning": meaning}) for name, kind, meaning in columns])


class Store:
    """The finished cells of a sweep, and its table.

    Parameters
    ----------
    output : path
        The table, which ends in ``.parquet``.

    Raises
    ------
    PermissionError
        If the table or the folder beside it cannot be written there.
    """

    def __init__(self, output: str | os.PathLike[str]) -> None:
        if not isinstance(output, (str, os.PathLike)) or "\0" in os.fspath(output):
            raise ValueError(f"output = {checks.shown(output)}: must be the path of a file")
        self.output = _writable(Path(output))
        self.folder = self.output.with_suffix(".cells")
        if self.folder.is_symlink() or (self.folder.exists() and not self.folder.is_dir()):
            raise PermissionError(f"{self.folder}: must be a folder, for the finished cells")

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Hold the folder for this process alone, and take away what a killed one left half-written.

        Raises
        ------
        SweepFailed
            If another sweep is writing the same table.
        """
        self.folder.mkdir(exist_ok=True)
        lock = FileLock(self.folder / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise SweepFailed(f"{self.output}: another sweep is writing it") from None
        try:
            for folder, name in (
                (self.folder, r"[0-9a-f]{32}\.parquet"),
                (self.output.parent, re.escape(self.output.name)),
            ):
                for path in folder.glob(".*.parquet.*"):
                    if re.fullmatch(rf"\.{name}\.[a-z0-9_]{{8}}", path.name):
                        path.unlink(missing_ok=True)
            yield
        finally:
            lock.release()

    def load(self, cell: Cell) -> Any:
        """Return the table of a finished cell, or None if it is not there, not whole or not this cell's."""
        path = self._path(cell)
        if not path.is_file():
            return None
        try:
            table = pq.read_table(path, partitioning=None)
        except (OSError, ValueError, pa.ArrowException):
            return None
        wanted = _schema(_COLUMNS)
        fits = table.schema.equals(wanted) and (table.schema.metadata or {}).get(_CONTENT) == cell.content.encode()
        return (
            table.replace_schema_metadata(None) if fits and table.num_rows == cell.estimate.rows(cell.system) else None
        )

    def save(self, cell: Cell, outcome: Outcome) -> None:
        """Store a finished cell so that it survives whatever happens next."""
        costs = {name: getattr(outcome, name) for name in ("cpu_seconds", "wall_seconds", "versions")}
        common = cell.describe() | outcome.settings | costs
        count = len(outcome.values)
        columns = {name: [common.get(name)] * count for name, _, _ in _COLUMNS}
        for i, name in enumerate(outcome.values[0]._fields):
            columns[name] = [value[i] for value in outcome.values]
        table = pa.table(columns, schema=_schema(_COLUMNS)).replace_schema_metadata({_CONTENT: cell.content})
        _write(table, self._path(cell))

    def assemble(self, cells: Sequence[Cell], level: float) -> Any:
        """Write the table of all cells, in their order, each row with its interval, and return it.

        Raises
        ------
        SweepFailed
            If a finished cell is not there any more.
        """
        parts = []
        for cell in cells:
            part = self.load(cell)
            if part is None:
                raise SweepFailed(f"{self._path(cell)}: was removed or changed while the sweep ran; run it again")
            parts.append(part)
        table = pa.concat_tables(parts).combine_chunks()
        value, error, replications = (table[name].to_numpy() for name in ("value", "standard_error", "replications"))
        low, high = Estimate(value, error, replications).interval(level)
        for name, column in (("low", low), ("high", high), ("level", np.full(len(table), level))):
            table = table.add_column(table.schema.get_field_index("replications"), name, pa.array(column))
        names = {name: (kind, meaning) for name, kind, meaning in [*_COLUMNS, *_INTERVAL]}
        table = table.cast(_schema([(name, *names[name]) for name in table.column_names]))
        _write(table, self.output)
        return table

    def _path(self, cell: Cell) -> Path:
        return self.folder / f"{cell.key}.parquet"


def _write(table: Any, path: Path) -> None:
    """Write a table beside its place, flush it to the disk, and rename it."""
    with replacing(path) as beside:
        pq.write_table(table, beside, compression="zstd")
        _flush(beside)
    _flush(path.parent)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _writable(path: Path) -> Path:
    """Return an absolute path that can be written, or raise PermissionError."""
    path = path.absolute()
    if path.suffix != ".parquet" or not path.stem:
        raise PermissionError(f"{checks.shown(path.name)}: the output must end in .parquet")
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise PermissionError(f"{path}: must be a regular file or not exist")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path.parent}: is not a folder that can be written")
    return path
