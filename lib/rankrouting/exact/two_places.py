"""JSQ with many servers: the exact stationary law when each server has room for two jobs.

Chapter: many_servers_jsq.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels.two_places import two_places_kernel
from ..model import System, require_system

Floats = NDArray[np.float64]

_EDGE_MASS = 1e-13
_MOST_WORK = 2e10


@dataclass(frozen=True, eq=False)
class TwoPlacesLaw:
    """The stationary law of JSQ with K servers, each with room for the job in service and one more.

    Attributes
    ----------
    mean_total, mean_idle, mean_twos : float
        Mean numbers of jobs, of idle servers and of servers with two jobs.
    second_moment_idle : float
        E I², I the number of idle servers.
    none_idle : float
        The share of jobs that find no server idle.
    lost : float
        The share of jobs that find all servers full. Without that limit of two they would be third jobs: where
        this share is negligible, so is the difference to JSQ with room for all.
    twos_law : array of shape (Q + 1,)
        P(Q_2 = q) for q = 0, …, Q; Q = K, or beyond it the probability is negligible.
    """

    mean_total: float
    mean_idle: float
    mean_twos: float
    second_moment_idle: float
    none_idle: float
    lost: float
    twos_law: Floats


def two_places(system: System) -> TwoPlacesLaw:
    """prop-two-places: the stationary law of JSQ when a job that finds two jobs at every server is lost.

    Parameters
    ----------
    system : System
        JSQ, stable or not: with lost jobs there always is a stationary law.

    Returns
    -------
    TwoPlacesLaw
        In jobs. No Monte Carlo: the relative error of means is some 1e-9, at K = 10⁶ 1e-8.

    Raises
    ------
    ValueError
        If the policy is not JSQ, or the chain is too large: about K·log K states, or K² near full load.

    Notes
    -----
    Source: derived here; the block structure is in `kernels.two_places`. JSQ with
    finite buffers, here of one job, is the system that Braverman, Stochastic Systems 13 (2023), studies.

    Examples
    --------
    >>> from rankrouting import System, jsq
    >>> law = two_places(System(n=1, K=1_000, upsilon=60.0, policy=jsq()))
    >>> round(law.mean_idle, 6), law.lost < 1e-6
    (60.0, True)
    """
    require_system(system)
    if not (system.policy.ranks_every_job and system.rank_probabilities[0] == 1.0):
        raise ValueError(f"policy = {system.policy.name}: must be jsq(): every job joins the shortest")
    K, arrivals = system.K, system.arrival_rate / system.n
    levels = min(K, _first_guess(K, K - arrivals))
    while True:
        if levels * 10.0 * math.sqrt(K) > _MOST_WORK:
            raise ValueError(f"K = {K}, load = {system.load:.6g}: the chain is too large; simulate it with occupancy")
        mass, idle, square, at_zero = np.zeros((4, levels + 1))
        two_places_kernel(K, arrivals, levels, mass, idle, square, at_zero)
        if levels == K or mass[-1] < _EDGE_MASS * mass.max():
            break
        levels = min(K, 2 * levels)
    twos = float(np.arange(levels + 1.0) @ mass)
    mean_idle = float(idle.sum())
    return TwoPlacesLaw(
        mean_total=K - mean_idle + twos,
        mean_idle=mean_idle,
        mean_twos=twos,
        second_moment_idle=float(square.sum()),
        none_idle=float(at_zero.sum()),
        lost=float(at_zero[K]) if levels == K else 0.0,
        twos_law=mass,
    )


def _first_guess(K: int, slack: float) -> int:
    """Return a number of servers with two jobs that is rarely passed: 32 decay lengths, and the spread of idle ones."""
    return 40 + math.ceil(10 * math.sqrt(K) + 32 * K / max(slack, 1.0))
