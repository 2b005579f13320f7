"""Good arguments of public functions, to be drawn by hypothesis, and the cases that several functions share."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from rankrouting import (
    CollapsedLimit,
    Limit,
    System,
    analytic,
    estimate,
    jsq,
    marginal_power_of_d,
    mjsq,
    power_of_d,
    queues,
    random_routing,
)

from hostile import Case  # isort: skip


UNSTABLE = ("upsilon", "theta_1", "theta_2", "theta_3", "theta_4", "rho_1", "rho_2", "rho_3", "k", "lambda_2")

numbers = st.floats(0.1, 10.0)
few = st.integers(1, 4)
laws = st.lists(st.floats(0.05, 1.0), min_size=1, max_size=4).map(lambda p: (np.array(p) / np.sum(p)).tolist())


@st.composite
def systems(draw: Any, n: int = 400, stable: bool = True) -> System:
    """Draw a system of one to four queues, stable or not."""
    K = draw(few)
    upsilon = draw(st.floats(0.3, 3.0) if stable else st.floats(-3.0, 3.0).map(lambda x: round(x, 3)))
    c, d = draw(st.just(0.0) | st.floats(0.01, 5.0)), draw(st.integers(1, K))
    policies = [mjsq(c), jsq(), random_routing(), power_of_d(d), marginal_power_of_d(c, d)]
    return System(draw(st.integers(100, n)), K, upsilon, draw(st.sampled_from(policies)))


limits = systems().map(lambda system: system.limit())
models = systems() | limits
overloaded = systems(stable=False).filter(lambda system: system.upsilon < 0 and system.policy.c not in (0.0,))
seeds = st.integers(0, 100)
points = st.floats(-1.0, 20.0) | st.lists(st.floats(0.0, 20.0), max_size=4)
levels = st.floats(0.001, 0.999)
times = st.lists(st.floats(0.001, 0.1), min_size=1, max_size=3, unique=True).map(sorted)
rates = st.lists(st.floats(0.01, 100.0), min_size=1, max_size=5)
samples = st.lists(st.floats(-5.0, 5.0), min_size=2, max_size=40, unique=True)
series = seeds.map(lambda seed: np.random.default_rng(seed).standard_normal(600))
sizes = st.lists(st.floats(0.01, 10.0), min_size=3, max_size=6, unique=True)
generators = seeds.map(np.random.default_rng)
model_case = {"model": models}


def law(method: str, of: Any, **good: Any) -> Case:
    """Return a case of a method of a law: its argument `law` is the object."""

    def call(law: Any, **given: Any) -> Any:
        return getattr(of(law), method)(**given)

    return Case(call, {"law": st.just(None) if of is None else rates} | good, also=("rates",))


def of_limit(name: str) -> Any:
    return lambda K, drifts, variance: getattr(analytic, name)(Limit(K, drifts, variance))


def of_collapsed_limit(name: str) -> Any:
    return lambda K, upsilon, variance: getattr(analytic, name)(CollapsedLimit(K, upsilon, variance))


def of_system(name: str) -> Any:
    return lambda n, K, upsilon, c: getattr(analytic, name)(System(n, K, upsilon, mjsq(c)))


def some_paths(n: Any, K: Any, upsilon: Any, c: Any, method: Any) -> Any:
    return queues.simulate_paths(System(n, K, upsilon, mjsq(c)), [0.01, 0.02], method=method)


def extrapolated(small: Any, values: Any, standard_errors: Any, orders: Any, level: Any) -> Any:
    return estimate.extrapolate(small, values, standard_errors, orders).interval(level)


def replicated(replications: Any, seed: Any, threads: Any, progress: Any) -> Any:
    return estimate.replicate(lambda rng, i: i, replications, seed, threads=threads, progress=progress)
