"""Event loops: marginal policies against the same loop in C++, full JSQ and JSQ(d) against other simulators."""

from __future__ import annotations

import importlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.random import SFC64, Generator
from rankrouting import System, _methods, jsq, mjsq, msblb, power_of_d
from rankrouting.ranks import from_gaps

from .measure import Row, Seconds

SOURCE = Path(__file__).parent / "event_loop.cpp"
LOAD = 0.95
# How many customers each other simulator serves in a run: some seconds each.
ALTERNATIVES = {"cimba": 1_000_000, "simpy": 100_000, "ciw": 10_000}


def steps(system: System) -> float:
    """Return the mean number of uniformized steps per unit of time."""
    return system.n * system.K + system.arrival_rate


def advance(system: System, method: str, duration: float) -> Seconds:
    """Return a function that advances replications by `duration` on one core and says how long each took.

    There are as many as `queues.simulate_stationary` gives a core at a time: two where every job is ranked, else one.
    """
    count = _methods.at_once(system, labelled=False)
    rngs = [Generator(SFC64(seed)) for seed in range(count)]
    kernel = _methods.advance_with(system, method, rngs, labelled=False)
    # A state that is typical of MJSQ with υ = 1 and c = 2, or of a collapsed JSQ.
    apart = 0.0 if system.policy.ranks_every_job else 1.0
    gaps = apart / np.r_[1.0, np.arange(system.K - 1, 0, -1) * 3.0 / system.K]
    gaps[0] = 1.0
    lengths = np.array([np.rint(from_gaps(gaps) * system.sqrt_n).astype(np.int64)] * count)

    def run() -> float:
        nonlocal lengths
        begin = time.perf_counter()
        lengths = kernel(lengths, np.array([duration]))[:, -1]
        return (time.perf_counter() - begin) / count

    return run


def marginal(folder: Path) -> Iterator[Row]:
    """MJSQ and a general p against C++."""
    program = folder / "event_loop"
    subprocess.run(["g++", "-O3", "-march=native", "-std=c++17", str(SOURCE), "-o", str(program)], check=True)
    for K in (10, 100):
        linear = np.arange(K, 0, -1) / (K * (K + 1) / 2)
        for policy in (mjsq(2.0), msblb(2.0, linear)):
            system = System(10_000, K, 1.0, policy)
            duration = 2e8 / steps(system)
            arguments = [10_000, K, 1.0, 2.0, duration, *system.rank_probabilities]

            def compiled(arguments: list[float] = arguments) -> float:
                command = [str(program), *map(str, arguments)]
                return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[1])

            run, work = advance(system, "events", duration), steps(system) * duration
            yield Row("event loop", f"{policy.name}, K = {K}, n = 10⁴", "steps/s", run, work, "C++ -O3", compiled, work)


def full() -> Iterator[Row]:
    """JSQ and JSQ(2): arrivals and departures a second, against Cimba, SimPy and Ciw."""
    for K in (10, 100):
        for policy, d in ((jsq(), K), (power_of_d(2), 2)):
            system = System(10_000, K, K * 100 * (1 - LOAD), policy)
            duration = 5e7 / steps(system)
            run, events = advance(system, "events", duration), 2 * system.arrival_rate * duration
            for package, customers in ALTERNATIVES.items():
                model = importlib.import_module(f"benchmarks.alternatives.with_{package}")

                def other(model=model, K=K, d=d, customers=customers) -> float:  # type: ignore[no-untyped-def]
                    simulated = model.simulate(K, d, LOAD, customers, seed=1)
                    return float(simulated.seconds / simulated.events)

                name = f"{policy.name}, K = {K}, load {LOAD:g}"
                runs = 5 if package == "cimba" else 3
                yield Row("full ranking", name, "events/s", run, events, model.NAME, other, 1.0, runs)
