"""Events a second with general service times: ``python -m benchmarks.service`` measures and saves these rows alone.

CPU time of one core, against the uniformized event loop, which is for exponential times only.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.random import SFC64, Generator
from rankrouting import System, general, mjsq, time_laws
from rankrouting.time_laws import TimeLaw

from .loops import advance, steps
from .measure import Row, Seconds

EVENTS = 4e6


def cpu_time(run: Callable[[], object]) -> Seconds:
    """Return a function that runs and says how much CPU time that took."""

    def timed() -> float:
        begin = time.process_time()
        run()
        return time.process_time() - begin

    return timed


def general_loop(system: System, service: TimeLaw, arrivals: TimeLaw, duration: float) -> Seconds:
    """Return a function that advances one replication by `duration` and says how much CPU time it took."""
    laws = general.Streams(service, arrivals, time_laws.exponential())
    start = np.full(system.K, round(system.sqrt_n))
    state = general.Advance(system, laws, start, Generator(SFC64(1)))
    return cpu_time(lambda: state(np.array([duration])))


def table() -> pd.DataFrame:
    """Events a second for each service law, and for arrivals that are not Poisson."""
    poisson, bursts = time_laws.exponential(), time_laws.hyperexponential(4.0)
    services = [
        poisson,
        time_laws.deterministic(),
        time_laws.gamma(0.5),
        time_laws.lognormal(2.0),
        time_laws.hyperexponential(3.0),
        time_laws.pareto(2.5),
    ]
    rows = []
    for K in (3, 10, 40):
        system = System(10_000, K, 1.0, mjsq(2.0))
        duration = EVENTS / steps(system)
        loop = cpu_time(advance(system, "events", duration))
        for service, arrivals in [*((law, poisson) for law in services), (poisson, bursts)]:
            name = f"{service.name} service, {'Poisson' if arrivals is poisson else arrivals.name} arrivals, K = {K}"
            run = general_loop(system, service, arrivals, duration)
            rows.append(Row("general times", name, "events/s", run, EVENTS, "uniformized event loop", loop, EVENTS))
    return pd.DataFrame([row.measure() for row in rows])


if __name__ == "__main__":
    frame = table()
    frame.to_csv(Path(__file__).parent / "results" / "service-times.csv", index=False, float_format="%.4g")
    print(frame.to_string(index=False, float_format=lambda value: f"{value:.3g}"))
    sys.exit()
