"""The built book in Chromium: complete without a network, on a desk and on a phone, light and dark.

Runs on the folder that RANKROUTING_SITE names, as `make browser` does; skipped without it.
"""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

pytestmark = pytest.mark.skipif("RANKROUTING_SITE" not in os.environ, reason="RANKROUTING_SITE names no built book")

SITE = Path(os.environ.get("RANKROUTING_SITE", ".")).absolute()
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.glob("book/*.html"))


def test_there_are_pages() -> None:
    assert len(PAGES) >= 2, f"no built book in {SITE}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", ["desk", "phone"])
@pytest.mark.parametrize("place", PAGES)
def test_a_page_is_complete(visit: Any, place: str, screen: str, scheme: str) -> None:
    page = visit(place, screen, scheme)
    formulas = page.locator("article .math")
    if formulas.count():
        page.wait_for_function("window.MathJax && MathJax.startup && MathJax.startup.promise")
        page.evaluate("MathJax.startup.promise.then(() => true)")
        bare = "all => all.filter(one => !one.querySelector('mjx-container')).map(one => one.textContent)"
        assert formulas.evaluate_all(bare) == [], "not rendered"
        assert page.locator("mjx-merror, [data-mjx-error]").count() == 0, "a formula has an error"

    pictures = page.locator("article img").evaluate_all(
        "all => all.map(one => [one.complete && one.naturalWidth > 0, one.alt.trim(), one.src.slice(0, 60)])"
    )
    for loaded, alternative, source in pictures:
        assert loaded, f"not loaded: {source}"
        assert alternative, f"no alternative text: {source}"

    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) <= 1, f"scrolls sideways: {widest(page)}"
    assert page.evaluate("document.documentElement.dataset.theme") == scheme


def widest(page: Any) -> Any:
    """Return what sticks out of a page, for the message."""
    return page.evaluate(
        """() => [...document.querySelectorAll('article *')]
            .filter(one => one.getBoundingClientRect().right > innerWidth + 1)
            .slice(0, 5).map(one => one.outerHTML.slice(0, 120))"""
    )


def violations(page: Any) -> list[str]:
    """Return what axe-core finds serious or critical on a page, a line for each element."""
    page.evaluate("window.MathJax?.startup?.promise?.then(() => true)")
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text("utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false})")
    return [
        f"{one['id']}: {element['target']} {element['failureSummary']}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for element in one["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", [*PAGES, "search.html", "genindex.html"])
def test_everybody_can_read_a_page(visit: Any, place: str, scheme: str) -> None:
    assert violations(visit(place, scheme=scheme)) == []


def test_what_nobody_can_read_is_found(visit: Any) -> None:
    page = visit(PAGES[0])
    page.evaluate("""document.querySelector('article').insertAdjacentHTML('beforeend',
        '<p style="color: #bbb; background: #ccc">pale</p><button></button>')""")
    assert {one.split(":")[0] for one in violations(page)} == {"color-contrast", "button-name"}


@pytest.mark.parametrize("place", PAGES)
def test_a_figure_is_offered_as_png_and_svg(visit: Any, place: str) -> None:
    for figure in visit(place).locator("figure.rr-figure").all():
        if figure.locator(".rr-files").count():
            kinds = [Path(one.get_attribute("href") or "").suffix for one in figure.locator(".rr-files a").all()]
            assert kinds[:2] == [".png", ".svg"]


def test_what_moves_is_folded_away(visit: Any) -> None:
    page = visit("book/heavy_traffic.html")
    moving = page.locator("figure.rr-figure details img")
    assert moving.count() == 1 and not moving.is_visible()
    page.locator("figure.rr-figure details summary").press("Enter")
    assert moving.is_visible() and moving.evaluate("one => one.complete && one.naturalWidth > 0")


class Links(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.anchors |= {found[name] or "" for name in ("id", "name") if name in found}
        if tag == "a" and found.get("href") is not None:
            self.links.append(found["href"] or "")


def test_links_resolve() -> None:
    everything = {path.relative_to(SITE).as_posix(): path for path in SITE.rglob("*.html")}
    parsed = {name: Links(path.read_text("utf-8")) for name, path in everything.items() if "_static" not in name}
    dead = []
    for name, page in parsed.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if parts.scheme not in ("http", "https", "mailto"):
                    dead.append(f"{name}: {link}")
                continue
            target, anchor = urldefrag(urljoin(f"/{name}", link))
            path = unquote(urlsplit(target).path).lstrip("/") or "index.html"
            known = path in parsed and unquote(anchor) in parsed[path].anchors
            if not (known or (path not in parsed and (SITE / path).is_file())):
                dead.append(f"{name}: {link}")
    assert dead == []


def test_no_link_leaves_over_plain_http() -> None:
    for name in PAGES:
        links = Links((SITE / name).read_text("utf-8")).links
        assert [link for link in links if link.startswith("http://")] == [], name


def test_search_finds_the_atlas_model(visit: Any) -> None:
    page = visit("search.html?q=Atlas")
    page.wait_for_selector("#search-results li a", timeout=20_000)
    assert re.search(r"book/", page.locator("#search-results li a").first.get_attribute("href") or "")


def test_the_menu_opens_on_a_phone(visit: Any) -> None:
    page = visit(PAGES[0], "phone")
    button = page.locator("button.primary-toggle:visible, label[for='__primary']:visible").first
    button.click()
    page.wait_for_function(
        """() => [...document.querySelectorAll('nav.bd-links a, .bd-links__inner a, dialog a')].some(one => {
            const box = one.getBoundingClientRect();
            return box.width > 0 && box.left >= 0 && box.right <= innerWidth;
        })"""
    )
