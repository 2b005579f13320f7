"""Speed of the simulators, each against what a reader could have used instead: ``make bench``.

Every row is measured several times in one run, in turn with what it is compared with, so that a
machine whose speed drifts changes both. Printed and saved: medians, spread, ratio, machine, versions.
"""

from __future__ import annotations

import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np
import pandas as pd
from numpy.random import SFC64, Generator
from rankrouting import System, _events, _jumps, _lazy, _random, diffusion, jsq, mjsq, msblb, power_of_d, queues
from rankrouting.ranks import from_gaps

HERE = Path(__file__).parent
OUTPUT = HERE.parent / "_build" / "benchmarks"
RUNS = 5

Seconds = Callable[[], float]


@dataclass(frozen=True)
class Row:
    """One measurement: seconds a unit of work, and of the alternative for the same work."""

    name: str
    unit: str
    work: float
    run: Seconds
    against: str = ""
    other: Seconds | None = None
    other_work: float = 0.0

    def measure(self) -> dict[str, object]:
        """Run both in turn, after one run each that warms up, and return medians and spreads."""
        pairs = []
        for _ in range(RUNS + 1):
            mine = self.run() / self.work
            pairs.append((mine, self.other() / self.other_work if self.other else np.nan))
        mine_times, other_times = zip(*pairs[1:], strict=True)
        ratios = [b / a for a, b in pairs[1:]]
        return {
            "measured": self.name,
            "unit": self.unit,
            "median": 1 / statistics.median(mine_times),
            "lowest": 1 / max(mine_times),
            "highest": 1 / min(mine_times),
            "against": self.against,
            "its median": 1 / statistics.median(other_times) if self.other else np.nan,
            "times as fast": statistics.median(ratios),
        }


def advance(system: System, method: str, duration: float, K_start: float = 2.0) -> Seconds:
    """Return a function that advances one replication by `duration` on one core and says how long it took."""
    rng = Generator(SFC64(1))
    state = _random.new_state(rng)
    rates = _events.rates_of(system)
    limit = System(system.n, system.K, 1.0, mjsq(2.0)).limit()
    gaps = 1 / np.r_[1.0, np.arange(system.K - 1, 0, -1) * 3.0 / system.K]
    lengths = np.rint(from_gaps(gaps) * system.sqrt_n).astype(np.int64)
    durations, out = np.array([duration]), np.empty((1, limit.K), dtype=np.int64)

    def run() -> float:
        begin = time.perf_counter()
        if method == "events" and system.policy.ranks_every_job:
            _events.sorted_kernel(lengths, durations, out, rates, False, rng, state)
        elif method == "events":
            _events.thin_kernel(lengths, durations, out, rates, rng, state)
        elif method == "jumps":
            _jumps.jumps_kernel(lengths, durations, out, rates, rng, state)
        else:
            _lazy.lazy_kernel(lengths, durations, out, rates, _lazy.WINDOW, rng, state)
        return time.perf_counter() - begin

    return run


def steps(system: System, duration: float) -> float:
    """Return the mean number of uniformized steps in a time."""
    return (system.n * system.K + system.arrival_rate) * duration


def event_loops(folder: Path) -> list[Row]:
    """The thin event loop against the same loop in C++."""
    program = folder / "event_loop"
    source = str(HERE / "event_loop.cpp")
    subprocess.run(["g++", "-O3", "-march=native", "-std=c++17", source, "-o", str(program)], check=True)
    rows = []
    for K in (10, 100):
        linear = np.arange(K, 0, -1) / (K * (K + 1) / 2)
        for policy in (mjsq(2.0), msblb(2.0, linear)):
            system = System(10_000, K, 1.0, policy)
            duration = 2e8 / steps(system, 1.0)
            arguments = [10_000, K, 1.0, 2.0, duration, *system.rank_probabilities]

            def compiled(arguments: list[float] = arguments) -> float:
                command = [str(program), *map(str, arguments)]
                return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[1])

            run, work = advance(system, "events", duration), steps(system, duration)
            name = f"event loop, {policy.name}, K = {K}, n = 10⁴"
            rows.append(Row(name, "steps/s", work, run, "C++ -O3", compiled, work))
    for K in (10, 100):
        for full in (jsq(), power_of_d(2)):
            system = System(10_000, K, K * 100 * 0.05, full)
            duration = 5e7 / steps(system, 1.0)
            name = f"event loop, {full.name}, K = {K}, load 0.95"
            rows.append(Row(name, "steps/s", steps(system, duration), advance(system, "events", duration)))
    return rows


def clever_methods() -> list[Row]:
    """Jumps and lazy windows against the event loop, in units of limit time a second."""
    rows = []
    for n in (10**4, 10**6, 10**8):
        for K in (10, 100):
            system = System(n, K, 1.0, mjsq(2.0))
            events = advance(system, "events", 2e7 / steps(system, 1.0))
            for method, share in (("jumps", 2e6 / K), ("lazy", 1e6)):
                duration = share / system.ranked_rate
                run = advance(system, method, duration)
                name = f"{method}, MJSQ, K = {K}, n = {n:.0e}"
                work = 2e7 / steps(system, 1.0)
                rows.append(Row(name, "units of time/s", duration, run, "event loop", events, work))
    return rows


def others() -> list[Row]:
    """The diffusion, and two threads against one."""
    limit = System(10_000, 10, 1.0, mjsq(2.0)).limit()

    def diffuse(scheme: str) -> Seconds:
        def run() -> float:
            begin = time.perf_counter()
            diffusion.simulate_paths(limit, [200.0], 3.0, 8, 0.001, 1, scheme=scheme, threads=1, progress=False)
            return time.perf_counter() - begin

        return run

    system = System(10_000, 10, 1.0, mjsq(2.0))

    def paths(threads: int) -> Seconds:
        def run() -> float:
            begin = time.perf_counter()
            queues.simulate_paths(system, [50.0], 1.0, 16, method="events", threads=threads, progress=False)
            return time.perf_counter() - begin

        return run

    vectors = 8 * 200_000
    return [
        Row(
            "diffusion with exact reflection, K = 10, step 10⁻³", "K-vectors/s", vectors, diffuse("reflected"),
            "projected Euler", diffuse("projected"), vectors,
        ),
        Row("two threads, event loop", "replications/s", 16, paths(2), "one thread", paths(1), 16),
    ]  # fmt: skip


def main() -> None:
    """Measure all rows, print the table and save it."""
    print(f"{platform.processor() or platform.machine()}, {platform.system()}, Python {platform.python_version()}, "
          f"numpy {np.__version__}, numba {numba.__version__}; medians of {RUNS} runs")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        rows = [*event_loops(Path(folder)), *clever_methods(), *others()]
        table = pd.DataFrame([row.measure() for row in rows])
    OUTPUT.mkdir(parents=True, exist_ok=True)
    table.to_csv(OUTPUT / "benchmarks.csv", index=False)
    print(table.to_string(index=False, float_format=lambda value: f"{value:.3g}"))


if __name__ == "__main__":
    sys.exit(main())
