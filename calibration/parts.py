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
from rankrouting.companion import repository, state

RESULTS = Path(__file__).parent / "results"
_PACKAGES = ("numba", "numpy", "pandas", "scipy")


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


def fingerprint(*notebooks: Path) -> str:
    """Return a hash of what the numbers of a part depend on: the code in `notebooks`, and the library's."""
    digest = hashlib.sha256(state.numbers_hash().encode())
    for one in notebooks:
        digest.update(_code(one))
    return digest.hexdigest()[:12]


def _code(notebook: Path) -> bytes:
    """Return the code of a notebook, without its text."""
    cells = nbformat.read(notebook, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "code").encode()


def arguments(description: str, **defaults: Any) -> argparse.ArgumentParser:
    """Return a parser with the time limit, and an option for each default."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1e6, help="stop after this time, with what is finished")
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=type(value), default=value, help=f"default: {value}")
    return parser


def save(script: str, whole: bool, **tables: pd.DataFrame) -> None:
    """Write the tables of a script, and beside them what they were made with.

    Into `calibration/results`, which the book shows, only if the script has done the `whole` of its work; else into
    `_build/calibration/trial`.
    """
    folder = RESULTS if whole else repository.root() / "_build" / "calibration" / "trial"
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{script}: saved in {folder}{'' if whole else ', for it is not the whole'}\n")
    for name, table in tables.items():
        table.to_csv(folder / f"{name.replace('_', '-')}.csv", index=False, float_format="%.5g", lineterminator="\n")
    path = folder / "made-with.json"
    made = json.loads(path.read_text("utf-8")) if path.exists() else {}
    versions = {"Python": platform.python_version()} | {name: version(name) for name in _PACKAGES}
    made[script] = versions | {"code": state.numbers_hash()[:12]}
    path.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")
