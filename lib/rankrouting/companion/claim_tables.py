"""Claims as data frames and as tables for a page. Chapters: all, through `claims`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

import pandas as pd

from . import chapters
from .results import Table, mathematics

if TYPE_CHECKING:
    from .claims import Claim


COLUMNS = ["claim and verdict", "predicted", "measured ± s.e.", "allowance", "z", "resolution"]
LEGEND = (
    "Measured: of laws the largest distance of the distribution functions, of tests the p-value. z: the difference over"
    " the standard error, before the allowance, of the component that is nearest to failing. < and >: one-sided. –:"
    " there is none."
)


def claims_frame(claims: Iterable[Claim]) -> pd.DataFrame:
    """Return claims as a data frame, one row each."""
    return pd.DataFrame([asdict(one) for one in claims])


def claims_table(claims: Iterable[Claim], *, caption: str, chapter_links: bool = False) -> Table:
    """Return claims as a table for the page; names link to theorems, and to chapters if asked."""
    labels = chapters.theorem_labels()
    return Table(COLUMNS, [_row(one, labels, chapter_links) for one in claims], f"{caption} {LEGEND}")


def _row(claim: Claim, labels: dict[str, str], chapter_links: bool) -> list[str]:
    where = f'<a href="{claim.chapter}.html">{claim.chapter}</a>: ' if chapter_links else ""
    theorem = ""
    if claim.theorem:
        home = labels.get(claim.theorem)
        link = f'<a href="{home}.html#{claim.theorem}">{claim.theorem}</a>' if home else claim.theorem
        theorem = f" ({link})"
    colour = "rr-holds" if claim.holds else "rr-fails"
    reason = f'<span class="rr-reason">Allowance: {mathematics(claim.reason)}.</span>' if claim.allowance else ""
    of = f" (worst of {claim.components})" if claim.components > 1 else ""
    error = f" ± {claim.standard_error:.2g}" if claim.standard_error > 0 and claim.kind != "law" else ""
    name = {"law": "distance ", "test": "p = "}.get(claim.kind, "")
    formula = f"<br>{mathematics(f'${claim.formula}$')}" if claim.formula else ""
    words = f"{where}{mathematics(claim.statement)}{theorem}{formula}{reason}"
    return [
        f'<code id="{claim.id}">{claim.id}</code> <strong class="{colour}">{claim.verdict}</strong><br>{words}',
        _number(claim.predicted, {"above": "&gt; ", "below": "&lt; "}.get(claim.kind, "")),
        f"{name}{_number(claim.measured)}{error}{of}".replace("-", "−"),
        _number(claim.allowance or math.nan, form=".2g"),
        _number(claim.z, form=".2f"),
        "–" if not math.isfinite(claim.resolution) else f"{_percent(100 * claim.resolution)} %",
    ]


def _number(value: float, sign: str = "", form: str = ".5g") -> str:
    return "–" if math.isnan(value) else f"{sign}{value:{form}}".replace("-", "−")


def _percent(value: float) -> str:
    return (f"{value:.0f}" if value >= 10 else f"{value:.2g}").replace("-", "−")
