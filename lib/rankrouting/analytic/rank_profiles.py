"""Which probabilities of the ranks are stable, what they cost, and how queues grow where they are not.

A *rank profile* is p: a ranked job goes to the k-th shortest queue with probability p_k. Public through
`analytic`. Chapter: policies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # its parts are imported when they are used
from numpy.typing import ArrayLike, NDArray

from .. import checks
from ..model import CollapsedLimit
from .gap_laws import Model, as_limit
from .hypoexponential import float_or_array

Floats = NDArray[np.float64]


def profile_gap_rates(p: ArrayLike, upsilon: float, c: float) -> Floats:
    """prop-stability-region: θ_k = (K−k+1)(υ+c)/K − c(p_k + … + p_K) of many rank profiles at once.

    A profile is stable when all its θ_k are above 0, at every n as in the limit. `gap_rates` has the same
    rates for one system, and raises where this returns the rates that are not positive.

    Parameters
    ----------
    p : array of shape (..., K)
        Probabilities of the ranks, the shortest queue first; each row sums to 1.
    upsilon : float
        Slack, in √n jobs per unit time.
    c : float
        Rate of the ranked stream over √n, at least 0.

    Returns
    -------
    array of shape (..., K)
        θ_1, …, θ_K in one over limit units; θ_1 = υ.

    Raises
    ------
    ValueError
        If a row is not a probability vector, or c is negative.

    Notes
    -----
    Source: Banerjee, Budhiraja and Estevez, the condition of their stationary law; at finite n derived here.

    Examples
    --------
    >>> profile_gap_rates([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], upsilon=1.0, c=2.0)
    array([[ 1.,  2.,  1.],
           [ 1.,  0., -1.]])
    """
    upsilon, c = checks.real("upsilon", upsilon), checks.real("c", c, at_least=0)
    profiles = checks.finite_array("p", p)
    if profiles.ndim == 0 or profiles.shape[-1] == 0:
        raise ValueError(f"p of shape {profiles.shape}: must end in K probabilities")
    sums = profiles.sum(axis=-1, keepdims=True)
    if np.any(profiles < 0) or np.any(np.abs(sums - 1) > 1e-9):
        rows = profiles.reshape(-1, profiles.shape[-1])
        worst = rows[np.argmax(np.any(rows < 0, axis=1) | (np.abs(rows.sum(axis=1) - 1) > 1e-9))]
        raise ValueError(
            f"p with the row {np.array2string(worst, precision=4, threshold=6)}, whose sum is {worst.sum():.6g}: each"
            " row must be probabilities that sum to 1"
        )
    K = profiles.shape[-1]
    upper = np.cumsum((profiles / sums)[..., ::-1], axis=-1)[..., ::-1]
    return np.arange(K, 0, -1) * (upsilon + c) / K - c * upper


def profile_mean_total(p: ArrayLike, upsilon: float, c: float) -> Any:
    """Return the stationary mean total Σ_k (K−k+1)/θ_k of many rank profiles, infinite where unstable.

    Arguments and errors as for `profile_gap_rates`; a float or an array of shape (...), in limit units.

    Examples
    --------
    >>> profile_mean_total([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], upsilon=1.0, c=2.0)
    array([ 5., inf])
    """
    rates = profile_gap_rates(p, upsilon, c)
    stable = np.all(rates > 0, axis=-1)
    safe = np.where(stable[..., np.newaxis], rates, 1.0)
    return float_or_array(np.where(stable, (np.arange(rates.shape[-1], 0, -1) / safe).sum(axis=-1), np.inf))


def stability_polygon(upsilon: float, c: float) -> Floats:
    """prop-stability-region: the corners of the region of stable profiles of three queues.

    The region is p_2 + p_3 < ⅔(1 + υ/c) and p_3 < ⅓(1 + υ/c) within the probabilities of three ranks.

    Parameters
    ----------
    upsilon, c : float
        Slack and rate of the ranked stream in √n jobs per unit time, both above 0.

    Returns
    -------
    array of shape (corners, 3)
        Profiles, in order along the boundary, (1, 0, 0) first. All three corners of the simplex are among
        them if and only if c ≤ υ/2.

    Raises
    ------
    ValueError
        If an argument is not above 0.

    Notes
    -----
    Source: derived here from the condition θ_k > 0.

    Examples
    --------
    >>> stability_polygon(upsilon=1.0, c=4.0).round(4)
    array([[1.    , 0.    , 0.    ],
           [0.1667, 0.8333, 0.    ],
           [0.1667, 0.4167, 0.4167],
           [0.5833, 0.    , 0.4167]])
    """
    scale = 1 + checks.real("upsilon", upsilon, above=0) / checks.real("c", c, above=0)
    two, three = min(1.0, 2 * scale / 3), min(1.0, scale / 3)
    # (S_2, S_3) with S_k = p_k + … + p_3, along the boundary of 0 ≤ S_3 ≤ three, S_3 ≤ S_2 ≤ two.
    sums = [(0.0, 0.0), (two, 0.0), (two, min(two, three)), (three, three)]
    corners = np.array([(1 - s, s - t, t) for s, t in dict.fromkeys(sums)])
    return corners


def growth_speeds(model: Model) -> Floats:
    """prop-growth: the speeds v_1 ≤ … ≤ v_K at which the ranked queues grow, all 0 if no queue does.

    They are the isotonic regression of the drifts δ_1, …, δ_K, cut at 0: the nondecreasing sequence of which
    the total over the longest m queues is, for every m, the least concave and nondecreasing function above
    that of the drifts. For a system, exact at every n.

    Returns
    -------
    array of shape (K,)
        In limit units per unit of time, the shortest queue first.

    Notes
    -----
    Source: derived here, with E Σ_k (X_(k)(t) − v_k t)² ≤ Σ_k X_(k)(0)² + K·variance·t.

    Examples
    --------
    >>> from rankrouting import Limit
    >>> growth_speeds(Limit(3, [-1.0, -1.0, 1.0])), growth_speeds(Limit(3, [2.0, -0.5, -0.5])).round(6)
    (array([0., 0., 1.]), array([0.333333, 0.333333, 0.333333]))
    """
    limit = as_limit(model)
    if isinstance(limit, CollapsedLimit):
        return np.full(limit.K, max(-limit.upsilon / limit.K, 0.0))
    speeds: Floats = np.maximum(scipy.optimize.isotonic_regression(limit.drifts).x, 0.0)
    speeds[speeds < 1e-12 * np.abs(limit.drifts).max()] = 0.0
    return speeds


def _misses(K: int, d: int) -> Floats:
    """Return 1 − r_m for m = 1, …, K−1, r_m = C(m−1, d−1)/C(K−1, d−1), shape (K−1,)."""
    if checks.whole("K", K) < 2:
        raise ValueError(f"K = {K}: must be at least 2, or there is nothing to balance")
    if not 2 <= checks.whole("d", d) <= K:
        raise ValueError(f"d = {d}: must be from 2 to K = {K}; a single queue tells nothing")
    checks.result_fits(K, name="K")
    m = np.arange(1.0, K)
    # r_m is the product of (j − d + 1)/j over j = m, …, K−1.
    return 1 - np.cumprod((np.maximum(m - d + 1, 0) / m)[::-1])[::-1]


def required_c_of_sample(K: int, upsilon: float, d: int, excess: float) -> float:
    """prop-marginal-sample: the c with which marginal JSQ(d) has 1 + excess times the mean total of JSQ.

    The mean total is K Σ_m 1/(υ + c(1 − r_m)), m = 1, …, K, with r_m = C(m−1, d−1)/C(K−1, d−1); it falls in
    c, and the equation is solved by bracketing. d = K is MJSQ, and `required_c`.

    Parameters
    ----------
    K : int
        Number of queues, at least 2.
    upsilon : float
        Slack, above 0.
    d : int
        Queues that a ranked job looks at, 2 to K.
    excess : float
        Tolerated relative excess over JSQ, above 0.

    Returns
    -------
    float
        In √n jobs per unit time; 0 if random routing is good enough.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: derived here.

    Examples
    --------
    >>> round(required_c_of_sample(10, 1.0, 10, 0.5), 9), round(required_c_of_sample(10, 1.0, 2, 0.5), 4)
    (17.0, 46.2199)
    """
    upsilon, excess = checks.real("upsilon", upsilon, above=0), checks.real("excess", excess, above=0)
    misses = _misses(K, d)
    if excess >= K - 1:
        return 0.0

    def too_large(log_c: float) -> float:
        return float(np.log(np.sum(1 / (1 + np.exp(log_c) * misses)) / excess))

    # Each term lies between those of the largest and the smallest miss.
    scale = (K - 1) / excess - 1
    low, high = np.log(scale / misses.max()), np.log(scale / misses.min())
    return float(upsilon * np.exp(scipy.optimize.brentq(too_large, low - 1e-9, high + 1e-9, xtol=1e-14)))


def sample_rate_ratio(K: int, d: int) -> float:
    """prop-marginal-sample: how much more c marginal JSQ(d) needs than MJSQ for a small excess over JSQ.

    The limit of `required_c_of_sample` over `required_c` as the excess tends to 0: the mean of 1/(1 − r_m) over
    m = 1, …, K−1; the harmonic number H_{K−1} for d = 2. Times d/K it is the ratio of the queue lengths asked for.

    Parameters
    ----------
    K : int
        Number of queues, at least 2.
    d : int
        Queues that a ranked job looks at, 2 to K.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> round(sample_rate_ratio(4, 2), 9), sample_rate_ratio(4, 4)  # 1 + 1/2 + 1/3
    (1.833333333, 1.0)
    """
    return float(np.mean(1 / _misses(K, d)))


def stale_growth(K: int, upsilon: float, c: float) -> float:
    """prop-stale-slope: the slope of MJSQ's mean total in the age τ of its ranking, as τ → ∞.

    A queue that is called the shortest for a time τ drifts up by a = c − (υ+c)/K, and down by (υ+c)/K when
    it is not. With a > 0 the mean total grows like τ·acK/(2(υ+c)); with a ≤ 0, that is c ≤ υ/(K−1), not at all.

    Parameters
    ----------
    K : int
        Number of queues, at least 2.
    upsilon : float
        Slack, above 0.
    c : float
        Rate of the ranked stream over √n, at least 0.

    Returns
    -------
    float
        Limit units per unit of time.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: derived here.

    Examples
    --------
    >>> stale_growth(3, upsilon=1.0, c=2.0), stale_growth(3, upsilon=1.0, c=0.5)
    (1.0, 0.0)
    """
    K, upsilon = checks.whole("K", K, at_least=2), checks.real("upsilon", upsilon, above=0)
    c = checks.real("c", c, at_least=0)
    return max(c - (upsilon + c) / K, 0.0) * c * K / (2 * (upsilon + c))
