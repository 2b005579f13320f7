"""Where files are kept that can be made again, whatever can be written here. No chapter uses it directly."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_folder(name: str) -> Path | None:
    """Return the folder `name` in the first place that can be written, made if need be; None if there is no such place.

    The places are ``NUMBA_CACHE_DIR`` or else ``XDG_CACHE_HOME``, where they are set, ``.cache`` at home, and the
    folder for temporary files.
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
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    return None
