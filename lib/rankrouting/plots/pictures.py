"""Pictures of whole results: ranked paths, also moving, the trade, the profiles of three queues.

Public through `plots`. Chapters: intro, model, heavy_traffic, overloaded, policies.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from .. import analytic
from ..model import System
from ..replications import Estimate
from .marks import measured, theory
from .page import COLOURS, POLICY_COLOURS, STYLE

_BLUES = ["#084081", "#0868ac", "#2b8cbe", "#4eb3d3", "#7bccc4", "#a8ddb5"]


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
    >>> from rankrouting.plots import figure
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
    >>> from rankrouting.plots import figure
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
    with mpl.rc_context(STYLE):
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
    >>> from rankrouting.plots import figure
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


def profile_triangle(ax: Axes, upsilon: float, c: float) -> None:
    """Draw the rank profiles of three queues as a triangle, with the stable ones and their mean total over that of JSQ.

    The corner at the top sends every ranked job to the shortest queue. A profile p is at (p_3 − p_2, √3 p_1).

    Parameters
    ----------
    ax : Axes
        Where to draw.
    upsilon, c : float
        Slack and rate of the ranked jobs, both above 0, in √n jobs per unit time.

    Examples
    --------
    >>> from rankrouting.plots import figure
    >>> _, ax = figure()
    >>> profile_triangle(ax, upsilon=6.0, c=24.0)
    >>> [text.get_text() for text in ax.texts][-3:]
    ['shortest', 'middle', 'longest']
    """
    side = np.linspace(0, 1, 321)
    first, of_rest = np.meshgrid(side, side)
    p = np.stack([first, (1 - first) * (1 - of_rest), (1 - first) * of_rest], axis=-1)
    factor = np.asarray(analytic.profile_mean_total(p, upsilon, c)) * upsilon / 3
    factor[~np.isfinite(factor)] = np.nan
    bounds = [1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0]
    ax.contourf(*in_triangle(p), factor, levels=bounds, colors=_BLUES, extend="max")
    lines = ax.contour(*in_triangle(p), factor, levels=bounds[1:], colors="white", linewidths=0.7)
    ax.clabel(lines, fmt="%g", fontsize=8)
    corners = analytic.stability_polygon(upsilon, c)
    ax.plot(*in_triangle(np.vstack([corners, corners[:1]])), color="black", lw=1.6)
    ax.plot(*in_triangle(np.eye(3)[[0, 1, 2, 0]]), color="#999999", lw=0.8)
    for name, corner, shift in zip(("shortest", "middle", "longest"), np.eye(3), (4, -13, -13), strict=True):
        ax.annotate(name, in_triangle(corner), xytext=(0, shift), textcoords="offset points", ha="center", fontsize=10)
    ax.set(xlabel="$p_3 - p_2$", ylabel=r"$\sqrt{3}\,p_1$", xlim=(-1.15, 1.15), ylim=(-0.2, 1.9))
    ax.grid(False)


def in_triangle(p: ArrayLike) -> tuple[Any, Any]:
    """Return where `profile_triangle` draws the profiles p, of shape (…, 3): two arrays of shape (…).

    Examples
    --------
    >>> x, y = in_triangle([1, 0, 0])
    >>> float(x), round(float(y), 6)
    (0.0, 1.732051)
    """
    profiles = np.asarray(p, dtype=float)
    return profiles[..., 2] - profiles[..., 1], np.sqrt(3) * profiles[..., 0]
