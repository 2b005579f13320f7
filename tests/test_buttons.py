"""Buttons of the pages: right by construction, absent where there is nothing to lead to."""

from __future__ import annotations

import re
import runpy
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from rankrouting.companion.book import build

from minibook import ROOT, make_book  # isort: skip

buttons = runpy.run_path(str(ROOT / "book" / "_ext" / "buttons.py"))


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("git@github.com:owner/name.git", "https://github.com/owner/name"),
        ("https://github.com/owner/name", "https://github.com/owner/name"),
        ("https://user:secret@github.com/owner/name.git", "https://github.com/owner/name"),
        ("ssh://git@gitlab.com:22/group/sub/name.git/", "https://gitlab.com/group/sub/name"),
        ("https://git.example.org/owner/name", None),
        ("/srv/git/name.git", None),
        ("file:///srv/git/name.git", None),
        ("https://github.com/owner/na me", None),
        ("", None),
    ],
)
def test_the_web_address_of_a_remote(remote: str, address: str | None) -> None:
    assert buttons["web_address"](remote) == address


def checkout(root: Path, remote: str | None, branch: str = "trunk") -> Path:
    """Make the small book a git checkout that was cloned from a remote."""
    commands = [["init", "--quiet", "--initial-branch", branch], ["add", "."]]
    commands += [["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "book"]]
    if remote:
        commands += [["remote", "add", "origin", remote]]
    for command in commands:
        subprocess.run(["git", "-C", str(root), *command], check=True)
    return root


def links(page: Path) -> list[str]:
    return re.findall(r'href="(https://[^"]+)"', page.read_text("utf-8"))


@pytest.mark.slow
def test_every_button_leads_to_a_file_of_the_checkout(tmp_path: Path) -> None:
    root = checkout(make_book(tmp_path / "book"), "https://user:secret@github.com/owner/name.git")
    build("default", root=root, progress=False)
    page = root / "_build" / "default" / "html" / "book" / "alpha.html"
    assert "secret" not in page.read_text("utf-8")
    found = set()
    for link in links(page):
        place = urlsplit(link)
        path = unquote(place.path)
        match = re.fullmatch(r"/owner/name/(edit|blob)/trunk/(.+)", path)
        if match:
            found.add(match[1])
            assert (root / match[2]).is_file(), link
        elif place.netloc == "mybinder.org":
            found.add("binder")
            assert path.startswith("/v2/gh/owner/name/trunk")
            (opened,) = parse_qs(place.query)["urlpath"]
            assert (root / opened.removeprefix("lab/tree/")).is_file(), link
        else:
            assert "github.com/owner" not in link or path in ("/owner/name", "/owner/name/issues/new"), link
    assert found == {"edit", "blob", "binder"}


@pytest.mark.slow
@pytest.mark.parametrize("remote", [None, "/srv/git/name.git"])
def test_without_a_public_remote_there_is_no_button(tmp_path: Path, remote: str | None) -> None:
    root = checkout(make_book(tmp_path / "book"), remote)
    build("default", root=root, progress=False)
    text = (root / "_build" / "default" / "html" / "book" / "alpha.html").read_text("utf-8")
    assert "mybinder" not in text and "/edit/" not in text and 'title="Source repository"' not in text
