"""Event loop for any law of the service times and of the times between arrivals.

Without exponential times there is no uniformization: the loop keeps a clock for the next departure of each
queue and the next arrival of each stream, and the least of them is the next event. For the K up to some tens that
this is made for, a search through all clocks without a branch is faster than a heap or a tree: the clocks fit
into a few cache lines, and which of them is least cannot be predicted.

Clocks count from the last sampling time, so that they cannot drift. At one and the same time departures come
before arrivals. A service time is drawn when the service starts, which is the same in law as when the job
arrives, since the router knows queue lengths only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._jit import inlined, kernel
from .events import choose_rank, ranked_queue
from .random import next_bits, uniform

DETERMINISTIC, EXPONENTIAL, GAMMA, LOGNORMAL, HYPEREXPONENTIAL, PARETO = range(6)


class Sampler(NamedTuple):
    """A law of times with mean 1, and its parameters."""

    kind: int
    a: float
    b: float


class Times(NamedTuple):
    """The laws of a system's times."""

    service: Sampler
    uniform: Sampler  # between arrivals of the uniform stream
    ranked: Sampler  # between arrivals of the ranked stream


@inlined
def draw(law, rng):
    """Draw a time with mean 1."""
    if law.kind == EXPONENTIAL:
        return rng.standard_exponential()
    if law.kind == DETERMINISTIC:
        return 1.0
    if law.kind == GAMMA:
        return rng.standard_gamma(law.a) / law.a
    if law.kind == LOGNORMAL:
        return math.exp(law.a + law.b * rng.standard_normal())
    if law.kind == HYPEREXPONENTIAL:
        share = law.a if rng.random() < law.a else 1.0 - law.a
        return rng.standard_exponential() / (2.0 * share)
    return law.b * math.exp(rng.standard_exponential() / law.a)


@kernel
def sample_kernel(out, law, rng):
    """Fill `out` with independent times."""
    for i in range(out.size):
        out[i] = draw(law, rng)


@kernel
def start_kernel(lengths, clocks, rates, times, rng):
    """Set the clocks (K + 2,) for these lengths: a uniform part of a fresh time is left of each time that runs."""
    K = lengths.size
    for i in range(K):
        clocks[i] = rng.random() * draw(times.service, rng) / rates.service if lengths[i] > 0 else np.inf
    clocks[K] = rng.random() * draw(times.uniform, rng) / (K * rates.uniform) if rates.uniform > 0.0 else np.inf
    clocks[K + 1] = rng.random() * draw(times.ranked, rng) / rates.ranked if rates.ranked > 0.0 else np.inf


@kernel
def general_kernel(lengths, clocks, durations, out, left, rates, times, rng, state):
    """Advance lengths (K,) and clocks (K + 2,) over each duration; out[j], left[j] get both at its end.

    A clock is the time that is left until the departure from each queue, infinite if it is empty, then until the
    next arrival of the uniform and of the ranked stream.
    """
    K = lengths.size
    order = np.arange(K)
    mean_service = 1.0 / rates.service
    mean_uniform = 1.0 / (K * rates.uniform) if rates.uniform > 0.0 else np.inf
    mean_ranked = 1.0 / rates.ranked if rates.ranked > 0.0 else np.inf
    for j in range(durations.size):
        while True:
            now, which = clocks[0], 0
            for i in range(1, K + 2):
                clock = clocks[i]
                earlier = clock < now
                which = i if earlier else which
                now = clock if earlier else now
            if now > durations[j]:
                break
            if which < K:
                lengths[which] -= 1
                clocks[which] = now + draw(times.service, rng) * mean_service if lengths[which] > 0 else np.inf
                continue
            if which == K:
                clocks[K] = now + draw(times.uniform, rng) * mean_uniform
                i = int(uniform(state) * K)
            else:
                clocks[K + 1] = now + draw(times.ranked, rng) * mean_ranked
                i = ranked_queue(lengths, order, choose_rank(next_bits(state), rates, rng), rng)
            if lengths[i] == 0:
                clocks[i] = now + draw(times.service, rng) * mean_service
            lengths[i] += 1
        for i in range(K + 2):
            clocks[i] -= durations[j]
        out[j] = lengths
        left[j] = clocks
