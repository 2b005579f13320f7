"""The rates and the law of the gaps between ranked queue lengths, on which `analytic` is built.

Chapters: interchange, overloaded, exact, service_times, many_servers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy  # its parts are imported when they are used
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from .. import checks, ranks
from ..checks import UnstableError
from ..model import CollapsedLimit, Limit, System
from .hypoexponential import float_or_array, positive_rates

Model = System | Limit | CollapsedLimit


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
    ValueError
        If the coordinates have a common noise: then the gaps are neither independent nor exponential.

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
    limit = as_limit(model)
    if isinstance(limit, Limit) and limit.common != 0:
        raise ValueError(f"common = {limit.common:g}: must be 0, or the gaps are not exponential and have no rates")
    if isinstance(limit, CollapsedLimit):
        rates = np.array([2 * limit.upsilon / limit.variance, *[np.inf] * (limit.K - 1)])
    else:
        rates = _rates(limit, limit.drifts)
    need = (
        "the K − k + 1 longest queues together must drift down: δ_k + … + δ_K < 0; for k = 1, upsilon > 0"
        " (a sum below 1e-12 of its terms is rounding, and counts as 0)"
    )
    _require_positive(rates, 1, need)
    return rates


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
    array([2.25, 1.5 , 0.75])
    """
    limit = as_limit(model)
    if limit.upsilon > (0.0 if isinstance(limit, CollapsedLimit) else _rounding(limit)):
        raise ValueError(
            f"upsilon = {limit.upsilon:g}: must be at most 0 for the law in overload; this system is stable and"
            " gap_rates has the rates of its gaps"
        )
    if isinstance(limit, CollapsedLimit):
        return np.full(limit.K - 1, np.inf)
    rates = _rates(limit, limit.drifts - limit.drifts.mean())[1:]
    need = "the K − k + 1 longest queues must grow more slowly than the average queue"
    _require_positive(rates, 2, need)
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
        return float_or_array(np.where(values < 0, 0.0, probability))

    def quantile(self, q: ArrayLike, k: int | None = None) -> Any:
        """Return the inverse of `cdf` at each q of at least 0 and below 1."""
        values, rates = self._arguments("q", q, k)
        if np.any((values < 0) | (values >= 1)):
            raise ValueError(f"q from {values.min():g} to {values.max():g}: must be at least 0 and below 1")
        return float_or_array(-np.log1p(-values) / rates)

    def log_density(self, lengths: ArrayLike) -> Any:
        """Return the log density of the vector X at `lengths` of shape (..., K), in any order.

        It is Σ_k log θ_k − log K! − Σ_k θ_k z_k at gaps z, minus infinity where a length is negative.
        """
        x = checks.finite_array("lengths", lengths)
        if x.ndim == 0 or x.shape[-1] != self.rates.size:
            raise ValueError(f"lengths of shape {x.shape}: must end in K = {self.rates.size}")
        if not np.all(np.isfinite(self.rates)):
            raise ValueError("rates = [inf, …]: the lengths are equal and have no joint density")
        constant = np.log(self.rates).sum() - scipy.special.gammaln(self.rates.size + 1)
        density = constant - ranks.gaps(x) @ self.rates
        return float_or_array(np.where(np.any(x < 0, axis=-1), -np.inf, density))

    def sample_gaps(self, size: int, rng: Generator) -> NDArray[np.float64]:
        """Draw `size` independent vectors of gaps, shape (size, K)."""
        size = checks.whole("size", size)
        checks.result_fits(size, self.rates.size, name="size")
        return checks.generator(rng).standard_exponential((size, self.rates.size)) / self.rates

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


def as_limit(model: Model) -> Limit | CollapsedLimit:
    """Return the limit of a `System`, or the limit that is given."""
    if isinstance(model, System):
        return model.limit()
    if not isinstance(model, Limit | CollapsedLimit):
        raise ValueError(f"model = {checks.shown(model)}: must be a System, a Limit or a CollapsedLimit")
    return model


def without_common(model: Model) -> Model:
    """Return the model without the common noise of its coordinates, which plays no part in stability."""
    return replace(model, common=0.0) if isinstance(model, Limit) else model


def _rounding(limit: Limit) -> float:
    """A sum of drifts this much smaller than their sizes is rounding, not a drift."""
    return 1e-12 * float(np.abs(limit.drifts).sum())


def _rates(limit: Limit, drifts: NDArray[np.float64]) -> NDArray[np.float64]:
    downward = -np.cumsum(drifts[::-1])[::-1]
    downward[np.abs(downward) <= _rounding(limit)] = 0.0
    return 2 / limit.variance * downward


def _require_positive(rates: NDArray[np.float64], first: int, need: str) -> None:
    beyond = np.flatnonzero((rates > checks.LARGEST) & np.isfinite(rates))
    if beyond.size:
        k = int(beyond[0])
        raise ValueError(
            f"theta_{k + first} = {rates[k]:g}: must be at most {checks.LARGEST:g}; the drifts are too large for so"
            " small a variance"
        )
    bad = np.flatnonzero(rates < checks.SMALLEST)
    if bad.size:
        named = ", ".join(f"theta_{k + first} = {rates[k]:g}" for k in bad[:4]) + (", …" if bad.size > 4 else "")
        raise UnstableError(f"{named}: must be above 0; {need}")
