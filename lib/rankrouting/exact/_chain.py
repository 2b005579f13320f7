"""The Markov chain of the sorted queue lengths: states, transitions, sparse generator, first guess.

States are rows of ranked lengths (ascending) in lexicographic order, so that a number whose digits
are the gaps finds one by bisection. A move out of the kept states is cut: an arrival is lost, a
departure is replaced by one from every nonempty queue, so that no state is a trap. Used by `exact`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, lgamma, log
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import brentq

from ..model import System

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
States = NDArray[np.int32]


class Moves(NamedTuple):
    """Moves of one rank by one job: from which rows, up or down, at which rates."""

    rows: Ints
    rank: int  # counted from 0
    step: int
    rates: Floats


def moves(states: States, system: System) -> Iterator[Moves]:
    """Yield the moves of the sorted chain: of tied queues, the last one goes up, the first down."""
    K = states.shape[1]
    rates_below = np.concatenate([[0.0], np.cumsum(system.rank_arrival_rates)])
    tied_with_next = np.zeros(states.shape, dtype=bool)
    tied_with_next[:, :-1] = states[:, 1:] == states[:, :-1]
    first_tied = np.zeros(len(states), dtype=np.int64)
    for k in range(K):
        if k:
            first_tied = np.where(tied_with_next[:, k - 1], first_tied, k)
        rows = np.flatnonzero(~tied_with_next[:, k])
        rates = rates_below[k + 1] - rates_below[first_tied[rows]]
        rows, rates = rows[rates > 0], rates[rates > 0]
        if rows.size:
            yield Moves(rows, k, 1, rates)
    group = np.zeros(len(states), dtype=np.int64)
    for k in reversed(range(K)):
        group = np.where(tied_with_next[:, k], group + 1, 1)
        is_first = states[:, k] > 0
        if k:
            is_first &= ~tied_with_next[:, k - 1]
        rows = np.flatnonzero(is_first)
        if rows.size:
            yield Moves(rows, k, -1, system.n * group[rows].astype(np.float64))


@dataclass(frozen=True)
class Index:
    """Finds states, in lexicographic order, by a number whose digits are the gaps."""

    powers: Ints
    keys: Ints

    @classmethod
    def of(cls, states: States) -> Index:
        """Make the index; gaps one larger than the largest can be looked up."""
        gaps = np.diff(states, axis=1, prepend=0)
        bases = [int(largest) + 2 for largest in gaps.max(axis=0)]
        if math.prod(bases) >= 2**63:
            raise OverflowError(f"{len(bases)} gaps of up to {max(bases) - 2} do not fit a 64-bit key")
        powers = np.array([math.prod(bases[k + 1 :]) for k in range(len(bases))], dtype=np.int64)
        return cls(powers, gaps.astype(np.int64) @ powers)

    def job(self, rank: int) -> int:
        """Return what one more job at `rank` adds to a key: its gap widens and the next one narrows."""
        return int(self.powers[rank]) - int(self.powers[rank + 1 : rank + 2].sum())

    def find(self, keys: Ints) -> Ints:
        """Return the row of each key, −1 where there is none."""
        rows = np.searchsorted(self.keys, keys)
        rows[rows == len(self.keys)] = 0
        return np.where(self.keys[rows] == keys, rows, -1)


def generator(states: States, system: System) -> tuple[sp.csr_array, NDArray[np.bool_]]:
    """Return the transposed generator on `states`, whose columns sum to zero, and where a move is cut."""
    index = Index.of(states)
    cut = np.zeros(len(states), dtype=bool)
    parts: list[tuple[Ints, Ints, Floats]] = []
    for rows, rank, step, rates in moves(states, system):
        target = index.find(index.keys[rows] + step * index.job(rank))
        missing = target < 0
        cut[rows[missing]] = True
        if step < 0 and missing.any():
            # A job from every nonempty queue: the first gap that is not zero narrows.
            leaving = rows[missing]
            first = np.argmax(states[leaving] > 0, axis=1)
            target[missing] = index.find(index.keys[leaving] - index.powers[first])
        kept = target >= 0
        parts.append((target[kept], rows[kept], rates[kept]))
    to, source, rate = (np.concatenate(column) for column in zip(*parts, strict=True))
    outflow = np.bincount(source, weights=rate, minlength=len(states))
    everyone = np.arange(len(states), dtype=np.int32)
    to = np.concatenate([to.astype(np.int32), everyone])
    source = np.concatenate([source.astype(np.int32), everyone])
    matrix = sp.csr_array((np.concatenate([rate, -outflow]), (to, source)), shape=(len(states), len(states)))
    return matrix, cut


def simplex(weights: Floats, size: float) -> NDArray[np.int32]:
    """Return all vectors of whole gaps with Σ weights·gaps ≤ size, in lexicographic order."""
    vectors = np.zeros((1, 0), dtype=np.int32)
    room = np.array([size + 1e-9 * weights.min()])
    for weight in weights:
        count = (room / weight).astype(np.int64) + 1
        source = np.repeat(np.arange(len(room)), count)
        start = np.cumsum(count) - count
        value = (np.arange(len(source)) - start[source]).astype(np.int32)
        vectors = np.column_stack([vectors[source], value])
        room = room[source] - weight * value
    return vectors


def simplex_count(weights: Floats, size: float) -> float:
    """Return about how many vectors `simplex` has: the volume with half a cell added on each side."""
    columns = len(weights)
    logarithm = columns * log(size + weights.sum() / 2) - lgamma(columns + 1) - float(np.log(weights).sum())
    return exp(min(logarithm, 600.0))


def ranked_states(gap_vectors: NDArray[np.int32]) -> States:
    """Return the ranked lengths that have these gaps."""
    return np.cumsum(gap_vectors, axis=1, dtype=np.int32)


def decay_rates(system: System) -> Floats:
    """Guess the exponential decay rate of each gap, per job: exact for c = 0 and in heavy traffic.

    The shortest decays as K jobs of the total do. Gap k: the rate at which the two groups of queues
    would drift apart if none were empty, which is the exponent of a martingale, plus that of the upper
    group's part of the total. In limit units this is θ_k.
    """
    n, K = system.n, system.K
    rates = system.rank_arrival_rates
    per_job = -log(system.load)
    decay = [K * per_job]
    for k in range(1, K):
        lower, upper = float(rates[:k].sum()), float(rates[k:].sum())

        def drift(r: float, k: int = k, lower: float = lower, upper: float = upper) -> float:
            a, b = exp(r / (K - k)), exp(r / k)
            # Divided by r, which removes the root at zero.
            up = upper * (a - 1) + (K - k) * n * (1 / a - 1)
            down = lower * (1 / b - 1) + k * n * (b - 1)
            return (up + down) / (n * r)

        apart, slope = 0.0, drift(1e-9)
        if abs(slope) > 1e-6:
            # Convex and zero at zero: the other root is on the side where it starts downhill.
            side = -math.copysign(1.0, slope)
            end = side
            while drift(end) * side < 0:
                end *= 2
            apart = brentq(drift, 1e-9 * side, end, rtol=1e-3)
        both = apart + (K - k) * per_job
        if upper > 0:
            # Exact if the lower queues were never empty for want of rank: a bound on either side.
            alone = -(K - k) * log(upper / ((K - k) * n))
            both = min(max(both, 0.2 * alone), alone)
        decay.append(both)
    return np.array(decay)


def geometric_guess(states: States, decay: Floats) -> Floats:
    """Return independent geometric gaps on the sorted states, not normalized; ties have fewer orders."""
    exponent = -(np.diff(states, axis=1, prepend=0) @ decay)
    tied = np.ones(len(states))
    for k in range(1, states.shape[1]):
        tied = np.where(states[:, k] == states[:, k - 1], tied + 1, 1)
        exponent -= np.log(tied)
    # Far out any positive number will do; this one has a square root and an inverse.
    return np.exp(np.maximum(exponent - exponent.max(), -150.0))
