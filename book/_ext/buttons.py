"""A Sphinx extension: buttons that lead to the repository and launch a chapter, where there is a repository.

The address and the branch are those of the git remote that this checkout was cloned from. Without a remote on a public
host there are no buttons: one that leads nowhere is worse than none.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

BINDER = "https://mybinder.org"
# What mybinder.org can launch, and where a page can be edited.
_HOSTS = ("github.com", "gitlab.com")
# https://user:password@host/path, ssh://git@host:22/path, git@host:path; without user and ending.
_REMOTE = re.compile(r"(?:https?://(?:[^/@]*@)?|ssh://(?:[^/@]*@)?|[^/@:]*@)([\w.-]+)(?::\d+)?[:/](.+?)(?:\.git)?/?")


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def web_address(remote: str) -> str | None:
    """Return the page of a remote such as ``git@github.com:owner/name.git``, or None if it has none."""
    found = _REMOTE.fullmatch(remote)
    if found is None or found[1] not in _HOSTS or not re.fullmatch(r"[\w.-]+(/[\w.-]+)+", found[2]):
        return None
    return f"https://{found[1]}/{found[2]}"


def repository_of(folder: Path) -> tuple[str, str] | None:
    """Return the web address and the branch that a checkout follows, or None."""
    upstream = _git(folder, "rev-parse", "--abbrev-ref", "--symbolic-full-name", "@{upstream}")
    name, _, branch = upstream.partition("/")
    address = web_address(_git(folder, "remote", "get-url", name or "origin"))
    branch = branch or _git(folder, "rev-parse", "--abbrev-ref", "HEAD")
    return (address, branch) if address and branch not in ("", "HEAD") else None


def add_buttons(app: Sphinx, config: Any) -> None:
    """Switch the theme's buttons on."""
    found = repository_of(Path(app.srcdir))
    if found is None:
        return
    address, branch = found
    config.html_theme_options |= {
        "repository_url": address,
        "repository_branch": branch,
        "path_to_docs": "",
        "use_repository_button": True,
        "use_edit_page_button": True,
        "use_source_button": True,
        "launch_buttons": {"binderhub_url": BINDER, "notebook_interface": "jupyterlab"},
    }


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the above."""
    app.connect("config-inited", add_buttons)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
