"""Two queues whose ranking is read only every τ, exactly. Public through `exact`; chapter: policies."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy  # its parts are imported when they are used
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from .. import analytic, checks
from ..model import System, require_system
from ._multigrid import NotConvergedError
from .laws import ATTEMPTS, EDGE_MASS, TooManyStatesError

Floats = NDArray[np.float64]

_LONGEST = 1500


class StaleMeans(NamedTuple):
    """Stationary means over time of two queues under stale ranks, in jobs.

    Attributes
    ----------
    mean_total : float
        E ΣQ.
    mean_read : array of shape (2,)
        Mean length, over time, of the queue that was shorter at the last reading, and of the other.
    edge_mass : float
        Probability of the longest length kept, at readings: what cutting off the lengths may have moved.
    """

    mean_total: float
    mean_read: Floats
    edge_mass: float


@threadpool_limits.wrap(limits=1, user_api="blas")  # as `exact.stationary`
def stale_pair(system: System, tau: float) -> StaleMeans:
    """Return stationary means of two queues that are ranked by their lengths at 0, τ, 2τ, …, exactly.

    Between readings the queues are independent M/M/1 queues, so the lengths at readings are a Markov chain
    whose step is the product of two exponentials of tridiagonal matrices. Lengths are cut off where their
    probability is below 1e-10. The work grows like the third power of the longest length.

    Parameters
    ----------
    system : System
        Stable, with K = 2 and a policy that ranks a stream of rate c√n.
    tau : float
        Time between readings, above 0.

    Raises
    ------
    ValueError
        If K is not 2, every job is ranked, or τ is not above 0.
    UnstableError
        If the system has no stationary law with fresh ranks.
    TooManyStatesError
        If the queues are too long for dense matrices.

    Notes
    -----
    Source: derived here.

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> system = System(n=9, K=2, upsilon=2.0, policy=mjsq(c=2.0))
    >>> [round(stale_pair(system, tau).mean_total, 4) for tau in (0.01, 1.0)]
    [2.9203, 4.1315]
    """
    require_system(system)
    if system.K != 2 or system.policy.ranks_every_job:
        raise ValueError(f"K = {system.K}, {system.policy.name}: two queues and a ranked stream of rate c√n are needed")
    tau = checks.real("tau", tau, above=0)
    fresh = analytic.gap_rates(system)
    speed = max(float((system.rank_arrival_rates - system.n).max()), 0.0) / system.sqrt_n
    # Where the tail of both gaps is below 1e-13, and as far as a queue moves in a cycle.
    length = system.sqrt_n * (28 / fresh.min() + speed * tau + 5 * math.sqrt(tau))
    for _ in range(ATTEMPTS):
        size = math.ceil(length) + 20
        if size > _LONGEST:
            raise TooManyStatesError(f"n = {system.n}, tau = {tau:g}: lengths up to {size}; {_LONGEST} are allowed")
        law = _law_at_readings(system, tau, size)
        edge_mass = float(law[-1].sum() + law[:, -1].sum())
        if edge_mass <= EDGE_MASS:
            break
        length *= 1.4
    else:
        raise NotConvergedError(f"tau = {tau:g}: {edge_mass:.1e} of the mass is at the longest length kept")
    shorter = law.sum(axis=1), law.sum(axis=0)
    over_time = [_mean_over_time(system, k, tau, size) for k in (0, 1)]
    mean_read = np.array([shorter[k] @ over_time[k] for k in (0, 1)])
    return StaleMeans(float(mean_read.sum()), mean_read, edge_mass)


def _generator(system: System, k: int, size: int) -> Floats:
    """The M/M/1 queue with the arrival rate of rank k, lengths 0 to size − 1."""
    up, down = float(system.rank_arrival_rates[k]), float(system.n)
    matrix = np.diag(np.full(size - 1, up), 1) + np.diag(np.full(size - 1, down), -1)
    return matrix - np.diag(matrix.sum(axis=1))


def _law_at_readings(system: System, tau: float, size: int) -> Floats:
    """Return the law (size, size) of the lengths of the queue called shorter and the other, just after a reading."""
    steps = [scipy.linalg.expm(tau * _generator(system, k, size)) for k in (0, 1)]
    order = np.arange(size)
    keep = np.where(order[:, np.newaxis] < order, 1.0, np.where(order[:, np.newaxis] == order, 0.5, 0.0))

    def next_reading(flat: Floats) -> Floats:
        moved = steps[0].T @ flat.reshape(size, size) @ steps[1]
        return ((moved + moved.T) * keep).ravel()

    guess = np.exp(-np.add.outer(order, order) / system.sqrt_n) * keep
    operator = scipy.sparse.linalg.LinearOperator((size**2, size**2), matvec=next_reading, dtype=np.float64)
    _, vectors = scipy.sparse.linalg.eigs(operator, k=1, v0=guess.ravel(), ncv=60, tol=1e-12)
    law = np.abs(vectors[:, 0].real)
    law /= law.sum()
    residual = float(np.abs(next_reading(law) - law).sum())
    if not residual <= 1e-9:
        raise NotConvergedError(f"tau = {tau:g}: the law at readings has a residual of {residual:.1e}")
    result: Floats = law.reshape(size, size)
    return result


def _mean_over_time(system: System, k: int, tau: float, size: int) -> Floats:
    """Return, for each starting length, the mean length over a time τ with the arrival rate of rank k."""
    # exp of [[A, q], [0, 0]] holds the integral of exp(As)q.
    block = np.zeros((size + 1, size + 1))
    block[:size, :size] = _generator(system, k, size)
    block[:size, size] = np.arange(size)
    integral: Floats = scipy.linalg.expm(tau * block)[:size, size] / tau
    return integral
