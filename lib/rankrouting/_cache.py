"""Where files are kept that can be made again, whatever can be written here. No chapter uses it directly."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

_UNUSED_DAYS = 90


def cache_folder(name: str) -> Path | None:
    """Return the folder `name` in the first place that can be written, made if need be; None if there is no such place.

    The places are ``NUMBA_CACHE_DIR`` or else ``XDG_CACHE_HOME``, where they are set, ``.cache`` at home, and the
    folder for temporary files. Where one is made, those beside it that nobody has asked for in 90 days are removed.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    places = [Path(chosen)] if chosen else []
    try:
        places.append(Path.home() / ".cache")
    except RuntimeError:
        pass
    try:
        places.append(Path(tempfile.gettempdir()))
    except FileNotFoundError:
        pass
    for place in places:
        folder = place / "rankrouting" / name
        new = not folder.exists()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                os.utime(folder)
        except OSError:
            continue
        if new:
            _remove_unused(folder.parent)
        return folder
    return None


def _remove_unused(place: Path) -> None:
    """Remove the folders of a cache that were not asked for lately: every edit of the package makes a new one."""
    for folder in place.iterdir():
        try:
            if folder.stat().st_mtime < time.time() - _UNUSED_DAYS * 86_400:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue
