"""Jumps and lazy windows against the event loop, the diffusion's schemes, threads, and the time to an answer."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pandas as pd
from rankrouting import System, analytic, diffusion, mjsq, queues
from rankrouting.replications import mean_with_controls

from .loops import advance, steps
from .measure import Row, Seconds

SIZES = (10**4, 10**6, 10**8)
COUNTS = (10, 100)


def clever() -> Iterator[Row]:
    """Jumps and lazy windows, in units of time a second. The event loop's figure is that of 2·10⁷ of its steps."""
    for n in SIZES:
        for K in COUNTS:
            system = System(n, K, 1.0, mjsq(2.0))
            short = 2e7 / steps(system)
            events = advance(system, "events", short)
            for method, share in (("jumps", 2e6 / K), ("lazy", 1e6)):
                duration = share / system.ranked_rate
                run = advance(system, method, duration)
                name = f"{method}, MJSQ, K = {K}, n = 10^{round(np.log10(n))}"
                yield Row("method", name, "units of time/s", run, duration, "event loop", events, short)
                if method == "jumps" and n == 10**6:
                    yield Row("method", f"jumps of one queue, K = {K}, n = 10^6", "jumps/s", run, share * K)


def crossover() -> pd.DataFrame:
    """What a jump of one queue costs in steps of the event loop, and from which K on lazy windows win."""
    lines = []
    for K in (2, 3, 4, 6, 10):
        system = System(10**6, K, 1.0, mjsq(2.0))
        figures: dict[str, list[float]] = {"events": [], "jumps": [], "lazy": []}
        durations = {"events": 2e7 / steps(system), "jumps": 5e5 / K / 2000, "lazy": 5e5 / K / 2000}
        runs = {method: advance(system, method, duration) for method, duration in durations.items()}
        for turn in range(4):
            for method, run in runs.items():
                seconds = run() / durations[method]
                if turn:
                    figures[method].append(seconds)
        medians = {method: float(np.median(values)) for method, values in figures.items()}
        step, jump = medians["events"] / steps(system), medians["jumps"] / (system.ranked_rate * K)
        lines.append(
            {
                "K": K,
                "event steps that a jump costs": jump / step,
                "jumps over lazy": medians["jumps"] / medians["lazy"],
            }
        )
    return pd.DataFrame(lines)


def threads_and_diffusion() -> Iterator[Row]:
    """The two schemes of the diffusion, and two threads against one."""
    limit = System(10_000, 10, 1.0, mjsq(2.0)).limit()

    def diffuse(scheme: str) -> Seconds:
        def run() -> float:
            begin = time.perf_counter()
            diffusion.simulate_paths(limit, [200.0], 3.0, 8, 0.001, 1, scheme=scheme, threads=1, progress=False)
            return time.perf_counter() - begin

        return run

    def paths(threads: int) -> Seconds:
        system = System(10_000, 10, 1.0, mjsq(2.0))

        def run() -> float:
            begin = time.perf_counter()
            queues.simulate_paths(system, [50.0], 1.0, 16, method="events", threads=threads, progress=False)
            return time.perf_counter() - begin

        return run

    vectors = 8 * 200_000
    yield Row(
        "diffusion", "exact reflection, K = 10, step 10⁻³", "K-vectors/s", diffuse("reflected"), vectors,
        "projected Euler", diffuse("projected"), vectors,
    )  # fmt: skip
    yield Row("threads", "two threads, event loop", "replications/s", paths(2), 16, "one thread", paths(1), 16)


def error_against_time() -> pd.DataFrame:
    """Bias and time of the diffusion's schemes, and of two reflected runs extrapolated, for halved steps.

    From a stationary start the mean of the lowest coordinate is known at all times: 1/θ_1. What the scheme makes of
    it at time 1, less its value at time 0 to take off noise, is the bias, relative to the mean. The time is that of
    the steps, at the speed that long paths have: starting so many short paths takes longer than moving them.
    """
    limit = System(10_000, 10, 1.0, mjsq(2.0)).limit()
    truth, paths = 1 / analytic.gap_rates(limit)[0], 100_000
    begin = time.perf_counter()
    diffusion.simulate_paths(limit, [1000.0], 3.0, 8, 0.001, 1, threads=1, progress=False)
    a_step = (time.perf_counter() - begin) / 8e6
    lines, lowest = [], {}
    for scheme, divisions in (("projected", (8, 32, 128, 512, 2048)), ("reflected", (2, 4, 8, 16, 32, 64))):
        for division in divisions:
            ends = diffusion.simulate_paths(
                limit, [0.0, 1.0], "stationary", paths, 1 / division, division, scheme=scheme, progress=False
            ).min(axis=-1)
            estimate = lowest[scheme, division] = mean_with_controls(ends[:, 1], ends[:, 0] - truth)
            error = estimate.standard_error / truth
            lines.append((scheme, division, estimate.value / truth - 1, error, paths * division * a_step))
    for fine in (4, 8, 16, 32):
        one, two = lowest["reflected", fine // 2], lowest["reflected", fine]
        error = np.hypot(one.standard_error, 2 * two.standard_error) / truth
        bias = (2 * two.value - one.value) / truth - 1
        lines.append(("extrapolated", fine, bias, error, paths * 1.5 * fine * a_step))
    return pd.DataFrame(lines, columns=["scheme", "steps", "relative bias", "standard error", "seconds"])


def answer() -> Iterator[Row]:
    """CPU seconds for the mean total at n = 10⁶ to 1 % with 95 % confidence, against event loop and plain averages.

    Both are proportional to the length of the run, so a shorter one is enough to know them. The variance of plain
    averages is that of the law, the same for all exact methods: it is taken from the same run.
    """
    system = System(10**6, 10, 1.0, mjsq(2.0))
    relaxation = analytic.relaxation_time(system)
    horizon, replications, width = 10 * relaxation, 32, 0.01 * analytic.mean_total(system) / 1.96
    short = 2e7 / steps(system)
    loop = advance(system, "events", short)
    needed: list[float] = []
    seeds = iter(range(100))

    def clever_answer() -> float:
        begin = time.process_time()
        run = queues.simulate_stationary(
            system, replications=replications, horizon=horizon, warmup=relaxation, spacing=relaxation / 100,
            seed=next(seeds), progress=False,
        )  # fmt: skip
        seconds = time.process_time() - begin
        plain, controlled = (run.estimate("mean_total", controls=choice).standard_error for choice in (False, True))
        needed.append(replications * horizon * float(plain / width) ** 2)
        return seconds * float(controlled / width) ** 2

    def plain_answer() -> float:
        return loop() / short * needed[-1]

    yield Row(
        "time to an answer", "mean total to 1 %, MJSQ, K = 10, n = 10^6, υ = 1, c = 2", "s", clever_answer, 1.0,
        "event loop, plain averages", plain_answer,
    )  # fmt: skip


def variance_reduction() -> pd.DataFrame:
    """By what factor the balance identity and the controls reduce the variance of the mean total."""
    lines = []
    for K, n in ((2, 25), (10, 10**4), (10, 10**6)):
        system = System(n, K, 1.0, mjsq(2.0))
        relaxation = analytic.relaxation_time(system)
        run = queues.simulate_stationary(
            system, replications=64, horizon=5 * relaxation, warmup=relaxation, spacing=relaxation / 100,
            seed=1, progress=False,
        )  # fmt: skip
        plain = run.standard_error.mean_total
        lines.append(
            {
                "K": K,
                "n": n,
                "balance identity": (plain / run.standard_error.mean_total_by_balance) ** 2,
                "controls": (plain / run.estimate("mean_total", controls=True).standard_error) ** 2,
            }
        )
    return pd.DataFrame(lines)
