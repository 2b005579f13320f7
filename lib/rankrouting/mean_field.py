"""The mean-field limit of a thin stream that joins the shortest of d sampled queues: its equation, solved.

With infinitely many queues in the diffusion limit, the share G(t, x) of queues longer than x solves
∂G/∂t = ∂²G/∂x² + ∂f(G)/∂x, f(G) = (slack + rate)·G − rate·G^d, G(t, 0) = 1. Chapter: many_servers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

from . import checks

Floats = NDArray[np.float64]

_TOLERANCE = 1e-8
_EDGE = 1e-8
_MOST_CELLS = 20_000
_LATEST = 1e6


@dataclass(frozen=True, eq=False)
class MeanFieldPath:
    """The share of queues longer than x at sampling times.

    Attributes
    ----------
    times : array of shape (T,)
    x : array of shape (M + 1,)
        Lengths in limit units, equally spaced from 0.
    survival : array of shape (T, M + 1)
        The share of queues longer than each x.
    """

    times: Floats
    x: Floats
    survival: Floats

    @property
    def mean(self) -> Floats:
        """Mean length at each time, shape (T,)."""
        return np.asarray(np.trapezoid(self.survival, self.x, axis=1))

    def share_above(self, x: ArrayLike) -> Floats:
        """Return the shares of queues longer than x, shape (T, …), interpolated."""
        points = checks.finite_array("x", x)
        return np.array([np.interp(points, self.x, row, right=0.0) for row in self.survival])


def survival_path(
    times: ArrayLike,
    initial: Callable[[Floats], ArrayLike],
    d: int,
    slack: float,
    rate: float,
    *,
    largest: float,
    cells: int = 400,
) -> MeanFieldPath:
    """Solve the equation for the share of queues longer than x, by finite volumes of second order.

    Parameters
    ----------
    times : array of shape (T,)
        Sampling times, nonnegative and increasing.
    initial : callable
        The share of queues longer than x at time 0, taking an array: nonincreasing from 1 at 0.
    d : int
        Queues sampled by a ranked job, at least 2.
    slack, rate : float
        υ/K, of any sign, and c/K, at least 0.
    largest : float
        Where the grid ends; no queue may come near.
    cells : int, default 400
        Cells of the grid, at most 20,000. The error is of order 1/cells².

    Returns
    -------
    MeanFieldPath

    Raises
    ------
    ValueError
        If an argument is out of range, the cells are too wide for the drifts, or more than 1e-8 of the queues come to
        the end of the grid.

    Notes
    -----
    Source: derived here; Atar and Wolansky, arXiv 2402.18143, have the limit and its equation.

    Examples
    --------
    >>> path = survival_path([0.0, 1.0], lambda x: np.exp(-x), d=2, slack=1.0, rate=0.0, largest=25.0)
    >>> bool(np.abs(path.survival[1] - path.survival[0]).max() < 1e-3)
    True
    """
    times = checks.sample_times(times)
    if times[-1] > _LATEST:
        raise ValueError(f"times up to {times[-1]:g}: must be at most {_LATEST:g}")
    d = checks.whole("d", d, at_least=2, at_most=1000)
    cells = checks.whole("cells", cells, at_least=10, at_most=_MOST_CELLS)
    slack, rate = checks.real("slack", slack), checks.real("rate", rate, at_least=0)
    largest = checks.real("largest", largest, above=0)
    # The central differences of the flux oscillate where a queue's drift, at its fastest, crosses two cells in the
    # time in which it diffuses across one.
    needed = max(abs(slack + rate), abs(slack + rate - d * rate)) * largest / 2
    if cells < needed:
        raise ValueError(f"cells = {cells}: too few for these rates and largest = {largest:g}: at least {needed:.4g}")
    if not callable(initial):
        raise ValueError(f"initial = {checks.shown(initial)}: must be a function of an array")
    x = np.linspace(0.0, largest, cells + 1)
    h = x[1]
    start = checks.finite_array("initial", initial(x))
    if start.shape != x.shape:
        raise ValueError(f"initial of shape {start.shape}: must have the shape of its argument, {x.shape}")
    if abs(start[0] - 1) > 1e-12 or np.any(np.diff(start) > 0) or start[-1] < 0:
        rise = float(np.max(np.diff(start), initial=0.0))
        raise ValueError(
            f"initial from {start[0]:g} at x = 0 to {start[-1]:g} at x = {largest:g}, rising by up to {rise:g} between"
            " cells: must be nonincreasing from 1 at x = 0, and at least 0"
        )
    if start[-1] > _EDGE:
        raise ValueError(f"largest = {largest:g}: must be so large that no queue starts near; more than {_EDGE:g} do")

    def flux(G: Floats) -> Floats:
        return (slack + rate) * G - rate * G**d

    def speed(_: float, inside: Floats) -> Floats:
        G = np.concatenate([[1.0], inside, [0.0]])
        f = flux(G)
        return np.diff(np.diff(G) / h + 0.5 * (f[1:] + f[:-1])) / h

    solution = solve_ivp(
        speed, (0.0, float(times[-1]) + 1e-12), start[1:-1], "LSODA", times, rtol=_TOLERANCE, atol=_TOLERANCE * 1e-3,
        lband=1, uband=1,
    )  # fmt: skip
    if not solution.success:
        raise ValueError(f"cells = {cells}: the equation could not be solved: {solution.message}")
    survival = np.zeros((times.size, cells + 1))
    survival[:, 0], survival[:, 1:-1] = 1.0, solution.y.T
    if not survival[:, -2].max() <= _EDGE:
        raise ValueError(f"largest = {largest:g}: must be so large that no queue comes near; more than {_EDGE:g} do")
    return MeanFieldPath(times, x, survival)
