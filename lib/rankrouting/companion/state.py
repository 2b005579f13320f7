"""Hashes that decide what a build must do again.

Used by `book`, `pages`, `provenance`, the book's Sphinx extension, `calibration` and the chapter trust.
"""

from __future__ import annotations

import ast
import hashlib
import json
import platform
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any


@cache
def environment_hash() -> str:
    """Return a hash of all of this package, of every installed version, and of Python."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[1]
    for source in sorted(package.rglob("*.py")):
        _add(digest, source.relative_to(package).as_posix().encode(), source.read_bytes())
    for name, version in installed_versions().items():
        _add(digest, f"{name}=={version}".encode())
    _add(digest, platform.python_version().encode(), platform.machine().encode())
    return digest.hexdigest()


@cache
def code_hash() -> str:
    """Return a hash of all of this package's sources, and of nothing else."""
    package = Path(__file__).parents[1]
    return files_hash(package.rglob("*.py"), package)


@cache
def numbers_hash() -> str:
    """Return a hash of what simulated numbers and verdicts come from: this package's statements but those of pages.

    Comments and docstrings do not count, nor does what executes chapters, draws them or keeps the tables of sweeps.
    """
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for source in sorted(package.rglob("*.py")):
        place = source.relative_to(package).as_posix()
        if place in _JUDGES or not place.startswith(_AROUND):
            _add(digest, place.encode(), _statements(source.read_text("utf-8")).encode())
    return digest.hexdigest()


# What makes no number, and what of it decides numbers and verdicts after all.
_AROUND = ("cli.py", "companion/", "plots/", "sweep/")
_JUDGES = ("companion/claims.py", "sweep/cells.py", "sweep/estimates.py")


def _statements(source: str) -> str:
    """Return Python source without comments and docstrings, in a form that does not depend on its layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.unparse(tree)


def installed_versions() -> dict[str, str]:
    """Return the version of every installed distribution, by name."""
    found = {one.metadata["Name"].lower(): one.version for one in metadata.distributions()}
    return dict(sorted(found.items()))


def files_hash(files: Iterable[Path], base: Path) -> str:
    """Return a hash of files and of their places below `base`."""
    digest = hashlib.sha256()
    for file in sorted(files):
        _add(digest, file.relative_to(base).as_posix().encode(), file.read_bytes())
    return digest.hexdigest()


def folder_hash(folder: Path) -> str:
    """Return a hash of all files of a folder but hidden ones; of an absent folder, of no files."""
    return files_hash(visible_files(folder), folder)


def visible_files(folder: Path) -> list[Path]:
    """Return the files below a folder that are not hidden, in order."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in files if not any(part.startswith(".") for part in path.relative_to(folder).parts))


def chapter_hash(source: Path, parameters: Mapping[str, Any], collected: Iterable[str] = ()) -> str:
    """Return a hash of all that decides a chapter's output.

    Parameters
    ----------
    source : Path
        The notebook.
    parameters : mapping
        All of its parameters.
    collected : iterable of str
        Hashes of what it reads: results of other chapters, files of the repository.
    """
    digest = hashlib.sha256()
    _add(digest, environment_hash().encode(), source.name.encode(), source.read_bytes())
    _add(digest, json.dumps(parameters, sort_keys=True).encode(), *(one.encode() for one in collected))
    return digest.hexdigest()


def _add(digest: Any, *parts: bytes) -> None:
    for part in parts:
        # With the length, two parts cannot be taken for one.
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
