"""Speed of the library, each figure against what a reader could have used instead: ``make bench``.

Needs g++, the extra ``bench``, and a quiet machine: nothing else should run. The results go to `benchmarks/results`,
from where the book shows them.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from . import beyond, library, loops, methods, occupancy, service
from .measure import RUNS, machine

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Measure everything, print it and save it."""
    facts = machine() | {"runs": str(RUNS)}
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            *loops.marginal(Path(folder)),
            *loops.full(),
            *methods.clever(),
            *methods.threads_and_diffusion(),
            *methods.answer(),
            *occupancy.rows(),
            *beyond.rows(),
            *library.start(),
            *library.memory(),
            *library.exact(),
        ]
        table = pd.DataFrame([row.measure() for row in tqdm(rows, unit="row")])
    tables = {
        "benchmarks": table,
        "crossover": methods.crossover(),
        "error-against-time": methods.error_against_time(),
        "variance-reduction": methods.variance_reduction(),
        "service-times": service.table(),
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "machine.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    for name, frame in tables.items():
        frame.to_csv(RESULTS / f"{name}.csv", index=False, float_format="%.4g")
        print(f"\n{name}\n{frame.to_string(index=False, float_format=lambda value: f'{value:.3g}')}")


if __name__ == "__main__":
    main()
