"""Simulation of systems with very many queues in which every job is ranked: JSQ, JSQ(d).

Only the occupancy is kept, the numbers of queues with at least i jobs (`kernels.occupancy`), exact in law at
every n and K; a step costs the same for ten queues and for 10⁵. Everything here is in **jobs**. In the
many-server regimes n = 1, time is in units of a mean service, and K and υ = K(1 − load) are what grows.
Chapter: many_servers_jsq.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from . import checks
from .kernels import events, occupancy, random
from .model import System, require_system
from .replications import Estimate, Seed, mean_of, mean_with_controls, replicate

Floats = NDArray[np.float64]

_MOST_STEPS = 1e13
_MOST_DEPTH = 10_000
_MOST_JOBS_EACH = 10**6


@dataclass(frozen=True, eq=False)
class OccupancyEstimate:
    """Time averages of each replication of a stationary simulation, replications on the first axis; in jobs.

    Attributes
    ----------
    system : System
        What was simulated.
    at_least : array of shape (replications, depth)
        Average number of queues with at least 1, 2, …, depth jobs.
    total, shortest : array of shape (replications,)
        Average number of jobs in all, and average length of the shortest queue.
    final_at_least, final_total : array
        The same at the end of each replication: independent draws.
    """

    system: System
    at_least: Floats
    total: Floats
    shortest: Floats
    final_at_least: NDArray[np.int64]
    final_total: NDArray[np.int64]

    @property
    def mean_total(self) -> Estimate:
        """Mean number of jobs, with `residuals` as controls."""
        return self.controlled(self.total)

    @property
    def mean_sojourn(self) -> Estimate:
        """Mean time that a job spends in the system, by Little's law."""
        total, rate = self.mean_total, self.system.arrival_rate
        return Estimate(total.value / rate, total.standard_error / rate, total.replications)

    @property
    def mean_at_least(self) -> Estimate:
        """Mean numbers of queues with at least 1, 2, …, depth jobs, shape (depth,)."""
        return mean_of(self.at_least)

    @property
    def residuals(self) -> Floats:
        """What is left of the identities that are exact at every n and K, shape (replications, 1 or 2).

        The drift of the total vanishes: the mean number of busy servers is the arrival rate over n. Under JSQ so
        does that of the sum of the squares: E total = (arrival rate over n)·(1 + E shortest).
        """
        offered = self.system.arrival_rate / self.system.n
        first = self.at_least[:, 0] - offered
        if self.system.rank_probabilities[0] != 1.0:
            return first[:, np.newaxis]
        return np.column_stack([first, self.total - offered * (1 + self.shortest)])

    def controlled(self, samples: ArrayLike) -> Estimate:
        """Return the mean of one number a replication with the `residuals` as controls: less variance."""
        return mean_with_controls(samples, self.residuals)


def balanced(K: int, total: int) -> NDArray[np.int64]:
    """Return the occupancy of `total` jobs spread evenly over K queues: q_0 = K, q_1, …, and a last 0.

    Examples
    --------
    >>> balanced(K=10, total=13)
    array([10, 10,  3,  0])
    """
    K, total = checks.whole("K", K, at_most=checks.LARGEST_COUNT), checks.whole("total", total, at_least=0)
    if total > _MOST_JOBS_EACH * K:
        raise ValueError(f"total = {total}: more than a million jobs at each of K = {K} queues")
    full, rest = divmod(total, K)
    return np.array([K] * (full + 1) + ([rest] if rest else []) + [0], dtype=np.int64)


def simulate_stationary(
    system: System,
    *,
    horizon: float,
    warmup: float,
    totals: ArrayLike | None = None,
    replications: int = 32,
    depth: int = 4,
    seed: Seed = 0,
    threads: int | None = None,
    progress: bool | None = None,
) -> OccupancyEstimate:
    """Estimate the stationary law of JSQ or JSQ(d) from the occupancy.

    Parameters
    ----------
    system : System
        A stable system that ranks every job.
    horizon, warmup : float
        Observed and discarded time of each replication. They should be several relaxation times, of which no
        formula is known here: with K servers, n = 1 and K(1 − load) = βK^(1−α), they are of order K^(2α−1).
    totals : int or array of shape (replications,), optional
        Jobs at the start, spread evenly; by default one for each queue. A draw from the law that is expected
        makes a short warm-up enough.
    replications : int, default 32
        Independent runs, at least 13.
    depth : int, default 4, at most 10,000
        How many of the numbers q_1, q_2, … are returned.
    seed : int or SeedSequence, default 0
        Equal seeds give equal numbers.
    threads, progress : optional
        See `replications.replicate`; neither changes the numbers.

    Returns
    -------
    OccupancyEstimate
        In jobs.

    Raises
    ------
    UnstableError
        If the system has no stationary law.
    ValueError
        If an argument is out of range, or the policy does not rank every job.

    Notes
    -----
    Source: derived here. Exact in law: uniformized events, no clock.

    Examples
    --------
    >>> from rankrouting import System, jsq
    >>> system = System(n=1, K=10_000, upsilon=100.0, policy=jsq())
    >>> run = simulate_stationary(system, horizon=20.0, warmup=10.0, totals=9_990, seed=1)
    >>> idle = 10_000 - run.mean_at_least.value[0]
    >>> bool(abs(idle - 100) < 5 * run.mean_at_least.standard_error[0])
    True
    """
    _check_system(system)
    horizon = checks.real("horizon", horizon, above=0)
    warmup = checks.real("warmup", warmup, at_least=0)
    replications = checks.whole("replications", replications, at_least=13)
    depth = checks.whole("depth", depth, at_most=_MOST_DEPTH)
    rate = system.arrival_rate + system.n * system.K
    if not replications * (horizon + warmup) * rate < _MOST_STEPS:
        raise ValueError(
            f"horizon = {horizon:g}, warmup = {warmup:g}: more than {_MOST_STEPS:.0e} steps in all of"
            f" {replications} replications"
        )
    starts = _starts(system, totals, replications)
    durations = np.array([warmup, horizon])
    rates = events.rates_of(system)

    def task(rng: Generator, index: int) -> tuple[Floats, NDArray[np.int64]]:
        out = np.empty((2, depth + 2), dtype=np.int64)
        averages = np.empty((2, depth + 2))
        state = random.new_state(rng)
        occupancy.occupancy_kernel(balanced(system.K, starts[index]), durations, out, averages, rates, rng, state)
        return averages[1], out[1]

    parts = zip(*replicate(task, replications, seed, threads=threads, progress=progress), strict=True)
    means, finals = map(np.array, parts)
    return OccupancyEstimate(
        system, means[:, :depth], means[:, depth], means[:, depth + 1], finals[:, :depth], finals[:, depth]
    )


def _check_system(system: System) -> None:
    """Raise unless this is a stable system in which every job is ranked."""
    require_system(system)
    if not system.policy.ranks_every_job:
        raise ValueError(f"policy = {system.policy.name}: must rank every job, as jsq() and power_of_d(d) do")
    if not system.upsilon > 0:
        raise checks.UnstableError(f"upsilon = {system.upsilon:g}: must be above 0, or there is no stationary law")


def _starts(system: System, totals: ArrayLike | None, replications: int) -> list[int]:
    """Return the number of jobs at the start of each replication."""
    given = checks.finite_array("totals", system.K if totals is None else totals)
    if given.shape not in ((), (replications,)):
        raise ValueError(f"totals of shape {given.shape}: must be a number or have shape ({replications},)")
    if np.any(given < 0) or np.any(given != np.floor(given)) or given.max() >= checks.LARGEST_COUNT:
        raise ValueError(f"totals from {given.min():g} to {given.max():g}: must be whole numbers, at least 0")
    if given.max() > _MOST_JOBS_EACH * system.K:
        raise ValueError(f"totals up to {given.max():g}: more than a million jobs at each of K = {system.K} queues")
    return [int(total) for total in np.broadcast_to(given, (replications,))]
