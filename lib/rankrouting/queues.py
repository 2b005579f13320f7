"""Simulation of the n-th system: paths, and means of its stationary law.

Exact in law at every n, by one of three methods.

``"events"``
    Every arrival and service is a step (`_events`). Cost: 2nK steps per unit of time.
``"jumps"``
    From one ranked arrival to the next in one draw a queue (`_jumps`). Cost: c√n jumps of K queues
    per unit of time. Not for policies that rank every job.
``"lazy"``
    As jumps, but a queue far above the minimum is drawn once for many ranked arrivals (`_lazy`).
    Cost: c√n jumps of a few queues, hardly growing with K. For MJSQ only.

Lengths are in limit units, jobs divided by √n. Chapters: model, heavy_traffic, interchange, workload, overloaded.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast, overload

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from . import _events, _jumps, _lazy, _random, analytic, checks
from .model import System
from .replications import Estimate, Seed, mean_of, replicate

Floats = NDArray[np.float64]
Lengths = NDArray[np.int64]
Method = Literal["auto", "events", "jumps", "lazy"]
Advance = Callable[[Lengths, Floats], Lengths]

_METHODS = ("auto", "events", "jumps", "lazy")
# A jump of one queue costs about as much as this many event steps (benchmarks/).
_STEPS_PER_JUMP = 25.0
_LAZY_FROM_K = 4
_MOST_STEPS = 1e13
_MOST_OBSERVATIONS = 10**8
_WARM_UP_RELAXATIONS = 5.0
_HORIZON_RELAXATIONS = 20.0
_OBSERVATIONS_PER_RELAXATION = 500
_OBSERVATIONS_AT_ONCE = 4096


class TooShortWarning(UserWarning):
    """A run is so short that its intervals may not cover as often as they say."""


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


class Run(NamedTuple):
    """What a stationary simulation ran."""

    system: System
    method: str
    replications: int
    horizon: float
    warmup: float
    spacing: float
    seed: Seed
    relaxation_time: float


class Means(NamedTuple):
    """One number or vector for each mean that a stationary simulation estimates, in limit units.

    Of `StationaryEstimate.samples` one for each replication, on the first axis.
    """

    mean_total: float
    mean_ranked: Floats
    gap_means: Floats
    mean_total_by_balance: float
    idle_servers: float
    balance_residual: float


@dataclass(frozen=True)
class StationaryEstimate:
    """Means of the stationary law of the n-th system, each over independent replications.

    Attributes
    ----------
    mean_total : float
        Mean of the sum of all lengths.
    mean_ranked, gap_means : array of shape (K,)
        Means of the ranked lengths, the shortest first, and of their gaps.
    mean_total_by_balance : float
        The mean total that the balance identity gives from the lengths where ranked jobs go (for
        MJSQ from the mean minimum): the same mean with less variance. NaN when every job is ranked.
    idle_servers : float
        Mean number of idle servers; exactly υ/√n in law.
    balance_residual, balance_z : float
        What is left of the balance identity, and the same in standard errors: a check of the run.
    standard_error : Means
        The standard error of each mean, by the same names.
    final_ranked : array of shape (replications, K)
        Ranked lengths at the end of each replication: independent draws from the stationary law.
    samples : Means
        The time averages of each replication, replications on the first axis: for `mean_with_controls`.
    run : Run
        What was run.
    """

    mean_total: float
    mean_ranked: Floats
    gap_means: Floats
    mean_total_by_balance: float
    idle_servers: float
    balance_residual: float
    balance_z: float
    standard_error: Means
    final_ranked: Floats
    samples: Means
    run: Run

    def estimate(self, name: str) -> Estimate:
        """Return the mean called `name` with its standard error and number of replications."""
        checks.one_of("name", name, Means._fields)
        return Estimate(getattr(self, name), getattr(self.standard_error, name), self.run.replications)

    def confidence_interval(self, name: str, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the Student interval of the mean called `name`."""
        return self.estimate(name).interval(level)


def fastest_method(system: System) -> str:
    """Return the exact method that costs least for this system: ``"events"``, ``"jumps"`` or ``"lazy"``."""
    jumps_per_queue = max(system.ranked_rate, 1.0)
    if system.policy.ranks_every_job or 2 * system.n < _STEPS_PER_JUMP * jumps_per_queue:
        return "events"
    return "lazy" if _is_mjsq(system) and system.K >= _LAZY_FROM_K else "jumps"


def simulate_stationary(
    system: System,
    *,
    replications: int = 32,
    horizon: float | None = None,
    warmup: float | None = None,
    seed: Seed = 0,
    method: Method = "auto",
    spacing: float | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> StationaryEstimate:
    """Estimate the means of the stationary law of the n-th system.

    Each replication starts from the limit's stationary law, runs for `warmup`, and is then observed
    at equal distances in time until the `horizon` is over.

    Parameters
    ----------
    system : System
        A stable system.
    replications : int, default 32
        Independent runs, at least 2.
    horizon, warmup : float, optional
        Observed and discarded time of each replication, in units of time; by default 20 and 5 of
        the limit's `analytic.relaxation_time`.
    seed : int or SeedSequence, default 0
        Equal seeds give equal numbers.
    method : {"auto", "events", "jumps", "lazy"}
        How to simulate; all are exact in law.
    spacing : float, optional
        Time between observations; by default a 500th of the relaxation time.
    threads, progress : optional
        See `replications.replicate`; neither changes the numbers.

    Returns
    -------
    StationaryEstimate
        In limit units.

    Raises
    ------
    UnstableError
        If the system has no stationary law.
    ValueError
        If an argument is out of range, or the horizon is shorter than one relaxation time.

    Warns
    -----
    TooShortWarning
        If the horizon is shorter than five relaxation times, or the warm-up than one.

    Examples
    --------
    >>> from rankrouting import System, mjsq
    >>> system = System(n=100, K=2, upsilon=1.0, policy=mjsq(c=2.0))
    >>> result = simulate_stationary(system, seed=1)
    >>> bool(abs(result.balance_z) < 4)
    True
    """
    _check_system(system)
    replications = checks.whole("replications", replications, at_least=2)
    relaxation = analytic.relaxation_time(system)
    horizon = checks.real("horizon", _HORIZON_RELAXATIONS * relaxation if horizon is None else horizon, above=0)
    warmup = checks.real("warmup", _WARM_UP_RELAXATIONS * relaxation if warmup is None else warmup, at_least=0)
    spacing = checks.real(
        "spacing",
        min(relaxation / _OBSERVATIONS_PER_RELAXATION, horizon) if spacing is None else spacing,
        above=0,
    )
    method_name = _chosen_method(system, method)
    if spacing > horizon:
        raise ValueError(f"spacing = {spacing:g}: must be at most the horizon, {horizon:g}")
    _check_length(horizon, warmup, relaxation)
    _check_work(system, method_name, "horizon", horizon + warmup, replications)
    if horizon / spacing > _MOST_OBSERVATIONS:
        raise ValueError(
            f"spacing = {spacing:g}: at most {_MOST_OBSERVATIONS:.0e} observations of a horizon are allowed"
        )
    start_law = analytic.gap_law(system)
    observations = max(1, round(horizon / spacing))
    durations = np.full(observations, horizon / observations)

    def task(rng: Generator, _: int) -> tuple[Floats, Floats]:
        start = np.rint(system.sqrt_n * start_law.sample_ranked(1, rng)[0]).astype(np.int64)
        advance = _advance(system, method_name, rng, labelled=False)
        if warmup > 0:
            start = advance(start, np.array([warmup]))[0]
        return _time_averages(advance, start, durations)

    averages, finals = zip(*replicate(task, replications, seed, threads=threads, progress=progress), strict=True)
    run = Run(system, method_name, replications, horizon, warmup, spacing, seed, relaxation)
    return _summary(run, np.array(averages), np.array(finals))


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
    if not isinstance(system, System):
        raise ValueError(f"system = {system!r}: must be a System")
    grid = checks.sample_times(times)
    replications = checks.whole("replications", replications)
    checks.result_fits(replications, grid.size, system.K)
    lengths_at_start = checks.starting_points(x0, replications, system.K) * system.sqrt_n
    if lengths_at_start.max() >= checks.LARGEST_COUNT:
        raise ValueError(f"x0 up to {lengths_at_start.max() / system.sqrt_n:g}: too many jobs to count")
    starts = np.rint(lengths_at_start).astype(np.int64)
    if idle and method in ("jumps", "lazy"):
        raise ValueError(f"method = {method!r}: jumps skip the moments when servers are idle; use 'events'")
    method_name = "events" if idle else _chosen_method(system, method)
    _check_work(system, method_name, "times", float(grid[-1]), replications)
    durations = np.diff(grid, prepend=0.0)
    shape = (replications, grid.size, system.K)
    lengths, idle_times = np.empty(shape), np.empty(shape if idle else 0)

    def task(rng: Generator, index: int) -> None:
        if idle:
            path = np.empty(shape[1:], dtype=np.int64)
            rates = _events.rates_of(system)
            state = _random.new_state(rng)
            _events.idle_kernel(starts[index], durations, path, idle_times[index], rates, rng, state)
        else:
            path = _advance(system, method_name, rng, labelled=True)(starts[index], durations)
        lengths[index] = path

    replicate(task, replications, seed, threads=threads, progress=progress)
    lengths /= system.sqrt_n
    return PathsWithIdle(lengths, idle_times * system.sqrt_n) if idle else lengths


def _check_work(system: System, method: str, name: str, time: float, replications: int) -> None:
    """Raise if a run would take weeks, or its counts would pass the end of the integers."""
    events = (system.arrival_rate + system.n * system.K) * time
    steps = replications * (events if method == "events" else max(system.ranked_rate * time, 1.0) * system.K)
    if not (events < checks.LARGEST_COUNT and steps < _MOST_STEPS):
        raise ValueError(
            f"{name} up to {time:.4g} with n = {system.n:.4g} and {replications} replications: about {steps:.1e} steps"
            f" of {method} and {events:.1e} events in each; at most {_MOST_STEPS:.0e} and {checks.LARGEST_COUNT:.0e}"
            " are allowed"
        )


def _is_mjsq(system: System) -> bool:
    return not system.policy.ranks_every_job and bool(system.rank_probabilities[0] == 1.0)


def _check_system(system: System) -> None:
    if not isinstance(system, System):
        raise ValueError(f"system = {system!r}: must be a System")
    analytic.gap_rates(system)  # raises UnstableError


def _chosen_method(system: System, method: str) -> str:
    checks.one_of("method", method, _METHODS)
    if method in ("jumps", "lazy") and system.policy.ranks_every_job:
        raise ValueError(
            f"method = {method!r}: {system.policy.name} ranks every job, so there is nothing to jump over; use 'events'"
        )
    if method == "lazy" and not _is_mjsq(system):
        raise ValueError(f"method = 'lazy': needs ranked jobs to join the shortest queue, not {system.policy.name}")
    return fastest_method(system) if method == "auto" else method


def _check_length(horizon: float, warmup: float, relaxation: float) -> None:
    if horizon < relaxation:
        raise ValueError(
            f"horizon = {horizon:g}: must be at least one relaxation time, {relaxation:.4g}, to mean anything"
        )
    if horizon < 5 * relaxation or warmup < relaxation:
        warnings.warn(
            f"horizon = {horizon:g} and warmup = {warmup:g} are short for a relaxation time of {relaxation:.4g}:"
            " five and one of it are needed for intervals that cover as often as they say",
            TooShortWarning,
            stacklevel=3,
        )


def _advance(system: System, method: str, rng: Generator, *, labelled: bool) -> Advance:
    """Return the function (lengths, durations) → lengths after each duration, one row each."""
    rates = _events.rates_of(system)
    state = _random.new_state(rng)

    def advance(lengths: Lengths, durations: Floats) -> Lengths:
        lengths = lengths.copy()
        out = np.empty((durations.size, system.K), dtype=np.int64)
        if method == "jumps":
            _jumps.jumps_kernel(lengths, durations, out, rates, rng, state)
        elif method == "lazy":
            _lazy.lazy_kernel(lengths, durations, out, rates, _lazy.WINDOW, rng, state)
        elif system.policy.ranks_every_job:
            _events.sorted_kernel(lengths, durations, out, rates, labelled, rng, state)
        else:
            _events.thin_kernel(lengths, durations, out, rates, rng, state)
        return out

    return advance


def _time_averages(advance: Advance, start: Lengths, durations: Floats) -> tuple[Floats, Floats]:
    """Return the averages of the ranked lengths (K,) and of the idle servers, and the last ranked lengths."""
    sums = np.zeros(start.size + 1)
    lengths = start
    for first in range(0, durations.size, _OBSERVATIONS_AT_ONCE):
        observed = np.sort(advance(lengths, durations[first : first + _OBSERVATIONS_AT_ONCE]), axis=-1)
        sums[:-1] += observed.sum(axis=0)
        sums[-1] += np.count_nonzero(observed == 0)
        lengths = observed[-1]
    return sums / durations.size, lengths.astype(np.float64)


def _summary(run: Run, averages: Floats, finals: Floats) -> StationaryEstimate:
    """Turn the averages of the replications, (replications, K + 1) in jobs, into the result."""
    system = run.system
    mean_ranked = averages[:, :-1] / system.sqrt_n
    if system.policy.ranks_every_job:
        by_balance = np.full(run.replications, math.nan)
    else:
        by_balance = np.array([analytic.mean_total_by_balance(system, ranked) for ranked in mean_ranked])
    samples = Means(
        mean_total=cast(float, mean_ranked.sum(axis=1)),
        mean_ranked=mean_ranked,
        gap_means=np.diff(mean_ranked, axis=1, prepend=0.0),
        mean_total_by_balance=cast(float, by_balance),
        idle_servers=cast(float, averages[:, -1]),
        balance_residual=cast(float, np.array([analytic.balance_residual(system, ranked) for ranked in mean_ranked])),
    )
    estimates = [
        Estimate(math.nan, math.nan, run.replications) if np.isnan(sample).any() else mean_of(sample)
        for sample in map(np.asarray, samples)
    ]
    values = Means(*(estimate.value for estimate in estimates))
    errors = Means(*(estimate.standard_error for estimate in estimates))
    return StationaryEstimate(
        **values._asdict(),
        balance_z=values.balance_residual / errors.balance_residual,
        standard_error=errors,
        final_ranked=finals / system.sqrt_n,
        samples=samples,
        run=run,
    )
