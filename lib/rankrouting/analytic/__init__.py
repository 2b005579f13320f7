"""Formulas: one pure function for each theorem, no simulation.

A `model` is a `System`, its `Limit` or a `CollapsedLimit`; a `System` stands for its limit unless
the function is exact at every n, which its docstring then says. Lengths are in limit units, jobs
divided by √n, and time in the units of the system, unless stated otherwise. Ranked arrays hold rank
k at index k − 1, the shortest first; k, j and m count from 1. δ are the drifts of the limit.
Used by every chapter that claims something.
"""

from .design import DelayLaw, Design, delay_law, design
from .first_order import corrected_mean_total, first_order_constant, pair_constant, pauses_first_order_constant
from .formulas import (
    GapReflection,
    gap_law,
    gap_srbm,
    mean_max,
    mean_min,
    mean_ranked,
    mean_total,
    overload_mean_spread,
    overload_relaxation_time,
    overload_spread_law,
    rbm_local_time_cdf,
    rbm_transition_cdf,
    relaxation_time,
    required_c,
    skew_symmetry_defect,
    total_law,
    variance_total,
    workload_factor,
)
from .gap_laws import GapLaw, Model, gap_rates, overload_gap_rates
from .hypoexponential import Hypoexponential
from .identities import (
    balance_residual,
    communication_rate,
    idle_servers,
    mean_idle_time,
    mean_total_by_balance,
    mm1_law,
    mm1_mean,
    overload_mean_excess,
    pauses_gap_ratios,
)
from .many_servers import (
    SlowdownLaw,
    adjoint_residual,
    atlas_gap_rates,
    imbalance_cdf,
    mean_field_mean,
    mean_field_survival,
    super_halfin_whitt_cdf,
)
from .rank_profiles import (
    growth_speeds,
    profile_gap_rates,
    profile_mean_total,
    required_c_of_sample,
    sample_rate_ratio,
    stability_polygon,
    stale_growth,
)

__all__ = [
    "DelayLaw",
    "Design",
    "GapLaw",
    "GapReflection",
    "Hypoexponential",
    "Model",
    "SlowdownLaw",
    "adjoint_residual",
    "atlas_gap_rates",
    "balance_residual",
    "communication_rate",
    "corrected_mean_total",
    "delay_law",
    "design",
    "first_order_constant",
    "gap_law",
    "gap_rates",
    "gap_srbm",
    "growth_speeds",
    "idle_servers",
    "imbalance_cdf",
    "mean_field_mean",
    "mean_field_survival",
    "mean_idle_time",
    "mean_max",
    "mean_min",
    "mean_ranked",
    "mean_total",
    "mean_total_by_balance",
    "mm1_law",
    "mm1_mean",
    "overload_gap_rates",
    "overload_mean_excess",
    "overload_mean_spread",
    "overload_relaxation_time",
    "overload_spread_law",
    "pair_constant",
    "pauses_first_order_constant",
    "pauses_gap_ratios",
    "profile_gap_rates",
    "profile_mean_total",
    "rbm_local_time_cdf",
    "rbm_transition_cdf",
    "relaxation_time",
    "required_c",
    "required_c_of_sample",
    "sample_rate_ratio",
    "skew_symmetry_defect",
    "stability_polygon",
    "stale_growth",
    "super_halfin_whitt_cdf",
    "total_law",
    "variance_total",
    "workload_factor",
]
