"""The occupancy kernel of JSQ with many servers against the event loop that keeps all lengths sorted."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from rankrouting import System, jsq, occupancy
from rankrouting.kernels import events, random
from rankrouting.kernels.occupancy import occupancy_kernel

from .loops import advance, steps
from .measure import Row, Seconds

STEPS = 2e7


def rows() -> Iterator[Row]:
    """Steps a second in the Halfin-Whitt regime, time averages of the occupancy included."""
    for K in (10**2, 10**4, 10**5):
        system = System(1, K, K**0.5, jsq())
        yield Row(
            "occupancy", f"JSQ, {K} servers, K(1 − load) = √K", "steps/s", _occupancy(system), STEPS,
            "event loop, sorted lengths", advance(system, "events", STEPS / steps(system)), STEPS,
        )  # fmt: skip


def _occupancy(system: System) -> Seconds:
    rates, rng = events.rates_of(system), np.random.default_rng(1)
    duration = np.array([STEPS / steps(system)])
    state, out, averages = random.new_state(rng), np.empty((1, 6), dtype=np.int64), np.empty((1, 6))

    def run() -> float:
        start = occupancy.balanced(system.K, system.K)
        begin = time.perf_counter()
        occupancy_kernel(start, duration, out, averages, rates, rng, state)
        return time.perf_counter() - begin

    return run
