"""How kernels are compiled: one decorator, and a cache that cannot go stale.

numba's own cache does not see a change in a kernel that another kernel calls. Here the machine code
is kept in a folder named by the hash of all that kernels depend on, of our sources and of the versions, so
that an edited package never runs old code. ``NUMBA_CACHE_DIR`` chooses where these folders are.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Set
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np

from ._cache import cache_folder

# Nothing that is compiled depends on these: editing them recompiles nothing.
_WITHOUT_KERNELS = {"_files.py", "cli.py", "companion", "parameters.py", "plots", "sweep"}


def _hash(without: Set[str]) -> str:
    """Return a hash of the sources, but for some files and folders, and of the versions below them."""
    digest = hashlib.sha256()
    package = Path(__file__).parent
    for source in sorted(package.rglob("*.py")):
        name = source.relative_to(package)
        if name.parts[0] not in without:
            digest.update(name.as_posix().encode())
            digest.update(source.read_bytes())
    for version in (platform.python_version(), np.__version__, numba.__version__, llvmlite.__version__):
        digest.update(version.encode())
    return digest.hexdigest()[:16]


@cache
def library_hash() -> str:
    """Return a hash of the package's sources and of Python, numpy, numba and llvmlite."""
    return _hash(frozenset())


@cache
def _cache_folder() -> str | None:
    """Return a writable folder for machine code, or None when there is nowhere to write."""
    # numba's cache knows for which processor code was compiled, but not whether it checks its indices.
    folder = cache_folder(_hash(_WITHOUT_KERNELS) + ("-boundscheck" if numba.config.BOUNDSCHECK else ""))
    return None if folder is None else str(folder)


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
