"""Every other public function: what goes beyond the paper. With good values of the arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
from drawn import UNSTABLE, few, generators, laws, model_case, numbers, points, seeds, systems, times
from hostile import Case
from hypothesis import strategies as st
from rankrouting import (
    System,
    analytic,
    estimate,
    exact,
    general,
    halfin_whitt,
    jsq,
    mean_field,
    mjsq,
    occupancy,
    pauses,
    queues,
    time_laws,
)
from rankrouting.estimate import Estimate

quick = st.just(System(100, 2, 1.0, mjsq(1.0)))
ranked_all = st.just(System(50, 5, 1.0, jsq()))
some_laws = st.sampled_from([time_laws.exponential(), time_laws.deterministic(), time_laws.hyperexponential(3.0)])
shapes = {
    "gamma": numbers,
    "erlang": few,
    "with_scv": numbers | st.just(0.0),
    "lognormal": numbers,
    "hyperexponential": st.floats(1.01, 10.0),
    "pareto": st.floats(2.1, 10.0),
}
profiles = {"p": laws, "upsilon": numbers, "c": numbers}
of_sample = {"K": st.integers(5, 9), "d": st.integers(2, 4)}
of_field = {"d": st.integers(2, 5), "slack": numbers, "rate": st.just(0) | numbers}
short = {"horizon": st.floats(0.1, 1.0), "warmup": st.floats(0.0, 0.5)}
long = {"horizon": st.floats(17.0, 20.0), "warmup": st.floats(0.0, 5.0)}
runs = {"replications": st.integers(13, 20), "seed": seeds, "threads": st.none() | few, "progress": st.just(False)}


def delays(weights: Any, rates: Any, t: Any, q: Any) -> Any:
    law = analytic.DelayLaw(weights, rates)
    return law.mean, law.sf(t), law.cdf(t), law.quantile(q)


def slowdown(beta: Any, x: Any) -> Any:
    law = analytic.SlowdownLaw(beta)
    return law.mean, law.cdf(x)


def law_of(name: str) -> Any:
    return lambda size, rng, **shape: getattr(time_laws, name)(**shape).sample(size, rng)


CASES: dict[str, Case] = {
    # Formulas.
    **{
        f"analytic.{name}": Case(getattr(analytic, name), {"system": systems()}, also=(*UNSTABLE, "policy", "K"))
        for name in (
            *("corrected_mean_total", "first_order_constant", "overload_mean_excess", "pauses_first_order_constant"),
        )
    },
    **{
        f"analytic.{name}": Case(getattr(analytic, name), model_case, also=UNSTABLE, infinite=True)
        for name in ("growth_speeds", "delay_law")
    },
    "analytic.adjoint_residual": Case(
        analytic.adjoint_residual,
        {"model": quick, "rates": st.just([1.0, 2.0]), "exponents": st.just([0.5, 0.1]) | st.just([[0.5, 0.1]])},
        also=UNSTABLE,
    ),
    "analytic.atlas_gap_rates": Case(
        analytic.atlas_gap_rates, {"a": st.floats(5.1, 9.0), "b": st.floats(0.0, 5.0), "count": few}
    ),
    "analytic.design": Case(
        lambda n, K, load, excess, unit_seconds: (
            analytic.design(n, K, load, excess=excess, unit_seconds=unit_seconds).ranked_share
        ),
        {
            "n": st.integers(400, 10**5),
            "K": st.integers(2, 9),
            "load": st.floats(0.9, 0.999),
            "excess": st.floats(0.2, 2.0),
            "unit_seconds": numbers,
        },
        also=("c", "mean_jobs", "p99_ms", "upsilon"),
    ),
    "analytic.imbalance_cdf": Case(analytic.imbalance_cdf, {"model": quick, "x": points}, also=UNSTABLE),
    "analytic.mean_field_mean": Case(analytic.mean_field_mean, of_field, infinite=True),
    "analytic.mean_field_survival": Case(analytic.mean_field_survival, {"x": points} | of_field),
    "analytic.mean_idle_time": Case(
        analytic.mean_idle_time, {"system": quick, "t": numbers, "gained": st.floats(-1.0, 5.0)}
    ),
    "analytic.pair_constant": Case(analytic.pair_constant, {"ratio": st.floats(-0.9, 50.0) | st.just([0.0, 1.0, 2.0])}),
    **{
        f"analytic.{name}": Case(getattr(analytic, name), profiles, infinite=True)
        for name in ("profile_gap_rates", "profile_mean_total")
    },
    "analytic.required_c_of_sample": Case(
        analytic.required_c_of_sample, of_sample | {"upsilon": numbers, "excess": numbers}
    ),
    "analytic.sample_rate_ratio": Case(analytic.sample_rate_ratio, of_sample),
    "analytic.stability_polygon": Case(analytic.stability_polygon, {"upsilon": numbers, "c": numbers}),
    "analytic.stale_growth": Case(analytic.stale_growth, {"K": st.integers(2, 9), "upsilon": numbers, "c": numbers}),
    "analytic.super_halfin_whitt_cdf": Case(analytic.super_halfin_whitt_cdf, {"beta": numbers, "x": points}),
    "DelayLaw": Case(
        delays, {"weights": st.just([0.5, 0.5]), "rates": st.just([1.0, 2.0]), "t": points, "q": st.floats(0.01, 0.99)}
    ),
    "SlowdownLaw": Case(slowdown, {"beta": numbers, "x": points}),
    # Laws of times.
    **{
        f"time_laws.{name}": Case(
            law_of(name),
            {"phases" if name == "erlang" else "index" if name == "pareto" else "scv": shape}
            | {"size": few, "rng": generators},
            also=("third moment",),
        )
        for name, shape in shapes.items()
    },
    "time_laws.deterministic": Case(law_of("deterministic"), {"size": few, "rng": generators}),
    "time_laws.exponential": Case(lambda s: time_laws.exponential().complement(s), {"s": numbers}),
    # Exact laws.
    "exact.stale_pair": Case(
        lambda n, upsilon, c, tau: exact.stale_pair(System(n, 2, upsilon, mjsq(c)), tau),
        {"n": st.integers(4, 9), "upsilon": st.floats(1.0, 2.0), "c": st.floats(0.5, 1.0), "tau": st.floats(0.1, 2.0)},
        also=(*UNSTABLE, "system"),
    ),
    "exact.two_places": Case(
        lambda K, upsilon: exact.two_places(System(1, K, upsilon, jsq())).mean_total,
        {"K": st.integers(5, 60), "upsilon": st.floats(0.2, 2.0)},
        also=(*UNSTABLE, "system"),
    ),
    # Simulations.
    "queues.fastest_method": Case(queues.fastest_method, {"system": systems()}),
    "queues.plan_stationary": Case(
        queues.plan_stationary,
        {"system": quick, "replications": st.integers(13, 20), "seed": seeds} | long,
        also=UNSTABLE,
    ),
    "queues.simulate_stale": Case(
        queues.simulate_stale, {"model": quick, "tau": numbers} | short | runs, also=UNSTABLE
    ),
    "pauses.simulate_pauses": Case(
        pauses.simulate_pauses,
        {
            "system": quick,
            "times": times,
            "x0": numbers,
            "replications": few,
            "seed": seeds,
            "progress": st.just(False),
        },
        also=("policy",),
    ),
    "general.limit": Case(
        lambda system, service, arrivals: general.limit(system, service, arrivals=arrivals).drifts,
        {"system": quick, "service": some_laws, "arrivals": st.none() | some_laws},
    ),
    "general.mg1_mean": Case(general.mg1_mean, {"system": quick, "service": some_laws}, also=("policy", "c")),
    "general.simulate_paths": Case(
        general.simulate_paths,
        {"system": quick, "service": some_laws, "times": times, "x0": numbers, "replications": few, "seed": seeds},
    ),
    "general.simulate_stationary": Case(
        general.simulate_stationary,
        {"system": quick, "service": some_laws, "observe": st.none() | st.just(lambda x: x**2)} | long | runs,
        also=UNSTABLE,
        missing=("balance_residual", "mean_total_by_balance", "total_by_balance", "work_residual"),
    ),
    "halfin_whitt.stationary_means": Case(
        halfin_whitt.stationary_means, {"beta": numbers, "step": st.floats(0.01, 0.1)} | short | runs
    ),
    "mean_field.survival_path": Case(
        mean_field.survival_path,
        {
            "times": times,
            "initial": st.just(lambda x: np.exp(-3 * x)),
            "d": st.integers(2, 3),
            "slack": st.floats(0.5, 1.0),
            "rate": st.floats(0.0, 1.0),
            "largest": st.floats(12.0, 20.0),
            "cells": st.integers(100, 200),
        },
    ),
    "occupancy.balanced": Case(occupancy.balanced, {"K": st.integers(1, 100), "total": st.integers(0, 1000)}),
    "occupancy.simulate_stationary": Case(
        occupancy.simulate_stationary,
        {"system": ranked_all, "totals": st.none() | st.integers(0, 20), "depth": few} | short | runs,
        also=(*UNSTABLE, "policy"),
    ),
    # Estimates.
    "estimate.together": Case(
        lambda estimates, scale: estimate.together(estimates, scale),
        {"estimates": st.just([Estimate(1.0, 0.1, 16), Estimate(2.0, 0.1, 16)]), "scale": numbers},
        infinite=True,
    ),
}
