"""Routing by stale ranks: the ranking is read only every τ. Public through `queues`; chapter: policies."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from . import analytic, checks
from .kernels import random
from .kernels.stale import stale_diffusion_kernel, stale_queues_kernel
from .model import Limit, System
from .replications import Estimate, Seed, mean_of, mean_with_controls, replicate

Floats = NDArray[np.float64]

_LOOKS_PER_RELAXATION = 200.0
_MOST_LOOKS_PER_CYCLE = 32
_MOST_STEPS = 1e12


class StaleEstimate(NamedTuple):
    """Stationary means under stale ranks, over independent replications, in limit units.

    Attributes
    ----------
    mean_total : Estimate
        Mean of the sum of all lengths, the residual of the balance identity taken off as a control.
    mean_ranked : Estimate of shape (K,)
        Mean ranked lengths, the shortest first, without controls.
    mean_read : Estimate of shape (K,)
        Mean length, over time, of the queue that was k-th at the last reading.
    balance_z : float
        What is left of the balance identity, in standard errors: a check of the run.
    final_ranked : array of shape (replications, K)
        Ranked lengths at the end of the last cycle: independent draws from the law at readings.
    cycles : int
        Readings in each replication after the warm-up.
    """

    mean_total: Estimate
    mean_ranked: Estimate
    mean_read: Estimate
    balance_z: float
    final_ranked: Floats
    cycles: int


def simulate_stale(
    model: System | Limit,
    tau: float,
    *,
    replications: int = 32,
    horizon: float | None = None,
    warmup: float | None = None,
    seed: Seed = 0,
    threads: int | None = None,
    progress: bool | None = None,
) -> StaleEstimate:
    """Estimate stationary means when the ranks are read at 0, τ, 2τ, … and used until the next reading.

    Exact in law: between readings the queues are independent M/M/1 queues, or reflected Brownian motions, and
    are advanced in one draw each. As τ → 0 this is the policy itself.

    Parameters
    ----------
    model : System or Limit
        A stable system whose policy ranks a stream of rate c√n, or the limit of one.
    tau : float
        Time between readings, above 0.
    replications : int, default 32
        Independent runs, at least 12.
    horizon, warmup : float, optional
        Observed and discarded time of each replication, rounded up to whole cycles; by default 20 and 5 times
        the sum of `analytic.relaxation_time` and Kτ.
    seed : int or SeedSequence, default 0
        Equal seeds give equal numbers.
    threads, progress : optional
        See `replications.replicate`; neither changes the numbers.

    Returns
    -------
    StaleEstimate
        In limit units.

    Raises
    ------
    UnstableError
        If the model has no stationary law with fresh ranks.
    ValueError
        If an argument is out of range, every job is ranked, or the run would take days.

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> system = System(n=100, K=2, upsilon=1.0, policy=mjsq(c=2.0))
    >>> run = simulate_stale(system, tau=0.5, seed=1)
    >>> bool(abs(run.balance_z) < 4), bool(run.mean_total.value > analytic.mean_total(system))
    (True, True)
    """
    if not isinstance(model, System | Limit):
        raise ValueError(f"model = {checks.shown(model)}: must be a System or a Limit")
    if isinstance(model, System) and model.policy.ranks_every_job:
        raise ValueError(f"policy = {model.policy.name}: must rank a stream of rate c√n, not every job")
    start_law = analytic.gap_law(model)
    tau, replications = checks.real("tau", tau, above=0), checks.whole("replications", replications, at_least=12)
    relaxation = analytic.relaxation_time(model)
    memory = relaxation + model.K * tau
    horizon = checks.real("horizon", 20 * memory if horizon is None else horizon, above=0)
    warmup = checks.real("warmup", 5 * memory if warmup is None else warmup, at_least=0)
    spacing = relaxation / _LOOKS_PER_RELAXATION
    every = max(1, round(spacing / tau)) if spacing < horizon else 1
    points = min(max(1, math.ceil(tau / spacing)), _MOST_LOOKS_PER_CYCLE)
    looks = max(1, math.ceil(horizon / (every * tau)))
    steps = ((horizon + warmup) / tau + looks * points) * model.K * replications
    if not steps < _MOST_STEPS:
        raise ValueError(f"tau = {tau:g}: about {steps:.1e} steps of a queue; at most {_MOST_STEPS:.0e} are allowed")
    scale = model.sqrt_n if isinstance(model, System) else 1.0

    def task(rng: Generator, _: int) -> tuple[Floats, Floats]:
        state = random.new_state(rng)
        sums = np.zeros((2, model.K))
        lengths = scale * start_law.sample_ranked(1, rng)[0]
        stages = ((math.ceil(warmup / tau), np.iinfo(np.int64).max), (looks * every, every))
        if isinstance(model, System):
            jobs = np.rint(lengths).astype(np.int64)
            for cycles, observed in stages:
                rates = model.rank_arrival_rates
                stale_queues_kernel(jobs, tau, cycles, observed, points, sums, rates, float(model.n), state)
            lengths = jobs.astype(np.float64)
        else:
            for cycles, observed in stages:
                stale_diffusion_kernel(
                    lengths, tau, cycles, observed, points, sums, model.drifts, model.variance, rng, state
                )
        return sums / (looks * points * scale), np.sort(lengths) / scale

    runs = replicate(task, replications, seed, threads=threads, progress=progress)
    means, finals = map(np.array, zip(*runs, strict=True))
    now, read = means[:, 0], means[:, 1]
    residuals = np.array([analytic.balance_residual(model, row) for row in read])
    residual = mean_of(residuals)
    return StaleEstimate(
        mean_total=mean_with_controls(now.sum(axis=1), residuals),
        mean_ranked=mean_of(now),
        mean_read=mean_of(read),
        balance_z=float(residual.value / residual.standard_error),
        final_ranked=finals,
        cycles=looks * every,
    )
