"""Event loops: every arrival and departure of the n-th system, one uniformized step each.

A step is one event of a Poisson process whose rate is that of all arrivals and all services
together; a service at an empty queue changes nothing. Between two sampling times the number of
steps is Poisson, so no clock is kept and none can drift. A step needs one draw of 64 random bits:
32 choose the queue, 32 choose up or down. Both choices are exact: the rare draw that falls on the
edge of an interval is refined by another one.

This loop ranks only at the few ranked arrivals and keeps labelled queues in any order. Policies that
rank every job have another one, `kernels.sorted`.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._jit import inlined, kernel
from ..model import System
from .random import advance, next_bits


class Rates(NamedTuple):
    """What the kernels need to know of a system: rates per unit time, and the law of the rank."""

    service: float  # of each server: n
    uniform: float  # uniform arrivals at each queue
    ranked: float  # all ranked arrivals together
    always_shortest: bool  # whether every ranked arrival goes to rank 1
    keep: NDArray[np.float64]  # (K,), with `alias` the alias table of the rank of a ranked arrival
    alias: NDArray[np.int64]


@functools.lru_cache(maxsize=64)  # asked for by each replication
def rates_of(system: System) -> Rates:
    """Return the rates of a system; the arrays are shared, kernels only read them."""
    p = system.rank_probabilities
    return Rates(
        float(system.n), system.uniform_rate / system.K, system.ranked_rate, bool(p[0] == 1.0), *alias_table(p)
    )


def alias_table(p: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return Walker's table: a uniform index j is kept with probability keep[j], else alias[j] is taken."""
    keep, alias = p * p.size, np.arange(p.size)
    small, large = [list(np.flatnonzero(side)) for side in (keep < 1.0, keep >= 1.0)]
    while small and large:
        j, k = small.pop(), large.pop()
        alias[j] = k
        keep[k] -= 1.0 - keep[j]
        (small if keep[k] < 1.0 else large).append(k)
    keep[small + large] = 1.0
    return keep, alias


@inlined
def choose_rank(bits, rates, rng):
    """Return the index of a rank drawn from its law with the upper 32 of 64 random bits."""
    if rates.always_shortest:
        return 0
    # The whole part of K times a uniform number is the index, the fraction decides whether it is kept. The
    # bits say that the fraction lies in [low, low + K); where that is not enough, another draw completes it.
    K = rates.keep.size
    product = (bits >> np.uint64(32)) * np.uint64(K)
    j = np.int64(product >> np.uint64(32))
    low = float(product & np.uint64(0xFFFFFFFF))
    threshold = rates.keep[j] * 4294967296.0
    if low < threshold < low + K or low + K > 4294967296.0:
        low += K * rng.random()
        if low >= 4294967296.0:
            j += 1
            low -= 4294967296.0
            threshold = rates.keep[j] * 4294967296.0
    return j if low < threshold else rates.alias[j]


@inlined
def sort_order(lengths, order):
    """Sort the permutation `order` by length; it is nearly sorted from the last time."""
    for i in range(1, lengths.size):
        queue = order[i]
        j = i - 1
        while j >= 0 and lengths[order[j]] > lengths[queue]:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = queue


@inlined
def shortest_queue(lengths, rng):
    """Return a uniformly chosen one of the shortest queues."""
    shortest, ties = 0, 1
    for i in range(1, lengths.size):
        if lengths[i] < lengths[shortest]:
            shortest, ties = i, 1
        elif lengths[i] == lengths[shortest]:
            ties += 1
    if ties > 1:
        skip = int(rng.random() * ties)
        for i in range(lengths.size):
            if lengths[i] == lengths[shortest]:
                if skip == 0:
                    return i
                skip -= 1
    return shortest


@inlined
def ranked_queue(lengths, order, rank, rng):
    """Return the queue of this rank, counted from 0, ties broken uniformly."""
    if rank == 0:
        return shortest_queue(lengths, rng)
    sort_order(lengths, order)
    length = lengths[order[rank]]
    first = rank
    while first > 0 and lengths[order[first - 1]] == length:
        first -= 1
    last = rank
    while last + 1 < lengths.size and lengths[order[last + 1]] == length:
        last += 1
    return order[first + int(rng.random() * (last - first + 1))]


@inlined
def up_threshold(probability):
    """Return a probability as the whole and the fractional part of 2³² times it."""
    scaled = probability * 4294967296.0
    whole = math.floor(scaled)
    return np.uint64(whole), scaled - whole


@kernel
def thin_kernel(lengths, durations, out, rates, rng, state):
    """Advance labelled lengths (K,) over each duration; out[j] gets the lengths at its end."""
    K = lengths.size
    queues = np.uint64(K)
    rejected = np.uint64(4294967296 % K)
    low_bits = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    order = np.arange(K)
    total_rate = K * (rates.service + rates.uniform) + rates.ranked
    # The number of steps before a ranked one is the whole part of an exponential of this rate.
    ranked_hazard = -math.log1p(-rates.ranked / total_rate)
    up, up_fraction = up_threshold(rates.uniform / (rates.uniform + rates.service))
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    for j in range(durations.size):
        left = rng.poisson(total_rate * durations[j])
        while left > 0:
            before_ranked = rng.standard_exponential() / ranked_hazard
            run = left if before_ranked >= left else int(before_ranked)
            for _ in range(run):
                bits, s0, s1, s2, s3 = advance(s0, s1, s2, s3)
                product = (bits >> half) * queues
                while product & low_bits < rejected:
                    bits, s0, s1, s2, s3 = advance(s0, s1, s2, s3)
                    product = (bits >> half) * queues
                i = product >> half
                low = bits & low_bits
                is_up = low < up
                if low == up:
                    is_up = rng.random() < up_fraction
                length = lengths[i]
                lengths[i] = length + 1 if is_up else max(length - 1, 0)
            left -= run
            if left > 0:
                bits, s0, s1, s2, s3 = advance(s0, s1, s2, s3)
                lengths[ranked_queue(lengths, order, choose_rank(bits, rates, rng), rng)] += 1
                left -= 1
        out[j] = lengths
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3


@kernel
def idle_kernel(lengths, durations, out, idle_out, rates, rng, state):
    """As `thin_kernel` for any policy, with a clock: idle_out[j] gets each server's idle time so far.

    The number of steps in a duration is drawn first. Given it, their times are the order statistics of independent
    uniform times, so the clock is read only where a server becomes idle or busy: of `left` steps after time `now`
    the `since`-th is at a beta distributed fraction of what remains. The idle times have their exact joint law
    with the lengths.
    """
    K = lengths.size
    order = np.arange(K)
    idle = np.zeros(K)
    empty_since = np.zeros(K)
    uniform_total = K * rates.uniform
    service_total = K * rates.service
    total_rate = uniform_total + service_total + rates.ranked
    for j in range(durations.size):
        empty_since[:] = 0.0
        now, since, left = 0.0, 0, rng.poisson(total_rate * durations[j])
        for _ in range(left):
            since += 1
            point = rng.random() * total_rate
            if point < service_total:
                i = min(int(point / rates.service), K - 1)
                if lengths[i] == 0:
                    continue
                lengths[i] -= 1
                changed = lengths[i] == 0
            else:
                if point < service_total + uniform_total:
                    i = min(int((point - service_total) / rates.uniform), K - 1)
                else:
                    i = ranked_queue(lengths, order, choose_rank(next_bits(state), rates, rng), rng)
                changed = lengths[i] == 0
                lengths[i] += 1
            if changed:
                now += (durations[j] - now) * rng.beta(since, left - since + 1)
                left -= since
                since = 0
                if lengths[i] == 0:
                    empty_since[i] = now
                else:
                    idle[i] += now - empty_since[i]
        for i in range(K):
            if lengths[i] == 0:
                idle[i] += durations[j] - empty_since[i]
        out[j] = lengths
        idle_out[j] = idle
