"""Long computations in parts: what is finished is kept, so that they can be stopped and go on later."""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
from rankrouting.companion import repository

RESULTS = Path(__file__).parent / "results"
_LIBRARY = ("numba", "numpy", "pandas", "scipy")


class Parts:
    """Finished parts in `_build/calibration`, a line of JSON each.

    Parameters
    ----------
    name : str
        Of the file.
    minutes : float
        After this time nothing more is computed: `get` returns only what is there.
    """

    def __init__(self, name: str, minutes: float) -> None:
        self.path = repository.root() / "_build" / "calibration" / f"{name}.jsonl"
        self.end = time.monotonic() + 60 * minutes
        self.missing = 0
        self._kept: dict[str, Any] = {}
        for line in self.path.read_text("utf-8").splitlines() if self.path.exists() else ():
            try:
                part = json.loads(line)
            except json.JSONDecodeError:  # the process was stopped while it wrote
                continue
            self._kept[part["key"]] = part["value"]

    def get(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return the part of this key, computed if it is not there; None when there is no time left for it."""
        if key not in self._kept:
            if time.monotonic() > self.end:
                self.missing += 1
                return None
            value = compute()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "value": value}) + "\n")
            self._kept[key] = json.loads(json.dumps(value))
        return self._kept[key]


def fingerprint(*files: Path) -> str:
    """Return a hash of what the numbers of a part depend on: the code in `files`, and the library without its pages."""
    package = repository.root() / "lib" / "rankrouting"
    kept = [one for one in sorted(package.rglob("*.py")) if not {"sweep", "cli.py", "plots"} & {*one.parts}]
    kept = [one for one in kept if "companion" not in one.parts or one.name == "claims.py"]
    digest = hashlib.sha256()
    for one in [*kept, *files]:
        digest.update(_code(one))
    return digest.hexdigest()[:12]


def _code(path: Path) -> bytes:
    """Return the code of a notebook, without its text; other files as they are."""
    if path.suffix != ".ipynb":
        return path.read_bytes()
    cells = nbformat.read(path, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "code").encode()


def arguments(description: str, **defaults: Any) -> argparse.ArgumentParser:
    """Return a parser with the time limit, and an option for each default."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1e6, help="stop after this time, with what is finished")
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=type(value), default=value, help=f"default: {value}")
    return parser


def save(**tables: pd.DataFrame) -> None:
    """Write tables and the versions behind them into `calibration/results`."""
    RESULTS.mkdir(exist_ok=True)
    for name, table in tables.items():
        table.to_csv(RESULTS / f"{name.replace('_', '-')}.csv", index=False, float_format="%.5g", lineterminator="\n")
    versions = {"Python": platform.python_version()} | {name: version(name) for name in _LIBRARY}
    (RESULTS / "versions.json").write_text(json.dumps(versions, indent=1) + "\n", encoding="utf-8")
