"""Simulation of the system with pauses, whose stationary law `exact.pauses_law` gives in closed form.

It is the n-th system with one change: an arrival or a departure that would break the order of tied queues is
lost. The queues then keep their ranks, and the gaps are an open Jackson network. Chapter: exact.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from . import _methods, checks
from .kernels import random
from .kernels.pauses import pauses_kernel
from .model import System, require_system
from .replications import Seed, replicate


def simulate_pauses(
    system: System,
    times: ArrayLike,
    x0: ArrayLike = 0.0,
    replications: int = 1,
    seed: Seed = 0,
    *,
    threads: int | None = None,
    progress: bool | None = None,
) -> NDArray[np.float64]:
    """Simulate paths of the ranked lengths of the system with pauses.

    Parameters
    ----------
    system : System
        Any system. Its arrival rates at the ranks are those of the system with pauses.
    times : array of shape (T,)
        When to look: nonnegative and strictly increasing.
    x0 : float, or array of shape (K,) or (replications, K), default 0
        Starting lengths in limit units, in any order, rounded to whole jobs after multiplying by √n.
    replications : int, default 1
        Independent paths.
    seed : int or SeedSequence, default 0
        Equal seeds give equal numbers; replication i does not depend on how many there are.
    threads, progress : optional
        See `replications.replicate`; neither changes the numbers.

    Returns
    -------
    array of shape (replications, T, K)
        Ascending along the last axis, in limit units.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from rankrouting import System, mjsq
    >>> system = System(n=100, K=3, upsilon=1.0, policy=mjsq(c=2.0))
    >>> paths = simulate_pauses(system, times=[0.0, 0.5, 1.0], replications=4)
    >>> paths.shape, bool((np.diff(paths) >= 0).all())
    ((4, 3, 3), True)
    """
    require_system(system)
    grid = checks.sample_times(times)
    replications = checks.whole("replications", replications)
    checks.result_fits(replications, grid.size, system.K)
    starts = np.sort(checks.jobs_at_start(x0, replications, system.K, system.sqrt_n), axis=-1)
    _methods.check_work(system, "events", "times", float(grid[-1]), replications)
    durations = np.diff(grid, prepend=0.0)
    lengths = np.empty((replications, grid.size, system.K), dtype=np.int64)

    def task(rng: Generator, index: int) -> None:
        state = random.new_state(rng)
        start, rates = starts[index].copy(), system.rank_arrival_rates
        pauses_kernel(start, durations, lengths[index], float(system.n), rates, rng, state)

    replicate(task, replications, seed, threads=threads, progress=progress)
    return lengths / system.sqrt_n
