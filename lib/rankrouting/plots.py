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
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import ArrayLike, NDArray
from PIL import Image
from scipy import stats

from . import analytic
from .companion.results import Download, Results, mathematics
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
    """A figure on a page: an HTML figure with picture, alternative text, caption and links to its files."""

    def __init__(
        self, png: bytes, alt: str, caption: str, files: Sequence[Download] = (), moving: bytes | None = None
    ) -> None:
        self.png, self.alt, self.caption = png, alt, caption
        self.files, self.moving = tuple(files), moving

    def _repr_html_(self) -> str:
        alt = html.escape(self.alt)
        picture = f'<img src="{_address(self.png, "png")}" alt="{alt}">'
        # Closed, so that nothing moves unasked; to close it again is to stop it.
        moving = (
            "<details><summary>Watch it move</summary>"
            f'<img src="{_address(self.moving, "gif")}" alt="Animation: {alt}"></details>'
            if self.moving is not None
            else ""
        )
        kinds = ((f"{one.path.suffix[1:].upper()}", html.escape(one.href)) for one in self.files)
        links = ", ".join(f'<a href="{href}" download>{kind}</a>' for kind, href in kinds)
        offered = f' <span class="rr-files">This figure as {links}.</span>' if links else ""
        return (
            f'<figure class="rr-figure">{picture}{moving}'
            f"<figcaption>{mathematics(self.caption)}{offered}</figcaption></figure>"
        )

    def __repr__(self) -> str:
        return f"{self.alt} {self.caption}"


def _address(picture: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode('ascii')}"


def show(
    drawing: Figure,
    *,
    caption: str,
    alt: str,
    results: Results | None = None,
    name: str = "figure",
    moving: bytes | None = None,
) -> Shown:
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
        Where to keep the picture too, as ``<name>.png`` and ``<name>.svg``, to be downloaded: by links
        below the figure and at the end of the chapter.
    name : str
        Name of those files; give the CSV with the numbers the same one.
    moving : bytes, optional
        An animation of the same, as `ranked_animation` returns it: folded away below the picture, and
        ``<name>.gif`` in the results.

    Raises
    ------
    ValueError
        If the alternative text or the caption is empty, or an axis has no name.

    Examples
    --------
    >>> drawing, ax = figure()
    >>> _ = ax.set(xlabel="time", ylabel="length")
    >>> show(drawing, caption="Nothing yet, $K = 2$.", alt="Empty axes.")
    Empty axes. Nothing yet, $K = 2$.
    """
    if not alt.strip() or not caption.strip():
        raise ValueError("alt and caption must not be empty: a figure is understood without its text")
    for ax in drawing.axes:
        if ax.axison and ax.get_label() != "<colorbar>" and not (ax.get_xlabel() and ax.get_ylabel()):
            raise ValueError(f"axis {ax.get_title() or drawing.axes.index(ax) + 1!r}: both axes must be named")
    pictures = {".png": _saved(drawing, "png", {"Software": None})}
    files = []
    if results is not None:
        pictures[".svg"] = _saved(drawing, "svg", {"Date": None})
        if moving is not None:
            pictures[".gif"] = moving
        for ending, picture in pictures.items():
            with results.writing(f"{name}{ending}") as beside:
                beside.write_bytes(picture)
            files.append(results.offer(f"{name}{ending}"))
    return Shown(pictures[".png"], alt, caption, files, moving)


def _saved(drawing: Figure, kind: str, metadata: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    with mpl.rc_context(_STYLE):
        drawing.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()


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


def ranked_paths(ax: Axes, times: ArrayLike, lengths: ArrayLike, **style: Any) -> None:
    """Draw one path of all queues sorted: light at the bottom, dark at the top.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    times : array of shape (T,)
        When the path was read.
    lengths : array of shape (T, K)
        Queue lengths, in any order.
    **style
        Of the lines.

    Examples
    --------
    >>> _, ax = figure()
    >>> ranked_paths(ax, [0, 1], [[0, 0], [3, 2]])
    >>> [float(line.get_ydata()[-1]) for line in ax.lines]
    [2.0, 3.0]
    """
    ascending = np.sort(np.asarray(lengths, dtype=np.float64), axis=-1)
    K = ascending.shape[-1]
    shades = mpl.colormaps["viridis_r"](np.linspace(0.15, 0.95, K))
    for k in range(K):
        ax.plot(np.asarray(times), ascending[:, k], **{"color": shades[k], "linewidth": 1.0, **style})


def ranked_animation(
    ax: Axes, times: ArrayLike, lengths: ArrayLike, systems: Sequence[System], starts: ArrayLike, *, frames: int = 72
) -> bytes:
    """Draw one path of all queues while its system changes, and return a GIF in which the path grows.

    Behind the path, while a system is in force, a band from the stationary mean of its shortest queue to
    that of its longest: the height of the band is the mean spread.

    Parameters
    ----------
    ax : Axes
        Where to draw, the only axes of its figure. In the end the whole path is there.
    times : array of shape (T,)
        When the path was read, increasing.
    lengths : array of shape (T, K)
        Queue lengths, in limit units, in any order.
    systems : sequence of System
        Those in force, one after the other, with stationary laws.
    starts : array of as many floats
        When each begins, increasing; the first at ``times[0]`` or before.
    frames : int
        Number of pictures, 15 in a second; the last stays for three seconds.

    Returns
    -------
    bytes
        The animation, for `show`.

    Raises
    ------
    ValueError
        If shapes do not fit, times do not increase, or there are fewer than two frames.

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> systems = [System(10_000, 2, 1.0, mjsq(c)) for c in (0.0, 4.0)]
    >>> _, ax = figure()
    >>> gif = ranked_animation(ax, [0, 1, 2], [[1, 1], [3, 1], [2, 1]], systems, [0, 1], frames=3)
    >>> gif[:6]
    b'GIF89a'
    """
    times, lengths, begun = (np.asarray(one, dtype=np.float64) for one in (times, lengths, starts))
    if lengths.shape != (times.size, systems[0].K) or np.any(np.diff(times) <= 0):
        raise ValueError(f"lengths of shape {lengths.shape}: must be (T, K), with T = {times.size} times that increase")
    if begun.shape != (len(systems),) or np.any(np.diff(begun) <= 0) or begun[0] > times[0]:
        raise ValueError(f"starts = {begun}: must increase from times[0] or before, one for each of the systems")
    if frames < 2:
        raise ValueError(f"frames = {frames}: must be at least 2")
    ranked_paths(ax, times, lengths)
    ax.set(xlim=(times[0], times[-1]), ylim=(0, 1.12 * lengths.max()))
    bands = []
    for system, left, right in zip(systems, begun, [*begun[1:], times[-1]], strict=True):
        means = analytic.mean_ranked(system)[[0, -1]]
        band = ax.fill_between([left, right], *means, color=COLOURS[5], alpha=0.3, linewidth=0, zorder=0)
        label = ax.text((left + right) / 2, 1.1 * lengths.max(), f"$c = {system.policy.c:g}$", ha="center", va="top")
        bands.append((band, label))
    whole = _growing(ax, bands, times, begun, frames)
    # One palette, without dithering: then only what has changed takes place in the file.
    palette = whole[-1].quantize(128, method=Image.Quantize.MAXCOVERAGE)
    pictures = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in whole]
    gif = io.BytesIO()
    pictures[0].save(
        gif, "GIF", save_all=True, append_images=pictures[1:], duration=[67] * (len(pictures) - 1) + [3000], loop=0
    )
    return gif.getvalue()


def _growing(
    ax: Axes, bands: Sequence[tuple[Any, Any]], times: NDArray[Any], begun: NDArray[Any], frames: int
) -> list[Image.Image]:
    """Return pictures of the lines of `ax` up to later and later times, with the bands that have begun by then."""
    drawing = ax.get_figure(root=True)
    assert isinstance(drawing, Figure)
    whole = [np.asarray(line.get_ydata()) for line in ax.lines]
    title = ax.set_title(" ")
    moving = [*(artist for band in bands for artist in band), *ax.lines]
    pictures = []
    shown_dpi = drawing.dpi
    with mpl.rc_context(_STYLE):
        drawing.set_dpi(90)
        canvas = FigureCanvasAgg(drawing)
        for artist in moving:
            artist.set_visible(False)
        canvas.draw()
        still = canvas.copy_from_bbox(drawing.bbox)  # axes are drawn once: they take most of the time
        for end in np.unique(np.linspace(1, times.size, frames).astype(int)):
            canvas.restore_region(still)
            now = int(np.searchsorted(begun, times[end - 1], side="right"))
            for artist in moving:
                artist.set_visible(True)
            for line, y in zip(ax.lines, whole, strict=True):
                line.set_data(times[:end], y[:end])
            title.set_text(bands[now - 1][1].get_text())
            for artist in [*(artist for band in bands[:now] for artist in band), *ax.lines, title]:
                ax.draw_artist(artist)
            pictures.append(Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB"))
        title.set_text("")
        drawing.set_dpi(shown_dpi)
    return pictures


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

    Examples
    --------
    >>> from rankrouting import mjsq, random_routing
    >>> systems = [System(10_000, 2, 1.0, policy) for policy in (random_routing(), mjsq(1.0))]
    >>> _, ax = figure()
    >>> trade(ax, systems, [Estimate(4.0, 0.1, 30), Estimate(3.0, 0.1, 30)])
    >>> [text.get_text() for text in ax.texts]
    ['random', '$c = 1$']
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
