"""A little of everything that is simulated or computed, to compare between processes, processors and settings.

``python tests/probe.py`` prints it as JSON. Every kernel takes part, at sizes that Python without a compiler manages.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from rankrouting import System, analytic, diffusion, exact, jsq, mjsq, msblb, power_of_d, queues
from rankrouting.companion import provenance
from rankrouting.kernels import events

# Labelled paths, three queues from below to above: (replications, times, queues).
SYSTEM = System(n=25, K=3, upsilon=1.0, policy=mjsq(2.0))
LARGE = System(n=2500, K=5, upsilon=1.0, policy=mjsq(4.0))  # in which lazy windows open
COLLAPSED = System(n=25, K=3, upsilon=6.0, policy=jsq())


def paths(system: System, method: str, **options: Any) -> Callable[[int | None], Any]:
    x0 = np.linspace(0.0, 3.0, system.K)
    return lambda threads: queues.simulate_paths(
        system, [0.1, 0.3], x0, 25, seed=3, method=method, threads=threads, progress=False, **options
    )


def full(policy: Any) -> System:
    return System(n=25, K=3, upsilon=1.0, policy=policy)


def idle_times(threads: int | None) -> Any:
    return paths(SYSTEM, "events", idle=True)(threads).idle


def stationary(threads: int | None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", queues.TooShortWarning)
        result = queues.simulate_stationary(
            COLLAPSED, replications=15, horizon=2.0, warmup=0.2, spacing=0.1, seed=4, threads=threads, progress=False
        )
    return np.column_stack([result.samples.mean_ranked, result.controlled.mean_ranked])


def diffused(threads: int | None) -> Any:
    limit = SYSTEM.limit()
    return diffusion.simulate_paths(limit, [0.5, 1.0], 0.5, 25, 0.05, seed=5, threads=threads, progress=False)


def without_chance(_: int | None) -> Any:
    """The exact law at finite n and a formula; one row, for there is no standard error."""
    law = exact.stationary(System(n=9, K=2, upsilon=1.0, policy=mjsq(2.0)))
    return np.array([[law.mean_total, *law.mean_ranked, *analytic.gap_rates(SYSTEM)]])


PARTS: dict[str, Callable[[int | None], Any]] = {
    "events": paths(SYSTEM, "events"),
    "events by rank": paths(full(msblb(2.0, [0.5, 0.3, 0.2])), "events"),
    "jumps": paths(SYSTEM, "jumps"),
    "lazy": paths(LARGE, "lazy"),
    "JSQ": paths(full(jsq()), "events"),
    "JSQ(2)": paths(full(power_of_d(2)), "events"),
    "idle": idle_times,
    "stationary": stationary,
    "diffusion": diffused,
    "without chance": without_chance,
}


def numbers(threads: int | None = None, names: Iterable[str] = tuple(PARTS)) -> dict[str, list[list[float]]]:
    """Return the numbers of each part, one row for each replication."""
    found = {}
    for name in names:
        array = np.asarray(PARTS[name](threads), dtype=np.float64)
        found[name] = array.reshape(len(array), -1).tolist()
    return found


def facts() -> dict[str, Any]:
    """Return how this process computes, to see that a setting was heard."""
    return {"compiled": hasattr(events.thin_kernel, "py_func"), "processor": provenance.processor()}


if __name__ == "__main__":
    json.dump({"numbers": numbers(), "facts": facts()}, sys.stdout)
