"""What the tests of the pages share: the built book on an address of this machine, and a browser that stays there.

The book is the folder that RANKROUTING_SITE names, as `make browser` does. The browser is RANKROUTING_BROWSER or the
Chromium or Chrome that is installed; none is downloaded.
"""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

SITE = Path(os.environ.get("RANKROUTING_SITE", ".")).absolute()
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SCREENS = {"desk": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    handler = functools.partial(QuietHandler, directory=str(SITE))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    found = [os.environ.get("RANKROUTING_BROWSER"), *map(shutil.which, names)]
    path = next((one for one in found if one), None)
    assert path is not None, "no browser: install chromium or set RANKROUTING_BROWSER"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Any]:
    """Yield a function that opens a page; afterwards nothing may have gone wrong on it."""
    wrong: list[str] = []
    contexts = []

    def here_only(route: Any) -> None:
        if urlsplit(route.request.url).netloc == urlsplit(address).netloc:
            route.continue_()
        else:
            wrong.append(f"asked for {route.request.url}")
            route.abort()

    def opened(place: str, screen: str = "desk", scheme: str = "light", **options: Any) -> Any:
        context = browser.new_context(viewport=SCREENS[screen], color_scheme=scheme, **options)
        contexts.append(context)
        context.route("**/*", here_only)
        page = context.new_page()
        page.on("console", lambda said: wrong.append(f"console: {said.text}") if said.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(f"script: {error}"))
        page.on("response", lambda got: wrong.append(f"{got.status}: {got.url}") if got.status >= 400 else None)
        page.goto(f"{address}/{place}", wait_until="load")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []
