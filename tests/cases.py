"""Every public function that the results of the paper need, with good values of its arguments."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from rankrouting import (
    CollapsedLimit,
    Limit,
    Policy,
    System,
    analytic,
    diffusion,
    estimate,
    exact,
    jsq,
    marginal_power_of_d,
    mjsq,
    msblb,
    power_of_d,
    queues,
    ranks,
    sweep,
)
from rankrouting.exact import OverloadGapLaw

from hostile import Case  # isort: skip


from drawn import (
    UNSTABLE,
    extrapolated,
    few,
    generators,
    law,
    levels,
    limits,
    model_case,
    numbers,
    of_collapsed_limit,
    of_limit,
    of_system,
    points,
    rates,
    replicated,
    samples,
    seeds,
    series,
    some_paths,
    systems,
    times,
)

SCRATCH = Path(tempfile.mkdtemp(prefix="rankrouting-"))
atexit.register(shutil.rmtree, SCRATCH)


# Computed when a case asks: nothing is compiled while tests are collected.
@functools.cache
def small_law_in_time() -> Any:
    return exact.transient(System(9, 2, 1.0, jsq()), 1, [0.1, 0.2])


@functools.cache
def small_run() -> Any:
    return queues.simulate_stationary(System(100, 2, 2.0, mjsq(1.0)), replications=3)


def of_small_law(name: str, k: Any) -> Any:
    return getattr(exact.stationary(System(4, 2, 1.0, jsq())), name)(k)


CASES: dict[str, Case] = {
    "System": Case(
        System,
        {"n": st.integers(10, 10**6), "K": st.just(3), "upsilon": numbers, "policy": st.just(mjsq(1.0))},
        also=("upsilon + c",),
    ),
    "System of msblb": Case(
        lambda n, K, upsilon, c, p: System(n, K, upsilon, msblb(c, p)).limit(),
        {"n": st.integers(10, 10**6), "K": st.just(2), "upsilon": numbers, "c": numbers, "p": st.just([0.7, 0.3])},
    ),
    "System of power_of_d": Case(
        lambda n, K, upsilon, d: System(n, K, upsilon, power_of_d(d)).limit(),
        {"n": st.integers(100, 10**6), "K": st.just(4), "upsilon": numbers, "d": few},
    ),
    "System of marginal_power_of_d": Case(
        lambda n, K, upsilon, c, d: System(n, K, upsilon, marginal_power_of_d(c, d)).limit(),
        {"n": st.integers(100, 10**6), "K": st.just(4), "upsilon": numbers, "c": numbers, "d": few},
    ),
    "Policy": Case(
        lambda rank_law, c: Policy("mine", rank_law, c), {"rank_law": st.just(jsq().rank_law), "c": numbers}
    ),
    "Limit": Case(Limit, {"K": st.just(2), "drifts": st.just([0.5, -1.0]), "variance": numbers}),
    "CollapsedLimit": Case(CollapsedLimit, {"K": few, "upsilon": numbers, "variance": numbers}),
    # Formulas.
    **{
        f"analytic.{name}": Case(getattr(analytic, name), model_case, also=UNSTABLE, infinite=True)
        for name in (
            *("gap_law", "gap_rates", "mean_max", "mean_min", "mean_ranked", "mean_total", "relaxation_time"),
            *("total_law", "variance_total", "overload_gap_rates", "overload_mean_spread"),
            *("overload_relaxation_time", "overload_spread_law", "gap_srbm", "skew_symmetry_defect"),
        )
    },
    **{
        f"analytic.{name} of a limit": Case(
            of_limit(name),
            {"K": st.just(2), "drifts": st.just([0.5, -1.0]) | st.just([0.5, 0.1]), "variance": numbers},
            also=UNSTABLE,
        )
        for name in (
            *("gap_law", "mean_max", "mean_total", "relaxation_time", "total_law", "variance_total"),
            *("overload_mean_spread", "overload_relaxation_time", "gap_srbm", "skew_symmetry_defect"),
        )
    },
    **{
        f"analytic.{name} of a collapsed limit": Case(
            of_collapsed_limit(name),
            {"K": few, "upsilon": numbers, "variance": numbers},
            also=UNSTABLE,
            infinite=True,
        )
        for name in (
            "gap_law",
            "mean_ranked",
            "mean_total",
            "relaxation_time",
            "variance_total",
            "overload_mean_spread",
        )
    },
    **{
        f"analytic.{name} of a system": Case(
            of_system(name),
            {
                "n": st.integers(10, 10**6),
                "K": few,
                "upsilon": numbers | numbers.map(lambda x: -x),
                "c": st.just(0) | numbers,
            },
            also=(*UNSTABLE, "upsilon + c", "policy"),
        )
        for name in (
            *("mean_total", "variance_total", "relaxation_time", "overload_mean_spread", "overload_relaxation_time"),
            *("idle_servers", "pauses_gap_ratios", "mm1_mean", "communication_rate", "mean_max"),
        )
    },
    **{
        f"analytic.{name}": Case(getattr(analytic, name), {"system": systems()}, also=(*UNSTABLE, "policy"))
        for name in ("idle_servers", "pauses_gap_ratios", "mm1_law", "mm1_mean", "communication_rate")
    },
    "analytic.balance_residual": Case(
        analytic.balance_residual,
        {"model": st.just(Limit(2, [0.5, -1.5])), "mean_ranked": st.just([1.0, 2.0]), "mean_total": st.just(None)},
        also=UNSTABLE,
    ),
    "analytic.balance_residual of a system": Case(
        analytic.balance_residual,
        {"model": st.just(System(100, 2, 1.0, mjsq(1.0))), "mean_ranked": st.just([1.0, 2.0]), "mean_total": numbers},
        also=UNSTABLE,
    ),
    "analytic.mean_total_by_balance": Case(
        analytic.mean_total_by_balance,
        {"system": st.just(System(100, 2, 1.0, mjsq(1.0))), "mean_ranked": st.just([1.0, 2.0])},
    ),
    "analytic.workload_factor": Case(analytic.workload_factor, {"K": few, "upsilon": numbers, "c": numbers}),
    "analytic.required_c": Case(analytic.required_c, {"K": few, "upsilon": numbers, "excess": numbers}),
    "analytic.rbm_transition_cdf": Case(
        analytic.rbm_transition_cdf,
        {
            "y": numbers,
            "x": numbers,
            "t": numbers,
            "beta": st.floats(-3, 3).map(lambda x: round(x, 3)),
            "variance": numbers,
        },
    ),
    "analytic.rbm_local_time_cdf": Case(
        analytic.rbm_local_time_cdf,
        {
            "level": numbers,
            "x": numbers,
            "t": numbers,
            "beta": st.floats(-3, 3).map(lambda x: round(x, 3)),
            "variance": numbers,
        },
    ),
    # Laws and their methods.
    **{
        f"Hypoexponential.{method}": law(method, analytic.Hypoexponential, **{name: values})
        for method, name, values in (
            *(("cdf", "x", points), ("sf", "x", points), ("pdf", "x", points), ("quantile", "q", levels)),
        )
    },
    "Hypoexponential moments": Case(
        lambda rates: (analytic.Hypoexponential(rates).mean, analytic.Hypoexponential(rates).variance), {"rates": rates}
    ),
    "GapLaw.cdf": law("cdf", analytic.GapLaw, x=st.floats(-1, 10), k=st.none() | st.just(1)),
    "GapLaw.quantile": law("quantile", analytic.GapLaw, q=levels, k=st.none() | st.just(1)),
    "GapLaw.sample_gaps": law("sample_gaps", analytic.GapLaw, size=few, rng=generators),
    "GapLaw.sample_ranked": law("sample_ranked", analytic.GapLaw, size=few, rng=generators),
    "GapLaw.log_density": Case(
        lambda rates, lengths: analytic.GapLaw(rates).log_density(lengths),
        {"rates": st.just([1.0, 2.0]), "lengths": st.just([1.0, 0.5])},
        infinite=True,
    ),
    "OverloadGapLaw.pmf": Case(lambda ratio, m: OverloadGapLaw(ratio).pmf(m), {"ratio": levels, "m": few}),
    "OverloadGapLaw.cdf": Case(lambda ratio, m: OverloadGapLaw(ratio).cdf(m), {"ratio": levels, "m": few}),
    **{f"ranks.{name}": Case(getattr(ranks, name), {"lengths": points}) for name in ("ranked", "gaps")},
    "ranks.from_gaps": Case(ranks.from_gaps, {"gap_values": points}),
    # Exact laws.
    "exact.stationary": Case(
        lambda n, K, upsilon, c, truncation: exact.stationary(System(n, K, upsilon, mjsq(c)), truncation).mean_total,
        {
            "n": st.integers(1, 9),
            "K": st.integers(1, 2),
            "upsilon": st.floats(0.3, 1.0),
            "c": st.just(0.0) | st.floats(0.01, 1.0),
            "truncation": st.none() | st.integers(1, 20),
        },
        also=(*UNSTABLE, "edge mass", "stationary law", "multigrid"),
    ),
    "exact.transient": Case(
        lambda n, K, upsilon, c, x0, times: exact.transient(System(n, K, upsilon, mjsq(c)), x0, times).mean_total,
        {
            "n": st.integers(1, 9),
            "K": st.integers(1, 2),
            "upsilon": st.floats(-0.5, 0.8).map(lambda x: round(x, 3)),
            "c": st.just(0.0) | st.floats(0.01, 0.5),
            "x0": st.integers(0, 5),
            "times": times,
        },
        also=(*UNSTABLE, "windows"),
    ),
    "exact.transient of": Case(
        exact.transient, {"system": st.just(System(9, 2, 1.0, jsq())), "x0": few, "times": times}, also=("K",)
    ),
    "TransientLaw.ranked_cdf": Case(
        lambda **given: small_law_in_time().ranked_cdf(**given),
        {"k": st.integers(1, 2), "time_index": st.integers(0, 1)},
    ),
    **{
        f"StationaryLaw.{name}": Case(functools.partial(of_small_law, name), {"k": st.integers(1, 2)})
        for name in ("ranked_law", "gap_law")
    },
    "exact.overload_gap_law": Case(
        exact.overload_gap_law, {"system": systems(stable=False).filter(lambda system: system.K == 2)}, also=UNSTABLE
    ),
    "exact.pauses_law": Case(exact.pauses_law, {"system": systems()}, also=UNSTABLE),
    # Simulation.
    "queues.simulate_paths": Case(
        queues.simulate_paths,
        {
            "system": systems(stable=False),
            "times": times,
            "x0": st.floats(0.01, 3.0),
            "replications": few,
            "seed": seeds,
            "method": st.just("auto"),
            "idle": st.booleans(),
            "threads": st.none() | few,
            "progress": st.none() | st.booleans(),
        },
    ),
    "queues.simulate_paths of": Case(
        some_paths,
        {
            "n": st.integers(1, 10**4),
            "K": few,
            "upsilon": st.floats(-1.0, 0.5).map(lambda x: round(x, 3)),
            "c": st.just(0.0) | st.floats(0.01, 0.4),
            "method": st.sampled_from(["auto", "events", "jumps", "lazy"]),
        },
        also=("times", "upsilon + c"),
    ),
    "queues.simulate_stationary": Case(
        queues.simulate_stationary,
        {
            "system": systems(n=120),
            "replications": st.integers(2, 3),
            "horizon": st.none(),
            "warmup": st.none(),
            "seed": seeds,
            "method": st.just("auto"),
            "spacing": st.none(),
            "threads": st.none() | few,
            "progress": st.none() | st.booleans(),
        },
        also=UNSTABLE,
        missing=("mean_total_by_balance",),
    ),
    "StationaryEstimate.estimate": Case(
        lambda **given: small_run().estimate(**given),
        {"name": st.sampled_from(["mean_total", "mean_ranked"]), "controls": st.booleans()},
    ),
    "StationaryEstimate.confidence_interval": Case(
        lambda **given: small_run().confidence_interval(**given),
        {"name": st.sampled_from(["mean_total", "gap_means"]), "level": levels},
    ),
    "diffusion.simulate_paths": Case(
        diffusion.simulate_paths,
        {
            "limit": limits,
            "times": times,
            "x0": st.floats(0.01, 3.0) | st.just("stationary"),
            "replications": few,
            "step": st.floats(0.001, 0.1),
            "seed": seeds,
            "scheme": st.sampled_from(diffusion.SCHEMES),
            "local_times": st.booleans(),
            "threads": st.none() | few,
            "progress": st.none() | st.booleans(),
        },
        also=UNSTABLE,
    ),
    "diffusion.simulate_paths of": Case(
        lambda K, drifts, variance, step: diffusion.simulate_paths(Limit(K, drifts, variance), [0.1], 1.0, 2, step, 1),
        {"K": st.just(2), "drifts": st.just([0.5, -1.0]), "variance": numbers, "step": st.floats(0.001, 0.1)},
    ),
    "diffusion.stationary_means": Case(
        diffusion.stationary_means,
        {
            "limit": limits,
            "horizon": numbers,
            "warmup": numbers,
            "replications": st.integers(2, 3),
            "step": st.floats(0.01, 0.1),
            "seed": seeds,
            "scheme": st.sampled_from(diffusion.SCHEMES),
            "samples": st.integers(1, 5),
        },
        also=(*UNSTABLE, "times"),
    ),
    # Statistics.
    "estimate.mean_of": Case(estimate.mean_of, {"samples": samples}),
    "estimate.mean_with_controls": Case(
        estimate.mean_with_controls,
        {
            "samples": seeds.map(lambda s: np.random.default_rng(s).random(30)),
            "controls": seeds.map(lambda s: np.random.default_rng(s + 999).random(30)),
        },
    ),
    "Estimate.interval": Case(
        lambda samples, level: estimate.mean_of(samples).interval(level), {"samples": samples, "level": levels}
    ),
    "Estimate.z": Case(
        lambda samples, predicted: estimate.mean_of(samples).z(predicted),
        {"samples": samples, "predicted": numbers},
        also=("standard_error",),
    ),
    "Estimate": Case(
        lambda value, standard_error, replications: estimate.Estimate(value, standard_error, replications).interval(),
        {"value": numbers, "standard_error": numbers, "replications": st.integers(2, 9)},
    ),
    "estimate.integrated_autocorrelation_time": Case(
        estimate.integrated_autocorrelation_time, {"series": series, "times_needed": st.just(50.0)}
    ),
    "estimate.effective_sample_size": Case(estimate.effective_sample_size, {"series": series}),
    "estimate.batch_means": Case(estimate.batch_means, {"series": series, "batches": st.integers(5, 20)}),
    "estimate.ks_distance": Case(estimate.ks_distance, {"samples": samples, "law": samples, "level": levels}),
    "estimate.ks_distance to a law": Case(
        lambda samples, law, level: estimate.ks_distance(samples, lambda x: law, level),
        {"samples": samples, "law": levels, "level": levels},
    ),
    "estimate.wasserstein_distance": Case(
        estimate.wasserstein_distance,
        {"samples": samples, "law": samples, "seed": seeds, "level": levels, "resamples": st.just(100)},
    ),
    "estimate.wasserstein_distance to a law": Case(
        lambda samples, law: estimate.wasserstein_distance(samples, lambda u: law, resamples=100),
        {"samples": samples, "law": numbers},
    ),
    "estimate.extrapolate": Case(
        extrapolated,
        {
            "small": st.just([0.1, 0.2, 0.4]),
            "values": st.just([1.0, 1.2, 1.5]),
            "standard_errors": st.none() | st.just([0.1, 0.1, 0.2]),
            "orders": st.just((1.0,)),
            "level": levels,
        },
    ),
    "Extrapolation.z": Case(estimate.extrapolate([0.1, 0.2, 0.4], [1.0, 1.2, 1.5]).z, {"predicted": numbers}),
    "PowerLaw.z": Case(estimate.convergence_order([0.1, 0.2, 0.4], [1.0, 1.2, 1.5]).z, {"predicted": numbers}),
    "estimate.extrapolate_n": Case(
        estimate.extrapolate_n,
        {
            "n": st.just([10, 20, 40]),
            "values": st.just([1.0, 1.2, 1.5]),
            "standard_errors": st.none() | st.just([0.1, 0.1, 0.2]),
            "orders": st.just((0.5,)),
        },
    ),
    "estimate.convergence_order": Case(
        estimate.convergence_order,
        {
            "sizes": st.just([10, 20, 40]),
            "errors": st.just([1.0, 0.5, 0.3]),
            "standard_errors": st.none() | st.just([0.01, 0.01, 0.01]),
            "least_z": numbers,
        },
    ),
    "estimate.replicate": Case(
        replicated,
        {"replications": few, "seed": seeds, "threads": st.none() | few, "progress": st.none() | st.booleans()},
    ),
    # Sweeps.
    "sweep.grid": Case(
        sweep.grid,
        {
            "n": st.just([100, 200]),
            "K": st.just([2]),
            "upsilon": st.just([1.0]),
            "policy": st.just([jsq(), mjsq(1.0)]),
            "seed": st.just([1, 2]),
            "estimate": st.none() | st.just(sweep.Paths([1.0])),
        },
        also=UNSTABLE,
    ),
    "sweep.Stationary": Case(
        sweep.Stationary,
        {
            "quantities": st.just(["mean_total"]),
            "replications": st.integers(2, 9),
            "horizon": numbers,
            "warmup": numbers,
            "spacing": numbers,
            "method": st.just("auto"),
            "controls": st.booleans(),
        },
    ),
    "sweep.Paths": Case(
        sweep.Paths,
        {
            "times": times,
            "quantities": st.just(["total"]),
            "x0": numbers,
            "replications": st.integers(2, 9),
            "method": st.just("auto"),
        },
    ),
    "sweep.Cell": Case(
        sweep.Cell,
        {"system": systems(), "estimate": st.just(sweep.Stationary()), "seed": seeds},
        also=UNSTABLE,
    ),
    "sweep.sweep": Case(
        sweep.sweep,
        {
            "cells": st.just([sweep.Cell(System(100, 2, 1.0, jsq()), sweep.Paths([0.1], replications=2))]),
            "output": st.just(SCRATCH / "t.parquet"),
            "threads": few,
            "level": levels,
            "progress": st.none() | st.booleans(),
        },
    ),
}
