"""A Sphinx extension: what the theme and docutils leave to be wished for by who listens to a page or uses no mouse."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

_HEADING = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>', re.DOTALL)


def list_headings(app: Sphinx, doctree: nodes.document) -> None:
    """Put headings that a page has in raw HTML, before its first section, into its table of contents."""
    raw = [node.astext() for node in doctree.findall(nodes.raw) if node.get("format") == "html"]
    found = [heading for text in raw for heading in _HEADING.findall(text)]
    if not found:
        return
    name = app.env.docname
    top = app.env.tocs[name][0]
    if len(top) == 1:
        top += nodes.bullet_list()
    for place, (anchor, title) in enumerate(found):
        text = re.sub(r"<[^>]+>", "", title)
        link = nodes.reference("", text, internal=True, refuri=name, anchorname=f"#{anchor}")
        top[1].insert(place, nodes.list_item("", addnodes.compact_paragraph("", "", link)))


def mended(text: str) -> str:
    """Return a page in which roles and names are what a screen reader expects.

    A list of references has items, which the deprecated role of docutils is not taken for; a button with a text is
    called what it shows.
    """
    text = text.replace('role="doc-biblioentry"', 'role="listitem"')
    return re.sub(r'(<button class="[^"]*search-button-field[^"]*"[^>]*?) aria-label="[^"]*"', r"\1", text)


def mend(app: Sphinx, exception: Exception | None) -> None:
    """Mend every page that was made."""
    if exception is None and app.builder.format == "html":
        for path in Path(app.outdir).rglob("*.html"):
            if "_static" not in path.parts:
                text = path.read_text("utf-8")
                if (better := mended(text)) != text:
                    path.write_text(better, "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the above."""
    app.connect("doctree-read", list_headings)
    app.connect("build-finished", mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
