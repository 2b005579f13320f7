"""Figures: one style, and the few kinds of plot that the chapters share.

Theory is a line, a measurement is a point with its interval. Every function that draws takes the
`ax` to draw on; `figure` makes one in the book's style and `show` puts it on the page with its
caption and alternative text. All chapters.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from . import analytic
from .companion.results import Results, mathematics
from .model import System
from .replications import Estimate

# Okabe and Ito's palette: told apart with any kind of colour vision, and in grey by lightness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
POLICY_COLOURS = {"MJSQ": COLOURS[0], "random": COLOURS[1], "JSQ": COLOURS[6]}
THEORY: dict[str, Any] = {"color": "#444444", "linewidth": 1.6, "zorder": 1}

_STYLE: Any = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.dpi": 110,
    "figure.facecolor": "white",
    "font.size": 12,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "savefig.dpi": 160,
    "svg.fonttype": "path",
    "svg.hashsalt": "rankrouting",
}


def figure(columns: int = 1, rows: int = 1, *, height: float = 3.6, **options: Any) -> tuple[Figure, Any]:
    """Return a new figure in the book's style and its axes, as `plt.subplots` gives them.

    Parameters
    ----------
    columns, rows : int
        Layout. A page is 7.6 inches wide, whatever the number of columns.
    height : float
        Inches for each row.
    **options
        Passed on to `Figure.subplots`, for instance ``sharey=True``.

    Examples
    --------
    >>> drawing, ax = figure()
    >>> _ = ax.set(xlabel="x", ylabel="y")
    """
    with mpl.rc_context(_STYLE):
        drawing = Figure(figsize=(7.6, height * rows), layout="constrained")
        axes = drawing.subplots(rows, columns, **options)
    return drawing, axes


class Shown:
    """A figure on a page: an HTML figure with picture, alternative text and caption."""

    def __init__(self, png: bytes, alt: str, caption: str) -> None:
        self.png, self.alt, self.caption = png, alt, caption

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.png).decode("ascii")
        return (
            f'<figure class="rr-figure"><img src="data:image/png;base64,{data}" alt="{html.escape(self.alt)}">'
            f"<figcaption>{mathematics(self.caption)}</figcaption></figure>"
        )

    def __repr__(self) -> str:
        return f"{self.alt} {self.caption}"


def show(drawing: Figure, *, caption: str, alt: str, results: Results | None = None, name: str = "figure") -> Shown:
    """Return what puts a figure on the page, with the caption below and the text for who cannot see it.

    Parameters
    ----------
    drawing : Figure
        Made by `figure`.
    caption : str
        What is shown, with parameters, replications and what the bars are; ``$…$`` is mathematics.
    alt : str
        What a reader who cannot see the picture should know of it.
    results : Results, optional
        Where to keep the picture too, as ``<name>.png`` and ``<name>.svg``, to be downloaded.
    name : str
        Name of those files; give the CSV with the numbers the same one.

    Raises
    ------
    ValueError
        If the alternative text or the caption is empty, or an axis has no name.
    """
    if not alt.strip() or not caption.strip():
        raise ValueError("alt and caption must not be empty: a figure is understood without its text")
    for ax in drawing.axes:
        if ax.axison and ax.get_label() != "<colorbar>" and not (ax.get_xlabel() and ax.get_ylabel()):
            raise ValueError(f"axis {ax.get_title() or drawing.axes.index(ax) + 1!r}: both axes must be named")
    with mpl.rc_context(_STYLE):
        buffer = io.BytesIO()
        drawing.savefig(buffer, format="png", metadata={"Software": None})
        if results is not None:
            vector = io.BytesIO()
            drawing.savefig(vector, format="svg", metadata={"Date": None})
            for ending, picture in ((".png", buffer), (".svg", vector)):
                with results.writing(f"{name}{ending}") as beside:
                    beside.write_bytes(picture.getvalue())
                results.offer(f"{name}{ending}")
    return Shown(buffer.getvalue(), alt, caption)


def theory(ax: Axes, x: ArrayLike, y: ArrayLike, label: str | None = None, **style: Any) -> None:
    """Draw a formula as a line."""
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
    level : float
        Of the intervals.
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
    """Draw sample quantiles against those of a law, with the 95 % band of each order statistic."""
    ordered = np.sort(np.ravel(np.asarray(samples, dtype=np.float64)))
    count = ordered.size
    index = np.arange(1, count + 1)
    expected = np.asarray(quantile((index - 0.5) / count))
    low, high = (np.asarray(quantile(stats.beta.ppf(q, index, count - index + 1))) for q in (0.025, 0.975))
    ax.fill_between(expected, low, high, color="#cccccc", alpha=0.6, linewidth=0, zorder=0)
    ax.plot(expected[[0, -1]], expected[[0, -1]], **THEORY)
    ax.plot(expected, ordered, **{"marker": ".", "linestyle": "none", "markersize": 3, "label": label, **style})


def survival(ax: Axes, samples: ArrayLike, label: str | None = None, **style: Any) -> None:
    """Draw the share of the samples above each value, on a logarithmic axis."""
    ordered = np.sort(np.ravel(np.asarray(samples, dtype=np.float64)))
    above = 1.0 - (np.arange(ordered.size) + 0.5) / ordered.size
    ax.step(ordered, above, where="post", label=label, **style)
    ax.set_yscale("log")


def log_ticks(ax: Axes, axes: str = "xy") -> None:
    """Make axes logarithmic with ticks at 1, 2, 5, 10, 20, … in plain numbers: for ranges of a decade or two."""
    for name in axes:
        getattr(ax, f"set_{name}scale")("log")
        axis = getattr(ax, f"{name}axis")
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())


def ranked_paths(ax: Axes, times: ArrayLike, lengths: ArrayLike, **style: Any) -> None:
    """Draw one path of all queues, shape (times, K), sorted: light at the bottom, dark at the top."""
    ascending = np.sort(np.asarray(lengths, dtype=np.float64), axis=-1)
    K = ascending.shape[-1]
    shades = mpl.colormaps["viridis_r"](np.linspace(0.15, 0.95, K))
    for k in range(K):
        ax.plot(np.asarray(times), ascending[:, k], **{"color": shades[k], "linewidth": 1.0, **style})


def trade(ax: Axes, systems: Sequence[System], totals: Sequence[Estimate]) -> None:
    """Draw mean totals against the queue lengths asked for per job, and what the limit says of all MJSQ.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    systems : sequence of System
        With one n, K and υ and different policies, one of which asks for something.
    totals : sequence of Estimate
        The stationary mean total of each, in limit units.
    """
    first = systems[0]
    asked = [analytic.communication_rate(one) / one.arrival_rate for one in systems]
    # From random routing on the left, which asks for nothing, to a ranked stream of n jobs per unit time.
    unit = first.K * first.sqrt_n / first.arrival_rate
    least = min(a for a in asked if a > 0)
    c = np.concatenate([[0.0], np.geomspace(least / (100 * unit), first.sqrt_n, 300)])
    jsq_total = first.K / first.upsilon
    theory(ax, unit * c, jsq_total * analytic.workload_factor(first.K, first.upsilon, c), "MJSQ, every $c$ (limit)")
    theory(ax, [0, 1.5 * first.K], [jsq_total] * 2, "JSQ (limit)", linestyle=":")
    for system, x, total in zip(systems, asked, totals, strict=True):
        name = system.policy.name
        measured(ax, [x], [total], color=POLICY_COLOURS.get(name, COLOURS[2]), markersize=7)
        label = f"$c = {system.policy.c:g}$" if name == "MJSQ" else name
        ax.annotate(label, (x, total.value), xytext=(0 if name == "JSQ" else 7, 8), textcoords="offset points")
    # Linear near 0, logarithmic beyond.
    ax.set_xscale("asinh", linear_width=least / 2)
    powers = 10.0 ** np.arange(np.ceil(np.log10(least / 4)), np.log10(first.K) + 0.1)
    ax.minorticks_off()
    ax.set_xticks([0.0, *powers], ["0", *(f"{power:g}" for power in powers)])
    ax.set(xlim=(-least / 20, 2 * first.K), ylim=(0, 1.15 * jsq_total * first.K))
    ax.set(xlabel="queue lengths asked for per job", ylabel="mean jobs in all queues (limit units)")
    ax.legend(loc="upper right", frameon=False)
