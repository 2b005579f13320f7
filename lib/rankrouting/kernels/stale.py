"""Stale ranks: the ranking is read every τ, and between two readings the queues are independent.

A cycle begins with a reading: the queues are sorted, ties broken uniformly. For a time τ the queue that was k-th
is an M/M/1 queue with the arrival rate of rank k, so that one exact jump (`kernels.jumps`) leads to any later
moment; in the limit it is a reflected Brownian motion with the drift of rank k, and its endpoint and minimum
are drawn exactly. In every `every`-th cycle the queues are looked at `points` times, once at a uniform moment of each
of as many equal parts: the mean over these is that over time.
"""

from __future__ import annotations

import math

import numpy as np

from .._jit import inlined, kernel
from .events import sort_order
from .jumps import jump_one
from .random import poisson_law, uniform


@inlined
def read_ranks(lengths, order, state):
    """Sort the permutation `order` by length, ties in uniformly random order."""
    for i in range(order.size - 1, 0, -1):
        j = int(uniform(state) * (i + 1))
        order[i], order[j] = order[j], order[i]
    sort_order(lengths, order)


@inlined
def add_ranked(lengths, order, sums):
    """Add the lengths sorted now to the first row of `sums`, by rank at the last reading to the second."""
    now = np.sort(lengths)
    for k in range(lengths.size):
        sums[0, k] += now[k]
        sums[1, k] += lengths[order[k]]


@inlined
def jump_ranked(lengths, order, arrival_rates, service, time, state):
    """Advance each queue by `time` with the arrival rate of its rank at the last reading."""
    service_law = poisson_law(service * time)
    for k in range(order.size):
        i = order[k]
        lengths[i] = jump_one(lengths[i], poisson_law(arrival_rates[k] * time), service_law, state)


@kernel
def stale_queues_kernel(lengths, tau, cycles, every, points, sums, arrival_rates, service, state):
    """Advance labelled lengths (K,) by cycles of length tau; sums (2, K) grows at each look."""
    order = np.arange(lengths.size)
    for cycle in range(1, cycles + 1):
        read_ranks(lengths, order, state)
        clock = 0.0
        if cycle % every == 0:
            for j in range(points):
                look = (j + uniform(state)) * tau / points
                jump_ranked(lengths, order, arrival_rates, service, look - clock, state)
                add_ranked(lengths, order, sums)
                clock = look
        jump_ranked(lengths, order, arrival_rates, service, tau - clock, state)


@inlined
def diffuse_ranked(positions, order, drifts, variance, time, rng, state):
    """Advance each coordinate by `time` as a reflected Brownian motion with the drift of its last rank."""
    if time <= 0.0:
        return
    spread = variance * time
    for k in range(order.size):
        i = order[k]
        change = drifts[k] * time + math.sqrt(spread) * rng.standard_normal()
        # Minus the minimum of the free path, given where it ends.
        depth = 0.5 * (math.sqrt(change * change - 2.0 * spread * math.log1p(-uniform(state))) - change)
        positions[i] = change + max(positions[i], depth)


@kernel
def stale_diffusion_kernel(positions, tau, cycles, every, points, sums, drifts, variance, rng, state):
    """As `stale_queues_kernel` for the limit: positions (K,) in limit units."""
    order = np.arange(positions.size)
    for cycle in range(1, cycles + 1):
        read_ranks(positions, order, state)
        clock = 0.0
        if cycle % every == 0:
            for j in range(points):
                look = (j + uniform(state)) * tau / points
                diffuse_ranked(positions, order, drifts, variance, look - clock, rng, state)
                add_ranked(positions, order, sums)
                clock = look
        diffuse_ranked(positions, order, drifts, variance, tau - clock, rng, state)
