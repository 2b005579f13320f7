"""Formulas: one pure function for each theorem, no simulation.

A `model` is a `System`, its `Limit` or a `CollapsedLimit`; a `System` stands for its limit unless
the function is exact at every n, which its docstring then says. Lengths are in limit units, jobs
divided by √n, and time in the units of the system, unless stated otherwise. Ranked arrays hold rank
k at index k − 1, the shortest first; k, j and m count from 1. δ are the drifts of the limit.
Used by every chapter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from . import checks, ranks
from .checks import UnstableError
from .hypoexponential import Hypoexponential, positive_rates
from .model import CollapsedLimit, Limit, System

Model = System | Limit | CollapsedLimit

# A sum of drifts this much smaller than their sizes is rounding, not a drift.
_ROUNDING = 1e-12


# ---- The stationary law of the limit -----------------------------------------------------------


def gap_rates(model: Model) -> NDArray[np.float64]:
    """Return θ_k = −(2/variance) Σ_{j≥k} δ_j, the rates of the stationary exponential gaps.

    Returns
    -------
    array of shape (K,)
        In one over limit units. A `CollapsedLimit` has θ_1 = 2υ/variance and the others infinite: its
        coordinates are equal, so that the other gaps are 0.

    Raises
    ------
    UnstableError
        If some θ_k is not above 0: then there is no stationary law.

    Notes
    -----
    Source: Banerjee, Budhiraja and Estevez, the stationary law of the limit; for other variances and
    the collapsed limit, derived here.

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> gap_rates(System(n=100, K=4, upsilon=1.0, policy=mjsq(c=3.0)))
    array([1., 3., 2., 1.])
    """
    limit = _as_limit(model)
    if isinstance(limit, CollapsedLimit):
        rates = np.array([2 * limit.upsilon / limit.variance, *[np.inf] * (limit.K - 1)])
        rounding = 0.0
    else:
        rates = _rates(limit.drifts, limit.variance)
        rounding = _ROUNDING * np.abs(limit.drifts).sum()
    need = "the K − k + 1 longest queues together must drift down: δ_k + … + δ_K < 0; for k = 1, upsilon > 0"
    _require_positive(rates, rounding, 1, need)
    return rates


@dataclass(frozen=True, eq=False)
class GapLaw:
    """Independent exponential gaps: the first is the shortest length, the others are differences.

    Attributes
    ----------
    rates : array of shape (K,)
        θ_1, …, θ_K above 0; a gap with an infinite rate is 0.
    """

    rates: NDArray[np.float64]

    def __post_init__(self) -> None:
        """Validate, and store a copy that cannot be changed."""
        rates = positive_rates(self.rates)
        rates.setflags(write=False)
        object.__setattr__(self, "rates", rates)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean gaps 1/θ_k, shape (K,)."""
        return 1 / self.rates

    def cdf(self, x: ArrayLike, k: int | None = None) -> Any:
        """Return P(Z_k ≤ x) for gap k and x of any shape, or for all gaps and x of shape (..., K)."""
        values, rates = self._arguments("x", x, k)
        finite = np.where(np.isinf(rates), 1.0, rates)
        probability = np.where(np.isinf(rates), 1.0, -np.expm1(-finite * np.maximum(values, 0)))
        return _plain(np.where(values < 0, 0.0, probability))

    def quantile(self, q: ArrayLike, k: int | None = None) -> Any:
        """Return the inverse of `cdf` at each q of at least 0 and below 1."""
        values, rates = self._arguments("q", q, k)
        if np.any((values < 0) | (values >= 1)):
            raise ValueError(f"q from {values.min():g} to {values.max():g}: must be at least 0 and below 1")
        return _plain(-np.log1p(-values) / rates)

    def log_density(self, lengths: ArrayLike) -> Any:
        """Return the log density of the vector X at `lengths` of shape (..., K), in any order.

        It is Σ_k log θ_k − log K! − Σ_k θ_k z_k at gaps z, minus infinity where a length is negative.
        """
        x = checks.finite_array("lengths", lengths)
        if x.ndim == 0 or x.shape[-1] != self.rates.size:
            raise ValueError(f"lengths of shape {x.shape}: must end in K = {self.rates.size}")
        if not np.all(np.isfinite(self.rates)):
            raise ValueError("rates = [inf, …]: the lengths are equal and have no joint density")
        constant = np.log(self.rates).sum() - special.gammaln(self.rates.size + 1)
        density = constant - ranks.gaps(x) @ self.rates
        return _plain(np.where(np.any(x < 0, axis=-1), -np.inf, density))

    def sample_gaps(self, size: int, rng: Generator) -> NDArray[np.float64]:
        """Draw `size` independent vectors of gaps, shape (size, K)."""
        if not isinstance(rng, Generator):
            raise ValueError(f"rng = {rng!r}: must be a numpy.random.Generator")
        return rng.standard_exponential((checks.whole("size", size), self.rates.size)) / self.rates

    def sample_ranked(self, size: int, rng: Generator) -> NDArray[np.float64]:
        """Draw `size` independent ranked vectors, shape (size, K), ascending along the last axis."""
        return ranks.from_gaps(self.sample_gaps(size, rng))

    def _arguments(self, name: str, value: ArrayLike, k: int | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        values, K = checks.finite_array(name, value), self.rates.size
        if k is not None:
            if checks.whole("k", k) > K:
                raise ValueError(f"k = {k}: must be a rank, from 1 to K = {K}")
            return values, self.rates[int(k) - 1]
        if values.ndim and values.shape[-1] != K:
            raise ValueError(f"{name} of shape {values.shape}: must be a number or end in K = {K}, or give k")
        return values, self.rates


def gap_law(model: Model) -> GapLaw:
    """thm-gap-law: the stationary gaps are independent, and Z_k is exponential with rate θ_k.

    Returns
    -------
    GapLaw
        In limit units, with cdf, quantile, samples of gaps and of ranked lengths, and the density.

    Raises
    ------
    UnstableError
        If some θ_k is not above 0.

    Notes
    -----
    Source: Banerjee, Budhiraja and Estevez, the stationary law of the limit.

    Examples
    --------
    >>> law = gap_law(Limit(2, [0.5, -1.5]))
    >>> law.mean
    array([1.        , 0.66666667])
    >>> law.sample_ranked(3, np.random.default_rng(1)).shape
    (3, 2)
    """
    return GapLaw(gap_rates(model))


def total_law(model: Model) -> Hypoexponential:
    """thm-total-law: the stationary total Σ_k (K−k+1) Z_k is a sum of independent exponentials.

    Their rates are θ_k/(K−k+1). For MJSQ it is Exp(υ/K) + Gamma(K−1, rate (υ+c)/K).

    Returns
    -------
    Hypoexponential
        In limit units, with cdf, sf, pdf, quantile, mean and variance.

    Raises
    ------
    UnstableError
        If some θ_k is not above 0.

    Notes
    -----
    Source: Banerjee, Budhiraja and Estevez, from their stationary law of the limit.

    Examples
    --------
    >>> law = total_law(Limit(2, [0.5, -1.5]))
    >>> round(law.mean, 12), round(law.quantile(0.5), 6)
    (2.666667, 2.207617)
    """
    rates = gap_rates(model)
    return Hypoexponential(rates / np.arange(rates.size, 0, -1))


def mean_total(model: Model) -> float:
    """Return the stationary mean total Σ_k (K−k+1)/θ_k; raise as `total_law`.

    For MJSQ it is K/υ + K(K−1)/(υ+c), under JSQ K/υ, under uniform random routing K²/υ. Limit units.

    Examples
    --------
    >>> mean_total(CollapsedLimit(10, 1.0)), round(mean_total(Limit(10, [-0.1] * 10)), 9)
    (10.0, 100.0)
    """
    return total_law(model).mean


def variance_total(model: Model) -> float:
    """Return the stationary variance of the total, Σ_k (K−k+1)²/θ_k²; raise as `total_law`.

    In squared limit units.

    Examples
    --------
    >>> variance_total(CollapsedLimit(10, 1.0))
    100.0
    """
    return total_law(model).variance


def mean_ranked(model: Model) -> NDArray[np.float64]:
    """Return the stationary mean of each ranked length, E x_(k) = Σ_{j≤k} 1/θ_j; raise as `gap_law`.

    Returns
    -------
    array of shape (K,)
        In limit units.

    Examples
    --------
    >>> mean_ranked(CollapsedLimit(3, 2.0))
    array([0.5, 0.5, 0.5])
    """
    return ranks.from_gaps(gap_law(model).mean)


def mean_min(model: Model) -> float:
    """Return the stationary mean of the shortest length, 1/θ_1; raise as `gap_law`. Limit units."""
    return float(mean_ranked(model)[0])


def mean_max(model: Model) -> float:
    """Return the stationary mean of the longest length, Σ_k 1/θ_k; raise as `gap_law`.

    For MJSQ it is 1/υ + K·H_{K−1}/(υ+c), H the harmonic numbers. Limit units.
    """
    return float(mean_ranked(model)[-1])


def workload_factor(K: int, upsilon: float, c: ArrayLike) -> Any:
    """thm-workload-factor: the mean total under MJSQ is 1 + (K−1)υ/(υ+c) times that under JSQ.

    Parameters
    ----------
    K : int
        Number of queues.
    upsilon : float
        Slack, above 0.
    c : float or array
        Rate of the ranked stream over √n, at least 0.

    Returns
    -------
    float or array of the shape of `c`
        Without units; K at c = 0 and 1 as c → ∞.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: Banerjee, Budhiraja and Estevez, the comparison of MJSQ with JSQ.

    Examples
    --------
    >>> workload_factor(10, 1.0, [0.0, 2.0, 8.0])
    array([10.,  4.,  2.])
    """
    K, upsilon = checks.whole("K", K), checks.real("upsilon", upsilon, above=0)
    rate = checks.finite_array("c", c)
    if np.any(rate < 0):
        raise ValueError(f"c = {rate.min():g}: must be at least 0")
    return _plain(1 + (K - 1) * upsilon / (upsilon + rate))


def required_c(K: int, upsilon: float, excess: ArrayLike) -> Any:
    """Return the least c with which the mean total under MJSQ is within 1 + excess of that of JSQ.

    It is υ((K−1)/excess − 1), or 0 when that is negative: the inverse of `workload_factor`.

    Parameters
    ----------
    K : int
        Number of queues.
    upsilon : float
        Slack, above 0.
    excess : float or array
        Tolerated relative excess over JSQ, above 0.

    Returns
    -------
    float or array of the shape of `excess`

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> required_c(10, 1.0, 0.5)
    17.0
    """
    K, upsilon = checks.whole("K", K), checks.real("upsilon", upsilon, above=0)
    tolerated = checks.finite_array("excess", excess)
    if np.any(tolerated <= 0):
        raise ValueError(f"excess = {tolerated.min():g}: must be above 0; no finite c reaches the mean of JSQ")
    return _plain(upsilon * np.maximum((K - 1) / tolerated - 1, 0))


class GapReflection(NamedTuple):
    """The gaps of the limit as a semimartingale reflecting Brownian motion in the orthant.

    Attributes
    ----------
    drift : array of shape (K,)
    covariance, reflection : array of shape (K, K)
        Column k of `reflection` is the direction in which the gaps are pushed when gap k is 0.
    """

    drift: NDArray[np.float64]
    covariance: NDArray[np.float64]
    reflection: NDArray[np.float64]


def gap_srbm(model: System | Limit) -> GapReflection:
    """Return drift, covariance and reflection matrix of the gaps of the limit.

    Raises
    ------
    ValueError
        If the limit is collapsed: its gaps beyond the first are 0.

    Notes
    -----
    Source: the reflected rank-based diffusion of Banerjee, Budhiraja and Estevez; a collision of two
    neighbours pushes each by half of the local time of their gap.

    Examples
    --------
    >>> gap_srbm(Limit(2, [0.5, -1.5])).reflection
    array([[ 1. , -0.5],
           [-1. ,  1. ]])
    """
    limit = _as_limit(model)
    if isinstance(limit, CollapsedLimit):
        raise ValueError("model with a collapsed limit: its gaps are one-dimensional; a Limit is needed")
    K = limit.K
    drift = np.diff(limit.drifts, prepend=0.0)
    differences = np.eye(K) - np.eye(K, k=-1)
    reflection = np.eye(K) - 0.5 * (np.eye(K, k=1) + np.eye(K, k=-1))
    reflection[1:2, 0] = -1.0
    return GapReflection(drift, limit.variance * differences @ differences.T, reflection)


def skew_symmetry_defect(model: System | Limit) -> float:
    """Return the largest entry of |2Σ − R diag(Σ) − diag(Σ)Rᵀ| for the gaps; 0 means a product law.

    Raises as `gap_srbm`. Source: the condition of Harrison and Williams, for `gap_srbm`.

    Examples
    --------
    >>> skew_symmetry_defect(Limit(3, [1.0, -1.0, -1.0]))
    0.0
    """
    _, covariance, reflection = gap_srbm(model)
    half = reflection * np.diag(covariance)
    return float(np.abs(2 * covariance - half - half.T).max())


# ---- Overload ----------------------------------------------------------------------------------


def overload_gap_rates(model: Model) -> NDArray[np.float64]:
    """thm-overload-gap-rates: without slack, gaps k = 2, …, K tend to independent exponentials.

    Their rates are θ_k = −(2/variance) Σ_{j≥k} (δ_j − mean δ). υ does not enter, and the first gap, the
    shortest queue, has no law: it grows. With υ = 0 it grows like √t, visits 0 ever more rarely, and the
    other gaps have the same limit law.

    Returns
    -------
    array of shape (K−1,)
        θ_2, …, θ_K in one over limit units; infinite for a collapsed limit, whose gaps are 0.

    Raises
    ------
    ValueError
        If υ > 0: the system is stable, and `gap_rates` has its rates.
    UnstableError
        If some θ_k is not above 0. Under uniform random routing all are 0, and the gaps grow like √t.

    Notes
    -----
    Source: derived here, from the gap laws of rank-based diffusions without reflection.

    Examples
    --------
    >>> overload_gap_rates(Limit(4, [2.5, -0.5, -0.5, -0.5]))
    Traceback (most recent call last):
        ...
    rankrouting.checks.UnstableError: upsilon = -1 ...
    """
    limit = _as_limit(model)
    drifts = np.full(limit.K, -limit.upsilon / limit.K) if isinstance(limit, CollapsedLimit) else limit.drifts
    rounding = _ROUNDING * np.abs(drifts).sum()
    if limit.upsilon > rounding:
        raise ValueError(
            f"upsilon = {limit.upsilon:g}: must be at most 0 for the law in overload; this system is stable and"
            " gap_rates has the rates of its gaps"
        )
    if isinstance(limit, CollapsedLimit):
        return np.full(limit.K - 1, np.inf)
    rates = _rates(drifts - drifts.mean(), limit.variance)[1:]
    need = "the K − k + 1 longest queues must grow more slowly than the average queue"
    _require_positive(rates, rounding, 2, need)
    return rates


def overload_spread_law(model: Model) -> Hypoexponential:
    """Return the law to which longest minus shortest queue tends without slack: Σ_{k≥2} Z_k.

    For MJSQ it is that of K/c times the largest of K−1 independent Exp(1). In limit units. Raises as
    `overload_gap_rates`.

    Examples
    --------
    >>> round(overload_spread_law(Limit(2, [1.5, -0.5])).mean, 12)
    1.0
    """
    return Hypoexponential(overload_gap_rates(model))


def overload_mean_spread(model: Model) -> float:
    """Return the mean of `overload_spread_law`, Σ_{k≥2} 1/θ_k; (K/c)·H_{K−1} for MJSQ. Limit units."""
    return overload_spread_law(model).mean


# ---- Time scales and cost ----------------------------------------------------------------------


def relaxation_time(model: Model) -> float:
    """Return the time in which the slowest group of queues forgets where it started.

    The mean of the m = K−k+1 longest queues, pushed up by the others, is like a reflected Brownian motion
    of drift −Θ_k/m and variance variance/m, Θ_k = −Σ_{j≥k} δ_j, whose relaxation time is
    2·variance·m/Θ_k². The largest of these over k: a guide to warm-up and horizons, not a theorem.
    For MJSQ max(4K/υ², 4K²/(υ+c)²).

    Raises
    ------
    UnstableError
        If there is no stationary law.

    Notes
    -----
    Source: derived here. Exact for K = 1 and for a collapsed limit.

    Examples
    --------
    >>> relaxation_time(CollapsedLimit(10, 1.0)), round(relaxation_time(Limit(10, [-0.1] * 10)), 9)
    (40.0, 400.0)
    """
    variance, rates = _as_limit(model).variance, gap_rates(model)
    return float(np.max(8 * np.arange(rates.size, 0, -1) / (variance * rates**2)))


def overload_relaxation_time(model: Model) -> float:
    """Return the time in which the gaps of a system without slack forget where they started.

    The mean of the m = K−k+1 longest queues minus that of the other k−1 is like a reflected Brownian
    motion: relaxation time 2·variance·m(k−1)/(K·Θ_k²), Θ_k = −Σ_{j≥k} (δ_j − mean δ). The largest of
    these over k ≥ 2: a guide to warm-up, not a theorem. For MJSQ 4K(K−1)/c². Raises as
    `overload_gap_rates`.

    Notes
    -----
    Source: derived here. Exact for K = 2; 0 for a collapsed limit and for K = 1.

    Examples
    --------
    >>> overload_relaxation_time(Limit(2, [1.5, -0.5]))
    2.0
    """
    limit, rates = _as_limit(model), overload_gap_rates(model)
    m = np.arange(rates.size, 0, -1)
    return float(np.max(8 * m * (limit.K - m) / (limit.K * limit.variance * rates**2), initial=0.0))


def communication_rate(system: System) -> float:
    """Return how many queue lengths the router asks for per unit time: ranked jobs times lookups.

    Exact at every n: cK√n for MJSQ, K·λ_n for JSQ, d·λ_n for JSQ(d), 0 for uniform random routing.

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> communication_rate(System(n=10_000, K=10, upsilon=1.0, policy=mjsq(c=2.0)))
    2000.0
    """
    _require_system(system)
    return system.ranked_rate * system.policy.rank_law.lookups(system.K)


# ---- One coordinate in time --------------------------------------------------------------------


def rbm_transition_cdf(y: ArrayLike, x: ArrayLike, t: ArrayLike, beta: float, variance: float = 2.0) -> Any:
    """thm-rbm-transition-cdf: P(X_t ≤ y | X_0 = x) for a Brownian motion reflected at 0.

    With s = √(variance·t) it is Φ((y−x+βt)/s) − exp(−2βy/variance) Φ((−y−x+βt)/s). This is the limit of
    one queue under uniform random routing with β = υ/K, and of a single queue with β = υ.

    Parameters
    ----------
    y, x, t : float or array
        Level, start of at least 0 and time above 0; they broadcast. Limit units for y and x.
    beta : float
        Minus the drift, of either sign.
    variance : float, default 2
        Variance per unit time, above 0.

    Returns
    -------
    float or array

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: the reflection principle for Brownian motion with drift; a textbook formula.

    Examples
    --------
    >>> round(rbm_transition_cdf(1.0, 0.0, 1e6, beta=1.0), 12) == round(1 - np.exp(-1), 12)
    True
    """
    level, start, time = (checks.finite_array(name, v) for name, v in (("y", y), ("x", x), ("t", t)))
    beta, variance = checks.real("beta", beta), checks.real("variance", variance, above=0)
    if np.any(start < 0):
        raise ValueError(f"x = {start.min():g}: must be at least 0")
    if np.any(time <= 0):
        raise ValueError(f"t = {time.min():g}: must be above 0")
    inside = np.maximum(level, 0)
    scale = np.sqrt(variance * time)
    first = special.log_ndtr((inside - start + beta * time) / scale)
    # In logarithms: exp(−2βy/variance) alone overflows where its product with Φ is small.
    ratio = special.log_ndtr((-inside - start + beta * time) / scale) - 2 * beta * inside / variance - first
    return _plain(np.where(level < 0, 0.0, np.exp(first) * -np.expm1(np.minimum(ratio, 0))))


def rbm_local_time_cdf(level: ArrayLike, x: ArrayLike, t: ArrayLike, beta: float, variance: float = 2.0) -> Any:
    """Return P(L_t ≤ level | X_0 = x), L the push that keeps the Brownian motion above 0.

    L_t is minus the minimum of the free path from x, where that is negative, and n times the idle time of
    a server over √n tends to it. Arguments, units and errors as for `rbm_transition_cdf`, with which
    it is linked by P(L_t ≤ l | x, β) = P(X_t ≤ x + l | 0, −β) for l ≥ 0.

    Examples
    --------
    >>> round(rbm_local_time_cdf(0.0, 1.0, 0.5, beta=0.0), 6)  # P(|N(0, 1)| < 1): 0 was not reached
    0.682689
    """
    values, start = checks.finite_array("level", level), checks.finite_array("x", x)
    if np.any(start < 0):
        raise ValueError(f"x = {start.min():g}: must be at least 0")
    reached = rbm_transition_cdf(start + np.maximum(values, 0), 0.0, t, -checks.real("beta", beta), variance)
    return _plain(np.where(values < 0, 0.0, reached))


# ---- Exact at every n --------------------------------------------------------------------------


def balance_residual(model: Model, mean_ranked: ArrayLike, mean_total: ArrayLike | None = None) -> Any:
    """thm-balance-residual: the drift of Σ x_k² vanishes in the stationary state, whatever the policy.

    For a `System`, exact at every n: Σ_k (n−λ_k)/√n · E x_(k) − λ_n/n, with λ_k the arrival rate at rank
    k. For a `Limit`: −Σ_k δ_k E x_(k) − K·variance/2; for a `CollapsedLimit`: (υ/K) Σ_k E x_(k) − variance/2.

    Parameters
    ----------
    model : System, Limit or CollapsedLimit
    mean_ranked : array of shape (..., K)
        Stationary means of the ranked lengths in limit units; leading axes are replications.
    mean_total : float or array of shape (...), optional
        Another estimate of the mean total, only for a `System`: the residual is then that of
        (n−μ)/√n · E total = r/√n · Σ_k p_k E x_(k) + λ_n/n, r the ranked rate and μ the uniform
        rate at each queue; n−μ = (υ+c)√n/K for policies that rank only some jobs.

    Returns
    -------
    float or array of shape (...)
        In limit units over time; 0 when the means are right.

    Raises
    ------
    UnstableError
        If there is no stationary law.
    ValueError
        If a shape does not fit, or `mean_total` is given without a `System`.

    Notes
    -----
    Source: derived here.

    Examples
    --------
    >>> limit = Limit(2, [0.5, -1.5])
    >>> abs(balance_residual(limit, [1.0, 5 / 3])) < 1e-15
    True
    """
    gap_rates(model)
    means = _means(mean_ranked, model.K)
    if isinstance(model, System):
        total = means.sum(axis=-1) if mean_total is None else checks.finite_array("mean_total", mean_total)
        spare = (model.n - model.uniform_rate / model.K) / model.sqrt_n
        ranked = model.ranked_rate / model.sqrt_n * (means @ model.rank_probabilities)
        return _plain(spare * total - ranked - model.arrival_rate / model.n)
    if mean_total is not None:
        raise ValueError("mean_total: only a System knows its ranked stream, which this form needs")
    if isinstance(model, CollapsedLimit):
        return _plain(model.upsilon / model.K * means.sum(axis=-1) - model.variance / 2)
    return _plain(-(means @ model.drifts) - model.K * model.variance / 2)


def mean_total_by_balance(system: System, mean_ranked: ArrayLike) -> Any:
    """Return the mean total that follows from Σ_k p_k E x_(k) by the balance identity.

    It is K/(υ+c) · (c Σ_k p_k E x_(k) + λ_n/n), exact at every n. For MJSQ it needs the mean of the shortest
    queue only, which varies much less than the total.

    Parameters
    ----------
    system : System
        With a policy that ranks a stream of rate c√n, not every job.
    mean_ranked : array of shape (..., K)
        Stationary means of the ranked lengths, limit units; those of ranks with p_k = 0 do not count.

    Returns
    -------
    float or array of shape (...)
        In limit units.

    Raises
    ------
    UnstableError
        If there is no stationary law.
    ValueError
        If the policy ranks every job, or the shape does not fit.

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> system = System(n=25, K=2, upsilon=1.0, policy=mjsq(c=2.0))
    >>> round(5 * mean_total_by_balance(system, np.array([4.408138, 0.0]) / 5), 6)  # jobs
    11.877517
    """
    _require_system(system)
    c, K = system.policy.c, system.K
    if c is None:
        raise ValueError(f"policy = {system.policy.name}: ranks every job; the identity needs a ranked stream c√n")
    gap_rates(system)
    ranked = c * (_means(mean_ranked, K) @ system.rank_probabilities)
    return _plain(K / (system.upsilon + c) * (ranked + system.arrival_rate / system.n))


def idle_servers(system: System) -> float:
    """thm-idle-servers: the stationary mean number of idle servers is υ/√n, whatever the routing.

    Exact at every n: jobs come and go at the same rate. Number of servers, not limit units.

    Raises
    ------
    UnstableError
        If there is no stationary law.

    Notes
    -----
    Source: derived here.

    Examples
    --------
    >>> from rankrouting import jsq
    >>> idle_servers(System(n=100, K=10, upsilon=1.0, policy=jsq()))
    0.1
    """
    _require_system(system)
    gap_rates(system)
    return system.upsilon / system.sqrt_n


def pauses_gap_ratios(system: System) -> NDArray[np.float64]:
    """thm-pauses-gap-ratios: with pauses the stationary gaps are independent and geometric.

    In the system with pauses an arrival or departure that would break the order of tied queues is lost.
    Then P(Z_k ≥ m) = ρ_k^m with ρ_k = Π_{j≥k} λ_j/n, λ_j the arrival rate at rank j: exact at every n.

    Returns
    -------
    array of shape (K,)
        ρ_1, …, ρ_K, for gaps in jobs; −√n·log ρ_k tends to θ_k.

    Raises
    ------
    UnstableError
        If some ρ_k is not below 1.

    Notes
    -----
    Source: derived here, as an open Jackson network of gaps; compare Banerjee, Budhiraja and Loeser.

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> pauses_gap_ratios(System(n=25, K=2, upsilon=1.0, policy=mjsq(c=2.0)))
    array([0.77, 0.7 ])
    """
    _require_system(system)
    ratios = np.cumprod(system.rank_arrival_rates[::-1] / system.n)[::-1]
    bad = np.flatnonzero(ratios >= 1 - _ROUNDING)
    if bad.size:
        named = ", ".join(f"rho_{k + 1} = {ratios[k]:g}" for k in bad[:4]) + (", …" if bad.size > 4 else "")
        raise UnstableError(f"{named}: must be below 1; the arrival rates at ranks k to K over n must have product < 1")
    return ratios


def mm1_law(system: System) -> Any:
    """Return the stationary law of one queue in **jobs** when all queues get the same arrival rate.

    Exact at every n: an M/M/1 queue, P(Q = j) = (1−load)·load^j, as a frozen distribution of scipy.

    Raises
    ------
    ValueError
        If the arrival rate depends on the rank, so that a queue is no M/M/1 queue.
    UnstableError
        If υ is not above 0.

    Examples
    --------
    >>> from rankrouting import random_routing
    >>> law = mm1_law(System(n=100, K=5, upsilon=1.0, policy=random_routing()))
    >>> round(float(law.mean()), 9), round(float(law.pmf(0)), 9)
    (49.0, 0.02)
    """
    _require_system(system)
    if not np.allclose(system.rank_arrival_rates, system.arrival_rate / system.K, rtol=1e-12, atol=0):
        raise ValueError(f"policy = {system.policy.name}: arrivals depend on the rank; uniform routing is needed")
    gap_rates(system)
    return stats.geom(1 - system.load, loc=-1)


def mm1_mean(system: System) -> float:
    """Return the mean of `mm1_law`, load/(1−load), in **jobs**; raise as it."""
    mm1_law(system)
    return system.load / (1 - system.load)


# ---- Shared ------------------------------------------------------------------------------------


def _as_limit(model: Model) -> Limit | CollapsedLimit:
    if isinstance(model, System):
        return model.limit()
    if not isinstance(model, Limit | CollapsedLimit):
        raise ValueError(f"model = {model!r}: must be a System, a Limit or a CollapsedLimit")
    return model


def _require_system(system: System) -> None:
    if not isinstance(system, System):
        raise ValueError(f"system = {system!r}: must be a System; the formula depends on n")


def _rates(drifts: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    return -2 / variance * np.cumsum(drifts[::-1])[::-1]


def _require_positive(rates: NDArray[np.float64], rounding: float, first: int, need: str) -> None:
    bad = np.flatnonzero(rates <= rounding)
    if bad.size:
        named = ", ".join(f"theta_{k + first} = {rates[k]:g}" for k in bad[:4]) + (", …" if bad.size > 4 else "")
        raise UnstableError(f"{named}: must be above 0; {need}")


def _means(mean_ranked: ArrayLike, K: int) -> NDArray[np.float64]:
    means = checks.finite_array("mean_ranked", mean_ranked)
    if means.ndim == 0 or means.shape[-1] != K:
        raise ValueError(f"mean_ranked of shape {means.shape}: must end in K = {K}")
    return means


def _plain(value: Any) -> Any:
    """Return a numpy scalar or array without axes as a float, an array as it is."""
    return float(value) if np.ndim(value) == 0 else value
