"""How kernels are compiled: one decorator, and a cache that cannot go stale.

numba's own cache does not see a change in a kernel that another kernel calls. Here the machine code
is kept in a folder named by the hash of the whole package and of the versions it depends on, so
that an edited package never runs old code. ``NUMBA_CACHE_DIR`` chooses where these folders are.
"""

from __future__ import annotations

import hashlib
import os
import platform
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np


@cache
def library_hash() -> str:
    """Return a hash of the package's sources and of Python, numpy, numba and llvmlite."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    for version in (platform.python_version(), np.__version__, numba.__version__, llvmlite.__version__):
        digest.update(version.encode())
    return digest.hexdigest()[:16]


@cache
def _cache_folder() -> str | None:
    """Return a writable folder for machine code, or None when there is nowhere to write."""
    home = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    roots = [Path(home)] if home else []
    try:
        roots.append(Path.home() / ".cache")
    except RuntimeError:
        pass
    roots.append(Path(tempfile.gettempdir()))
    for root in roots:
        folder = root / "rankrouting" / library_hash()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return str(folder)
        except OSError:
            continue
    return None


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel: without the interpreter lock, C division, cached by the package's hash."""
    folder = _cache_folder()
    options = {"nogil": True, "error_model": "numpy"}
    if folder is None:
        return numba.njit(**options)(function)
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = folder
    try:
        return numba.njit(cache=True, **options)(function)
    finally:
        numba.config.CACHE_DIR = before


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a small piece that kernels call; LLVM inlines it, and the callers' caches hold it."""
    return numba.njit(nogil=True, error_model="numpy")(function)
