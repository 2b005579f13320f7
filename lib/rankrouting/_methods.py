"""The methods of `queues`: which may be used, which is fastest, what a run costs, and how it is started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from . import checks
from .kernels import events, jumps, lazy, random
from .kernels import sorted as sorted_queues
from .model import System, require_system

Floats = NDArray[np.float64]
Lengths = NDArray[np.int64]
Method = Literal["auto", "events", "jumps", "lazy"]
Advance = Callable[[Lengths, Floats], Lengths]

METHODS = ("auto", "events", "jumps", "lazy")
# A jump of one queue costs as much as 15 to 24 event steps, more at small K, and lazy windows gain from four
# queues on (benchmarks/results/crossover.csv).
_STEPS_PER_JUMP = 20.0
_LAZY_FROM_K = 4
_MOST_STEPS = 1e13


def fastest_method(system: System) -> str:
    """Return the exact method that costs least for this system: ``"events"``, ``"jumps"`` or ``"lazy"``."""
    require_system(system)
    jumps_per_queue = max(system.ranked_rate, 1.0)
    if system.policy.ranks_every_job or 2 * system.n < _STEPS_PER_JUMP * jumps_per_queue:
        return "events"
    return "lazy" if _is_mjsq(system) and system.K >= _LAZY_FROM_K else "jumps"


def chosen_method(system: System, method: str) -> str:
    """Return the method to use, ``"auto"`` resolved; raise if the policy does not allow it."""
    checks.one_of("method", method, METHODS)
    if method in ("jumps", "lazy") and system.policy.ranks_every_job:
        raise ValueError(
            f"method = {method!r}: {system.policy.name} ranks every job, so there is nothing to jump over; use 'events'"
        )
    if method == "lazy" and not _is_mjsq(system):
        raise ValueError(f"method = 'lazy': needs ranked jobs to join the shortest queue, not {system.policy.name}")
    return fastest_method(system) if method == "auto" else method


def check_work(system: System, method: str, name: str, time: float, replications: int) -> None:
    """Raise if a run would take weeks, or its counts would pass the end of the integers."""
    events = (system.arrival_rate + system.n * system.K) * time
    jumped = max(system.ranked_rate * time, 1.0) * system.K
    steps = replications * (events if method in ("events", "general") else jumped)
    if not (events < checks.LARGEST_COUNT and steps < _MOST_STEPS):
        raise ValueError(
            f"{name} up to {time:.4g} with n = {system.n:.4g} and {replications} replications: about {steps:.1e} steps"
            f" of {method} and {events:.1e} events in each; at most {_MOST_STEPS:.0e} and {checks.LARGEST_COUNT:.0e}"
            " are allowed"
        )


def at_once(system: System, *, labelled: bool) -> int:
    """Return how many replications `advance_with` is best given at a time."""
    return sorted_queues.TOGETHER if system.policy.ranks_every_job and not labelled else 1


def advance_with(system: System, method: str, rngs: Sequence[Generator], *, labelled: bool) -> Advance:
    """Return the function (lengths, durations) → lengths after each duration.

    It takes an array (R, K) of the R replications that the generators are for, at most `at_once` of them, and
    returns one of shape (R, durations, K). What comes out for one does not depend on the others. Unless `labelled`,
    lengths may be returned in another order.
    """
    states = np.array([random.new_state(rng) for rng in rngs])
    if system.policy.ranks_every_job:
        table = sorted_queues.event_table(system)
        total_rate = system.n * system.K + system.arrival_rate

        def advance_sorted(lengths: Lengths, durations: Floats) -> Lengths:
            out = np.empty((len(rngs), durations.size, system.K), dtype=np.int64)
            steps = np.array([rng.poisson(total_rate * durations) for rng in rngs])
            if labelled:
                sorted_queues.labelled_kernel(lengths[0], steps[0], out[0], table, states[0])
            else:
                sorted_queues.sorted_kernel(lengths, steps, out, table, states)
            return out

        return advance_sorted

    rates = events.rates_of(system)

    def advance(lengths: Lengths, durations: Floats) -> Lengths:
        lengths = lengths.copy()
        out = np.empty((1, durations.size, system.K), dtype=np.int64)
        if method == "jumps":
            jumps.jumps_kernel(lengths[0], durations, out[0], rates, rngs[0], states[0])
        elif method == "lazy":
            lazy.lazy_kernel(lengths[0], durations, out[0], rates, lazy.WINDOW, rngs[0], states[0])
        else:
            events.thin_kernel(lengths[0], durations, out[0], rates, rngs[0], states[0])
        return out

    return advance


def _is_mjsq(system: System) -> bool:
    return not system.policy.ranks_every_job and bool(system.rank_probabilities[0] == 1.0)
