"""JSQ with room for two jobs at each server: the stationary law, level by level, in linear time.

The state is (q, i): q servers have two jobs, i are idle, the other K − q − i have one. Only the arrivals that
find no server idle raise q, so every visit to the levels q + 1, q + 2, … starts at the one state (q + 1, 0). What
it does before it comes back is a vector over i, found from that of the level above by a tridiagonal system.
Used by `exact.two_places`.
"""

from __future__ import annotations

import math

import numpy as np

from .._jit import inlined, kernel

# Numbers of idle servers this unlikely, as the logarithm of their probability relative to 0, are left out.
_NEGLIGIBLE = 40.0


@inlined
def idle_states(K, q, arrivals):
    """Return how many numbers of idle servers, 0, 1, …, are kept at level q."""
    slack = K - arrivals
    ahead = max(slack - q, 0.0)
    # With q < slack the number of idle servers is around slack − q, else it decays from 0.
    behind = max(q - slack, 0.0)
    width = math.sqrt(behind * behind + 2.0 * _NEGLIGIBLE * K) - behind
    return int(min(K - q, math.ceil(ahead + width) + 40)) + 1


@kernel
def two_places_kernel(K, arrivals, levels, mass, idle_sum, idle_square, at_zero):
    """Fill P(q), E[i; q], E[i²; q] and P(q, i = 0) for q = 0, …, `levels`; arrivals at (levels, 0) are lost.

    `arrivals` is their rate, the rate of a service 1. With r_q(i) the mean time spent at (q, i) in a visit to the
    levels from q on that starts at (q, 0), the law of i on return to level q − 1 is q·r_q, and P(q, i) is
    P(q − 1, 0)·arrivals·r_q(i).
    """
    largest = idle_states(K, 0, arrivals)
    back = np.zeros(largest + 1)  # the law of i when a visit to the level above ends
    source, ratio = np.empty(largest + 1), np.empty(largest + 1)
    straight, detour = np.empty(largest + 1), np.empty(largest + 1)
    previous = 0
    for q in range(levels, 0, -1):
        count = idle_states(K, q, arrivals)
        # Forward elimination for r(−A) = e_0 and r(−A) = back; from i there is up K − q − i, down `arrivals`, out q.
        for i in range(count):
            up = float(K - q - i) if i + 1 < count else 0.0
            leaving = up + q + (arrivals if i > 0 or q < levels else 0.0)
            came = float(K - q - i + 1) if i > 0 else 0.0
            source[i] = back[i] if i < previous else 0.0
            if i == 0:
                pivot, straight[i], detour[i] = leaving, 1.0, source[i]
            else:
                pivot = leaving - came * ratio[i - 1]
                straight[i] = came * straight[i - 1]
                detour[i] = source[i] + came * detour[i - 1]
            ratio[i] = arrivals / pivot
            straight[i] /= pivot
            detour[i] /= pivot
        for i in range(count - 2, -1, -1):
            straight[i] += ratio[i] * straight[i + 1]
            detour[i] += ratio[i] * detour[i + 1]
        at_0 = straight[0]
        if q < levels:
            at_0 = straight[0] / (1.0 - arrivals * detour[0])
        total, first, second = 0.0, 0.0, 0.0
        for i in range(count):
            r = straight[i] + (arrivals * at_0 * detour[i] if q < levels else 0.0)
            total += r
            first += i * r
            second += float(i) * i * r
            back[i] = q * r
        previous = count
        at_zero[q], mass[q], idle_sum[q], idle_square[q] = at_0, total, first, second
    # Level 0 by the flow across the cut between i and i + 1, with P(0, 0) = 1.
    count = idle_states(K, 0, arrivals)
    beyond = 1.0 if levels > 0 else 0.0
    p, total, first, second = 1.0, 1.0, 0.0, 0.0
    for i in range(count - 1):
        beyond -= back[i] if i < previous and levels > 0 else 0.0
        p = p * (K - i) / arrivals + max(beyond, 0.0)
        total += p
        first += (i + 1) * p
        second += (i + 1.0) * (i + 1.0) * p
    at_zero[0], mass[0], idle_sum[0], idle_square[0] = 1.0, total, first, second
    for q in range(1, levels + 1):
        weight = at_zero[q - 1] * arrivals
        at_zero[q] *= weight
        mass[q] *= weight
        idle_sum[q] *= weight
        idle_square[q] *= weight
    whole = mass.sum()
    at_zero /= whole
    mass /= whole
    idle_sum /= whole
    idle_square /= whole
