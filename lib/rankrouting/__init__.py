"""Rank-based routing of jobs to parallel queues in heavy traffic, and its diffusion limit.

Executable companion to Banerjee, Budhiraja and Estevez, "Load Balancing in Parallel Queues and
Rank-Based Diffusions". Start with `System` and `System.limit`; `analytic` has a function for each
formula, `exact` laws at finite n, `queues`, `general` and `diffusion` simulate, and
`sweep` estimates over a grid.
"""

from importlib import import_module
from types import ModuleType

from .checks import UnstableError
from .model import CollapsedLimit, Limit, System
from .policies import (
    Policy,
    jsq,
    marginal_power_of_d,
    mjsq,
    msblb,
    power_of_d,
    random_routing,
)

__version__ = "0.1.0"

__all__ = [
    "CollapsedLimit",
    "Limit",
    "Policy",
    "System",
    "UnstableError",
    "analytic",
    "diffusion",
    "estimate",
    "exact",
    "general",
    "halfin_whitt",
    "jsq",
    "marginal_power_of_d",
    "mean_field",
    "mjsq",
    "msblb",
    "occupancy",
    "pauses",
    "plots",
    "power_of_d",
    "queues",
    "random_routing",
    "ranks",
    "sweep",
    "time_laws",
]


def __getattr__(name: str) -> ModuleType:
    """Import `analytic`, `exact` and the other modules when they are first asked for."""
    if name in __all__:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
