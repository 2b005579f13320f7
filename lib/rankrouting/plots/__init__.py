"""Figures: one style, and the few kinds of plot that the chapters share.

Theory is a line, a measurement is a point with its interval. Every function that draws takes the
`ax` to draw on; `figure` makes one in the book's style and `show` puts it on the page with its
caption and alternative text. All chapters.
"""

from .marks import log_ticks, measured, qq, survival, theory
from .page import COLOURS, POLICY_COLOURS, THEORY, Shown, figure, show
from .pictures import in_triangle, profile_triangle, ranked_animation, ranked_paths, trade

__all__ = [
    "COLOURS",
    "POLICY_COLOURS",
    "THEORY",
    "Shown",
    "figure",
    "in_triangle",
    "log_ticks",
    "measured",
    "profile_triangle",
    "qq",
    "ranked_animation",
    "ranked_paths",
    "show",
    "survival",
    "theory",
    "trade",
]
