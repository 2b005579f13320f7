"""Simulation of the n-th system: paths, and means of its stationary law.

Exact in law at every n, by one of three methods (`fastest_method` says which costs least):

``"events"``
    Every arrival and service is a step (`kernels.events`; `kernels.sorted` where every job is ranked). Cost: 2nK
    steps per unit of time.
``"jumps"``
    From one ranked arrival to the next in one draw a queue (`kernels.jumps`). Cost: c√n jumps of K queues
    per unit of time. Not for policies that rank every job.
``"lazy"``
    As jumps, but a queue far above the minimum is drawn once for many ranked arrivals (`kernels.lazy`).
    Cost: c√n jumps of a few queues, hardly growing with K. For MJSQ only.

`simulate_stale` is for rankings that are read only now and then. Lengths are in limit units, jobs divided by √n.
Chapters: most.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, overload

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from . import _methods, checks
from ._methods import Floats, Method, fastest_method
from ._plan import Run, plan_stationary
from .kernels import events, random
from .model import System, require_system
from .replications import Seed, replicate
from .stale import StaleEstimate, simulate_stale
from .stationary import Controlled, Means, StationaryEstimate, TooShortWarning, simulate_stationary

__all__ = [
    "Controlled",
    "Means",
    "PathsWithIdle",
    "Run",
    "StaleEstimate",
    "StationaryEstimate",
    "TooShortWarning",
    "fastest_method",
    "plan_stationary",
    "simulate_paths",
    "simulate_stale",
    "simulate_stationary",
]


class PathsWithIdle(NamedTuple):
    """Paths of the queues and of their idle times, both (replications, times, K).

    Attributes
    ----------
    lengths : array
        Labelled queue lengths, in limit units.
    idle : array
        √n times the time that each server has been idle so far. Its limit is the regulator L.
    """

    lengths: Floats
    idle: Floats


@overload
def simulate_paths(
    system: System,
    times: ArrayLike,
    x0: ArrayLike = ...,
    replications: int = ...,
    seed: Seed = ...,
    method: Method = ...,
    *,
    idle: Literal[False] = ...,
    threads: int | None = ...,
    progress: bool | None = ...,
) -> Floats: ...


@overload
def simulate_paths(
    system: System,
    times: ArrayLike,
    x0: ArrayLike = ...,
    replications: int = ...,
    seed: Seed = ...,
    method: Method = ...,
    *,
    idle: Literal[True],
    threads: int | None = ...,
    progress: bool | None = ...,
) -> PathsWithIdle: ...


def simulate_paths(
    system: System,
    times: ArrayLike,
    x0: ArrayLike = 0.0,
    replications: int = 1,
    seed: Seed = 0,
    method: Method = "auto",
    *,
    idle: bool = False,
    threads: int | None = None,
    progress: bool | None = None,
) -> Floats | PathsWithIdle:
    """Simulate paths of the labelled queue lengths, stable or overloaded.

    Parameters
    ----------
    system : System
        Any system.
    times : array of shape (T,)
        When to look: nonnegative and strictly increasing.
    x0 : float, or array of shape (K,) or (replications, K), default 0
        Starting lengths in limit units, rounded to whole jobs after multiplying by √n.
    replications : int, default 1
        Independent paths.
    seed : int or SeedSequence, default 0
        Equal seeds give equal numbers; replication i does not depend on how many there are.
    method : {"auto", "events", "jumps", "lazy"}
        How to simulate; all are exact in law. Idle times need ``"events"``.
    idle : bool, default False
        Whether to return √n times the idle time of each server as well.
    threads, progress : optional
        See `replications.replicate`; neither changes the numbers.

    Returns
    -------
    array of shape (replications, T, K), or PathsWithIdle
        Lengths in limit units.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from rankrouting import System, mjsq
    >>> system = System(n=100, K=3, upsilon=1.0, policy=mjsq(c=2.0))
    >>> simulate_paths(system, times=[0.0, 0.5, 1.0], replications=4).shape
    (4, 3, 3)
    """
    require_system(system)
    grid = checks.sample_times(times)
    replications = checks.whole("replications", replications, at_most=checks.MOST_REPLICATIONS)
    checks.result_fits(replications, grid.size, system.K)
    starts = checks.jobs_at_start(x0, replications, system.K, system.sqrt_n)
    idle = checks.flag("idle", idle)
    checks.one_of("method", method, _methods.METHODS)
    if idle and method in ("jumps", "lazy"):
        raise ValueError(f"method = {method!r}: jumps skip the moments when servers are idle; use 'events'")
    method_name = "events" if idle else _methods.chosen_method(system, method)
    _methods.check_work(system, method_name, "times", float(grid[-1]), replications)
    durations = np.diff(grid, prepend=0.0)
    shape = (replications, grid.size, system.K)
    lengths, idle_times = np.empty(shape), np.empty(shape if idle else 0)

    def task(rng: Generator, index: int) -> None:
        if idle:
            path = np.empty(shape[1:], dtype=np.int64)
            rates = events.rates_of(system)
            state = random.new_state(rng)
            events.idle_kernel(starts[index], durations, path, idle_times[index], rates, rng, state)
        else:
            path = _methods.advance_with(system, method_name, [rng], labelled=True)(starts[[index]], durations)[0]
        lengths[index] = path

    replicate(task, replications, seed, threads=threads, progress=progress)
    lengths /= system.sqrt_n
    return PathsWithIdle(lengths, idle_times * system.sqrt_n) if idle else lengths
