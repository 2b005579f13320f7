"""Distances between laws, with intervals; called through `estimate`.

Chapters: heavy_traffic, interchange; in others by `Ledger.law`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from . import checks
from .replications import Seed, seed_sequence

Floats = NDArray[np.float64]
_MOST_RESAMPLES = 10**5


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
    level = checks.confidence(level)
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
        Number of bootstrap resamples, from 100 to 100,000.

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
    level = checks.confidence(level)
    resamples = checks.whole("resamples", resamples, at_least=100, at_most=_MOST_RESAMPLES)
    rng = np.random.default_rng(seed_sequence(seed))
    own = _distances_to_resamples(x, resamples, rng)
    if callable(law):
        # Midpoints, several for each sample when there are few.
        per_sample = -(-4096 // x.size)
        u = (np.arange(x.size * per_sample) + 0.5) / (x.size * per_sample)
        quantiles = checks.finite_array("quantiles of law", law(u))
        if quantiles.shape not in ((), u.shape):
            raise ValueError(f"quantiles of law of shape {quantiles.shape}: must be of shape {u.shape}")
        value = np.abs(np.repeat(x, per_sample) - quantiles).mean()
    else:
        y = np.sort(_samples("law", law))
        value = stats.wasserstein_distance(x, y)
        own = own + _distances_to_resamples(y, resamples, rng)
    width = np.quantile(own, level)
    return Distance(float(value), max(0.0, float(value - width)), float(value + width))


def _samples(name: str, value: ArrayLike) -> Floats:
    """Return independent samples, a vector of at least two."""
    array = checks.finite_array(name, value)
    if array.ndim != 1 or array.size < 2:
        raise ValueError(f"{name} of shape {array.shape}: must be a vector of at least two samples")
    return array


def _ks_to_law(x: Floats, cdf: Callable[[Floats], ArrayLike]) -> float:
    """Return sup|F_N − F| for sorted x, where F may jump."""
    points, counts = np.unique(x, return_counts=True)
    empirical = np.cumsum(counts) / x.size
    distance = 0.0
    # At each sample, and just below it, where F_N has not jumped yet.
    for at, below in ((points, empirical), (np.nextafter(points, -np.inf), empirical - counts / x.size)):
        predicted = checks.finite_array("values of law", cdf(at))
        if predicted.shape not in ((), at.shape):
            raise ValueError(f"values of law of shape {predicted.shape}: must be of shape {at.shape}")
        if np.any(predicted < -1e-9) or np.any(predicted > 1 + 1e-9):
            raise ValueError(
                f"values of law from {predicted.min():g} to {predicted.max():g}: must be probabilities, from 0 to 1"
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
