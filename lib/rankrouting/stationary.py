"""Means of the stationary law of the n-th system, by simulation.

Public through `queues`. Lengths are in limit units, jobs divided by √n. Chapters: most.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from numpy.random import Generator

from . import _controls, _methods, analytic, checks
from ._methods import Advance, Floats, Lengths, Method
from ._plan import Run, plan_stationary
from .model import System
from .replications import Estimate, Seed, mean_of, replicate_together

_LENGTHS_AT_ONCE = 2**18


class TooShortWarning(UserWarning):
    """A run is so short that its intervals may not cover as often as they say."""


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


class Controlled(NamedTuple):
    """Averages with controls of each replication, replications on the first axis, in limit units."""

    mean_total: Floats
    mean_ranked: Floats
    gap_means: Floats


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
        The time averages of each replication, replications on the first axis.
    controlled : Controlled
        As `samples`, less what controls explain (`_controls`): the same means with much less variance.
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
    controlled: Controlled
    run: Run

    def estimate(self, name: str, *, controls: bool = False) -> Estimate:
        """Return the mean called `name` with its standard error and number of replications.

        With `controls`, for ``"mean_total"``, ``"mean_ranked"`` and ``"gap_means"``, controls are used: the mean
        is the same, its standard error several times smaller.
        """
        if checks.flag("controls", controls):
            checks.one_of("name", name, Controlled._fields)
            controlled = getattr(self.controlled, name)
            if np.isnan(controlled).any():
                raise ValueError(
                    "controls = True: there are none: arrivals are not Poisson, or a time has no third moment"
                )
            return mean_of(controlled)
        checks.one_of("name", name, Means._fields)
        if name == "mean_total_by_balance" and self.run.system.policy.ranks_every_job:
            raise ValueError(
                f"name = {name!r}: there is none when every job is ranked, as by {self.run.system.policy.name}"
            )
        return Estimate(getattr(self, name), getattr(self.standard_error, name), self.run.replications)

    def confidence_interval(self, name: str, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the Student interval of the mean called `name`."""
        return self.estimate(name).interval(level)


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
    plan = plan_stationary(system, replications, horizon, warmup, seed, method, spacing)
    _, method_name, replications, horizon, warmup, spacing, _, relaxation = plan
    warn_if_short(horizon, warmup, relaxation)
    start_law = analytic.gap_law(system)
    observations = max(1, round(horizon / spacing))
    durations = np.full(observations, horizon / observations)

    def task(rngs: Sequence[Generator], _: range) -> list[tuple[Floats, Floats, Floats]]:
        starts = [np.rint(system.sqrt_n * start_law.sample_ranked(1, rng)[0]).astype(np.int64) for rng in rngs]
        lengths = np.array(starts)
        advance = _methods.advance_with(system, method_name, rngs, labelled=False)
        if warmup > 0:
            lengths = advance(lengths, np.array([warmup]))[:, 0]
        return _time_averages(system, advance, lengths, durations)

    parts = replicate_together(
        task,
        replications,
        seed,
        together=_methods.at_once(system, labelled=False),
        threads=threads,
        progress=progress,
    )
    return _summary(plan, *map(np.array, zip(*parts, strict=True)))


def warn_if_short(horizon: float, warmup: float, relaxation: float) -> None:
    """Warn the caller's caller if a run is too short for its intervals."""
    if horizon < 5 * relaxation or warmup < relaxation:
        warnings.warn(
            f"horizon = {horizon:g} and warmup = {warmup:g} are short for a relaxation time of {relaxation:.4g}:"
            " five and one of it are needed for intervals that cover as often as they say",
            TooShortWarning,
            stacklevel=3,
        )


def _time_averages(
    system: System, advance: Advance, lengths: Lengths, durations: Floats
) -> list[tuple[Floats, Floats, Floats]]:
    """Return of each replication, from its row of `lengths` on, what is in a row of `_summary`."""
    sums = [np.zeros(system.K + 1) for _ in lengths]
    drifts = [np.zeros(_controls.COUNT) for _ in lengths]
    at_once = max(1, _LENGTHS_AT_ONCE // system.K)
    for first in range(0, durations.size, at_once):
        observed = np.sort(advance(lengths, durations[first : first + at_once]), axis=-1)
        for r, ranked in enumerate(observed):
            sums[r][:-1] += ranked.sum(axis=0)
            sums[r][-1] += np.count_nonzero(ranked == 0)
            drifts[r] += _controls.drifts(system, ranked).sum(axis=0)
        lengths = observed[:, -1]
    return [
        (total / durations.size, drift / durations.size, last.astype(np.float64))
        for total, drift, last in zip(sums, drifts, lengths, strict=True)
    ]


def _summary(run: Run, averages: Floats, controls: Floats, finals: Floats) -> StationaryEstimate:
    """Turn what each replication left into the result, replications on the first axis of each array.

    `averages` are those of the ranked lengths and of the number of idle servers, (replications, K + 1), in jobs;
    `controls` those of the controls; `finals` the last ranked lengths, in jobs.
    """
    system = run.system
    mean_ranked = averages[:, :-1] / system.sqrt_n
    if system.policy.ranks_every_job:
        by_balance = np.full(run.replications, math.nan)
    else:
        by_balance = np.array([analytic.mean_total_by_balance(system, ranked) for ranked in mean_ranked])
    residuals = np.array([analytic.balance_residual(system, ranked) for ranked in mean_ranked])
    controlled = mean_ranked + controls @ _controls.coefficients(system)
    return summary(run, mean_ranked, by_balance, averages[:, -1], residuals, controlled, finals)


def summary(
    run: Run,
    mean_ranked: Floats,
    by_balance: Floats,
    idle: Floats,
    residuals: Floats,
    controlled: Floats,
    finals: Floats,
) -> StationaryEstimate:
    """Turn what each replication measured, on the first axis, into the result; the finals are in jobs."""
    totals, gaps = _totals_and_gaps(mean_ranked)
    samples = Means(
        mean_total=cast(float, totals),
        mean_ranked=mean_ranked,
        gap_means=gaps,
        mean_total_by_balance=cast(float, by_balance),
        idle_servers=cast(float, idle),
        balance_residual=cast(float, residuals),
    )
    totals_controlled, gaps_controlled = _totals_and_gaps(controlled)
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
        final_ranked=finals / run.system.sqrt_n,
        samples=samples,
        controlled=Controlled(totals_controlled, controlled, gaps_controlled),
        run=run,
    )


def _totals_and_gaps(ranked: Floats) -> tuple[Floats, Floats]:
    return ranked.sum(axis=1), np.diff(ranked, axis=1, prepend=0.0)
