"""The style of the book's figures, and how one is put on its page. Public through `plots`; all chapters."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.figure import Figure

from ..companion.results import Download, Results, mathematics

# Okabe and Ito's palette: told apart with any kind of colour vision, and in grey by lightness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
POLICY_COLOURS = {"MJSQ": COLOURS[0], "random": COLOURS[1], "JSQ": COLOURS[6]}
THEORY: dict[str, Any] = {"color": "#444444", "linewidth": 1.6, "zorder": 1}

STYLE: Any = {
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
    with mpl.rc_context(STYLE):
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
        drawing.set_layout_engine("none")  # it has been laid out, which takes longer than to draw it
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
    with mpl.rc_context(STYLE):
        drawing.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()
