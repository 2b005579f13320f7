"""The formulas of the limit: stationary law, workload, overload, transition laws, the gaps as a diffusion."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts are imported when they are used
from numpy.typing import ArrayLike, NDArray

from .. import checks, ranks
from ..model import CollapsedLimit, Limit, System
from .gap_laws import GapLaw, Model, as_limit, gap_rates, overload_gap_rates, without_common
from .hypoexponential import Hypoexponential, float_or_array

# ---- The stationary law of the limit ------------------------------------------------------------


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
    >>> round(law.mean, 6), round(law.quantile(0.5), 6)
    (2.666667, 2.115154)
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
    >>> variance_total(CollapsedLimit(4, 1.0))
    16.0
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
    """Return the stationary mean of the shortest length, 1/θ_1; raise as `gap_law`. Limit units.

    Examples
    --------
    >>> mean_min(Limit(2, [1.5, -2.0]))
    2.0
    """
    return float(mean_ranked(model)[0])


def mean_max(model: Model) -> float:
    """Return the stationary mean of the longest length, Σ_k 1/θ_k; raise as `gap_law`.

    For MJSQ it is 1/υ + K·H_{K−1}/(υ+c), H the harmonic numbers. Limit units.

    Examples
    --------
    >>> mean_max(Limit(2, [1.5, -2.0]))
    2.5
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
    return float_or_array(1 + (K - 1) * upsilon / (upsilon + rate))


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
    return float_or_array(upsilon * np.maximum((K - 1) / tolerated - 1, 0))


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
    limit = as_limit(model)
    if isinstance(limit, CollapsedLimit):
        raise ValueError("model with a collapsed limit: its gaps are one-dimensional; a Limit is needed")
    K = limit.K
    drift = np.diff(limit.drifts, prepend=0.0)
    differences = np.eye(K) - np.eye(K, k=-1)
    reflection = np.eye(K) - 0.5 * (np.eye(K, k=1) + np.eye(K, k=-1))
    reflection[1:2, 0] = -1.0
    covariance = limit.variance * differences @ differences.T
    # A common noise moves the lowest coordinate, and cancels in the differences.
    covariance[0, 0] += limit.common
    return GapReflection(drift, covariance, reflection)


def skew_symmetry_defect(model: System | Limit) -> float:
    """prop-skew-symmetry: the largest absolute entry of 2Γ − R diag(Γ) − diag(Γ)Rᵀ for the gaps; 0 if a product law.

    It is the size of `common`, from the first two gaps, however the drifts are.

    Raises as `gap_srbm`. Source: the condition of Harrison and Williams, for `gap_srbm`.

    Examples
    --------
    >>> skew_symmetry_defect(Limit(3, [1.0, -1.0, -1.0]))
    0.0
    """
    _, covariance, reflection = gap_srbm(model)
    half = reflection * np.diag(covariance)
    return float(np.abs(2 * covariance - half - half.T).max())


# ---- Overload -----------------------------------------------------------------------------------


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
    """Return the mean of `overload_spread_law`, Σ_{k≥2} 1/θ_k; (K/c)·H_{K−1} for MJSQ. Limit units.

    Examples
    --------
    >>> overload_mean_spread(Limit(2, [1.5, -0.5]))
    1.0
    """
    return overload_spread_law(model).mean


# ---- Time scales --------------------------------------------------------------------------------


def relaxation_time(model: Model) -> float:
    """Return the time in which the slowest group of queues forgets where it started.

    The mean of the m = K−k+1 longest queues, pushed up by the others, is like a reflected Brownian motion
    of drift −Θ_k/m and variance variance/m + common, Θ_k = −Σ_{j≥k} δ_j, whose relaxation time is
    2·m·(variance + m·common)/Θ_k². The largest of these over k: a guide to warm-up and horizons, not a theorem.
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
    limit, rates = as_limit(model), gap_rates(without_common(model))
    m = np.arange(rates.size, 0, -1)
    shared = limit.common if isinstance(limit, Limit) else 0.0
    return float(np.max(8 * m * (1 + m * shared / limit.variance) / (limit.variance * rates**2)))


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
    limit, rates = as_limit(model), overload_gap_rates(model)
    m = np.arange(rates.size, 0, -1)
    return float(np.max(8 * m * (limit.K - m) / (limit.K * limit.variance * rates**2), initial=0.0))


# ---- One coordinate in time ---------------------------------------------------------------------


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
    >>> round(rbm_transition_cdf(1.0, 0.0, 1e6, beta=1.0), 9)  # 1 − exp(−1)
    0.632120559
    """
    level, start, time = checks.finite_array("y", y), _start(x), checks.positive_array("t", t)
    beta, variance = checks.real("beta", beta), checks.real("variance", variance, above=0)
    checks.broadcasting(y=level, x=start, t=time)
    return _rbm_transition_cdf(level, start, time, beta, variance)


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
    values, start, time = checks.finite_array("level", level), _start(x), checks.positive_array("t", t)
    beta, variance = checks.real("beta", beta), checks.real("variance", variance, above=0)
    checks.broadcasting(level=values, x=start, t=time)
    reached = _rbm_transition_cdf(start + np.maximum(values, 0), np.zeros(()), time, -beta, variance)
    return float_or_array(np.where(values < 0, 0.0, reached))


# Below every logarithm of Φ here that is told from 0, and not so low that differences leave the range of floats.
_LEAST_LOG = -1e301


def _start(x: ArrayLike) -> NDArray[np.float64]:
    start = checks.finite_array("x", x)
    if np.any(start < 0):
        raise ValueError(f"x = {start.min():g}: must be at least 0")
    return start


def _rbm_transition_cdf(
    level: NDArray[np.float64], start: NDArray[np.float64], time: NDArray[np.float64], beta: float, variance: float
) -> Any:
    inside = np.maximum(level, 0)
    scale = np.sqrt(variance * time)
    first, second = (
        np.maximum(scipy.special.log_ndtr((side - start + beta * time) / scale), _LEAST_LOG)
        for side in (inside, -inside)
    )
    # In logarithms: exp(−2βy/variance) alone overflows where its product with Φ is small.
    ratio = second - 2 * beta * inside / variance - first
    return float_or_array(np.where(level < 0, 0.0, np.exp(first) * -np.expm1(np.minimum(ratio, 0))))
