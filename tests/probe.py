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
from rankrouting import (
    System,
    analytic,
    diffusion,
    exact,
    general,
    halfin_whitt,
    jsq,
    mjsq,
    msblb,
    occupancy,
    pauses,
    power_of_d,
    queues,
    stale,
    time_laws,
)
from rankrouting.companion import provenance
from rankrouting.kernels import events

# Labelled paths, three queues from below to above: (replications, times, queues).
SYSTEM = System(n=25, K=3, upsilon=1.0, policy=mjsq(2.0))
LARGE = System(n=2500, K=5, upsilon=1.0, policy=mjsq(4.0))  # in which lazy windows open
STEEP = System(n=100, K=3, upsilon=6.0, policy=mjsq(4.0))  # which forgets soon
COLLAPSED = System(n=25, K=3, upsilon=6.0, policy=jsq())


def paths(system: System, method: str, **options: Any) -> Callable[[int | None], Any]:
    x0 = np.linspace(0.0, 3.0, system.K)
    return lambda threads: queues.simulate_paths(
        system, [0.1, 2.0], x0, 25, seed=3, method=method, threads=threads, progress=False, **options
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
    common = {"seed": 5, "threads": threads, "progress": False}
    run = diffusion.simulate_paths(SYSTEM.limit(), [0.5, 1.0], 0.5, 25, 0.05, local_times=True, **common)
    return np.concatenate([run.positions, run.local_times], axis=-1)


def with_general_times(threads: int | None) -> Any:
    service, arrivals = time_laws.with_scv(4.0), time_laws.erlang(2)
    return general.simulate_paths(
        SYSTEM, service, [0.1, 0.3], 0.5, 25, seed=6, arrivals=arrivals, threads=threads, progress=False
    )


def with_old_ranks(threads: int | None) -> Any:
    common = {"replications": 15, "horizon": 2.0, "warmup": 0.2, "seed": 7, "threads": threads, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", queues.TooShortWarning)
        found = [stale.simulate_stale(model, 0.1, **common) for model in (STEEP, STEEP.limit())]
    return np.column_stack([one.final_ranked for one in found])


def with_pauses(threads: int | None) -> Any:
    return pauses.simulate_pauses(SYSTEM, [0.1, 0.3], 0.5, 25, seed=8, threads=threads, progress=False)


def many_servers(threads: int | None) -> Any:
    crowd = System(n=1, K=20, upsilon=2.0, policy=jsq())
    common = {"replications": 15, "seed": 9, "threads": threads, "progress": False}
    counted = occupancy.simulate_stationary(crowd, horizon=2.0, warmup=0.5, **common)
    limit = halfin_whitt.stationary_means(1.0, horizon=2.0, warmup=0.5, step=0.05, **common)
    return np.column_stack([counted.at_least, limit.final])


def sampled(_: int | None) -> Any:
    return time_laws.lognormal(2.0).sample(20, np.random.default_rng(10))


def without_chance(_: int | None) -> Any:
    """Exact laws at finite n and a formula; one row, for there is no standard error."""
    law = exact.stationary(System(n=9, K=2, upsilon=1.0, policy=mjsq(2.0)))
    places = exact.two_places(System(n=1, K=20, upsilon=2.0, policy=jsq()))
    later = [exact.transient(System(n=9, K=K, upsilon=0.5, policy=mjsq(1.0)), 1.0, [0.5]).mean_total for K in (1, 2)]
    means = [law.mean_total, *law.mean_ranked, places.mean_total, *np.ravel(later)]
    return np.array([[*means, *analytic.gap_rates(SYSTEM)]])


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
    "general times": with_general_times,
    "old ranks": with_old_ranks,
    "pauses": with_pauses,
    "many servers": many_servers,
    "times": sampled,
    "without chance": without_chance,
}


def numbers(threads: int | None = None, names: Iterable[str] = tuple(PARTS)) -> dict[str, list[list[float]]]:
    """Return the numbers of each part, one row for each replication."""
    found = {}
    for name in names:
        array = np.asarray(PARTS[name](threads), dtype=np.float64)
        found[name] = array.reshape(len(array), -1).tolist()
    return found


def kernels() -> dict[str, Any]:
    """Return the compiled functions that Python calls, by module and name."""
    return {
        f"{module}:{name}": value
        for module, contents in sys.modules.copy().items()
        for name, value in vars(contents).items()
        if module.startswith("rankrouting.") and name.endswith("_kernel")
        if hasattr(value, "signatures") and value.__module__ == module
    }


def facts() -> dict[str, Any]:
    """Return how this process computes, to see that a setting was heard, and the kernels that it has not compiled."""
    compiled = hasattr(events.thin_kernel, "py_func")
    idle = [name for name, one in kernels().items() if not one.signatures]
    return {"compiled": compiled, "processor": provenance.processor(), "idle": idle}


if __name__ == "__main__":
    json.dump({"numbers": numbers(), "facts": facts()}, sys.stdout)
