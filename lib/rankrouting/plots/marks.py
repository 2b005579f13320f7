"""Theory as a line, a measurement as a point with its interval, and axes. Public through `plots`; all chapters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ..replications import Estimate
from .page import THEORY


def theory(ax: Axes, x: ArrayLike, y: ArrayLike, label: str | None = None, **style: Any) -> None:
    """Draw a formula as a line.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    x, y : arrays of shape (N,)
        Points of the curve.
    label : str, optional
        For the legend.
    **style
        In place of what `THEORY` says.

    Examples
    --------
    >>> from rankrouting.plots import figure
    >>> _, ax = figure()
    >>> theory(ax, [0, 1], [2, 3], "formula", linestyle="--")
    >>> [line.get_label() for line in ax.lines]
    ['formula']
    """
    ax.plot(np.asarray(x), np.asarray(y), label=label, **{**THEORY, **style})


def measured(
    ax: Axes,
    x: ArrayLike,
    estimates: Sequence[Estimate] | Estimate,
    label: str | None = None,
    *,
    level: float = 0.95,
    **style: Any,
) -> None:
    """Draw estimates as points with their confidence intervals.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    x : array of shape (N,)
        Abscissae.
    estimates : N scalar estimates, or one estimate of shape (N,)
        What was measured.
    label : str, optional
        For the legend.
    level : float
        Of the intervals.
    **style
        Passed on to `Axes.errorbar`.

    Examples
    --------
    >>> from rankrouting.plots import figure
    >>> _, ax = figure()
    >>> measured(ax, [1.0], [Estimate(2.0, 0.5, 30)], "simulated", level=0.95)
    >>> len(ax.containers)
    1
    """
    listed = [estimates] if isinstance(estimates, Estimate) else list(estimates)
    values = np.concatenate([np.ravel(e.value) for e in listed])
    lows = np.concatenate([np.ravel(e.interval(level)[0]) for e in listed])
    highs = np.concatenate([np.ravel(e.interval(level)[1]) for e in listed])
    options = {"fmt": "o", "capsize": 3, "zorder": 3, **style}
    ax.errorbar(np.ravel(np.asarray(x)), values, yerr=[values - lows, highs - values], label=label, **options)


def qq(
    ax: Axes,
    samples: ArrayLike,
    quantile: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    label: str | None = None,
    **style: Any,
) -> None:
    """Draw sample quantiles against those of a law, with the 95 % band of each order statistic.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    samples : array
        Independent samples, in any shape.
    quantile : callable
        From probabilities to the quantiles of the law.
    label : str, optional
        For the legend.
    **style
        Of the points.

    Examples
    --------
    >>> from rankrouting.plots import figure
    >>> _, ax = figure()
    >>> qq(ax, np.random.default_rng(1).exponential(size=100), stats.expon.ppf)
    >>> [line.get_xdata().size for line in ax.lines]
    [2, 100]
    """
    ordered = np.sort(np.ravel(np.asarray(samples, dtype=np.float64)))
    count = ordered.size
    index = np.arange(1, count + 1)
    expected = np.asarray(quantile((index - 0.5) / count))
    low, high = (np.asarray(quantile(stats.beta.ppf(q, index, count - index + 1))) for q in (0.025, 0.975))
    ax.fill_between(expected, low, high, color="#cccccc", alpha=0.6, linewidth=0, zorder=0)
    ax.plot(expected[[0, -1]], expected[[0, -1]], **THEORY)
    ax.plot(expected, ordered, **{"marker": ".", "linestyle": "none", "markersize": 3, "label": label, **style})


def survival(ax: Axes, samples: ArrayLike, label: str | None = None, **style: Any) -> None:
    """Draw the share of the samples above each value, on a logarithmic axis.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    samples : array
        In any shape.
    label : str, optional
        For the legend.
    **style
        Passed on to `Axes.step`.

    Examples
    --------
    >>> from rankrouting.plots import figure
    >>> _, ax = figure()
    >>> survival(ax, [3.0, 1.0])
    >>> ax.lines[0].get_ydata()
    array([0.75, 0.25])
    """
    ordered = np.sort(np.ravel(np.asarray(samples, dtype=np.float64)))
    above = 1.0 - (np.arange(ordered.size) + 0.5) / ordered.size
    ax.step(ordered, above, where="post", label=label, **style)
    ax.set_yscale("log")


def log_ticks(ax: Axes, axes: str = "xy") -> None:
    """Make axes logarithmic with ticks at 1, 2, 5, 10, 20, … in plain numbers: for ranges of a decade or two.

    Parameters
    ----------
    ax : Axes
        To be changed.
    axes : {"xy", "x", "y"}
        Which of the two.

    Examples
    --------
    >>> from rankrouting.plots import figure
    >>> _, ax = figure()
    >>> log_ticks(ax, "y")
    >>> ax.get_xscale(), ax.get_yscale()
    ('linear', 'log')
    """
    for name in axes:
        getattr(ax, f"set_{name}scale")("log")
        axis = getattr(ax, f"{name}axis")
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())
