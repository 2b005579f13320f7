"""Extrapolation and orders of convergence by regression; called through `estimate`.

Chapters: most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from . import checks
from .replications import standard_score

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Extrapolation:
    """A limit fitted as value(s) = limit + Σ_j a_j s^{order_j} for s → 0.

    Attributes
    ----------
    value, standard_error : float
        The limit.
    orders : tuple of float
        The powers of s.
    coefficients, coefficient_errors : array
        a_j and their standard errors, in the order of `orders`.
    degrees_of_freedom : int
        Number of sizes minus number of fitted numbers.
    p_value : float or None
        Of the χ² goodness of fit; None when the errors were not given or no degree is left.
    errors_known : bool
        Whether standard errors were given; if not, they are estimated from the residuals.
    """

    value: float
    standard_error: float
    orders: tuple[float, ...]
    coefficients: Floats
    coefficient_errors: Floats
    degrees_of_freedom: int
    p_value: float | None
    errors_known: bool

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the two ends of the confidence interval of the limit at `level`."""
        return _interval(self, self.value, level)

    def z(self, predicted: float) -> Any:
        """Return (value − predicted) over the standard error."""
        return standard_score(self.value, predicted, self.standard_error)


def extrapolate(
    small: ArrayLike,
    values: ArrayLike,
    standard_errors: ArrayLike | None = None,
    orders: Sequence[float] = (1.0,),
) -> Extrapolation:
    """Extrapolate values at sizes s > 0 to s = 0 by weighted regression on powers of s.

    Parameters
    ----------
    small : array of shape (m,)
        The sizes: time steps, or 1/√n (but see `extrapolate_n`).
    values : array of shape (m,)
        What was measured, independently of each other.
    standard_errors : array of shape (m,), optional
        Their standard errors. None for exact values: the fit is then unweighted, and the errors
        are those that the residuals show.
    orders : sequence of float
        The powers of s in the fit, (1.0,) for a straight line.

    Returns
    -------
    Extrapolation
        With `interval` and `z` for the limit and a goodness of fit: a small p-value says that more
        orders are needed, or smaller sizes.

    Raises
    ------
    ValueError
        If an argument is out of range or there are too few sizes for the orders.

    Examples
    --------
    >>> fit = extrapolate([0.1, 0.2, 0.4], [2.1, 2.2, 2.4], [0.01, 0.01, 0.01])
    >>> round(fit.value, 6), round(float(fit.coefficients[0]), 6), fit.degrees_of_freedom
    (2.0, 1.0, 1)
    """
    s, y, errors = _measured("small", small, "values", values, standard_errors)
    return _extrapolated("small", s, y, errors, orders)


def _extrapolated(name: str, s: Floats, y: Floats, errors: Floats | None, orders: Sequence[float]) -> Extrapolation:
    """Extrapolate what is checked; `name` is the argument that gives the sizes."""
    powers = checks.finite_array("orders", orders)
    if powers.ndim != 1 or powers.size == 0 or np.any(powers <= 0) or np.unique(powers).size < powers.size:
        raise ValueError(f"orders = {checks.shown(orders)}: must be different positive numbers")
    if np.abs(powers * np.log10(s.max())).max() > 100:
        raise ValueError(
            f"orders = {checks.shown(orders)}: powers of {name} must not be beyond 1e-100 and 1e+100 in size"
        )
    # In units of the largest size, for the sake of the condition number.
    design = np.column_stack([np.ones(s.size), (s[:, np.newaxis] / s.max()) ** powers])
    named = f"{name}, values, standard_errors and orders"
    coefficients, covariance, degrees, p_value = _least_squares(name, named, s, design, y, errors)
    scale = s.max() ** -powers
    deviations = np.sqrt(np.diag(covariance))
    return Extrapolation(
        value=float(coefficients[0]),
        standard_error=float(deviations[0]),
        orders=tuple(map(float, powers)),
        coefficients=coefficients[1:] * scale,
        coefficient_errors=deviations[1:] * scale,
        degrees_of_freedom=degrees,
        p_value=p_value,
        errors_known=errors is not None,
    )


def extrapolate_n(
    n: ArrayLike,
    values: ArrayLike,
    standard_errors: ArrayLike | None = None,
    orders: Sequence[float] = (0.5,),
) -> Extrapolation:
    """Extrapolate values at sizes n to n = ∞: value(n) = limit + Σ_j a_j n^{−order_j}.

    As `extrapolate` at sizes 1/n; the default is the first order of the heavy-traffic limit, n^{−1/2}.

    Parameters
    ----------
    n : array of shape (m,)
        The sizes, positive.
    values, standard_errors, orders
        As in `extrapolate`.

    Returns
    -------
    Extrapolation
        Its `coefficients` are those of n^{−order_j}.

    Raises
    ------
    ValueError
        If an argument is out of range or there are too few sizes for the orders.

    Examples
    --------
    >>> round(extrapolate_n([25, 100, 400], [2.6, 2.3, 2.15], [0.01, 0.01, 0.01]).value, 6)
    2.0
    """
    sizes, y, errors = _measured("n", n, "values", values, standard_errors)
    return _extrapolated("n", 1.0 / sizes, y, errors, orders)


@dataclass(frozen=True)
class PowerLaw:
    """Errors fitted as C·size^exponent.

    Attributes
    ----------
    exponent, standard_error : float
        The power of the size, and its standard error.
    coefficient : float
        C, with the sign of the errors.
    degrees_of_freedom : int
        Number of sizes minus 2.
    p_value : float or None
        Of the χ² goodness of fit; None when the errors of the errors were not given or there are
        only two sizes.
    errors_known : bool
        Whether standard errors were given; if not, they are estimated from the residuals.
    """

    exponent: float
    standard_error: float
    coefficient: float
    degrees_of_freedom: int
    p_value: float | None
    errors_known: bool

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the two ends of the confidence interval of the exponent at `level`."""
        return _interval(self, self.exponent, level)

    def z(self, predicted: float) -> Any:
        """Return (exponent − predicted) over the standard error."""
        return standard_score(self.exponent, predicted, self.standard_error)


def convergence_order(
    sizes: ArrayLike, errors: ArrayLike, standard_errors: ArrayLike | None = None, least_z: float = 3.0
) -> PowerLaw:
    """Fit errors = C·size^exponent by regression of log|error| on log size.

    Parameters
    ----------
    sizes : array of shape (m,)
        Positive: n, or the time step.
    errors : array of shape (m,)
        Measured minus true, all of one sign, independent of each other.
    standard_errors : array of shape (m,), optional
        Their standard errors; None for exact errors, of which three are needed.
    least_z : float
        How many standard errors each error must be away from 0.

    Returns
    -------
    PowerLaw
        The exponent is negative when errors fall with the size.

    Raises
    ------
    ValueError
        If an argument is out of range, the errors change sign, or one of them is not told from 0.

    Examples
    --------
    >>> fit = convergence_order([100, 400, 1600], [0.3, 0.15, 0.075], [0.01, 0.01, 0.01])
    >>> round(fit.exponent, 6), round(fit.coefficient, 6)
    (-0.5, 3.0)
    """
    s, e, deviations = _measured("sizes", sizes, "errors", errors, standard_errors)
    least_z = checks.real("least_z", least_z, at_least=0)
    for i in range(s.size):
        noise = checks.SMALLEST if deviations is None else max(checks.SMALLEST, least_z * deviations[i])
        if abs(e[i]) <= noise:
            raise ValueError(
                f"errors[{i}] = {e[i]:g} at size {s[i]:g}: must be more than {noise:g} away from 0"
                + ("" if deviations is None else f", least_z = {least_z:g} standard_errors")
            )
    if np.any(np.sign(e) != np.sign(e[0])):
        raise ValueError(
            f"errors = {checks.shown(e.tolist())}: must all have one sign, or they follow no power of the size"
        )
    centre = np.log(s).mean()
    design = np.column_stack([np.ones(s.size), np.log(s) - centre])
    logs = np.log(np.abs(e))
    relative = None if deviations is None else deviations / np.abs(e)
    named = "sizes, errors and standard_errors"
    coefficients, covariance, degrees, p_value = _least_squares("sizes", named, s, design, logs, relative)
    log_coefficient = coefficients[0] - coefficients[1] * centre
    if abs(log_coefficient) > np.log(checks.LARGEST):
        raise ValueError(f"{named}: the fitted coefficient is beyond 1e-100 and 1e+100 in size")
    return PowerLaw(
        exponent=float(coefficients[1]),
        standard_error=float(np.sqrt(covariance[1, 1])),
        coefficient=float(np.sign(e[0]) * np.exp(log_coefficient)),
        degrees_of_freedom=degrees,
        p_value=p_value,
        errors_known=deviations is not None,
    )


def _measured(
    size_name: str, sizes: ArrayLike, name: str, values: ArrayLike, standard_errors: ArrayLike | None
) -> tuple[Floats, Floats, Floats | None]:
    """Return sizes, values and standard errors as vectors of one length, checked."""
    s, y = checks.positive_array(size_name, sizes), checks.finite_array(name, values)
    errors = None if standard_errors is None else checks.positive_array("standard_errors", standard_errors)
    if s.ndim != 1 or s.size < 2:
        raise ValueError(f"{size_name} = {checks.shown(sizes)}: must be a vector of at least two positive sizes")
    for other, array in ((name, y), ("standard_errors", errors)):
        if array is not None and array.shape != s.shape:
            raise ValueError(f"{other} of shape {array.shape}: must have one number for each size, {s.shape}")
    return s, y, errors


_WORST_CONDITION = 1e14


def _least_squares(
    size_name: str, named: str, sizes: Floats, design: Floats, y: Floats, errors: Floats | None
) -> tuple[Floats, Floats, int, float | None]:
    """Return coefficients, their covariance, degrees of freedom and the p-value; `named` are all the arguments."""
    count = design.shape[1]
    needed = count if errors is not None else count + 1
    if y.size < needed or np.unique(sizes).size < count:
        raise ValueError(
            f"{size_name} = {checks.shown(sizes.tolist())}: must be at least {needed} sizes, {count} of them different,"
            f" to fit {count} numbers (those of the orders and a constant)"
            + ("" if errors is not None else " and their errors")
        )
    weights = np.ones_like(y) if errors is None else 1 / errors
    # In units of the largest weight, and each column of its own size.
    q, r = np.linalg.qr(design * (weights / weights.max())[:, np.newaxis])
    units = np.abs(r).max(axis=0)
    if np.any(units < checks.SMALLEST) or np.linalg.cond(r / np.maximum(units, checks.SMALLEST)) > _WORST_CONDITION:
        raise ValueError(f"{named}: so extreme that a fit cannot tell its {count} numbers from each other")
    with np.errstate(all="ignore"):
        inverse = np.linalg.inv(r / units) / units[:, np.newaxis]
        coefficients = inverse @ (q.T @ (y * (weights / weights.max())))
        covariance = inverse @ inverse.T / weights.max() ** 2
        residual = float((((y - design @ coefficients) * weights) ** 2).sum())
    if not (np.all(np.isfinite(coefficients)) and np.all(np.isfinite(covariance)) and not np.isnan(residual)):
        raise ValueError(f"{named}: so extreme that a fit leaves the range of numbers")
    degrees = y.size - count
    if errors is None:
        return coefficients, covariance * residual / degrees, degrees, None
    return coefficients, covariance, degrees, float(stats.chi2.sf(residual, degrees)) if degrees else None


def _interval(fit: Extrapolation | PowerLaw, centre: float, level: float) -> tuple[float, float]:
    """Return the confidence interval of a fitted number: Student's when the errors are estimated."""
    tail = 0.5 + checks.confidence(level) / 2
    quantile = stats.norm.ppf(tail) if fit.errors_known else stats.t.ppf(tail, fit.degrees_of_freedom)
    width = float(quantile) * fit.standard_error
    return centre - width, centre + width
