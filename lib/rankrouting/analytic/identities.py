"""Formulas for the n-th system that are exact at every n: no limit, no simulation.

Public through `analytic`. Lengths are in limit units, jobs divided by √n, unless stated otherwise; λ_k is
the arrival rate at the queue of rank k, λ_n their sum. Chapters: most.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import checks
from ..checks import UnstableError
from ..model import CollapsedLimit, System, require_system
from .gap_laws import Model, gap_rates, overload_gap_rates, without_common
from .hypoexponential import float_or_array


def balance_residual(model: Model, mean_ranked: ArrayLike, mean_total: ArrayLike | None = None) -> Any:
    """thm-balance-residual: the drift of Σ x_k² vanishes in the stationary state, whatever the policy.

    For a `System`, exact at every n: Σ_k (n−λ_k)/√n · E x_(k) − λ_n/n, with λ_k the arrival rate at rank
    k. For a `Limit`: −Σ_k δ_k E x_(k) − K·(variance + common)/2; for a `CollapsedLimit`: (υ/K) Σ_k E x_(k) −
    variance/2.

    Parameters
    ----------
    model : System, Limit or CollapsedLimit
    mean_ranked : array of shape (..., K)
        Stationary means of the ranked lengths in limit units; leading axes are replications.
    mean_total : float or array of shape (...), optional
        Another estimate of the mean total, only for a `System`: the residual is then that of
        (n−μ)/√n · E total = r/√n · Σ_k p_k E x_(k) + λ_n/n, r the ranked rate and μ the uniform
        rate at each queue; n−μ = (υ+c)√n/K for policies that rank only some jobs.

    Returns
    -------
    float or array of shape (...)
        In limit units over time; 0 when the means are right.

    Raises
    ------
    UnstableError
        If there is no stationary law.
    ValueError
        If a shape does not fit, or `mean_total` is given without a `System`.

    Notes
    -----
    Source: derived here.

    Examples
    --------
    >>> from rankrouting import Limit
    >>> limit = Limit(2, [0.5, -1.5])
    >>> abs(balance_residual(limit, [1.0, 5 / 3])) < 1e-15
    True
    """
    gap_rates(without_common(model))
    means = _means(mean_ranked, model.K)
    if isinstance(model, System):
        total = means.sum(axis=-1) if mean_total is None else checks.finite_array("mean_total", mean_total)
        spare = (model.n - model.uniform_rate / model.K) / model.sqrt_n
        ranked = model.ranked_rate / model.sqrt_n * (means @ model.rank_probabilities)
        return float_or_array(spare * total - ranked - model.arrival_rate / model.n)
    if mean_total is not None:
        raise ValueError("mean_total: only a System knows its ranked stream, which this form needs")
    if isinstance(model, CollapsedLimit):
        return float_or_array(model.upsilon / model.K * means.sum(axis=-1) - model.variance / 2)
    return float_or_array(-(means @ model.drifts) - model.K * (model.variance + model.common) / 2)


def mean_total_by_balance(system: System, mean_ranked: ArrayLike) -> Any:
    """Return the mean total that follows from Σ_k p_k E x_(k) by the balance identity.

    It is K/(υ+c) · (c Σ_k p_k E x_(k) + λ_n/n), exact at every n. For MJSQ it needs the mean of the shortest
    queue only, which varies much less than the total.

    Parameters
    ----------
    system : System
        With a policy that ranks a stream of rate c√n, not every job.
    mean_ranked : array of shape (..., K)
        Stationary means of the ranked lengths, limit units; those of ranks with p_k = 0 do not count.

    Returns
    -------
    float or array of shape (...)
        In limit units.

    Raises
    ------
    UnstableError
        If there is no stationary law.
    ValueError
        If the policy ranks every job, or the shape does not fit.

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> system = System(n=25, K=2, upsilon=1.0, policy=mjsq(c=2.0))
    >>> round(5 * mean_total_by_balance(system, np.array([4.408138, 0.0]) / 5), 6)  # jobs
    11.877517
    """
    require_system(system)
    c, K = system.policy.c, system.K
    if c is None:
        raise ValueError(f"policy = {system.policy.name}: ranks every job; the identity needs a ranked stream c√n")
    gap_rates(system)
    ranked = c * (_means(mean_ranked, K) @ system.rank_probabilities)
    return float_or_array(K / (system.upsilon + c) * (ranked + system.arrival_rate / system.n))


def idle_servers(system: System) -> float:
    """thm-idle-servers: the stationary mean number of idle servers is υ/√n, whatever the routing.

    Exact at every n: jobs come and go at the same rate. Number of servers, not limit units.

    Raises
    ------
    UnstableError
        If there is no stationary law.

    Notes
    -----
    Source: derived here.

    Examples
    --------
    >>> from rankrouting import jsq
    >>> idle_servers(System(n=100, K=10, upsilon=1.0, policy=jsq()))
    0.1
    """
    require_system(system)
    gap_rates(system)
    return system.upsilon / system.sqrt_n


def mean_idle_time(system: System, t: float, gained: float = 0.0) -> float:
    """prop-flow-balance: the mean time that all servers together have been idle until t, (gained + υt)/√n.

    Exact at every n, stable or not, whatever the routing: n times it is what came less what has stayed.

    Parameters
    ----------
    system : System
    t : float
        At least 0.
    gained : float, default 0
        Mean total at time t minus that at time 0, in limit units; 0 in the stationary state.

    Returns
    -------
    float
        Servers times time, at least 0 if `gained` is right.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Source: derived here.

    Examples
    --------
    >>> from rankrouting import jsq
    >>> mean_idle_time(System(n=100, K=10, upsilon=1.0, policy=jsq()), t=3.0)
    0.3
    """
    require_system(system)
    t, gained = checks.real("t", t, at_least=0), checks.real("gained", gained)
    return (gained + system.upsilon * t) / system.sqrt_n


def overload_mean_excess(system: System) -> float:
    """prop-overload-excess: the mean length minus that where ranked jobs go, if no queue is empty.

    (K−1)/c · (1 − υ/(2K√n)) in limit units, exact at every n once the gaps have settled down; for MJSQ it is the
    excess of the mean length over the shortest queue.

    Raises
    ------
    UnstableError
        If the gaps do not settle down.
    ValueError
        If the policy ranks every job.

    Notes
    -----
    Source: derived here, from the drift of Σ (Q_i − mean)².

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> overload_mean_excess(System(n=25, K=2, upsilon=-1.0, policy=mjsq(c=2.0)))
    0.525
    """
    require_system(system)
    c, K = system.policy.c, system.K
    if c is None:
        raise ValueError(f"policy = {system.policy.name}: ranks every job; the identity needs a ranked stream c√n")
    overload_gap_rates(system)
    return (K - 1) / c * (1 - system.upsilon / (2 * K * system.sqrt_n)) if K > 1 else 0.0


def pauses_gap_ratios(system: System) -> NDArray[np.float64]:
    """With pauses the stationary gaps are independent and geometric.

    In the system with pauses an arrival or departure that would break the order of tied queues is lost.
    Then P(Z_k ≥ m) = ρ_k^m with ρ_k = Π_{j≥k} λ_j/n, λ_j the arrival rate at rank j: exact at every n.

    Returns
    -------
    array of shape (K,)
        ρ_1, …, ρ_K, for gaps in jobs; −√n·log ρ_k tends to θ_k.

    Raises
    ------
    UnstableError
        If some ρ_k is not below 1.

    Notes
    -----
    Source: derived here, as an open Jackson network of gaps; compare Banerjee, Budhiraja and Loeser.

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> pauses_gap_ratios(System(n=25, K=2, upsilon=1.0, policy=mjsq(c=2.0)))
    array([0.77, 0.7 ])
    """
    require_system(system)
    ratios = np.cumprod(system.rank_arrival_rates[::-1] / system.n)[::-1].astype(np.float64)
    bad = np.flatnonzero(ratios >= 1 - system.K * np.finfo(float).eps)
    if bad.size:
        named = ", ".join(f"rho_{k + 1} = {ratios[k]:g}" for k in bad[:4]) + (", …" if bad.size > 4 else "")
        raise UnstableError(f"{named}: must be below 1; the arrival rates at ranks k to K over n must have product < 1")
    return ratios


def mm1_law(system: System) -> Any:
    """Return the stationary law of one queue in **jobs** when all queues get the same arrival rate.

    Exact at every n: an M/M/1 queue, P(Q = j) = (1−load)·load^j, as a frozen distribution of scipy.

    Raises
    ------
    ValueError
        If the arrival rate depends on the rank, so that a queue is no M/M/1 queue.
    UnstableError
        If υ is not above 0.

    Examples
    --------
    >>> from rankrouting import random_routing
    >>> law = mm1_law(System(n=100, K=5, upsilon=1.0, policy=random_routing()))
    >>> round(float(law.mean()), 9), round(float(law.pmf(0)), 9)
    (49.0, 0.02)
    """
    require_system(system)
    if not np.allclose(system.rank_arrival_rates, system.arrival_rate / system.K, rtol=1e-12, atol=0):
        raise ValueError(f"policy = {system.policy.name}: arrivals depend on the rank; uniform routing is needed")
    gap_rates(system)
    from scipy import stats  # takes as long to import as all the rest of the library

    return stats.geom(1 - system.load, loc=-1)


def mm1_mean(system: System) -> float:
    """Return the mean of `mm1_law`, load/(1−load), in **jobs**, exact at every n; raise as it.

    Source: the M/M/1 queue.

    Examples
    --------
    >>> from rankrouting import random_routing
    >>> round(mm1_mean(System(n=100, K=5, upsilon=1.0, policy=random_routing())), 9)
    49.0
    """
    mm1_law(system)
    return system.load / (1 - system.load)


def communication_rate(system: System) -> float:
    """prop-communication: how many queue lengths the router asks for per unit time, ranked jobs times lookups.

    Exact at every n: cK√n for MJSQ, K·λ_n for JSQ, d·λ_n for JSQ(d), 0 for uniform random routing.

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> communication_rate(System(n=10_000, K=10, upsilon=1.0, policy=mjsq(c=2.0)))
    2000.0
    """
    require_system(system)
    return system.ranked_rate * system.policy.rank_law.lookups(system.K)


def _means(mean_ranked: ArrayLike, K: int) -> NDArray[np.float64]:
    means = checks.finite_array("mean_ranked", mean_ranked)
    if means.ndim == 0 or means.shape[-1] != K:
        raise ValueError(f"mean_ranked of shape {means.shape}: must end in K = {K}")
    return means
