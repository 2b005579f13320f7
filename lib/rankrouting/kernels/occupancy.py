"""Occupancy: how many queues have at least i jobs, when every job is ranked.

A policy that ranks every job never asks which queue is which. So the state need not be K lengths: the numbers
q_i of queues with at least i jobs say all, and they are few, some ten for any K, where the sorted lengths of
`kernels.sorted` are an array of K. A queue chosen uniformly is one of the q_i that are longest exactly if a
uniform index below K is below q_i: so its length is found by going up from the shortest length, and a step
costs as many comparisons as lengths differ. Steps and random bits are those of the event loop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._jit import inlined, kernel
from .events import choose_rank, up_threshold
from .random import advance


class Areas(NamedTuple):
    """Sums over the states since the last sampling time, kept up only where the occupancy changes.

    area[i] is the sum of q_i over the states up to, not including, the state number since[i]; the place 0 is
    that of the shortest length.
    """

    area: NDArray[np.int64]
    since: NDArray[np.int64]


@inlined
def new_areas(size):
    """Return sums over no state yet of this many numbers."""
    return Areas(np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64))


@inlined
def run_steps(at_least, shortest, step, steps, areas, rates, rng, state):
    """Run the steps from `step` on; return the shortest length and the next step, early when no level is left."""
    K = at_least[0]
    queues = np.uint64(K)
    rejected = np.uint64(4294967296 % K)
    low_bits = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    up, up_fraction = up_threshold(rates.ranked / (K * rates.service + rates.ranked))
    last = at_least.size - 2
    area, since = areas
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    while step <= steps:
        bits, s0, s1, s2, s3 = advance(s0, s1, s2, s3)
        low = bits & low_bits
        is_up = low < up
        if low == up:
            is_up = rng.random() < up_fraction
        product, rank_bits = (bits >> half) * queues, bits
        while product & low_bits < rejected:
            bits, s0, s1, s2, s3 = advance(s0, s1, s2, s3)
            product = (bits >> half) * queues
        # A number of queues that are longer than the chosen one. An arrival and a service differ by numbers, not
        # by a branch: half of such branches would be mispredicted.
        arrived = np.int64(is_up)
        longer = np.int64(product >> half) * (1 - arrived) + K * arrived
        if not rates.always_shortest and is_up:
            longer = K - 1 - choose_rank(rank_bits, rates, rng)
        # The first comparison as a number too: after it the loop ends at once nearly always.
        length = shortest + np.int64(at_least[shortest + 1] > longer)
        while at_least[length + 1] > longer:
            length += 1
        level = length + arrived
        if level > 0:
            before = at_least[level]
            area[level] += before * (step - since[level])
            since[level] = step
            at_least[level] = before + 2 * arrived - 1
            if before + arrived == K:
                # The shortest queues are all as long as the next now, or one of them is shorter.
                area[0] += shortest * (step - since[0])
                shortest, since[0] = level - 1 + arrived, step
        step += 1
        if level == last:
            break
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3
    return shortest, step


@kernel
def occupancy_kernel(at_least, durations, out, averages, rates, rng, state):
    """Advance the occupancy over each duration; at first at_least[i] queues have at least i jobs.

    `out` and `averages` have shape (durations, depth + 2). A row of out is, at the end of the duration, q_1 to
    q_depth, the number of jobs in all, and the shortest length; a row of averages is the average of each over
    the duration, given the order of the events: their times are independent of it, so that each of the states
    between them lasts equally long in the mean.
    """
    K = at_least[0]
    depth = out.shape[1] - 2
    capacity = max(at_least.size, depth + 2) + 4
    levels = np.zeros(capacity, dtype=np.int64)
    levels[: at_least.size] = at_least
    shortest = np.int64(0)
    while levels[shortest + 1] == K:
        shortest += 1
    for j in range(durations.size):
        steps = rng.poisson((K * rates.service + rates.ranked) * durations[j])
        areas = new_areas(levels.size)
        shortest, step = run_steps(levels, shortest, 1, steps, areas, rates, rng, state)
        while step <= steps:
            # More levels, the sums so far kept.
            size, old, grown = levels.size, areas, levels
            levels, areas = np.zeros(2 * size, dtype=np.int64), new_areas(2 * size)
            levels[:size] = grown
            areas.area[:size] = old.area
            areas.since[:size] = old.since
            shortest, step = run_steps(levels, shortest, step, steps, areas, rates, rng, state)
        states = steps + 1
        total, total_area = 0, 0
        areas.area[0] += shortest * (states - areas.since[0])
        for i in range(1, levels.size):
            areas.area[i] += levels[i] * (states - areas.since[i])
            total += levels[i]
            total_area += areas.area[i]
        for i in range(1, depth + 1):
            out[j, i - 1] = levels[i]
            averages[j, i - 1] = areas.area[i] / states
        out[j, depth], out[j, depth + 1] = total, shortest
        averages[j, depth] = total_area / states
        averages[j, depth + 1] = areas.area[0] / states
