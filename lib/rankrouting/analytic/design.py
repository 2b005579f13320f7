"""How long a job takes, and which c a target asks for. Public through `analytic`.

Chapters: policies, own_system.

A job that joins a queue of Q jobs leaves after Q + 1 services, about Q/n: the delay over √n is the length that it
meets in limit units. By PASTA that is the stationary length of the queue of the rank that it is sent to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts are imported when they are used
from numpy.typing import ArrayLike, NDArray

from .. import checks, policies
from ..model import LEAST_SPARE, System
from .formulas import mean_total
from .gap_laws import Model, gap_rates
from .hypoexponential import Hypoexponential, float_or_array, positive_rates
from .identities import communication_rate

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DelayLaw:
    """A mixture over the ranks k of the laws of Z_1 + … + Z_k, independent exponentials.

    Attributes
    ----------
    weights : array of shape (K,)
        Probability that a job joins the queue of rank k.
    rates : array of shape (K,)
        Rates of the gaps, in one over the unit of the delay.
    """

    weights: Floats
    rates: Floats

    def __post_init__(self) -> None:
        """Validate, and store copies that cannot be changed."""
        rates = positive_rates(self.rates)
        weights = np.array(checks.finite_array("weights", self.weights))
        if weights.shape != rates.shape or np.any(weights < 0) or abs(weights.sum() - 1) > 1e-9:
            raise ValueError(
                f"weights of shape {weights.shape} and sum {weights.sum():.6g}: must be probabilities that sum to 1,"
                f" one for each of {rates.size} rates"
            )
        for name, value in (("weights", weights), ("rates", rates)):
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    @property
    def mean(self) -> float:
        """Mean delay."""
        return float(self.weights @ np.cumsum(1 / self.rates))

    def sf(self, t: ArrayLike) -> Any:
        """Return P(delay > t), a float or an array of the shape of t."""
        times = checks.finite_array("t", t)
        parts = [
            w * np.asarray(Hypoexponential(self.rates[: k + 1]).sf(times)) for k, w in enumerate(self.weights) if w
        ]
        return float_or_array(np.sum(parts, axis=0))

    def cdf(self, t: ArrayLike) -> Any:
        """Return P(delay ≤ t), a float or an array of the shape of t."""
        return float_or_array(1 - np.asarray(self.sf(t)))

    def quantile(self, q: ArrayLike) -> Any:
        """Return the t with P(delay ≤ t) = q, for each q strictly between 0 and 1."""
        levels = checks.finite_array("q", q)
        return float_or_array(np.array([self._quantile(level) for level in levels.ravel()]).reshape(levels.shape))

    def _quantile(self, q: float) -> float:
        # The lengths of the ranks are ordered, so the quantile lies between those of the first and the last.
        first, last = (float(Hypoexponential(self.rates[:k]).quantile(q)) for k in (1, self.rates.size))
        if not first < last:
            return last

        def excess(t: float) -> float:
            return float(np.log(self.sf(t) / (1 - q)))

        return float(scipy.optimize.brentq(excess, first * (1 - 1e-9), last * (1 + 1e-9), xtol=1e-12 * last))


def delay_law(model: Model) -> DelayLaw:
    """prop-delay-law: the law of the time from a job's arrival to its departure, in heavy traffic.

    For a limit it is that of √n times the delay: the length of a queue chosen uniformly. For a `System` it is in
    the system's unit of time, and the share of the ranked jobs, which vanishes in the limit, is not left out: a
    job joins rank k with probability λ_k/λ_n.

    Returns
    -------
    DelayLaw
        With mean, cdf, sf and quantile.

    Raises
    ------
    UnstableError
        If there is no stationary law.

    Notes
    -----
    Source: derived here from the stationary law of Banerjee, Budhiraja and Estevez. Exact at every n for uniform
    random routing, where a delay is exponential of rate n − λ_n/K.

    Examples
    --------
    >>> from rankrouting import System, random_routing
    >>> law = delay_law(System(n=100, K=4, upsilon=2.0, policy=random_routing()))
    >>> round(law.mean, 9), round(law.quantile(0.95) / law.mean, 6)  # exponential of rate 100 − 95, ln 20
    (0.2, 2.995732)
    """
    rates = gap_rates(model)
    if isinstance(model, System):
        return DelayLaw(model.rank_arrival_rates / model.arrival_rate, rates * model.sqrt_n)
    return DelayLaw(np.full(rates.size, 1 / rates.size), rates)


@dataclass(frozen=True)
class Design:
    """A router that meets a target, and what the limit predicts of it; made by `design`.

    Attributes
    ----------
    system : System
        With the policy that was found.
    c : float
        Rate of the ranked stream, in √n jobs per unit time.
    ranked_share : float
        Share of the jobs whose router looks at queue lengths.
    messages_per_job : float
        Queue lengths asked for per job, on average.
    messages_saved : float
        Share of JSQ's messages, K a job, that are not sent.
    mean_jobs, mean_jobs_jsq, mean_jobs_random : float
        Mean number of jobs in all queues, and that under JSQ and under random routing, as the limit has them.
    gap_jobs : float
        Mean of the smallest gap beyond the first in jobs. Means need it well above 1, most of all `mean_jobs_jsq`, and
        with it the target `excess`; else simulate. The 99th percentile, which is made by the large gaps, needs less.
    mean_ms, p95_ms, p99_ms : float
        Mean, 95th and 99th percentile of the time a job spends in the system, in milliseconds. Ranked jobs count with
        their share at this n, which the limit neglects: so Little's law holds between mean_ms and mean_jobs to leading
        order only.
    """

    system: System
    c: float
    ranked_share: float
    messages_per_job: float
    messages_saved: float
    mean_jobs: float
    mean_jobs_jsq: float
    mean_jobs_random: float
    gap_jobs: float
    mean_ms: float
    p95_ms: float
    p99_ms: float


def design(
    n: int,
    K: int,
    load: float,
    *,
    excess: float | None = None,
    mean_jobs: float | None = None,
    p99_ms: float | None = None,
    d: int | None = None,
    unit_seconds: float = 1.0,
) -> Design:
    """Return the router with the fewest ranked jobs that meets one target, by the formulas of the limit.

    Parameters
    ----------
    n : int
        Jobs that a server completes per unit of time. The answer does not depend on the unit.
    K : int
        Number of servers, at least 2.
    load : float
        Arrival rate over service capacity, between 0 and 1; υ = K√n(1 − load).
    excess, mean_jobs, p99_ms : float
        The target, exactly one of them: the mean number of jobs relative to that of JSQ, minus 1; the mean number
        itself; or the 99th percentile of the time in the system in milliseconds.
    d : int, optional
        Queues that a ranked job looks at, 2 to K. By default all: MJSQ.
    unit_seconds : float, default 1
        Length of the unit of time, for the milliseconds.

    Returns
    -------
    Design

    Raises
    ------
    ValueError
        If an argument is out of range, not exactly one target is given, or no c meets it.

    Notes
    -----
    Source: the stationary law of Banerjee, Budhiraja and Estevez; the delay is derived here.

    Examples
    --------
    >>> router = design(n=400, K=8, load=0.99, excess=0.5)
    >>> round(router.c, 6), round(router.ranked_share, 4), round(router.messages_per_job, 4)
    (20.8, 0.1313, 1.0505)
    >>> round(router.mean_jobs, 6), round(router.p99_ms)
    (150.0, 165)
    """
    K, load = checks.whole("K", K, at_least=2), checks.real("load", load, above=0, below=1)
    unit = checks.real("unit_seconds", unit_seconds, above=0)
    d = K if d is None else checks.whole("d", d)
    if not 2 <= d <= K:
        raise ValueError(f"d = {checks.shown(d)}: must be from 2 to K = {K}; a single queue tells nothing")
    given = {"excess": excess, "mean_jobs": mean_jobs, "p99_ms": p99_ms}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise ValueError(f"targets {', '.join(named) or 'none'}: must be exactly one of {', '.join(given)}")
    target = checks.real(named[0], given[named[0]], above=0)
    root_n = math.sqrt(checks.whole("n", n))
    if 1 - load < LEAST_SPARE:
        raise ValueError(f"load = {load!r}: must be at most 1 - {LEAST_SPARE:g}, or the slack is rounding")
    upsilon = K * root_n * (1 - load)

    def system(c: float) -> System:
        return System(n, K, upsilon, policies.mjsq(c) if d == K else policies.marginal_power_of_d(c, d))

    def value(c: float) -> float:
        if named[0] == "p99_ms":
            return float(delay_law(system(c)).quantile(0.99)) * unit * 1000
        jobs = mean_total(system(c)) * root_n
        return jobs / (root_n * K / upsilon) - 1 if named[0] == "excess" else jobs

    most = (K * root_n - upsilon) * (1 - 1e-9)  # every job ranked
    if value(0.0) <= target:
        c = 0.0
    elif value(most) > target:
        raise ValueError(f"{named[0]} = {target:g}: must be at least {value(most):g}, with every job ranked")
    else:
        c = float(scipy.optimize.brentq(lambda c: value(c) - target, 0.0, most, xtol=1e-12 * most))
    return _described(system(c), unit)


def _described(system: System, unit: float) -> Design:
    law = delay_law(system)
    messages = communication_rate(system) / system.arrival_rate
    p95, p99 = law.quantile([0.95, 0.99])
    return Design(
        system=system,
        c=system.policy.c or 0.0,
        ranked_share=system.ranked_rate / system.arrival_rate,
        messages_per_job=messages,
        messages_saved=1 - messages / system.K,
        mean_jobs=mean_total(system) * system.sqrt_n,
        mean_jobs_jsq=system.sqrt_n * system.K / system.upsilon,
        mean_jobs_random=system.sqrt_n * system.K**2 / system.upsilon,
        gap_jobs=float(system.sqrt_n / gap_rates(system)[1:].max()),
        mean_ms=law.mean * unit * 1000,
        p95_ms=float(p95) * unit * 1000,
        p99_ms=float(p99) * unit * 1000,
    )
