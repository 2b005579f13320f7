"""Statistics of simulations: errors of correlated series, distances between laws, extrapolation.

Each function raises instead of returning a number that could not be trusted: for a series that is
too short, or an error that is not told from noise. Chapters: heavy_traffic, interchange, workload,
diffusion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft, stats

from . import checks
from .replications import Estimate, Seed, mean_of, mean_with_controls, replicate, seed_sequence

__all__ = [
    "Distance",
    "Estimate",
    "Extrapolation",
    "PowerLaw",
    "batch_means",
    "convergence_order",
    "critical_z",
    "effective_sample_size",
    "extrapolate",
    "extrapolate_n",
    "integrated_autocorrelation_time",
    "ks_distance",
    "mean_of",
    "mean_with_controls",
    "replicate",
    "wasserstein_distance",
]

Floats = NDArray[np.float64]

# Chance that batch means of a good run are refused as correlated.
_BATCH_FALSE_ALARM = 1e-3


def integrated_autocorrelation_time(series: ArrayLike, times_needed: float = 50.0) -> Any:
    """Estimate τ = 1 + 2Σ_k ρ_k, by which correlation divides the number of samples.

    Parameters
    ----------
    series : array of shape (N, ...)
        A stationary series, time on the first axis; every further entry is its own series.
    times_needed : float
        The least N/τ with which the estimate is trusted.

    Returns
    -------
    float or array of shape (...)
        τ in units of the sampling interval.

    Raises
    ------
    ValueError
        If a series is constant or shorter than `times_needed`·τ.

    Notes
    -----
    Geyer's initial monotone sequence (Statistical Science 7 (1992) 473–483): sums of two neighbouring
    autocorrelations of a reversible chain are positive and decrease, so the sum stops at the first
    that is not positive.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> bool(0.9 < integrated_autocorrelation_time(rng.standard_normal(10_000)) < 1.1)
    True
    """
    array = _series(series)
    times_needed = checks.real("times_needed", times_needed, above=0)
    N = array.shape[0]
    columns = array.reshape(N, -1)
    tau = np.array([_autocorrelation_time(column) for column in columns.T])
    worst = float(tau.max())
    if times_needed * worst > N:
        raise ValueError(
            f"series of length {N}: must be at least {times_needed:g} integrated autocorrelation times,"
            f" about {times_needed * worst:.0f}"
        )
    return tau.reshape(array.shape[1:])[()]


def effective_sample_size(series: ArrayLike) -> Any:
    """Return N/τ, the number of independent samples that would give the mean as well.

    Parameters
    ----------
    series : array of shape (N, ...)
        As in `integrated_autocorrelation_time`, which raises when it is too short.

    Returns
    -------
    float or array of shape (...)
        Effective number of samples.

    Raises
    ------
    ValueError
        If a series is constant or shorter than 50 τ.
    """
    return len(_series(series)) / integrated_autocorrelation_time(series)


def batch_means(series: ArrayLike, batches: int = 20) -> Estimate:
    """Return the mean of one long correlated series with the standard error from batch means.

    Parameters
    ----------
    series : array of shape (N, ...)
        A stationary series, time on the first axis. N mod `batches` samples at its start are left out.
    batches : int
        Number of batches, at least 5.

    Returns
    -------
    Estimate
        Its `replications` is `batches`, so that `interval` has the right number of degrees of freedom.

    Raises
    ------
    ValueError
        If the run is too short to be trusted: fewer than 50 integrated autocorrelation times, or 5 a
        batch, or batch means that are correlated (von Neumann's ratio, false alarm 10⁻³).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> estimate = batch_means(rng.standard_normal(10_000))
    >>> estimate.replications, bool(abs(estimate.z(0.0)) < 4)
    (20, True)
    """
    array = _series(series)
    batches = checks.whole("batches", batches, at_least=5)
    integrated_autocorrelation_time(array, max(50.0, 5.0 * batches))
    size = array.shape[0] // batches
    means = array[array.shape[0] - size * batches :].reshape(batches, size, *array.shape[1:]).mean(axis=1)
    # Lag-one correlation of the batch means, about normal with variance (B − 2)/(B² − 1) without correlation.
    deviations = means - means.mean(axis=0)
    ratio = (np.diff(means, axis=0) ** 2).sum(axis=0) / (deviations**2).sum(axis=0)
    z = (1 - ratio / 2) / np.sqrt((batches - 2) / (batches**2 - 1))
    threshold = stats.norm.isf(_BATCH_FALSE_ALARM / z.size)
    if np.any(z > threshold):
        raise ValueError(
            f"series of length {array.shape[0]}: the means of its {batches} batches are correlated"
            f" (z = {z.max():.1f}, allowed {threshold:.1f}); the series must be longer"
        )
    return mean_of(means)


@dataclass(frozen=True)
class Distance:
    """A distance between two laws, at least one of them known by independent samples only.

    Attributes
    ----------
    value : float
        Distance of the samples, which is larger than that of the laws on average.
    low, high : float
        Confidence interval for the distance of the laws.
    p_value : float or None
        Of the hypothesis that the laws are equal, where there is a test.
    """

    value: float
    low: float
    high: float
    p_value: float | None = None


def ks_distance(samples: ArrayLike, law: ArrayLike | Callable[[Floats], ArrayLike], level: float = 0.95) -> Distance:
    """Return the Kolmogorov–Smirnov distance sup|F − G| of samples to a law or to other samples.

    Parameters
    ----------
    samples : array of shape (N,)
        Independent samples from F.
    law : callable or array of shape (M,)
        The distribution function G, taking an array; it may jump. Or independent samples from G.
    level : float
        Of the interval.

    Returns
    -------
    Distance
        The p-value is exact for a continuous law (or two samples of moderate size) and otherwise
        too large.

    Raises
    ------
    ValueError
        If an argument is out of range, or `law` returns values outside [0, 1].

    Notes
    -----
    A bootstrap of this distance is biased upwards and never reaches 0. The interval is instead
    value ± q, where q is the exact `level` quantile of sup|F_N − F| for N samples (for two samples
    the sum of two such, at the square root of `level`): by the triangle inequality it holds the
    distance of the laws with at least that probability.

    Examples
    --------
    >>> from scipy.stats import expon
    >>> x = np.random.default_rng(1).exponential(size=1000)
    >>> distance = ks_distance(x, expon.cdf)
    >>> distance.low, distance.p_value > 1e-4
    (0.0, True)
    """
    x = np.sort(_samples("samples", samples))
    level = checks.real("level", level, above=0, below=1)
    if callable(law):
        value = _ks_to_law(x, law)
        width = stats.kstwo.ppf(level, x.size)
        p_value = stats.kstwo.sf(value, x.size)
    else:
        y = _samples("law", law)
        test = stats.ks_2samp(x, y)
        value, p_value = test.statistic, test.pvalue
        width = sum(stats.kstwo.ppf(np.sqrt(level), size) for size in (x.size, y.size))
    return Distance(float(value), max(0.0, float(value - width)), min(1.0, float(value + width)), float(p_value))


def wasserstein_distance(
    samples: ArrayLike,
    law: ArrayLike | Callable[[Floats], ArrayLike],
    seed: Seed = 0,
    *,
    level: float = 0.95,
    resamples: int = 400,
) -> Distance:
    """Return the Wasserstein distance of order 1, ∫|F − G|, of samples to a law or to other samples.

    Parameters
    ----------
    samples : array of shape (N,)
        Independent samples from F.
    law : callable or array of shape (M,)
        The quantile function of G, taking an array. Or independent samples from G.
    seed : int or SeedSequence
        Of the bootstrap.
    level : float
        Of the interval.
    resamples : int
        Number of bootstrap resamples, at least 100.

    Returns
    -------
    Distance
        In the units of the samples; without a p-value.

    Raises
    ------
    ValueError
        If an argument is out of range, or `law` returns values that are not finite.

    Notes
    -----
    The interval is value ± q, where q is the `level` quantile of the distance between the samples
    and a bootstrap resample of them, which has the law of the distance between F and its samples
    for large N. By the triangle inequality it is conservative; unlike the percentile interval it
    reaches 0 when the laws are equal. For two samples q is that of the sum of their two distances.

    Examples
    --------
    >>> from scipy.stats import expon
    >>> x = np.random.default_rng(1).exponential(size=1000)
    >>> wasserstein_distance(x, expon.ppf).low
    0.0
    >>> wasserstein_distance(x, x + 1).value
    1.0
    """
    x = np.sort(_samples("samples", samples))
    level = checks.real("level", level, above=0, below=1)
    resamples = checks.whole("resamples", resamples, at_least=100)
    rng = np.random.default_rng(seed_sequence(seed))
    own = _distances_to_resamples(x, resamples, rng)
    if callable(law):
        # Midpoints, several for each sample when there are few.
        per_sample = -(-4096 // x.size)
        u = (np.arange(x.size * per_sample) + 0.5) / (x.size * per_sample)
        quantiles = checks.finite_array("quantiles of law", law(u))
        value = np.abs(np.repeat(x, per_sample) - quantiles).mean()
    else:
        y = np.sort(_samples("law", law))
        value = stats.wasserstein_distance(x, y)
        own = own + _distances_to_resamples(y, resamples, rng)
    width = np.quantile(own, level)
    return Distance(float(value), max(0.0, float(value - width)), float(value + width))


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

    def z(self, predicted: float) -> float:
        """Return (value − predicted) over the standard error."""
        return (self.value - predicted) / self.standard_error


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
    powers = checks.finite_array("orders", orders)
    if powers.ndim != 1 or powers.size == 0 or np.any(powers <= 0) or np.unique(powers).size < powers.size:
        raise ValueError(f"orders = {orders!r}: must be different positive numbers")
    # In units of the largest size, for the sake of the condition number.
    design = np.column_stack([np.ones(s.size), (s[:, np.newaxis] / s.max()) ** powers])
    coefficients, covariance, degrees, p_value = _least_squares("small", s, design, y, errors)
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
    sizes = checks.finite_array("n", n)
    if np.any(sizes <= 0):
        raise ValueError(f"n = {n!r}: must be positive")
    return extrapolate(1.0 / sizes, values, standard_errors, orders)


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

    def z(self, predicted: float) -> float:
        """Return (exponent − predicted) over the standard error."""
        return (self.exponent - predicted) / self.standard_error


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
        noise = 0.0 if deviations is None else least_z * deviations[i]
        if abs(e[i]) <= noise:
            raise ValueError(
                f"errors[{i}] = {e[i]:g} at size {s[i]:g}: must be more than {noise:g} away from 0"
                + ("" if deviations is None else f", {least_z:g} standard errors")
            )
    if np.any(e * e[0] < 0):
        raise ValueError(f"errors = {e.tolist()}: must all have one sign, or they follow no power of the size")
    centre = np.log(s).mean()
    design = np.column_stack([np.ones(s.size), np.log(s) - centre])
    logs = np.log(np.abs(e))
    relative = None if deviations is None else deviations / np.abs(e)
    coefficients, covariance, degrees, p_value = _least_squares("sizes", s, design, logs, relative)
    return PowerLaw(
        exponent=float(coefficients[1]),
        standard_error=float(np.sqrt(covariance[1, 1])),
        coefficient=float(np.sign(e[0]) * np.exp(coefficients[0] - coefficients[1] * centre)),
        degrees_of_freedom=degrees,
        p_value=p_value,
        errors_known=deviations is not None,
    )


def critical_z(claims: int, false_alarm: float = 0.01) -> float:
    """Return the |z| that some one of `claims` true claims exceeds with probability `false_alarm` at most.

    Bonferroni's bound, two-sided; the claims may depend on each other.

    Parameters
    ----------
    claims : int
        Number of claims that are tested together.
    false_alarm : float
        Between 0 and 1.

    Returns
    -------
    float
        The threshold.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> round(critical_z(1, 0.05), 2), round(critical_z(20), 2)
    (1.96, 3.48)
    """
    claims = checks.whole("claims", claims)
    false_alarm = checks.real("false_alarm", false_alarm, above=0, below=1)
    return float(stats.norm.isf(false_alarm / (2 * claims)))


def _series(value: ArrayLike) -> Floats:
    """Return a series with time on its first axis, at least ten samples, none of them constant."""
    array = checks.finite_array("series", value)
    if array.ndim == 0 or array.shape[0] < 10 or array.size == 0:
        raise ValueError(f"series of shape {array.shape}: must have at least 10 samples on its first axis")
    if np.any(array.max(axis=0) == array.min(axis=0)):
        raise ValueError(f"series of shape {array.shape}: must not be constant in time")
    return array


def _samples(name: str, value: ArrayLike) -> Floats:
    """Return independent samples, a vector of at least two."""
    array = checks.finite_array(name, value)
    if array.ndim != 1 or array.size < 2:
        raise ValueError(f"{name} of shape {array.shape}: must be a vector of at least two samples")
    return array


def _autocorrelation_time(x: Floats) -> float:
    """Return Geyer's initial monotone sequence estimate of 1 + 2Σρ_k for one series."""
    N = x.size
    transform = fft.rfft(x - x.mean(), fft.next_fast_len(2 * N, real=True))
    covariance = fft.irfft(np.abs(transform) ** 2)[: N - N % 2]
    pairs = covariance.reshape(-1, 2).sum(axis=1) / covariance[0]
    ends = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: ends[0] if ends.size else None])
    # For alternating series noise could make the sum negative; the same bound as in Stan.
    return max(float(2 * pairs.sum() - 1), 1 / np.log10(N))


def _ks_to_law(x: Floats, cdf: Callable[[Floats], ArrayLike]) -> float:
    """Return sup|F_N − F| for sorted x, where F may jump."""
    points, counts = np.unique(x, return_counts=True)
    empirical = np.cumsum(counts) / x.size
    distance = 0.0
    # At each sample, and just below it, where F_N has not jumped yet.
    for at, below in ((points, empirical), (np.nextafter(points, -np.inf), empirical - counts / x.size)):
        predicted = checks.finite_array("values of law", cdf(at))
        if predicted.shape != at.shape or np.any(predicted < -1e-9) or np.any(predicted > 1 + 1e-9):
            raise ValueError(
                f"values of law of shape {predicted.shape}, from {predicted.min():g} to {predicted.max():g}:"
                f" must be probabilities of shape {at.shape}"
            )
        distance = max(distance, float(np.abs(predicted - below).max()))
    return distance


def _distances_to_resamples(x: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Return ∫|F* − F_N| for bootstrap resamples of sorted x."""
    widths = np.diff(x)
    steps = np.arange(1, x.size)
    distances = np.empty(resamples)
    for b in range(resamples):
        counts = np.bincount(rng.integers(x.size, size=x.size), minlength=x.size)
        distances[b] = np.abs(np.cumsum(counts[:-1]) - steps) @ widths / x.size
    return distances


def _measured(
    size_name: str, sizes: ArrayLike, name: str, values: ArrayLike, standard_errors: ArrayLike | None
) -> tuple[Floats, Floats, Floats | None]:
    """Return sizes, values and standard errors as vectors of one length, checked."""
    s, y = checks.finite_array(size_name, sizes), checks.finite_array(name, values)
    errors = None if standard_errors is None else checks.finite_array("standard_errors", standard_errors)
    if s.ndim != 1 or s.size < 2 or np.any(s <= 0):
        raise ValueError(f"{size_name} = {sizes!r}: must be a vector of at least two positive sizes")
    for other, array in ((name, y), ("standard_errors", errors)):
        if array is not None and array.shape != s.shape:
            raise ValueError(f"{other} of shape {array.shape}: must have one number for each size, {s.shape}")
    if errors is not None and np.any(errors <= 0):
        raise ValueError(f"standard_errors = {errors.tolist()}: must be positive")
    return s, y, errors


def _least_squares(
    size_name: str, sizes: Floats, design: Floats, y: Floats, errors: Floats | None
) -> tuple[Floats, Floats, int, float | None]:
    """Return coefficients, their covariance, degrees of freedom and the p-value of the fit."""
    count = design.shape[1]
    needed = count if errors is not None else count + 1
    if y.size < needed or np.unique(sizes).size < count:
        raise ValueError(
            f"{size_name} = {sizes.tolist()}: must be at least {needed} sizes, {count} of them different,"
            f" to fit {count} numbers" + ("" if errors is not None else " and their errors")
        )
    weights = np.ones_like(y) if errors is None else 1 / errors
    q, r = np.linalg.qr(design * weights[:, np.newaxis])
    inverse = np.linalg.inv(r)
    coefficients = inverse @ (q.T @ (y * weights))
    covariance = inverse @ inverse.T
    residual = float((((y - design @ coefficients) * weights) ** 2).sum())
    degrees = y.size - count
    if errors is None:
        return coefficients, covariance * residual / degrees, degrees, None
    return coefficients, covariance, degrees, float(stats.chi2.sf(residual, degrees)) if degrees else None


def _interval(fit: Extrapolation | PowerLaw, centre: float, level: float) -> tuple[float, float]:
    """Return the confidence interval of a fitted number: Student's when the errors are estimated."""
    tail = 0.5 + checks.real("level", level, above=0, below=1) / 2
    quantile = stats.norm.ppf(tail) if fit.errors_known else stats.t.ppf(tail, fit.degrees_of_freedom)
    width = float(quantile) * fit.standard_error
    return centre - width, centre + width
