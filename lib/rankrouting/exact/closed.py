"""Laws at finite n in closed form: the gap of two queues that never empty, and the system with pauses.

Everything here is in **jobs**; divide by √n for limit units. Public through `exact`. Chapters: overloaded,
exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import analytic, checks
from ..checks import UnstableError
from ..model import System, require_system

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OverloadGapLaw:
    """The law of the gap of two queues that never empty, in jobs.

    P(gap = 0) = (1 − r)/2 and P(gap = m) = (1 − r²)/2 · r^(m−1) for m ≥ 1.

    Attributes
    ----------
    ratio : float
        r, between 0 and 1.
    """

    ratio: float

    def __post_init__(self) -> None:
        """Validate."""
        object.__setattr__(self, "ratio", checks.real("ratio", self.ratio, at_least=0, below=1))

    @property
    def mean(self) -> float:
        """Mean gap, (1 + r)/(2(1 − r)) jobs."""
        return (1 + self.ratio) / (2 * (1 - self.ratio))

    def pmf(self, m: ArrayLike) -> Any:
        """Return P(gap = m) for whole numbers m; a float or an array of the shape of m."""
        gap = checks.finite_array("m", m)
        tail = (1 - self.ratio**2) / 2 * self.ratio ** np.maximum(gap - 1.0, 0.0)
        return np.where(gap == 0, (1 - self.ratio) / 2, np.where(gap > 0, tail, 0.0))[()]

    def cdf(self, m: ArrayLike) -> Any:
        """Return P(gap ≤ m); a float or an array of the shape of m."""
        gap = np.floor(checks.finite_array("m", m))
        return np.where(gap < 0, 0.0, 1 - (1 + self.ratio) / 2 * self.ratio ** np.maximum(gap, 0.0))[()]


def overload_gap_law(system: System) -> OverloadGapLaw:
    """Return the stationary law of the gap of two queues if neither empties, exact at every n.

    The gap is a birth–death chain. From m ≥ 1 it goes up at rate n + λ_2 and down at rate n + λ_1; every
    event takes it from 0 to 1. So the ratio is r = (n + λ_2)/(n + λ_1). υ need not be negative: the law
    is that of the gap while both queues are long.

    Parameters
    ----------
    system : System
        With K = 2.

    Raises
    ------
    ValueError
        If K is not 2.
    UnstableError
        If λ_2 ≥ λ_1, as under uniform random routing: the gap then grows.

    Notes
    -----
    Source: derived here; in limit units the gap tends to Exp((δ_1 − δ_2)/2).

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> law = overload_gap_law(System(n=25, K=2, upsilon=-1.0, policy=mjsq(c=2.0)))
    >>> round(law.ratio, 6), round(law.mean, 6)
    (0.826087, 5.25)
    """
    require_system(system)
    if system.K != 2:
        raise ValueError(f"K = {system.K}: the law of the gap is for K = 2")
    n, (shorter, longer) = system.n, system.rank_arrival_rates
    if longer >= shorter:
        raise UnstableError(
            f"lambda_2 = {longer:g}: the gap is stable only if the longer queue gets fewer jobs than the"
            f" shorter one, lambda_1 = {shorter:g}"
        )
    return OverloadGapLaw(float((n + longer) / (n + shorter)))


@dataclass(frozen=True, eq=False)
class PausesLaw:
    """The stationary law of the system with pauses: independent geometric gaps, in jobs.

    Attributes
    ----------
    gap_ratios : array of shape (K,)
        ρ_1, …, ρ_K: P(Z_k ≥ m) = ρ_k^m.
    mean_ranked : array of shape (K,)
        The shortest first.
    mean_total : float
        E ΣQ.
    """

    gap_ratios: Floats
    mean_ranked: Floats
    mean_total: float


def pauses_law(system: System) -> PausesLaw:
    """prop-pauses: the stationary law of the system with pauses, exact at every n.

    In it an arrival or departure that would break the order of tied queues is lost. It has the same
    limit as the system itself but differs from it much at finite n.

    Raises
    ------
    UnstableError
        If some gap has no stationary law.

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> round(pauses_law(System(n=25, K=2, upsilon=1.0, policy=mjsq(c=2.0))).mean_total, 6)
    9.028986
    """
    require_system(system)
    ratios = analytic.pauses_gap_ratios(system)
    mean_ranked = np.cumsum(ratios / (1 - ratios))
    return PausesLaw(ratios, mean_ranked, float(mean_ranked.sum()))
