"""The n-th system with any service times and with arrivals that need not be Poisson.

The system is that of `System`, but a service takes 1/n times a time from a `TimeLaw`, and each of the two streams is a
renewal process: the times between its arrivals are independent, and have such a law divided by the rate of the stream.
With exponential laws it is the system of `queues`, which simulates that one much faster.

Where the scv of the service times is s² and that of the uniform stream a², the limit has variance 1 + s² in each
coordinate and common covariance (a² − 1)/K (`limit`): the formulas of `analytic` for that `Limit` hold, and those
with a product form need a² = 1. `kernels.service` simulates, exactly in law. Lengths are in limit units, jobs
divided by √n. Chapter: service_times.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from . import _methods, analytic, checks
from ._methods import Floats, Lengths
from ._plan import planned
from .analytic.gap_laws import without_common
from .kernels import events, random
from .kernels import service as kernels
from .model import CollapsedLimit, Limit, System, require_system
from .replications import Estimate, Seed, mean_of, replicate
from .stationary import StationaryEstimate, summary, warn_if_short
from .time_laws import TimeLaw, exponential

__all__ = ["GeneralEstimate", "limit", "mg1_mean", "simulate_paths", "simulate_stationary"]

_LENGTHS_AT_ONCE = 2**16
_SEED = 0  # of the draws that the weight of the control is computed with; another makes another, equally valid one


class Streams(NamedTuple):
    """The laws of a system's times: of a service, and between arrivals of the uniform and of the ranked stream."""

    service: TimeLaw
    arrivals: TimeLaw
    ranked_arrivals: TimeLaw


def limit(
    system: System,
    service: TimeLaw,
    *,
    arrivals: TimeLaw | None = None,
    ranked_arrivals: TimeLaw | None = None,
) -> Limit | CollapsedLimit:
    """prop-general-limit: the same drifts, variance 1 + s² and common covariance (a² − 1)/K.

    Parameters
    ----------
    system, service, arrivals, ranked_arrivals
        As of `simulate_stationary`. The SCV of the ranked stream matters only when every job is ranked.

    Returns
    -------
    Limit or CollapsedLimit
        Of Q/√n. When every job is ranked, by the SCV a² of that stream: a `CollapsedLimit` of variance a² + s².

    Raises
    ------
    ValueError
        If an argument is no `System` or `TimeLaw`, or `arrivals` is given for a policy that ranks every job.

    Notes
    -----
    Source: Atar and Ichiba for Poisson arrivals; derived here for others.

    Examples
    --------
    >>> from rankrouting import mjsq, time_laws
    >>> system = System(n=100, K=2, upsilon=1.0, policy=mjsq(c=2.0))
    >>> of = limit(system, time_laws.erlang(4), arrivals=time_laws.hyperexponential(3.0))
    >>> of.variance, of.common
    (1.25, 1.0)
    """
    laws = _streams(system, service, arrivals, ranked_arrivals)
    poisson = system.limit()
    if isinstance(poisson, CollapsedLimit):
        return CollapsedLimit(system.K, system.upsilon, laws.ranked_arrivals.scv + service.scv)
    scv = laws.ranked_arrivals.scv if system.policy.ranks_every_job else laws.arrivals.scv
    return Limit(system.K, poisson.drifts, 1 + service.scv, (scv - 1) / system.K)


def mg1_mean(system: System, service: TimeLaw) -> float:
    """thm-mg1-mean: load + load²(1 + s²)/(2(1 − load)), the mean **jobs** in a queue with the same Poisson arrivals.

    Exact at every n.

    Raises
    ------
    ValueError
        If the arrival rate depends on the rank.
    UnstableError
        If υ is not above 0.

    Notes
    -----
    Source: the formula of Pollaczek and Khinchine for the M/G/1 queue.

    Examples
    --------
    >>> from rankrouting import random_routing, time_laws
    >>> round(mg1_mean(System(n=100, K=5, upsilon=1.0, policy=random_routing()), time_laws.deterministic()), 9)
    24.99
    """
    exponential_mean = analytic.mm1_mean(system)
    service = _streams(system, service, None, None).service
    return system.load + system.load * exponential_mean * (1 + service.scv) / 2


@dataclass(frozen=True)
class GeneralEstimate(StationaryEstimate):
    """Means of the stationary law, as `StationaryEstimate` has them, and means of what was asked for.

    The identity behind `mean_total_by_balance`, `balance_residual` and the control is that for the work
    (prop-work-balance in the chapter). It needs a ranked stream that is Poisson, and its terms have a finite
    variance only where third moments are finite; otherwise these means are NaN. The control's weight is known
    for Poisson arrivals; for others take `mean_with_controls` of the samples and their residuals.

    Attributes
    ----------
    observed : Estimate or None
        Means of the function `observe`.
    observed_samples : array or None
        The time averages of each replication, replications on the first axis.
    """

    observed: Estimate | None = None
    observed_samples: Floats | None = None


def simulate_paths(
    system: System,
    service: TimeLaw,
    times: ArrayLike,
    x0: ArrayLike = 0.0,
    replications: int = 1,
    seed: Seed = 0,
    *,
    arrivals: TimeLaw | None = None,
    ranked_arrivals: TimeLaw | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Floats:
    """Simulate paths of the labelled queue lengths, stable or overloaded.

    Parameters
    ----------
    system, service, arrivals, ranked_arrivals, threads, progress
        As of `simulate_stationary`.
    times, x0, replications, seed
        As of `queues.simulate_paths`. Of each service and each time between arrivals that runs at time 0 a uniform
        part is left.

    Returns
    -------
    array of shape (replications, T, K)
        Lengths in limit units.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from rankrouting import mjsq, time_laws
    >>> system = System(n=100, K=3, upsilon=1.0, policy=mjsq(c=2.0))
    >>> simulate_paths(system, time_laws.deterministic(), times=[0.5, 1.0], replications=4).shape
    (4, 2, 3)
    """
    laws = _streams(system, service, arrivals, ranked_arrivals)
    grid = checks.sample_times(times)
    replications = checks.whole("replications", replications)
    checks.result_fits(replications, grid.size, system.K)
    starts = checks.jobs_at_start(x0, replications, system.K, system.sqrt_n)
    _methods.check_work(system, "general", "times", float(grid[-1]), replications)
    durations = np.diff(grid, prepend=0.0)
    lengths = np.empty((replications, grid.size, system.K))

    def task(rng: Generator, index: int) -> None:
        advance = Advance(system, laws, starts[index], rng)
        lengths[index] = advance(durations)[0]

    replicate(task, replications, seed, threads=threads, progress=progress)
    lengths /= system.sqrt_n
    return lengths


def simulate_stationary(
    system: System,
    service: TimeLaw,
    *,
    arrivals: TimeLaw | None = None,
    ranked_arrivals: TimeLaw | None = None,
    observe: Callable[[Floats], Floats] | None = None,
    replications: int = 32,
    horizon: float | None = None,
    warmup: float | None = None,
    seed: Seed = 0,
    spacing: float | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> GeneralEstimate:
    """Estimate the means of the stationary law of the n-th system with other laws of its times.

    Each replication starts from the limit's stationary law, that without common noise, runs for `warmup`, and is
    then observed at equal distances in time until the `horizon` is over.

    Parameters
    ----------
    system : System
        A stable system; n is the rate of service, 1/n the mean service time.
    service : TimeLaw
        Of the service times times n.
    arrivals, ranked_arrivals : TimeLaw, optional
        Of the times between arrivals of the uniform and of the ranked stream, times the rate of the stream; by
        default exponential: Poisson streams. A policy that ranks every job has a ranked stream only.
    observe : callable, optional
        Of ranked lengths in limit units, shape (observations, K), ascending: returns shape (observations, ...), of
        which the mean is estimated.
    replications, horizon, warmup, seed, spacing, threads, progress
        As of `queues.simulate_stationary`; the relaxation time is that of `limit`.

    Returns
    -------
    GeneralEstimate
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
    >>> from rankrouting import mjsq, time_laws
    >>> system = System(n=100, K=2, upsilon=2.0, policy=mjsq(c=2.0))
    >>> result = simulate_stationary(system, time_laws.deterministic(), seed=1)
    >>> bool(abs(result.balance_z) < 4), bool(result.mean_total < 1.2)  # 2 with exponential service
    (True, True)
    """
    if observe is not None and not callable(observe):
        raise ValueError(f"observe = {checks.shown(observe)}: must be a function of an array, or None")
    laws = _streams(system, service, arrivals, ranked_arrivals)
    of_limit = limit(system, service, arrivals=arrivals, ranked_arrivals=ranked_arrivals)
    relaxation = analytic.relaxation_time(of_limit)
    plan = planned(system, "general", relaxation, replications, horizon, warmup, seed, spacing)
    warn_if_short(plan.horizon, plan.warmup, relaxation)
    start_law = analytic.gap_law(without_common(of_limit))
    observations = max(1, round(plan.horizon / plan.spacing))
    durations = np.full(observations, plan.horizon / observations)

    def task(rng: Generator, _: int) -> tuple[_Averages, Lengths, Any]:
        start = rng.permuted(np.rint(system.sqrt_n * start_law.sample_ranked(1, rng)[0]).astype(np.int64))
        advance = Advance(system, laws, start, rng)
        if plan.warmup > 0:
            advance(np.array([plan.warmup]))
        return _time_averages(system, advance, durations, observe)

    averages, finals, seen = zip(
        *replicate(task, plan.replications, seed, threads=threads, progress=progress), strict=True
    )
    means = _Averages(*map(np.array, zip(*averages, strict=True)))
    by_balance, residuals = _work_balance(system, laws, means)
    weights = _control_weights(of_limit)
    found = summary(
        plan,
        means.ranked,
        by_balance,
        means.idle,
        residuals,
        means.ranked + residuals[:, np.newaxis] * weights,
        np.array(finals, dtype=np.float64),
    )
    samples = np.array(seen, dtype=np.float64) if observe else None
    of_samples = None if samples is None else mean_of(samples)
    return GeneralEstimate(**vars(found), observed=of_samples, observed_samples=samples)


class _Averages(NamedTuple):
    """Time averages of a replication: of ranked lengths and ranked work in limit units (K,), and of the idle servers.

    The work of a queue is n times the time that its server needs for what is there, over √n. `left` is √n times the
    time to the next uniform arrival, `left_idle` its product with the number of idle servers.
    """

    ranked: Floats
    work: Floats
    idle: Any
    left: Any
    left_idle: Any


class Advance:
    """The state of one replication, which moves on when called with durations."""

    def __init__(self, system: System, laws: Streams, lengths: Lengths, rng: Generator) -> None:
        self._rates = events.rates_of(system)
        self._times = kernels.Times(*(law.sampler for law in laws))
        self._rng, self._state = rng, random.new_state(rng)
        self._lengths, self._clocks = lengths.copy(), np.empty(system.K + 2)
        kernels.start_kernel(self._lengths, self._clocks, self._rates, self._times, rng)

    def __call__(self, durations: Floats) -> tuple[Lengths, Floats]:
        """Return the lengths (durations, K) and the clocks (durations, K + 2) after each duration."""
        K = self._lengths.size
        out, left = np.empty((durations.size, K), dtype=np.int64), np.empty((durations.size, K + 2))
        kernels.general_kernel(
            self._lengths, self._clocks, durations, out, left, self._rates, self._times, self._rng, self._state
        )
        return out, left


def _time_averages(
    system: System, advance: Advance, durations: Floats, observe: Callable[[Floats], Floats] | None
) -> tuple[_Averages, Lengths, Any]:
    """Return averages over the times of observation, the last ranked lengths, and the average that was asked for."""
    K = system.K
    sums, seen = np.zeros(2 * K + 3), 0.0
    at_once = max(1, _LENGTHS_AT_ONCE // K)
    final = np.zeros(K, dtype=np.int64)
    for first in range(0, durations.size, at_once):
        lengths, left = advance(durations[first : first + at_once])
        # The expected work: what is left of the service that runs, and a mean service for each job that waits.
        busy = lengths > 0
        work = np.where(busy, system.n * left[:, :K] + lengths - 1, 0.0) / system.sqrt_n
        order = np.argsort(lengths, axis=1, kind="stable")
        ranked = np.take_along_axis(lengths, order, axis=1) / system.sqrt_n
        idle = K - busy.sum(axis=1)
        uniform = system.sqrt_n * left[:, K] if system.uniform_rate > 0 else np.zeros(len(left))
        sums[:K] += ranked.sum(axis=0)
        sums[K : 2 * K] += np.take_along_axis(work, order, axis=1).sum(axis=0)
        sums[2 * K :] += idle.sum(), uniform.sum(), uniform @ idle
        if observe:
            values = np.asarray(observe(ranked))
            found = checks.finite_array("values of observe", values.astype(float) if values.dtype == bool else values)
            if found.shape[:1] != (len(ranked),):
                raise ValueError(
                    f"values of observe of shape {found.shape}: must have {len(ranked)} rows, one for each observation"
                )
            seen = seen + found.sum(axis=0)
        final = np.sort(lengths[-1])
    means = sums / durations.size
    return _Averages(means[:K], means[K : 2 * K], *means[2 * K :]), final, seen / durations.size


def _work_balance(system: System, laws: Streams, means: _Averages) -> tuple[Floats, Floats]:
    """Return, for each replication, the mean total that follows from the ranked jobs' work, and the residual."""
    replications, K = means.ranked.shape
    not_poisson = laws.ranked_arrivals != exponential() and system.ranked_rate > 0
    if not_poisson or math.inf in (laws.service.third_moment, laws.arrivals.third_moment):
        return np.full(replications, math.nan), np.full(replications, math.nan)
    n, second = system.n, 1 + laws.service.scv
    share = system.uniform_rate / (K * n)
    spare, ranked_rate = system.sqrt_n * (1 - share), system.ranked_rate / system.sqrt_n
    compensated = means.work - share * means.left[:, np.newaxis]
    constant = (system.arrival_rate * second + system.uniform_rate * (laws.arrivals.scv - 1) / K) / (2 * n)
    gained = ranked_rate * (compensated @ system.rank_probabilities) + constant
    gained = gained - system.sqrt_n * share * means.left_idle
    residuals = spare * compensated.sum(axis=1) - gained
    if system.policy.ranks_every_job:
        return np.full(replications, math.nan), residuals
    work = gained / spare + share * K * means.left
    # The service that runs has a length-biased law: what is left of it is half of 1 + s² services in the mean.
    return work + system.arrival_rate / n * (1 - second / 2) / system.sqrt_n, residuals


def _control_weights(of_limit: Limit | CollapsedLimit) -> Floats:
    """Return by what each ranked mean gains from the residual: Galerkin's weight for Σ x², as in `_controls`.

    NaN with a common noise, where the law of the limit that the weight is computed with is not known.
    """
    if isinstance(of_limit, Limit) and of_limit.common != 0:
        return np.full(of_limit.K, math.nan)
    x = analytic.gap_law(of_limit).sample_ranked(2**16, np.random.default_rng(_SEED))
    squares = (x**2).sum(axis=1)
    covariance = (squares - squares.mean()) @ (x - x.mean(axis=0)) / len(x)
    return np.asarray(-covariance / (of_limit.variance * squares.mean()))


def _streams(system: System, service: TimeLaw, arrivals: TimeLaw | None, ranked_arrivals: TimeLaw | None) -> Streams:
    """Return the laws, checked."""
    require_system(system)
    given = (exponential() if law is None else law for law in (arrivals, ranked_arrivals))
    laws = Streams(service, *given)
    for name, law in laws._asdict().items():
        if not isinstance(law, TimeLaw):
            raise ValueError(f"{name} = {checks.shown(law)}: must be a TimeLaw, for instance time_laws.erlang(4)")
    if system.policy.ranks_every_job and arrivals not in (None, exponential()):
        raise ValueError(
            f"arrivals = {laws.arrivals.name}: {system.policy.name} ranks every job, so that there is no uniform"
            " stream; use ranked_arrivals"
        )
    return laws
