"""The stationary and the transient law of the sorted queue lengths, for any policy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammainccinv
from threadpoolctl import threadpool_limits

from .. import analytic, checks
from ..checks import UnstableError
from ..model import System, require_system
from . import _chain, _multigrid, _qbd, _transient
from ._multigrid import NotConvergedError

Floats = NDArray[np.float64]

MEMORY = 4 * 2**30
EDGE_MASS = 1e-10
RELATIVE_ERROR = 1e-9
RESIDUAL = 1e-12
ATTEMPTS = 6
_LARGEST_LENGTH = 10**9
_MOST_STEPS = 1e8
_MOST_WORK = 1e13

# Linear algebra on several threads rounds differently on every machine, and on a busy one it mostly waits.
_one_thread = threadpool_limits.wrap(limits=1, user_api="blas")


class TooManyStatesError(ValueError):
    """The chain would have more states than fit in the memory allowed."""


# ---- The stationary law ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StationaryLaw:
    """The stationary law of the ranked queue lengths, in jobs.

    Attributes
    ----------
    mean_total : float
        E ΣQ.
    mean_ranked : array of shape (K,)
        E Q_(1), …, E Q_(K), the shortest first.
    second_moment_total : float
        E (ΣQ)².
    states : array of shape (S, K)
        Whole numbers, ascending along each row; rows in lexicographic order.
    probabilities : array of shape (S,)
        Probability of each state.
    edge_mass : float
        Probability of the states where a move is cut and of the states that are not listed.
    truncation : int
        The longest queue among `states`.
    """

    mean_total: float
    mean_ranked: Floats
    second_moment_total: float
    states: NDArray[np.int32]
    probabilities: Floats
    edge_mass: float
    truncation: int

    @property
    def variance_total(self) -> float:
        """Variance of the total, in jobs squared."""
        return self.second_moment_total - self.mean_total**2

    @property
    def mean_idle(self) -> float:
        """Mean number of empty queues; υ/√n when nothing is cut."""
        return float(sum(self.probabilities[column == 0].sum() for column in self.states.T))

    def total_law(self) -> Any:
        """Return P(ΣQ = j) for j = 0, 1, …"""
        return np.bincount(self.states.sum(axis=1), weights=self.probabilities)

    def ranked_law(self, k: int) -> Any:
        """Return P(Q_(k) = j) for j = 0, 1, …; k = 1 is the shortest queue."""
        return np.bincount(self.states[:, self._rank(k)], weights=self.probabilities)

    def gap_law(self, k: int) -> Any:
        """Return P(Z_k = j) for j = 0, 1, …: Z_1 is the shortest length, Z_k the gap below rank k."""
        rank = self._rank(k)
        gap = self.states[:, rank] - (self.states[:, rank - 1] if rank else 0)
        return np.bincount(gap, weights=self.probabilities)

    def _rank(self, k: int) -> int:
        return _rank_index(k, self.states.shape[1])


@_one_thread
def stationary(system: System, truncation: int | None = None) -> StationaryLaw:
    """Return the stationary law of the ranked queue lengths of the n-th system, in jobs.

    Without `truncation` the states kept are chosen, and grown until the edge mass is below 1e-10 and the
    balance identity holds to a relative 1e-9: the relative error of the means is about that. Two queues
    use the matrix-geometric method, in which only the gap is cut, more queues (and two with a very long
    gap) multigrid on the states with Σ_k r_k Z_k ≤ L, r_k the decay rate of gap k.

    Parameters
    ----------
    system : System
        Any policy. About 4 GiB are used at most: for MJSQ with υ = 1, c = 2 that is K = 2 up to n of
        about 10⁵ (10⁴ takes half a minute), K = 3 up to about 200, K = 4 up to about 20.
    truncation : int, optional
        The longest queue kept, at least 1. An arrival that would make it longer is lost.

    Returns
    -------
    StationaryLaw

    Raises
    ------
    UnstableError
        If there is no stationary law.
    TooManyStatesError
        If the states would not fit in memory; found before they are made.
    NotConvergedError
        If the law was not reached to working accuracy.
    ValueError
        If `truncation` is not a whole number of at least 1.

    Notes
    -----
    Source: level-independent quasi-birth-death chains by cyclic reduction; aggregation multigrid.

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> law = stationary(System(n=25, K=2, upsilon=1.0, policy=mjsq(c=2.0)))
    >>> round(law.mean_total, 6), round(float(law.mean_ranked[0]), 6)
    (11.877518, 4.408138)
    >>> round(law.mean_idle, 9)  # υ/√n
    0.2
    """
    require_system(system)
    _require_stable(system)
    # A job in any of the queues at least: found before anything of the size of K is computed.
    _require_memory(system, system.K + 1.0, _sparse_bytes(system.K, system.K + 1.0), "at least")
    if truncation is not None:
        longest = checks.whole("truncation", truncation)
        count = float(min(math.comb(longest + system.K, system.K), 10**250))
        _require_memory(system, count, _sparse_bytes(system.K, count), f"with truncation = {longest}")
        weights = np.ones(system.K)
        return _sparse(system, weights, float(longest))
    if system.K == 1:
        return _one_queue(system)
    # P(Gamma(K) > size): the tail of Σ_k r_k Z_k if the gaps are independent exponentials. Gaps of a few jobs
    # are whole numbers, no exponentials, and need more.
    size = float(gammainccinv(system.K, EDGE_MASS / 2) + min(3.0, _chain.decay_rates(system).sum()))
    for _ in range(ATTEMPTS):
        law = _truncated(system, size)
        error = max(abs(_balance_defect(system, law.mean_ranked)) / RELATIVE_ERROR, law.edge_mass / EDGE_MASS)
        if error <= 1:
            return law
        size += 1 + math.log(error)
    raise NotConvergedError(
        f"{ATTEMPTS} truncations were too small: edge mass {law.edge_mass:.1e} with {len(law.states)} states"
    )


def _truncated(system: System, size: float) -> StationaryLaw:
    """Choose the cheaper method that fits in memory; `size` is the exponent at which the tail is cut."""
    decay = _chain.decay_rates(system)
    count = _chain.simplex_count(decay, size)
    sparse_bytes, sparse_seconds = _sparse_bytes(system.K, count), 12e-6 * count
    if system.K == 2:
        # The tail of one gap is shorter than that of the sum.
        largest_gap = math.ceil((size - 2) / decay[1])
        states = _qbd.levels_needed(system) * (largest_gap + 1.0)
        qbd_bytes, qbd_seconds = 100.0 * largest_gap**2 + 24.0 * states, 4e-9 * largest_gap**3
        if qbd_bytes <= MEMORY and (qbd_seconds < sparse_seconds or sparse_bytes > MEMORY):
            return _matrix_geometric(system, largest_gap)
        count = min(count, states)
    _require_memory(system, count, sparse_bytes, f"for an edge mass below {EDGE_MASS:g}")
    return _sparse(system, decay, size)


def _one_queue(system: System) -> StationaryLaw:
    """M/M/1: geometric; lengths are listed up to a tail of 1e-16."""
    load = system.load
    longest = math.ceil(-37 / math.log(load))
    _require_memory(system, longest, 12.0 * longest, "for a tail of 1e-16")
    states = np.arange(longest + 1, dtype=np.int32)[:, np.newaxis]
    mean = load / (1 - load)
    return StationaryLaw(
        mean_total=mean,
        mean_ranked=np.array([mean]),
        second_moment_total=mean * (1 + load) / (1 - load),
        states=states,
        probabilities=(1 - load) * load ** states[:, 0].astype(np.float64),
        edge_mass=load ** (longest + 1),
        truncation=longest,
    )


def _matrix_geometric(system: System, largest_gap: int) -> StationaryLaw:
    result = _qbd.two_queues(system, largest_gap)
    if not result.residual <= RESIDUAL:
        raise NotConvergedError(f"cyclic reduction left a residual of {result.residual:.1e}")
    levels, gaps = result.levels.shape
    states = np.empty((levels, gaps, 2), dtype=np.int32)
    states[:, :, 0] = np.arange(levels)[:, np.newaxis]
    states[:, :, 1] = states[:, :, 0] + np.arange(gaps)
    return StationaryLaw(
        mean_total=2 * result.shortest + result.gap,
        mean_ranked=np.array([result.shortest, result.shortest + result.gap]),
        second_moment_total=result.second_moment_total,
        states=states.reshape(-1, 2),
        probabilities=result.levels.reshape(-1),
        edge_mass=result.edge_mass,
        truncation=levels + gaps - 2,
    )


def _sparse(system: System, weights: Floats, size: float) -> StationaryLaw:
    states = _chain.ranked_states(_chain.simplex(weights, size))
    try:
        matrix, cut = _chain.generator(states, system)
    except OverflowError as error:
        raise TooManyStatesError(f"K = {system.K}, n = {system.n}: {error}") from None
    guess = _chain.geometric_guess(states, _chain.decay_rates(system))
    probabilities = _multigrid.stationary_law(matrix, states, guess)
    change = matrix @ probabilities
    residual = float(np.abs(change).sum()) / (system.arrival_rate + system.n * system.K)
    # Slow modes hide in a small residual but not in the drift of Σ q², which is zero too.
    squares = (states.astype(np.float64) ** 2).sum(axis=1)
    drift = abs(float(change @ squares)) / system.arrival_rate
    if not (residual <= RESIDUAL and drift <= RELATIVE_ERROR):
        raise NotConvergedError(f"multigrid left a residual of {residual:.1e} and a drift of {drift:.1e}")
    total = states.sum(axis=1)
    mean_ranked = probabilities @ states
    return StationaryLaw(
        mean_total=float(mean_ranked.sum()),
        mean_ranked=mean_ranked,
        second_moment_total=float(probabilities @ total.astype(np.float64) ** 2),
        states=states,
        probabilities=probabilities,
        edge_mass=float(probabilities[cut].sum()),
        truncation=int(states[:, -1].max()),
    )


def _balance_defect(system: System, mean_ranked: Floats) -> float:
    """Return the defect of the balance identity relative to λ_n/n; mean lengths in jobs."""
    defect = analytic.balance_residual(system, mean_ranked / system.sqrt_n)
    return float(defect) * system.n / system.arrival_rate


def _sparse_bytes(K: int, count: float) -> float:
    """Measured on a few chains: matrices of 2K + 1 entries a row, and the vectors of GMRES."""
    return count * (36.0 * (2 * K + 1) + 300.0)


# ---- The law at given times -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TransientLaw:
    """The law of the ranked queue lengths at given times, in jobs.

    Attributes
    ----------
    times : array of shape (T,)
        In the time unit of the system.
    states : array of shape (S, K)
        Whole numbers, ascending along each row.
    probabilities : array of shape (T, S)
        Probability of each state at each time.
    edge_mass : array of shape (T,)
        Probability of having left the states by then: no probability is wrong by more.
    """

    times: Floats
    states: NDArray[np.int32]
    probabilities: Floats
    edge_mass: Floats

    @property
    def mean_ranked(self) -> Floats:
        """E Q_(k)(t), shape (T, K)."""
        return self.probabilities @ self.states

    @property
    def mean_total(self) -> Floats:
        """E ΣQ(t), shape (T,)."""
        return self.mean_ranked.sum(axis=1)

    def ranked_cdf(self, k: int, time_index: int) -> Floats:
        """Return P(Q_(k) ≤ j) for j = 0, 1, … at ``times[time_index]``; k = 1 is the shortest queue."""
        lengths = self.states[:, _rank_index(k, self.states.shape[1])]
        time_index = checks.whole("time_index", time_index, at_least=0, at_most=len(self.times) - 1)
        return np.cumsum(np.bincount(lengths, weights=self.probabilities[time_index]))


@_one_thread
def transient(system: System, x0: ArrayLike, times: ArrayLike) -> TransientLaw:
    """Return the law of the ranked lengths of one or two queues at given times, from a fixed start.

    The system need not be stable. The lengths kept are grown until at most 1e-10 of the mass has left
    them. The work is about 2nKt steps on about (15√(2nt))² states: at n = 2500 and t = 1 some 10⁴ steps
    on 10⁶ states.

    Parameters
    ----------
    system : System
        With K = 1 or 2, any policy.
    x0 : array_like of shape () or (K,)
        Lengths at time 0, in **jobs**: whole numbers, in any order.
    times : array_like of shape (T,)
        Nonnegative and increasing.

    Returns
    -------
    TransientLaw

    Raises
    ------
    ValueError
        If K > 2, or an argument is out of range.
    TooManyStatesError
        If the states would not fit in memory.

    Notes
    -----
    Source: uniformization.

    Examples
    --------
    >>> from rankrouting import jsq
    >>> law = transient(System(n=1, K=2, upsilon=0.5, policy=jsq()), x0=[3, 0], times=[0.0, 0.5, 100.0])
    >>> law.mean_total.round(4)
    array([3.    , 3.1202, 3.6682])
    """
    require_system(system)
    K = system.K
    if K > 2:
        raise ValueError(f"K = {K}: the law at given times is computed for one or two queues")
    lengths = checks.starting_points(x0, 1, K)[0]
    if np.any(lengths != np.floor(lengths)):
        raise ValueError(f"x0 = {lengths.tolist()}: must be whole numbers of jobs")
    if np.any(lengths > _LARGEST_LENGTH):
        raise ValueError(f"x0 = {lengths.tolist()}: must be at most {_LARGEST_LENGTH:.0e} jobs")
    start = np.sort(lengths.astype(np.int64))
    at = checks.sample_times(times)
    steps = (system.arrival_rate + system.n * system.K) * float(at[-1])
    if not steps < _MOST_STEPS:
        raise ValueError(f"times up to {at[-1]:g}: about {steps:.1e} steps; at most {_MOST_STEPS:.0e} are allowed")
    for attempt in range(ATTEMPTS):
        kept = _transient.window(system, start, float(at[-1]), 1.4**attempt)
        count = math.prod(kept.shape)
        _require_memory(system, count, count * (24.0 + 16.0 * len(at)), f"at {len(at)} times")
        if not steps * count < _MOST_WORK:
            raise ValueError(
                f"times up to {at[-1]:g}: about {steps:.1e} steps on {count:.1e} states; a product of at most"
                f" {_MOST_WORK:.0e} is allowed"
            )
        laws = _transient.propagate(system, start, at, kept)
        edge_mass = 1 - laws.reshape(len(at), -1).sum(axis=1)
        if edge_mass[-1] <= EDGE_MASS:
            break
    else:
        raise NotConvergedError(f"{ATTEMPTS} windows were too small: {edge_mass[-1]:.1e} of the mass left them")
    states = np.indices(kept.shape, dtype=np.int32).reshape(K, -1).T + kept.low.astype(np.int32)
    ordered = states[:, 0] <= states[:, -1]
    return TransientLaw(
        times=at,
        states=states[ordered],
        probabilities=laws.reshape(len(at), -1)[:, ordered],
        edge_mass=np.maximum(edge_mass, 0.0),
    )


# ---- Checks ---------------------------------------------------------------------------------------


def _require_stable(system: System) -> None:
    """Raise unless the K−k+1 longest queues together lose more jobs than they get, for every k."""
    K = system.K
    arrivals = np.cumsum(system.rank_arrival_rates[::-1])[::-1]
    capacity = np.arange(K, 0, -1) * float(system.n)
    # A load of 1 up to rounding is not below 1.
    overloaded = np.flatnonzero(arrivals >= capacity * (1 - 1e-13))
    if overloaded.size:
        k = int(overloaded[0])
        raise UnstableError(
            f"k = {k + 1}: the {K - k} longest queues get {arrivals[k]:g} jobs per unit time; a"
            f" stationary law needs fewer than they can serve, {capacity[k]:g}"
        )


def _require_memory(system: System, count: float, needed: float, purpose: str) -> None:
    if needed > MEMORY:
        raise TooManyStatesError(
            f"K = {system.K}, n = {system.n}: about {count:.2g} states {purpose} would take"
            f" {needed / 2**30:.3g} GiB; {MEMORY / 2**30:g} GiB are allowed, about"
            f" {count * MEMORY / needed:.2g} states"
        )


def _rank_index(k: int, K: int) -> int:
    rank = checks.whole("k", k)
    if rank > K:
        raise ValueError(f"k = {rank}: there are K = {K} ranks")
    return rank - 1
