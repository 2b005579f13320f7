"""A Sphinx extension for this book: reading order, downloads, and a cache that cannot go stale.

A plain ``jupyter-book build .`` executes notebooks while Sphinx reads them. Chapters that collect the
numbers of others must then be read last, and what was executed with another version of the library
must not be published.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from jupyter_cache import get_cache
from rankrouting.companion import chapters, pages, repository
from rankrouting.companion.state import environment_hash
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def use_this_book(app: Sphinx) -> None:
    """Let the kernels check parameters against this book and leave their results in it."""
    os.environ.setdefault(repository.ROOT_VARIABLE, str(app.srcdir))
    os.environ.setdefault(repository.RESULTS_VARIABLE, str(Path(app.srcdir) / "_build" / "results"))


def read_again(app: Sphinx, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Return what must be executed again: all after a change of the library, else who collects."""
    if app.config.nb_execution_mode != "cache":
        return []
    cache = get_cache(env.mystnb_config.execution_cache_path)
    current = environment_hash()
    stamp = Path(env.mystnb_config.execution_cache_path) / "library"
    if not stamp.is_file() or stamp.read_text("ascii") != current:
        cache.clear_cache()
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(current, "ascii")
        return sorted(env.found_docs)
    if not added | changed:
        return []
    collecting = [one.path for one in chapters.all_chapters(Path(app.srcdir)) if one.collects]
    for record in cache.list_cache_records():
        if Path(record.uri) in collecting:
            cache.remove_cache(record.pk)
    return [str(path.relative_to(app.srcdir).with_suffix("")) for path in collecting]


def in_order(app: Sphinx, env: Any, docnames: list[str]) -> None:
    """Sort by the table of contents, chapters that collect the numbers of others last."""
    order = chapters.documents(Path(app.srcdir))
    collecting = {one.name for one in chapters.all_chapters(Path(app.srcdir)) if one.collects}
    place = {name: (Path(name).name in collecting, i) for i, name in enumerate(order)}
    docnames.sort(key=lambda name: place.get(name, (True, len(order))))


def copy_results(app: Sphinx, exception: Exception | None) -> None:
    """Put the files that pages offer for download beside the pages."""
    if exception is None and app.builder.format == "html":
        results = repository.results_folder()
        if results.is_dir():
            shutil.copytree(
                results, Path(app.outdir) / "results", ignore=shutil.ignore_patterns(".*"), dirs_exist_ok=True
            )


class Downloads(SphinxDirective):
    """What this build offers, a link and a size for each; a plain build offers nothing."""

    def run(self) -> list[nodes.Node]:
        """Return a list of links."""
        folder = Path(os.environ.get(pages.DOWNLOADS_VARIABLE, ""))
        offered = [one for one in pages.OFFERED if os.environ.get(pages.DOWNLOADS_VARIABLE) and (folder / one).exists()]
        if not offered or self.env.app.builder.format != "html" or self.env.app.builder.name == "singlehtml":
            return [nodes.paragraph("", "The site that `make book` and `make pdf` build has them.")]
        up = "../" * self.env.docname.count("/")
        links = nodes.bullet_list()
        for name in offered:
            address = f"{up}downloads/{name}" + ("/index.html" if (folder / name).is_dir() else "")
            link = nodes.reference("", pages.OFFERED[name], internal=False, refuri=address)
            links += nodes.list_item("", nodes.paragraph("", "", link))
        return [links]


def without_live_code(app: Sphinx, config: Any) -> None:
    """Take out sphinx_thebe, which Jupyter Book always loads: nothing here can be launched."""
    for event in ("env-before-read-docs", "doctree-resolved"):
        for listener in list(app.events.listeners[event]):
            if listener.handler.__module__.startswith("sphinx_thebe"):
                app.disconnect(listener.id)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the above."""
    app.add_directive("downloads", Downloads)
    app.connect("config-inited", without_live_code)
    app.connect("builder-inited", use_this_book)
    app.connect("env-get-outdated", read_again)
    app.connect("env-before-read-docs", in_order)
    app.connect("build-finished", copy_results)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
