"""The first order of the stationary mean total, in **jobs**: what the limit does not know.

E ΣQ = √n · (mean of the limit) + κ + O(n^(−1/2)), and κ depends on υ and c through their ratio only. Known in
closed form for one and two queues, for independent queues and for the system with pauses. Public through
`analytic`. Chapters: exact, own_system.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import checks
from ..model import CollapsedLimit, System, require_system
from ..policies import Shortest
from .formulas import mean_total
from .gap_laws import gap_rates
from .hypoexponential import float_or_array

# The closed form is 0/0 at these ratios; nearer than `_NEAR` its mean over a circle of this radius is taken.
_REMOVABLE = (0.0, 1.0)
_NEAR, _RADIUS, _POINTS = 0.25, 0.5, 128
_FAR = 1e6  # from here on −1 − 16/(3πr) is exact to twelve digits


def pair_constant(ratio: ArrayLike) -> Any:
    """prop-pair-constant: κ of two queues, a function of r = c/υ alone.

    κ(r) = [2(1+r²)⁴ arctan r − r P(r)] / [4π r (r−1)³ (r+1)²] with
    P(r) = π(r⁷ + 8r⁵ − 4r⁴ − 19r³ + 20r² + 10r − 8) − 2(r²−1)(r⁴ − 6r² + 1), continued at r = 0 and 1.

    Parameters
    ----------
    ratio : float or array
        r, above −1; c(p_1 − p_2)/υ for a general p, which may be negative.

    Returns
    -------
    float or array of the shape of `ratio`
        In jobs: −2 at r = 0, where the queues are independent, and −1 as r → ∞.

    Raises
    ------
    ValueError
        If a ratio is not above −1, where the longer queue has no stationary law.

    Notes
    -----
    Source: derived here, from the Poisson equation of the limit in a wedge of 45 degrees.

    Examples
    --------
    >>> pair_constant([0.0, 1.0, 2.0]).round(6)
    array([-2.      , -1.651174, -1.475244])
    """
    r = checks.finite_array("ratio", ratio)
    if np.any(r <= -1):
        raise ValueError(f"ratio = {r.min():g}: must be above -1")
    # The function is analytic around both points, so it is its own mean over a circle, away from 0/0.
    circle = _RADIUS * np.exp(2j * np.pi * (np.arange(_POINTS) + 0.5) / _POINTS)
    near = np.any([np.abs(r - point) < _NEAR for point in _REMOVABLE], axis=0)
    continued = _closed_form(np.where(near, r, 0.5)[..., np.newaxis] + circle).real.mean(axis=-1)
    inside = np.where(near, 0.5, np.minimum(r, _FAR))
    beyond = -1 - 16 / (3 * np.pi * np.maximum(r, _FAR))
    return float_or_array(np.where(near, continued, np.where(r > _FAR, beyond, _closed_form(inside))))


def first_order_constant(system: System, *, approximate: bool = False) -> float:
    """prop-first-order: κ in E ΣQ = √n · (mean of the limit) + κ + O(n^(−1/2)), in **jobs**.

    −K for queues that do not depend on each other, `pair_constant` for two queues and any p.

    Parameters
    ----------
    system : System
        With K ≤ 2 or uniform routing; not with a policy that ranks every job and cares for the rank.
    approximate : bool, default False
        Whether more queues under MJSQ are allowed. For them κ has no formula, and this returns
        −K + (K−1)(2 + κ of two queues), which has the right value and slope at c = 0 and was seen to be within
        0.03(K−1) jobs for K = 3 and 4.

    Raises
    ------
    UnstableError
        If there is no stationary law.
    ValueError
        If κ is not known for this system.

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> round(first_order_constant(System(n=25, K=2, upsilon=1.0, policy=mjsq(c=2.0))), 6)
    -1.475244
    """
    require_system(system)
    rates = gap_rates(system)
    K, limit = system.K, system.limit()
    if isinstance(limit, CollapsedLimit):
        raise ValueError(f"policy = {system.policy.name}: ranks every job; the constant is for a ranked stream c√n")
    differences = limit.drifts[0] - limit.drifts
    if not np.any(np.abs(differences) > 1e-12 * np.abs(limit.drifts).max()):
        return -float(K)
    if K == 2:
        return float(pair_constant(differences[1] / rates[0]))
    if not approximate:
        raise ValueError(f"K = {K}: the constant is known for one or two queues and for uniform routing")
    if not isinstance(system.policy.rank_law, Shortest):
        raise ValueError(f"policy = {system.policy.name}: with K = {K} the approximate constant is for MJSQ")
    return float(-K + (K - 1) * (2 + pair_constant(differences[1] / rates[0])))


def corrected_mean_total(system: System) -> float:
    """Return the mean of the limit plus κ/√n, in **limit units**: its error is of order 1/n, not n^(−1/2).

    For MJSQ with more than two queues κ is approximate (`first_order_constant`). Raises as it.

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> system = System(n=25, K=2, upsilon=1.0, policy=mjsq(c=2.0))
    >>> round(5 * corrected_mean_total(system), 2), round(5 * mean_total(system), 2)  # jobs; exactly 11.88
    (11.86, 13.33)
    """
    require_system(system)
    return mean_total(system) + first_order_constant(system, approximate=True) / system.sqrt_n


def pauses_first_order_constant(system: System) -> float:
    """prop-pauses-constant: κ of the system with pauses, in **jobs**, for any number of queues and any p.

    −K(K+1)/4 − ½ Σ_k (K−k+1) Σ_{j≥k} δ_j² / θ_k²; for MJSQ −K(K+3)/4 − (K−1)c²/(2υ²), with no lower bound.

    Raises
    ------
    UnstableError
        If there is no stationary law.
    ValueError
        If the limit is collapsed.

    Notes
    -----
    Source: derived here, from the geometric laws of `pauses_gap_ratios`.

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> pauses_first_order_constant(System(n=25, K=2, upsilon=1.0, policy=mjsq(c=2.0)))
    -4.5
    """
    require_system(system)
    rates, limit = gap_rates(system), system.limit()
    if isinstance(limit, CollapsedLimit):
        raise ValueError(f"policy = {system.policy.name}: ranks every job; the constant is for a ranked stream c√n")
    above = np.arange(system.K, 0, -1)
    squares = np.cumsum(limit.drifts[::-1] ** 2)[::-1]
    return -system.K * (system.K + 1) / 4 - float(above @ (squares / rates**2)) / 2


def _closed_form(r: NDArray[Any]) -> NDArray[Any]:
    """Evaluate the closed form, beyond r = 1 with arctan r = π/2 − arctan(1/r), against cancellation."""
    near, far = (np.where(np.real(r) > 1, *pair) for pair in ((0.5, r), (r, 2.0)))
    P = np.pi * np.polyval([1.0, 0.0, 8.0, -4.0, -19.0, 20.0, 10.0, -8.0], near)
    P -= 2 * (near**2 - 1) * (near**4 - 6 * near**2 + 1)
    close = 2 * (1 + near**2) ** 4 * np.arctan(near) - near * P
    # π(1 + r²)⁴ is taken together with −r P, in which the highest powers of r cancel.
    beyond = np.pi * np.polyval([-4.0, 4.0, 25.0, -20.0, -6.0, 8.0, 1.0], far)
    beyond += 2 * far * (far**2 - 1) * (far**4 - 6 * far**2 + 1) - 2 * (1 + far**2) ** 4 * np.arctan(1 / far)
    value: NDArray[Any] = np.where(np.real(r) > 1, beyond, close) / (4 * np.pi * r * (r - 1) ** 3 * (r + 1) ** 2)
    return value
