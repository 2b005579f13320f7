"""What a sweep estimates of a system: `Stationary` means, or means over `Paths` at given times.

Used by `sweep`; no chapter uses it directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence

from .. import _methods, checks, queues
from ..model import System
from ..policies import jsq, mjsq
from ..replications import Estimate, mean_of

STATIONARY_QUANTITIES = queues.Means._fields
PATH_QUANTITIES = ("total", "ranked")

_MOST_PATH_BYTES = 2**30
_MOST_REPLICATIONS = 10**6
# About what benchmarks/ says; the time left that is shown depends on these, and nothing else.
_SECONDS_PER_STEP = {"events": 8e-9, "jumps": 1e-7, "lazy": 1e-6}
_SECONDS_PER_OBSERVED_QUEUE = 3e-8


class Value(NamedTuple):
    """One estimated number: of which quantity and, where it has them, of which rank (1 = shortest) and time."""

    quantity: str
    rank: int | None
    time: float | None
    value: float
    standard_error: float
    replications: int


@dataclass(frozen=True)
class Stationary:
    """Means of the stationary law, as `queues.simulate_stationary` estimates them.

    Parameters
    ----------
    quantities : sequence of str, default ("mean_total",)
        Names of `queues.Means`. ``mean_ranked`` and ``gap_means`` are K numbers, the others one.
    replications : int, default 32
        Independent runs, 2 to 10⁶.
    horizon, warmup, spacing : float, optional
        In units of time; by default 20, 5 and a 500th of the limit's relaxation time. In a sweep the horizon is
        at least 5 and the warm-up at least 1 relaxation time: each row has an interval, and it must cover.
    method : {"auto", "events", "jumps", "lazy"}
        How to simulate.
    controls : bool, default False
        Whether the quantities of `queues.Controlled` are estimated with controls: the same means with much smaller
        standard errors.

    Raises
    ------
    ValueError
        If a quantity does not exist, or another argument is out of range.
    """

    quantities: Sequence[str] = ("mean_total",)
    replications: int = 32
    horizon: float | None = None
    warmup: float | None = None
    spacing: float | None = None
    method: _methods.Method = "auto"
    controls: bool = False

    def __post_init__(self) -> None:
        """Validate what does not depend on the system, and store each field in its own type."""
        set_field = object.__setattr__
        set_field(self, "quantities", _names(self.quantities, STATIONARY_QUANTITIES))
        set_field(self, "replications", _replications(self.replications))
        for name in ("horizon", "warmup", "spacing"):
            if getattr(self, name) is not None:
                set_field(self, name, checks.real(name, getattr(self, name), at_least=0))
        set_field(self, "controls", checks.flag("controls", self.controls))

    def check(self, system: System) -> None:
        """Raise ValueError if this cannot be estimated of a system, or not with intervals that cover."""
        plan = self.plan(system)
        if "mean_total_by_balance" in self.quantities and system.policy.ranks_every_job:
            raise ValueError(
                f"quantities: no mean_total_by_balance when every job is ranked, as by {system.policy.name}"
            )
        for name, given, times in (("horizon", plan.horizon, 5), ("warmup", plan.warmup, 1)):
            least = times * plan.relaxation_time
            if given < least:
                raise ValueError(
                    f"{name} = {given:g}: must be at least {least:.4g}, {times} times the relaxation time,"
                    " for an interval that covers"
                )

    def plan(self, system: System) -> queues.Run:
        """Return what is run, with the defaults filled in."""
        return queues.plan_stationary(
            system, self.replications, self.horizon, self.warmup, method=self.method, spacing=self.spacing
        )

    def settings(self, system: System) -> dict[str, Any]:
        """Return the method, the times and whether controls are used."""
        plan = self.plan(system)
        times = {name: getattr(plan, name) for name in ("method", "horizon", "warmup", "spacing")}
        return times | {"controls": self.controls}

    def rows(self, system: System) -> int:
        """Return how many numbers are estimated."""
        return sum(system.K if name in ("mean_ranked", "gap_means") else 1 for name in self.quantities)

    def expected_seconds(self, system: System) -> float:
        """Return about how long it takes on one thread."""
        plan = self.plan(system)
        looks = plan.replications * plan.horizon / plan.spacing
        time = plan.replications * (plan.horizon + plan.warmup)
        return _seconds(system, plan.method, time, looks)

    def measure(self, system: System, seed: SeedSequence) -> list[Value]:
        """Estimate on this thread."""
        plan = self.plan(system)
        result = queues.simulate_stationary(
            system,
            replications=plan.replications,
            horizon=plan.horizon,
            warmup=plan.warmup,
            seed=seed,
            method=self.method,
            spacing=plan.spacing,
            threads=1,
            progress=False,
        )
        controlled = queues.Controlled._fields if self.controls else ()
        return [
            one
            for name in self.quantities
            for one in _values(name, None, result.estimate(name, controls=name in controlled))
        ]


@dataclass(frozen=True)
class Paths:
    """Means over paths at given times, as `queues.simulate_paths` simulates them.

    Parameters
    ----------
    times : sequence of float
        When to look, in units of time: nonnegative and strictly increasing.
    quantities : sequence of str, default ("total",)
        ``"total"``, the sum of all lengths, and ``"ranked"``, the K ranked lengths, in limit units.
    x0 : float, default 0
        Length of every queue at time 0, in limit units.
    replications : int, default 32
        Independent paths, 2 to 10⁶.
    method : {"auto", "events", "jumps", "lazy"}
        How to simulate.

    Raises
    ------
    ValueError
        If a quantity does not exist, or another argument is out of range.
    """

    times: Sequence[float]
    quantities: Sequence[str] = ("total",)
    x0: float = 0.0
    replications: int = 32
    method: _methods.Method = "auto"

    def __post_init__(self) -> None:
        """Validate what does not depend on the system, and store each field in its own type."""
        set_field = object.__setattr__
        set_field(self, "times", tuple(map(float, checks.sample_times(self.times))))
        set_field(self, "quantities", _names(self.quantities, PATH_QUANTITIES))
        set_field(self, "x0", checks.real("x0", self.x0, at_least=0))
        set_field(self, "replications", _replications(self.replications))

    def check(self, system: System) -> None:
        """Raise ValueError if this cannot be estimated of a system."""
        if not self.x0 * system.sqrt_n * system.K < checks.LARGEST_COUNT:
            raise ValueError(f"x0 = {self.x0:g}: too many jobs to count")
        size = 8.0 * self.replications * len(self.times) * system.K
        if size > _MOST_PATH_BYTES:
            raise ValueError(
                f"replications = {self.replications}: the paths of a cell, {len(self.times)} times and {system.K}"
                f" queues, would take {size / 2**30:.3g} GiB; at most 1 GiB is allowed"
            )
        method = _methods.chosen_method(system, self.method)
        _methods.check_work(system, method, "times", self.times[-1], self.replications)

    def settings(self, system: System) -> dict[str, Any]:
        """Return the method that is used."""
        return {"method": _methods.chosen_method(system, self.method)}

    def rows(self, system: System) -> int:
        """Return how many numbers are estimated."""
        return len(self.times) * sum(system.K if name == "ranked" else 1 for name in self.quantities)

    def expected_seconds(self, system: System) -> float:
        """Return about how long it takes on one thread."""
        method, looks = _methods.chosen_method(system, self.method), self.replications * len(self.times)
        return _seconds(system, method, self.replications * self.times[-1], looks)

    def measure(self, system: System, seed: SeedSequence) -> list[Value]:
        """Estimate on this thread."""
        lengths = queues.simulate_paths(
            system, self.times, self.x0, self.replications, seed, self.method, threads=1, progress=False
        )
        samples = {"total": lengths.sum(axis=-1), "ranked": np.sort(lengths, axis=-1)}
        return [
            one
            for name in self.quantities
            for i, t in enumerate(self.times)
            for one in _values(name, t, mean_of(samples[name][:, i]))
        ]


@cache
def compile_kernel(method: str, ranks_every_job: bool) -> None:
    """Have the kernel of a method ready in this process, so that its compilation is no part of a cell's cost."""
    tiny = System(n=100, K=2, upsilon=1.0, policy=jsq() if ranks_every_job else mjsq(c=1.0))
    queues.simulate_paths(tiny, [0.1], method=method, threads=1, progress=False)  # type: ignore[call-overload]


def _values(quantity: str, time: float | None, estimate: Estimate) -> list[Value]:
    """Return a number, or the numbers of all ranks, as rows."""
    values, errors = np.asarray(estimate.value), np.asarray(estimate.standard_error)
    if values.ndim == 0:
        return [Value(quantity, None, time, float(values), float(errors), estimate.replications)]
    pairs = zip(values.tolist(), errors.tolist(), strict=True)
    return [Value(quantity, k, time, value, error, estimate.replications) for k, (value, error) in enumerate(pairs, 1)]


def _seconds(system: System, method: str, time: float, looks: float) -> float:
    rate = system.arrival_rate + system.n * system.K if method == "events" else system.ranked_rate
    steps = rate * time * (system.K if method == "jumps" else 1)
    return steps * _SECONDS_PER_STEP[method] + looks * system.K * _SECONDS_PER_OBSERVED_QUEUE


def _names(given: Sequence[str], allowed: Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise ValueError(f"quantities: must be a list of names out of {', '.join(allowed)}")
    for name in given:
        if not isinstance(name, str) or name not in allowed:
            raise ValueError(f"quantities: there is no {checks.shown(name)}{checks.nearest(name, allowed)}")
    if (twice := checks.repeated(given)) is not None:
        raise ValueError(f"quantities: {checks.shown(twice)} is given twice")
    return tuple(given)


def _replications(value: Any) -> int:
    return checks.whole("replications", value, at_least=2, at_most=_MOST_REPLICATIONS)
