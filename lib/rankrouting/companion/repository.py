"""Where the book and what a build writes are, independent of the folder that a program runs in.

Used by all of `companion`, by `cli`, and by the chapters that read what is kept: speed, trust, workload.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT_VARIABLE = "RANKROUTING_ROOT"
RESULTS_VARIABLE = "RANKROUTING_RESULTS"
TABLES_VARIABLE = "RANKROUTING_TABLES"


def root() -> Path:
    """Return the folder that holds ``_toc.yml`` and ``book/``.

    It is ``RANKROUTING_ROOT`` when that is set, else the checkout that this package is installed
    from in editable mode.

    Raises
    ------
    FileNotFoundError
        If there is no ``_toc.yml``: the package was installed without its book.
    """
    chosen = os.environ.get(ROOT_VARIABLE)
    folder = Path(chosen).absolute() if chosen else Path(__file__).resolve().parents[3]
    if not (folder / "_toc.yml").is_file():
        raise FileNotFoundError(
            f"no book in {folder}: install the package from a checkout with `make venv`,"
            f" or set {ROOT_VARIABLE} to the folder of _toc.yml"
        )
    return folder


def tables_folder() -> Path:
    """Make and return the folder for tables that are computed before a chapter runs.

    It is ``RANKROUTING_TABLES`` when that is set, else ``_build/tables`` of the repository.
    """
    chosen = os.environ.get(TABLES_VARIABLE)
    folder = Path(chosen).absolute() if chosen else root() / "_build" / "tables"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PermissionError(f"{folder}: must be a folder, or a place where one can be made") from error
    return folder


def results_folder() -> Path:
    """Return the folder that has one folder of results for each chapter.

    It is ``RANKROUTING_RESULTS`` when that is set, as it is while a book is built, else
    ``_build/results`` of the repository, else of the current folder.
    """
    chosen = os.environ.get(RESULTS_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    try:
        return root() / "_build" / "results"
    except FileNotFoundError:
        return Path.cwd() / "_build" / "results"
