"""A Sphinx extension: a formula is not parted from the punctuation around it.

A browser may begin a line after any formula, and so with the comma that follows it.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

_BEFORE = re.compile(r"[(\[“‘]+$")
_AFTER = re.compile(r"^[.,;:!?)\]”’]+")


class KeepPunctuation(SphinxPostTransform):
    """Put each formula within a line, and the punctuation that touches it, into a span that does not break."""

    default_priority = 700
    formats = ("html",)

    def run(self, **_: Any) -> None:
        """Change the document."""
        for formula in list(self.document.findall(nodes.math)):
            before, after = (_touching(formula, *side) for side in ((-1, _BEFORE), (1, _AFTER)))
            if before or after:
                together = nodes.inline("", "", classes=["rr-together"])
                formula.replace_self(together)
                together += [nodes.Text(before), formula, nodes.Text(after)]


def _touching(formula: nodes.math, step: int, pattern: re.Pattern[str]) -> str:
    """Take the punctuation off the text beside a formula, and return it."""
    place = formula.parent.index(formula) + step
    beside = formula.parent[place] if 0 <= place < len(formula.parent) else None
    found = pattern.search(beside) if isinstance(beside, nodes.Text) else None
    if found is None:
        return ""
    formula.parent[place] = nodes.Text(beside[: found.start()] + beside[found.end() :])
    return found.group()


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the above."""
    app.add_post_transform(KeepPunctuation)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
