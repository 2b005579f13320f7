"""Sweeps: many estimates over a grid of systems, on threads, processes or a cluster, in one table.

::

    from rankrouting import jsq, mjsq, sweep

    cells = sweep.grid(n=[100, 10_000], K=[10], upsilon=[1.0], policy=[jsq(), mjsq(2.0)], seed=[1])
    table = sweep.sweep(cells, "mine.parquet")

or, from a file (`sweep.file` says what may be in it)::

    rankrouting sweep examples/sweep.yml --output mine.parquet

Each finished cell is stored at once (`sweep.store`): after a crash, a kill or a lost cluster the same command goes
on where it was, and a larger grid computes only what is new. The numbers are the same on any executor
(`sweep.cells`). On a cluster the workers need this package in the same version, and no common disk;
``examples/slurm.py`` starts one under SLURM. Chapter: workload.
"""

from .cells import Cell, SweepFailed, grid
from .estimates import Paths, Stationary
from .run import connected, sweep

__all__ = [
    "Cell",
    "Paths",
    "Stationary",
    "SweepFailed",
    "connected",
    "grid",
    "sweep",
]
