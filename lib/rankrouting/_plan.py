"""What a simulation of the stationary law runs, checked before it does. Public through `queues`."""

from __future__ import annotations

from typing import NamedTuple

from . import _methods, analytic, checks
from ._methods import Method
from .model import System, require_system
from .replications import Seed

WARM_UP_RELAXATIONS = 5.0
HORIZON_RELAXATIONS = 20.0
_OBSERVATIONS_PER_RELAXATION = 500
_MOST_OBSERVATIONS = 10**8
_MOST_OBSERVED = 10**13


class Run(NamedTuple):
    """What a stationary simulation ran.

    Attributes
    ----------
    system : System
        What was simulated.
    method : str
        By which method, never ``"auto"``.
    replications : int
        Independent runs.
    horizon, warmup, spacing : float
        Observed and discarded time of each, and the time between observations; in the system's units of time.
    seed : int or SeedSequence
        As it was given.
    relaxation_time : float
        That of the limit, in the same units.
    """

    system: System
    method: str
    replications: int
    horizon: float
    warmup: float
    spacing: float
    seed: Seed
    relaxation_time: float


def plan_stationary(
    system: System,
    replications: int = 32,
    horizon: float | None = None,
    warmup: float | None = None,
    seed: Seed = 0,
    method: Method = "auto",
    spacing: float | None = None,
) -> Run:
    """Return what `simulate_stationary` would run with these arguments, checked, defaults filled in.

    Parameters
    ----------
    system, replications, horizon, warmup, seed, method, spacing
        As of `simulate_stationary`.

    Raises
    ------
    UnstableError
        If the system has no stationary law.
    ValueError
        If an argument is out of range, or the run would take weeks.

    Examples
    --------
    >>> from rankrouting import System, mjsq
    >>> plan = plan_stationary(System(n=10_000, K=10, upsilon=1.0, policy=mjsq(c=2.0)))
    >>> plan.method, plan.horizon / plan.relaxation_time
    ('lazy', 20.0)
    """
    require_system(system)
    analytic.gap_rates(system)  # raises UnstableError
    relaxation = analytic.relaxation_time(system)
    method_name = _methods.chosen_method(system, method)
    return planned(system, method_name, relaxation, replications, horizon, warmup, seed, spacing)


def planned(
    system: System,
    method: str,
    relaxation: float,
    replications: int,
    horizon: float | None,
    warmup: float | None,
    seed: Seed,
    spacing: float | None,
) -> Run:
    """Return a checked run of a method, with defaults from a relaxation time; raise as `plan_stationary`."""
    replications = checks.whole("replications", replications, at_least=2, at_most=checks.MOST_REPLICATIONS)
    horizon = checks.real("horizon", HORIZON_RELAXATIONS * relaxation if horizon is None else horizon, above=0)
    warmup = checks.real("warmup", WARM_UP_RELAXATIONS * relaxation if warmup is None else warmup, at_least=0)
    spacing = checks.real(
        "spacing",
        min(relaxation / _OBSERVATIONS_PER_RELAXATION, horizon) if spacing is None else spacing,
        above=0,
    )
    if spacing > horizon:
        raise ValueError(f"spacing = {spacing:g}: must be at most the horizon, {horizon:g}")
    if horizon < relaxation:
        raise ValueError(
            f"horizon = {horizon:g}: must be at least one relaxation time, {relaxation:.4g}, to mean anything"
        )
    _methods.check_work(system, method, "horizon + warmup", horizon + warmup, replications)
    if horizon / spacing > _MOST_OBSERVATIONS:
        raise ValueError(
            f"spacing = {spacing:g}: at most {_MOST_OBSERVATIONS:.0e} observations of a horizon are allowed"
        )
    if replications * (horizon / spacing) * system.K > _MOST_OBSERVED:
        raise ValueError(
            f"spacing = {spacing:g}: {replications} replications of {horizon / spacing:.3g} observations of {system.K}"
            f" queues; at most {_MOST_OBSERVED:.0e} lengths are allowed"
        )
    return Run(system, method, replications, horizon, warmup, spacing, seed, relaxation)
