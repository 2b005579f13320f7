"""What the tests of sweeps share: a grid, a file that describes it, and the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rankrouting import cli
from typer.testing import CliRunner

GRID = {"estimate": "paths", "n": [100], "K": [2], "upsilon": [1.0], "policy": ["jsq"], "seed": [1], "times": [0.5]}
STATIONARY = {name: value for name, value in GRID.items() if name != "times"} | {"estimate": "stationary"}


def yml(folder: Path, values: Any, name: str = "mine.yml") -> Path:
    path = folder / name
    path.write_text(values if isinstance(values, str) else json.dumps(values), "utf-8")
    return path


def command_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a function that runs `rankrouting sweep` in this process, in a folder."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    return lambda *arguments: CliRunner().invoke(cli.app, ["sweep", *arguments])
