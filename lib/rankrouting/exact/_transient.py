"""Uniformization for one and two queues on a window of lengths; what leaves the window is lost.

The number of events up to t is Poisson, the state after each is one step of a chain in discrete time.
All terms are nonnegative, so nothing cancels, and the mass lost bounds the error of any
probability. Used by `exact`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv, gammaln

from .. import _jit
from .._threads import interruptible
from ..model import System
from . import _chain

Floats = NDArray[np.float64]

LOST = 1e-10  # of the mass, by the last time


class Window(NamedTuple):
    """Lengths kept for each rank: from `low` up to and including `high`, both of shape (K,)."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of lengths kept for each rank."""
        return tuple(int(size) for size in self.high - self.low + 1)


def window(system: System, ranked_start: NDArray[np.int64], horizon: float, widen: float) -> Window:
    """Return lengths that are hardly left up to `horizon`: 7.2 standard deviations and the drift.

    A queue follows its own drift until it meets the others, and from then on that of a group. What a
    stable system hardly ever reaches is left out.
    """
    rates, n = system.rank_arrival_rates, system.n
    size = np.arange(1, system.K + 1)
    groups_above = (np.cumsum(rates[::-1]) / size).max()
    groups_below = (np.cumsum(rates) / size).min()
    climb = np.minimum(
        max(rates.max() - n, 0.0) * horizon,
        ranked_start[-1] - ranked_start + max(groups_above - n, 0.0) * horizon,
    )
    descent = np.minimum(
        max(n - rates.min(), 0.0) * horizon,
        ranked_start - ranked_start[0] + max(n - groups_below, 0.0) * horizon,
    )
    spread = 7.2 * np.sqrt(2 * n * horizon) + 12
    low = ranked_start - np.ceil(widen * (descent + spread)).astype(np.int64)
    high = ranked_start + np.ceil(widen * (climb + spread)).astype(np.int64)
    ends = np.minimum(high, ranked_start[-1] + widen * _stationary_ends(system, horizon))
    return Window(np.maximum(low, 0), np.ceil(ends).astype(np.int64))


def _stationary_ends(system: System, horizon: float) -> Floats:
    """Return lengths of each rank that are hardly passed in so long a time, infinite if not stable.

    Rank k is the sum of k gaps, each about exponential with its decay rate or lighter.
    """
    K, rates = system.K, system.rank_arrival_rates
    if np.any(np.cumsum(rates[::-1]) >= system.n * np.arange(1, K + 1) * (1 - 1e-9)):
        return np.full(K, np.inf)
    slowest = np.minimum.accumulate(_chain.decay_rates(system))
    return gammainccinv(np.arange(1, K + 1), LOST / (10 + system.n * horizon)) / slowest + 12


def propagate(system: System, start: NDArray[np.int64], times: Floats, kept: Window) -> Floats:
    """Return probabilities, shape (times, *window), of the ranked lengths; start is ranked."""
    n, rates = float(system.n), system.rank_arrival_rates
    events = system.arrival_rate + n * system.K
    # A rim of zeros: nothing comes in from outside.
    here = np.zeros([size + 2 for size in kept.shape])
    here[tuple(start - kept.low + 1)] = 1.0
    laws = np.empty((len(times), *kept.shape))
    inner = tuple(slice(1, -1) for _ in kept.shape)
    for i, length in enumerate(np.diff(times, prepend=0.0)):
        weights = poisson_weights(events * float(length))
        mixed, spare = np.zeros_like(here), np.zeros_like(here)
        if system.K == 1:
            interruptible(_one_queue_kernel, here, spare, mixed, kept.low[0], rates[0] / events, n / events, weights)
        else:
            interruptible(_two_queues_kernel, here, spare, mixed, kept.low, rates / events, n / events, weights)
        here = mixed
        laws[i] = here[inner]
    return laws


def poisson_weights(mean: float) -> Floats:
    """Return Poisson probabilities from 0 on, zero where negligible, normalized to 1."""
    count = np.arange(int(mean + 9 * np.sqrt(mean) + 40))
    if mean == 0:
        return np.ones(1)
    weights = np.exp(count * np.log(mean) - mean - gammaln(count + 1.0))
    weights[weights < 1e-18] = 0
    return weights / weights.sum()


@_jit.kernel
def _one_queue_kernel(here, spare, mixed, low, up, down, weights):  # type: ignore[no-untyped-def]
    for step in range(len(weights)):
        for i in range(1, len(here) - 1):
            mixed[i] += weights[step] * here[i]
            spare[i] = up * here[i - 1] + down * here[i + 1]
        if low == 0:
            spare[1] += down * here[1]
        here, spare = spare, here


@_jit.kernel
def _two_queues_kernel(here, spare, mixed, low, up, down, weights):  # type: ignore[no-untyped-def]
    rows, columns = here.shape
    both = up[0] + up[1]
    for step in range(len(weights)):
        weight = weights[step]
        if weight > 0:
            for i in range(1, rows - 1):
                for j in range(1, columns - 1):
                    mixed[i, j] += weight * here[i, j]
        for i in range(1, rows - 1):
            # The column in which both lengths are equal; cells to its left stay empty.
            tie = low[0] + i - low[1]
            for j in range(max(tie, 1), min(tie + 2, columns - 1)):
                # Equal, or one job apart: an arrival at a tie, and a departure from one.
                value = up[0] * here[i - 1, j] + down * here[i, j + 1]
                if j == tie + 1:
                    value += both * here[i, j - 1] + 2 * down * here[i + 1, j]
                spare[i, j] = value
            for j in range(max(tie + 2, 1), columns - 1):
                spare[i, j] = up[0] * here[i - 1, j] + up[1] * here[i, j - 1] + down * (here[i + 1, j] + here[i, j + 1])
        if low[0] == 0:
            for j in range(1, columns - 1):
                spare[1, j] += down * here[1, j]
            if low[1] == 0:
                spare[1, 1] += down * here[1, 1]
        here, spare = spare, here
