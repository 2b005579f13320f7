"""Statistics of simulations: errors of correlated series, distances between laws, extrapolation.

Each function raises instead of returning a number that could not be trusted: for a series that is
too short, or an error that is not told from noise. Chapters: most.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft, stats

from . import checks
from .distances import Distance, ks_distance, wasserstein_distance
from .fits import Extrapolation, PowerLaw, convergence_order, extrapolate, extrapolate_n
from .replications import Estimate, mean_of, mean_with_controls, replicate, together

__all__ = [
    "Distance",
    "Estimate",
    "Extrapolation",
    "PowerLaw",
    "batch_means",
    "convergence_order",
    "effective_sample_size",
    "extrapolate",
    "extrapolate_n",
    "integrated_autocorrelation_time",
    "ks_distance",
    "mean_of",
    "mean_with_controls",
    "replicate",
    "together",
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
    return _autocorrelation_times(array, times_needed, "times_needed", times_needed)


def _autocorrelation_times(array: Floats, times_needed: float, name: str, value: float) -> Any:
    """Return τ of a checked series; `name` = `value` is the argument by which so many times τ are needed."""
    N = array.shape[0]
    columns = array.reshape(N, -1)
    tau = np.array([_autocorrelation_time(column) for column in columns.T])
    worst = float(tau.max())
    if times_needed * worst > N:
        raise ValueError(
            f"series of length {N} with {name} = {value:g}: must be at least {times_needed:g} integrated"
            f" autocorrelation times, about {times_needed * worst:.4g}"
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
    batches = checks.whole("batches", batches, at_least=5, at_most=checks.LARGEST_COUNT)
    if 2 * batches > array.shape[0]:
        raise ValueError(f"batches = {batches}: a series of length {array.shape[0]} does not have two samples for each")
    _autocorrelation_times(array, max(50.0, 5.0 * batches), "batches", batches)
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


def _series(value: ArrayLike) -> Floats:
    """Return a series with time on its first axis, at least ten samples, none of them constant."""
    array = checks.finite_array("series", value)
    if array.ndim == 0 or array.shape[0] < 10 or array.size == 0:
        raise ValueError(f"series of shape {array.shape}: must have at least 10 samples on its first axis")
    if np.any(array.max(axis=0) == array.min(axis=0)):
        raise ValueError(f"series of shape {array.shape}: must not be constant in time")
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
