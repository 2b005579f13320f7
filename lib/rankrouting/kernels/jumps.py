"""Jumps: the n-th system from one ranked arrival to the next in one exact draw a queue.

Between ranked arrivals the queues are independent M/M/1 queues. Over a time T a queue sees
A ~ Poisson(arrival rate·T) arrivals and D ~ Poisson(nT) potential services, in an order that is
uniform among all orders. Let −M be the minimum of the free walk that starts at 0, goes up at
arrivals and down at services. A queue that starts at q ends at A − D + max(q, M), because the walk
reflected at 0 gains what the free walk would have sunk below −q. By the reflection principle

    P(M ≥ m | A, D) = C(A+D, D−m) / C(A+D, D) = Π_{i<m} (D−i)/(A+1+i)    for m ≥ max(0, D−A),

and 1 below, so M is drawn by inversion. A queue with q ≥ D cannot empty and needs no M. The cost of
a unit of time is c√n jumps of K queues, against 2nK events.
"""

from __future__ import annotations

import math

import numpy as np

from .._jit import inlined, kernel
from .events import choose_rank, ranked_queue
from .random import exponential, next_bits, poisson, poisson_law, uniform


@inlined
def draw_depth(arrivals, services, state):
    """Draw M, the depth of the free walk below its start, given the numbers of its steps."""
    return depth_at(arrivals, services, uniform(state))


@inlined
def depth_at(arrivals, services, level):
    """Return M by inversion: the largest m with P(M ≥ m) > level."""
    depth = max(0, services - arrivals)
    probability = 1.0
    while depth < services:
        probability *= (services - depth) / (arrivals + 1.0 + depth)
        if level >= probability:
            break
        depth += 1
    return depth


@inlined
def draw_depth_or(length, arrivals, services, state):
    """Draw max(length, M), without the search for M where a bound shows that M ≤ length.

    The logarithm of the product is concave in m from m = max(0, D − A) on, so by Jensen and
    log y ≤ y − 1, P(M > length) ≤ exp(steps·(y − 1)) with y the factor in the middle.
    """
    if length >= services:
        return length
    level = uniform(state)
    certain = max(0, services - arrivals)
    steps = length + 1 - certain
    if steps > 0:
        middle = 0.5 * (certain + length)
        if level >= math.exp(steps * ((services - middle) / (arrivals + 1.0 + middle) - 1.0)):
            return length
    return max(length, depth_at(arrivals, services, level))


@inlined
def jump_one(length, arrival_law, service_law, state):
    """Return the length of one queue after a time without ranked arrivals."""
    arrivals = poisson(arrival_law, state)
    services = poisson(service_law, state)
    return draw_depth_or(length, arrivals, services, state) + arrivals - services


@inlined
def jump(lengths, time, rates, state):
    """Advance every queue by `time` without ranked arrivals."""
    arrival_law = poisson_law(rates.uniform * time)
    service_law = poisson_law(rates.service * time)
    for i in range(lengths.size):
        lengths[i] = jump_one(lengths[i], arrival_law, service_law, state)


@kernel
def jumps_kernel(lengths, durations, out, rates, rng, state):
    """Advance labelled lengths (K,) over each duration; out[j] gets the lengths at its end."""
    order = np.arange(lengths.size)
    for j in range(durations.size):
        clock = 0.0
        while rates.ranked > 0.0:
            time = exponential(state) / rates.ranked
            if clock + time >= durations[j]:
                break
            jump(lengths, time, rates, state)
            rank = choose_rank(next_bits(state), rates, rng)
            lengths[ranked_queue(lengths, order, rank, rng)] += 1
            clock += time
        jump(lengths, durations[j] - clock, rates, state)
        out[j] = lengths
