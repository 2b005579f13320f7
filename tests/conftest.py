"""What holds for all tests, and the books that several modules test."""

from __future__ import annotations

import shutil
import signal
import threading
from pathlib import Path

import pytest
from rankrouting.companion import repository
from rankrouting.companion.book import build

from minibook import make_book  # isort: skip


def pytest_configure() -> None:
    """Let children hear Ctrl-C, which a program that a shell has started in the background ignores."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget which checkout and which results the shell has chosen."""
    for name in (repository.ROOT_VARIABLE, repository.RESULTS_VARIABLE, repository.TABLES_VARIABLE):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book that was built, in a folder with a space and an accent."""
    root = make_book(tmp_path_factory.mktemp("books") / "un livre été")
    build("default", root=root, progress=False)
    return root


@pytest.fixture
def changed(built: Path, tmp_path: Path) -> Path:
    """A copy of it, of which all chapters have changed since."""
    copy = tmp_path / "book"
    shutil.copytree(built, copy, symlinks=True)
    (copy / "book" / "profiles" / "default.yml").write_text("alpha:\n  n: 300\nbeta:\n  n: 400\n", "utf-8")
    return copy
