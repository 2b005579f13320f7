"""Formulas for many servers: the infinite reflected Atlas model, JSQ near full load, and the mean-field limit.

Public through `analytic`. K is the number of servers, β > 0 the slack: K(1 − load) = βK^(1−α), and d the number of
queues that are sampled. Chapters: many_servers, many_servers_jsq.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts are imported when they are used
from numpy.typing import ArrayLike, NDArray

from .. import checks
from ..model import Limit, System
from .formulas import gap_srbm
from .gap_laws import gap_rates
from .hypoexponential import float_or_array

# ---- Rank-based diffusions with many coordinates ---------------------------------------------------


def atlas_gap_rates(a: float, b: float, count: int) -> NDArray[np.float64]:
    """thm-atlas-invariant: rates of the first gaps under an invariant law of the infinite reflected Atlas model.

    Infinitely many reflected Brownian motions of variance 2, the lowest with drift b: for every a > b independent
    gaps with rates a − b, a, a, … are invariant.

    Parameters
    ----------
    a : float
        Which of the laws, above b.
    b : float
        Drift of the lowest coordinate, at least 0.
    count : int
        How many rates.

    Returns
    -------
    array of shape (count,)
        In one over limit units.

    Notes
    -----
    Source: Banerjee, Budhiraja and Loeser, arXiv 2605.17677; the recursion is derived in the chapter.

    Examples
    --------
    >>> atlas_gap_rates(a=3.0, b=1.0, count=4)
    array([2., 3., 3., 3.])
    """
    b = checks.real("b", b, at_least=0)
    a = checks.real("a", a, above=b)
    count = checks.whole("count", count)
    checks.result_fits(count, name="count")
    rates = np.full(count, a)
    rates[0] = a - b
    return rates


def adjoint_residual(model: System | Limit, rates: ArrayLike, exponents: ArrayLike) -> Any:
    """thm-adjoint: what the generator and the boundary make of exp(−Σ s_k z_k) under independent exponential gaps.

    It is, divided by the mean of that function, ½ sᵀΓs − s·μ − ½ Σ_k Γ_kk (θ_k + s_k)(sᵀR)_k for gaps with
    drift μ, covariance Γ and reflection R (`gap_srbm`), and vanishes for all s if the law is invariant.

    Parameters
    ----------
    model : System or Limit
        With K coordinates.
    rates : array of shape (K,)
        θ, the rates of the gaps.
    exponents : array of shape (..., m)
        s ≥ 0 of the first m gaps, m ≤ K; those of the others are 0. With m < K the gaps beyond m + 1 do not
        enter: the first K coordinates of infinitely many will do.

    Returns
    -------
    float or array of shape (...)
        In one over time.

    Raises
    ------
    ValueError
        If a shape does not fit.

    Notes
    -----
    Source: the basic adjoint relation of reflected Brownian motion (Harrison and Williams), written out here.

    Examples
    --------
    >>> model = Limit(3, [1.0, 0.0, 0.0])
    >>> adjoint_residual(model, atlas_gap_rates(a=3.0, b=1.0, count=3), [0.5, 2.0])
    0.0
    >>> adjoint_residual(model, [2.0, 3.0, 4.0], [0.5, 2.0])
    2.0
    """
    drift, covariance, reflection = gap_srbm(model)
    theta = checks.finite_array("rates", rates)
    given = checks.finite_array("exponents", exponents)
    if theta.shape != drift.shape:
        raise ValueError(f"rates of shape {theta.shape}: must have one rate for each of K = {drift.size} gaps")
    if given.ndim == 0 or not 1 <= given.shape[-1] <= drift.size:
        raise ValueError(f"exponents of shape {given.shape}: must end in a number of gaps from 1 to K = {drift.size}")
    s = np.zeros((*given.shape[:-1], drift.size))
    s[..., : given.shape[-1]] = given
    inside = 0.5 * np.einsum("...i,ij,...j->...", s, covariance, s) - s @ drift
    faces = 0.5 * (np.diag(covariance) * (theta + s) * (s @ reflection)).sum(axis=-1)
    return float_or_array(inside - faces)


def imbalance_cdf(model: System | Limit, x: ArrayLike) -> Any:
    """cor-imbalance: P(longest − shortest queue ≤ x) = (1 − e^(−θx))^(K−1) under MJSQ, θ = (υ + c)/K.

    Parameters
    ----------
    model : System or Limit
        MJSQ with at least two queues, stable: θ_k = (K − k + 1)θ for k ≥ 2.
    x : array
        In limit units.

    Returns
    -------
    float or array
        The probability; the mean is H_{K−1}/θ.

    Raises
    ------
    UnstableError
        If there is no stationary law.
    ValueError
        If the gaps beyond the first do not have these rates.

    Notes
    -----
    Source: derived here from the law of the gaps: the gaps of K − 1 independent Exp(θ) have these rates.

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> system = System(n=100, K=3, upsilon=1.0, policy=mjsq(c=2.0))
    >>> abs(imbalance_cdf(system, 1.0) - (1 - math.exp(-1.0)) ** 2) < 1e-12
    True
    """
    rates = gap_rates(model)
    K = rates.size
    if K < 2 or not np.allclose(rates[1:], np.arange(K - 1, 0, -1) * rates[-1], rtol=1e-9, atol=0):
        raise ValueError(
            f"model with {K} queues and gap rates {np.array2string(rates, precision=4, threshold=6)}: must be MJSQ with"
            " at least two queues"
        )
    values = np.maximum(checks.finite_array("x", x), 0.0)
    return float_or_array((-np.expm1(-rates[-1] * values)) ** (K - 1))


# ---- JSQ near full load ----------------------------------------------------------------------------


def super_halfin_whitt_cdf(beta: float, x: ArrayLike) -> Any:
    """thm-super-halfin-whitt: P(X ≤ x) for X ~ Gamma(2, β), the limit of (total − K)/K^α; mean 2/β.

    Parameters
    ----------
    beta : float
        β = K^α (1 − load), above 0, for ½ < α < 1.
    x : float or array
        Jobs beyond one a server, over K^α.

    Returns
    -------
    float or array of the shape of `x`

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: Zhao, Banerjee and Mukherjee, as cited in the chapter on JSQ with many servers.

    Examples
    --------
    >>> abs(super_halfin_whitt_cdf(2.0, 1.0) - (1 - 3 * math.exp(-2.0))) < 1e-12
    True
    """
    beta = checks.real("beta", beta, above=0)
    return float_or_array(scipy.special.gammainc(2.0, beta * np.maximum(checks.finite_array("x", x), 0.0)))


@dataclass(frozen=True)
class SlowdownLaw:
    """thm-slowdown: the stationary law of jobs per server, total/K, under JSQ with K(1 − load) = β.

    Its density is (x − 1)e^(−(1+β)(x−1)) for 1 < x ≤ 2 and e^(−1−β(x−1)) beyond, divided by `mass`.

    Attributes
    ----------
    beta : float
        β, above 0.

    Notes
    -----
    Source: derived here, in the regime of Gupta and Walton, Oper. Res. 67 (2019).

    Examples
    --------
    >>> law = SlowdownLaw(1.0)
    >>> law.cdf(1.0), round(law.cdf(50.0), 12)
    (0.0, 1.0)
    """

    beta: float

    def __post_init__(self) -> None:
        """Validate."""
        object.__setattr__(self, "beta", checks.real("beta", self.beta, above=0))

    @property
    def mass(self) -> float:
        """What the density is divided by."""
        return float(self._below(1.0)) + math.exp(-1 - self.beta) / self.beta

    @property
    def mean(self) -> float:
        """Mean number of jobs per server; above 1, at which all servers would have one."""
        r, tail = 1 + self.beta, math.exp(-1 - self.beta) / self.beta
        first = 2 / r**3 * float(scipy.special.gammainc(3.0, r))
        return 1 + (first + tail * (1 + 1 / self.beta)) / self.mass

    @property
    def mean_with_two_places(self) -> float:
        """Mean of the law given x ≤ 2, which is the limit when a job that finds two at every server is lost."""
        r = 1 + self.beta
        return 1 + 2 / r**3 * float(scipy.special.gammainc(3.0, r)) / float(self._below(1.0))

    def cdf(self, x: ArrayLike) -> Any:
        """Return P(total/K ≤ x)."""
        y = np.maximum(checks.finite_array("x", x) - 1, 0.0)
        beyond = np.exp(-1 - self.beta) * -np.expm1(-self.beta * np.maximum(y - 1, 0.0)) / self.beta
        return float_or_array((self._below(np.minimum(y, 1.0)) + beyond) / self.mass)

    def _below(self, y: ArrayLike) -> Any:
        """Return the integral of z·e^(−(1+β)z) from 0 to y."""
        return scipy.special.gammainc(2.0, (1 + self.beta) * np.asarray(y)) / (1 + self.beta) ** 2


# ---- The mean-field limit --------------------------------------------------------------------------


def mean_field_survival(x: ArrayLike, d: int, slack: float, rate: float) -> Any:
    """thm-mean-field-law: the stationary share of queues longer than x, marginal JSQ(d) with infinitely many queues.

    ((rate + slack·e^((d−1)(slack+rate)x))/(slack + rate))^(−1/(d−1)).

    Parameters
    ----------
    x : array
        Lengths in limit units.
    d : int
        Queues sampled by a ranked job, at least 2.
    slack, rate : float
        υ/K and c/K: the slack above 0, and the rate of ranked jobs at least 0, each per queue.

    Returns
    -------
    float or array
        From 1 at x ≤ 0 down to 0.

    Notes
    -----
    Source: derived here; the equation that it solves is that of Atar and Wolansky, arXiv 2402.18143, at
    exponential services.

    Examples
    --------
    >>> mean_field_survival(0.0, d=2, slack=1.0, rate=3.0)
    1.0
    """
    d, slack, rate = _mean_field(d, slack, rate)
    both, values = slack + rate, np.maximum(checks.finite_array("x", x), 0.0)
    # The exponential taken out, so that it does not overflow.
    inner = (rate * np.exp(-(d - 1) * both * values) + slack) / both
    return float_or_array(np.exp(-both * values) * inner ** (-1 / (d - 1)))


def mean_field_mean(d: int, slack: float, rate: float) -> float:
    """thm-mean-field-law: the stationary mean length per queue, ∫_0^1 ds/(slack + rate·(1 − s^(d−1))).

    For d = 2 it is log(1 + rate/slack)/rate. Parameters as of `mean_field_survival`. In limit units.

    Examples
    --------
    >>> abs(mean_field_mean(d=2, slack=1.0, rate=3.0) - math.log(4.0) / 3) < 1e-12
    True
    """
    d, slack, rate = _mean_field(d, slack, rate)
    if rate == 0:
        return 1 / slack

    def integrand(y: float) -> float:  # with s = 1 − e^(−y), so that all is smooth for a slack near 0 too
        s = -math.expm1(-y)
        log_s = math.log1p(-math.exp(-y)) if s > 0.5 else math.log(s) if s > 0 else -math.inf
        return math.exp(-y) / (slack - rate * math.expm1((d - 1) * log_s))

    edge = math.log1p(rate * (d - 1) / slack)
    parts = ((0.0, edge), (edge, edge + 40))
    return float(sum(scipy.integrate.quad(integrand, *part, epsabs=0, epsrel=1e-12, limit=200)[0] for part in parts))


def _mean_field(d: int, slack: float, rate: float) -> tuple[int, float, float]:
    return checks.whole("d", d, at_least=2), checks.real("slack", slack, above=0), checks.real("rate", rate, at_least=0)
