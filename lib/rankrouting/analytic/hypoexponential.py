"""The law of a sum of independent exponential variables with arbitrary rates.

The stationary total under rank-based routing is such a sum. The textbook formula, a signed sum of
exponentials, cancels catastrophically when rates are close and does not exist when they are equal,
as they are under MJSQ. Here the Laplace transform ∏ r_i/(r_i + s) is inverted on a hyperbola
through its saddle point, where the integrand is largest and nearly positive: the relative error is
of order 1e-13 in both tails, whatever the rates. Used through `analytic.total_law` and
`analytic.overload_spread_law`. Chapters: workload, overloaded, exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy  # its parts are imported when they are used
from numpy.typing import ArrayLike, NDArray

from .. import checks

# The contour z(u) = μ(sin α (1 − cosh u) + i cos α sinh u), and the trapezoidal rule on it. For α ≤ π/4
# no factor can grow along it faster than exp(xz) decays. Half the step changes results by rounding only.
_ANGLE, _STEP, _END = np.pi / 6, 1 / 16, 7.0
_NODES = np.arange(0.0, _END, _STEP)
_CONTOUR = np.sin(_ANGLE) * (1 - np.cosh(_NODES)) + 1j * np.cos(_ANGLE) * np.sinh(_NODES)
_SPEED = np.cos(_ANGLE) * np.cosh(_NODES) + 1j * np.sin(_ANGLE) * np.sinh(_NODES)
_WEIGHTS = np.where(_NODES == 0, 0.5, 1.0) * _STEP / np.pi
_CHUNK = 512  # values of x at once: a few megabytes


@dataclass(frozen=True, eq=False)
class Hypoexponential:
    """A sum of independent exponential variables, with rates of any size, equal or not.

    Parameters
    ----------
    rates : array of shape (m,)
        Positive rates, in one over the units of the sum. Infinite rates are dropped: their terms are
        0. With no finite rate left the sum is 0.

    Raises
    ------
    ValueError
        If a rate is not above 0.

    Notes
    -----
    Derived here; the contour is that of Weideman and Trefethen, "Parabolic and hyperbolic contours
    for computing the Bromwich integral", moved to the saddle point of each x.

    Examples
    --------
    >>> law = Hypoexponential([1.0, 2.0])
    >>> law.mean, law.variance
    (1.5, 1.25)
    >>> abs(law.cdf(1.5) / float(1 - np.exp(-1.5)) ** 2 - 1) < 1e-12
    True
    """

    rates: NDArray[np.float64]

    def __init__(self, rates: ArrayLike) -> None:
        array = positive_rates(rates)
        array = array[np.isfinite(array)]
        array.setflags(write=False)
        object.__setattr__(self, "rates", array)

    @property
    def mean(self) -> float:
        """Σ 1/rate."""
        return float(np.sum(1 / self.rates))

    @property
    def variance(self) -> float:
        """Σ 1/rate²."""
        return float(np.sum(1 / self.rates**2))

    def cdf(self, x: ArrayLike) -> Any:
        """Return P(sum ≤ x), a float or an array of the shape of x."""
        values = checks.finite_array("x", x)
        lower, upper = self._tails(values.ravel())
        return float_or_array(np.where(np.isnan(lower), 1 - upper, lower).reshape(values.shape))

    def sf(self, x: ArrayLike) -> Any:
        """Return P(sum > x), with full relative precision in the far tail."""
        values = checks.finite_array("x", x)
        lower, upper = self._tails(values.ravel())
        return float_or_array(np.where(np.isnan(upper), 1 - lower, upper).reshape(values.shape))

    def pdf(self, x: ArrayLike) -> Any:
        """Return the density at x; raise if the sum is identically 0 and has none."""
        if self.rates.size == 0:
            raise ValueError("rates = [inf, …]: the sum is identically 0 and has no density")
        values = checks.finite_array("x", x)
        density = np.zeros(values.size)
        density[values.ravel() == 0] = self.rates[0] if self.rates.size == 1 else 0.0
        inside = values.ravel() > 0
        density[inside] = np.exp(_log_inverse(values.ravel()[inside], self.rates, "pdf"))
        return float_or_array(density.reshape(values.shape))

    def quantile(self, q: ArrayLike) -> Any:
        """Return the x with P(sum ≤ x) = q, for each q strictly between 0 and 1."""
        levels = checks.finite_array("q", q)
        for level in levels.ravel():
            checks.real("q", level, above=0, below=1)
        if self.rates.size == 0:
            return float_or_array(np.zeros(levels.shape))
        flat = levels.ravel()
        x = np.empty(flat.size)
        low = flat <= self.cdf(self.mean)
        # P(sum ≤ x) ≤ ∏ r_i x^m / m!, so these starts are below their quantiles.
        m = self.rates.size
        bound = np.exp((np.log(flat[low]) + scipy.special.gammaln(m + 1) - np.sum(np.log(self.rates))) / m)
        x[low] = self._newton(bound, np.log(flat[low]), "cdf")
        x[~low] = self._newton(np.full(np.sum(~low), self.mean), np.log1p(-flat[~low]), "sf")
        return float_or_array(x.reshape(levels.shape))

    def _newton(
        self, x: NDArray[np.float64], target: NDArray[np.float64], kind: Literal["cdf", "sf"]
    ) -> NDArray[np.float64]:
        """Solve log cdf = target or log sf = target; both are concave, so Newton's steps are one-sided."""
        sign = 1.0 if kind == "cdf" else -1.0
        for _ in range(100):
            tail = _log_inverse(x, self.rates, kind)
            step = sign * (target - tail) * np.exp(tail - _log_inverse(x, self.rates, "pdf"))
            x = x + step
            if np.all(np.abs(step) <= 1e-12 * x):
                return x
        raise ArithmeticError(f"quantile of rates from {self.rates.min():g} to {self.rates.max():g}: no convergence")

    def _tails(self, x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return cdf and sf, the smaller of the two computed and the other NaN.

        The density is log-concave, so each is at least 1/e where the other is taken.
        """
        lower, upper = np.full(x.size, np.nan), np.full(x.size, np.nan)
        lower[x <= 0] = 0.0
        if self.rates.size == 0:
            lower[x == 0] = 1.0
            upper[x > 0] = 0.0
            return lower, upper
        small, large = (x > 0) & (x <= self.mean), x > self.mean
        lower[small] = np.exp(_log_inverse(x[small], self.rates, "cdf"))
        upper[large] = np.exp(_log_inverse(x[large], self.rates, "sf"))
        return lower, upper


def positive_rates(value: ArrayLike) -> NDArray[np.float64]:
    """Return a copy of `rates` as a vector of numbers above 0, infinity allowed."""
    array = np.array(checks.float_array("rates", value))
    if array.ndim != 1:
        raise ValueError(f"rates of shape {array.shape}: must be a vector")
    bad = ~(array > 0)
    if np.any(bad):
        k = int(np.argmax(bad))
        raise ValueError(f"rates[{k}] = {array[k]:g}: must be above 0")
    bad = (array < checks.SMALLEST) | ((array > checks.LARGEST) & np.isfinite(array))
    if np.any(bad):
        k = int(np.argmax(bad))
        raise ValueError(
            f"rates[{k}] = {array[k]:g}: must be infinite or from {checks.SMALLEST:g} to {checks.LARGEST:g}"
        )
    return array


def float_or_array(value: Any) -> Any:
    """Return a numpy scalar or an array without axes as a float, any other array as it is."""
    return float(value) if np.ndim(value) == 0 else value


_LEAST_X = 1e-280


def _log_inverse(
    x: NDArray[np.float64], rates: NDArray[np.float64], kind: Literal["pdf", "cdf", "sf"]
) -> NDArray[np.float64]:
    """Return the log of the pdf, cdf or sf at x > 0, from the integral along the contour."""
    # So far down the cdf is proportional to x^m, the density to x^(m−1) and the sf is 1.
    at = np.maximum(x, _LEAST_X)
    parts = [_log_inverse_chunk(at[i : i + _CHUNK], rates, kind) for i in range(0, x.size, _CHUNK)]
    power = {"cdf": rates.size, "pdf": rates.size - 1, "sf": 0}[kind]
    return np.concatenate(parts) + power * np.log(x / at) if parts else np.empty(0)


def _log_inverse_chunk(
    x: NDArray[np.float64], rates: NDArray[np.float64], kind: Literal["pdf", "cdf", "sf"]
) -> NDArray[np.float64]:
    # The integrand is exp(sx) ∏ r/(r+s), times 1/s for the cdf and −1/s for the sf. The contour crosses
    # the real axis at a distance d to the right of the nearest pole: 0 for the cdf, −min(rates)
    # otherwise. The sf has the pole 0 on the other side, at a distance `right`.
    nearest = 0.0 if kind == "cdf" else float(rates.min())
    offsets = np.append(rates, 0.0) if kind == "cdf" else rates - nearest
    m = offsets.size
    if kind == "sf":
        low = nearest / (2 + x * nearest)
        high = np.minimum(m / x, nearest * m / (m + 1))
    else:
        low, high = 1 / x, m / x

    def left_of_saddle(d: NDArray[np.float64]) -> NDArray[np.bool_]:
        pull = np.sum(1 / (d[:, None] + offsets), axis=1)
        return pull > (x + 1 / (nearest - d) if kind == "sf" else x)

    d = _bisect(left_of_saddle, low, high)
    distances = d[:, None] + offsets
    curvature = np.sum((d[:, None] / distances) ** 2, axis=1)
    height = (d - nearest) * x + np.sum(np.log(rates / distances[:, : rates.size]), axis=1)
    if kind == "cdf":
        height -= np.log(d)
    if kind == "sf":
        right = nearest - d
        curvature += (d / right) ** 2
        height -= np.log(right)
    mu = d / np.sqrt(curvature) / np.cos(_ANGLE)

    z = mu[:, None] * _CONTOUR
    integrand = np.exp(x[:, None] * z) * _SPEED
    for column in distances.T:
        integrand *= column[:, None] / (column[:, None] + z)
    if kind == "sf":
        integrand *= right[:, None] / (right[:, None] - z)
    return height + np.log(mu) + np.log(integrand.real @ _WEIGHTS)


def _bisect(
    go_right: Callable[[NDArray[np.float64]], NDArray[np.bool_]],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Bisect on a log scale; the integral is the same for any crossing near the saddle point."""
    low, high = np.log(low), np.log(high)
    for _ in range(16):
        middle = (low + high) / 2
        right = go_right(np.exp(middle))
        low, high = np.where(right, middle, low), np.where(right, high, middle)
    return np.exp((low + high) / 2)
