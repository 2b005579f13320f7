"""The simulators beyond the paper's system: old ranks, pauses, and the Halfin-Whitt diffusion."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.random import SFC64, Generator
from rankrouting import System, halfin_whitt, mjsq, pauses, queues

from .loops import advance, steps
from .measure import Row, Seconds

TIME, AGE = 200.0, 0.1
STEPS = 2e7
BETA, STEP, REPLICATIONS = 1.0, 0.01, 1000


def rows() -> Iterator[Row]:
    """Each against the event loop, or for the diffusion against the same step for many paths at once in numpy."""
    system = System(10_000, 10, 1.0, mjsq(2.0))
    loop = advance(system, "events", TIME)
    yield Row(
        "beyond", "MJSQ with ranks of age 0.1, K = 10, n = 10⁴", "units of time/s",
        _timed(lambda: queues.simulate_stale(
            system, AGE, replications=12, horizon=TIME / 12, warmup=0.0, threads=1, progress=False
        )), TIME, "event loop, fresh ranks", loop, TIME,
    )  # fmt: skip
    duration = STEPS / steps(system)
    yield Row(
        "beyond", "MJSQ with pauses, K = 10, n = 10⁴", "steps/s",
        _timed(lambda: pauses.simulate_pauses(system, [duration], 1.0, threads=1, progress=False)), STEPS,
        "event loop", advance(system, "events", duration), STEPS,
    )  # fmt: skip
    count = 2e7
    yield Row(
        "beyond", "Halfin–Whitt diffusion, step 0.01", "steps/s",
        _timed(lambda: halfin_whitt.stationary_means(
            BETA, horizon=count / 20 * STEP, warmup=0.0, step=STEP, replications=20, threads=1, progress=False
        )), count, f"numpy, {REPLICATIONS} paths at once, projected", _projected, REPLICATIONS * 1000,
    )  # fmt: skip


def _timed(run: Callable[[], object]) -> Seconds:
    def seconds() -> float:
        begin = time.perf_counter()
        run()
        return time.perf_counter() - begin

    return seconds


def _projected() -> float:
    """Take 1000 steps of the usual scheme, vectorised over the paths: the seconds."""
    rng = Generator(SFC64(1))
    y, x = np.full(REPLICATIONS, BETA), np.zeros(REPLICATIONS)
    begin = time.perf_counter()
    for _ in range(1000):
        end = y + (BETA - y - x) * STEP + math.sqrt(2 * STEP) * rng.standard_normal(REPLICATIONS)
        push = np.maximum(0.0, -end)
        y, x = end + push, x * (1 - STEP) + push
    return time.perf_counter() - begin
