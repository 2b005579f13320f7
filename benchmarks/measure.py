"""What a row of the benchmark is, and how it is measured.

Everything is measured several times in one run, in turn with what it is compared with, so that a machine
whose speed drifts changes both.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np

RUNS = 5

Seconds = Callable[[], float]


@dataclass(frozen=True)
class Row:
    """One measurement: how much work a function does in the seconds it returns, and an alternative for the same.

    With `unit` "s" or "MB" the function returns the figure itself, and less is better.
    """

    group: str
    name: str
    unit: str
    run: Seconds
    work: float = 1.0
    against: str = ""
    other: Seconds | None = None
    other_work: float = 1.0
    runs: int = RUNS

    def measure(self) -> dict[str, object]:
        """Run both in turn, after one run each that warms up, and return medians and spreads."""
        mine, others = [], []
        for turn in range(self.runs + (self.runs > 1)):
            figures = (
                self._figure(self.run(), self.work),
                self._figure(self.other(), self.other_work) if self.other else 0,
            )
            if turn > 0 or self.runs == 1:
                mine.append(figures[0])
                others.append(figures[1])
        less = self.unit in ("s", "MB")
        ratios = [b / a if less else a / b for a, b in zip(mine, others, strict=True) if self.other]
        return {
            "group": self.group,
            "measured": self.name,
            "unit": self.unit,
            "median": statistics.median(mine),
            "lowest": min(mine),
            "highest": max(mine),
            "against": self.against,
            "its median": statistics.median(others) if self.other else np.nan,
            "ratio": statistics.median(ratios) if ratios else np.nan,
            "lowest ratio": min(ratios, default=np.nan),
            "highest ratio": max(ratios, default=np.nan),
        }

    def _figure(self, seconds: float, work: float) -> float:
        return seconds if self.unit in ("s", "MB") else work / seconds


def in_subprocess(code: str, **environment: str) -> dict[str, Any]:
    """Run code in a Python of its own; return the JSON that it prints, and its peak memory in MB as "MB"."""
    code += """
import json, resource, sys
unit = 1 if sys.platform == "darwin" else 1024
print(json.dumps(result | {"MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6}))
"""
    # A process starts with the peak of the one that it was forked from: here of a shell, not of this one.
    result = subprocess.run(
        ["sh", "-c", '"$0" -c "$1"; exit $?', sys.executable, code],
        check=True, capture_output=True, text=True, env=os.environ | environment,
    )  # fmt: skip
    figures: dict[str, Any] = json.loads(result.stdout)
    return figures


def machine() -> dict[str, str]:
    """Return what ran the benchmark: processor, cores, system and versions."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    compiler = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": str(os.cpu_count()),
        "system": platform.system(),
        "Python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "g++": compiler,
    }
