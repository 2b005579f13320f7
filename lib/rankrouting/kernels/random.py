"""Random numbers that are drawn inside the kernels of the n-th system.

numpy's generators are reached through a pointer for each draw, which costs a third of an event
loop's speed and most of a jump's. Here xoshiro256++ (Blackman and Vigna, public domain) is inlined,
and a Poisson law's constants are computed once for all draws from it. A state is seeded from a
numpy Generator; everything that is not drawn millions of times comes from that Generator itself.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .._jit import inlined


def new_state(rng: Generator) -> NDArray[np.uint64]:
    """Return a state, shape (4,), drawn from `rng`."""
    return rng.integers(0, 2**64 - 1, size=4, dtype=np.uint64, endpoint=True)


@inlined
def advance(s0, s1, s2, s3):
    """Return 64 random bits and the next state; in the event loops the state stays in registers."""
    total = s0 + s3
    bits = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    return bits, s0, s1, s2, s3


@inlined
def next_bits(state):
    """Return 64 random bits."""
    bits, state[0], state[1], state[2], state[3] = advance(state[0], state[1], state[2], state[3])
    return bits


@inlined
def uniform(state):
    """Return a number in [0, 1) with 53 random bits."""
    return (next_bits(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inlined
def exponential(state):
    """Return an exponential of mean 1."""
    return -math.log1p(-uniform(state))


class PoissonLaw(NamedTuple):
    """A Poisson law with the constants of Hörmann's transformed rejection."""

    mean: float
    log_mean: float
    exp_minus_mean: float
    a: float
    b: float
    inverse_alpha: float
    v_r: float


@inlined
def poisson_law(mean):
    """Return the law of this mean."""
    if mean < 10.0:
        return PoissonLaw(mean, 0.0, math.exp(-mean), 0.0, 0.0, 0.0, 0.0)
    b = 0.931 + 2.53 * math.sqrt(mean)
    a = -0.059 + 0.02483 * b
    return PoissonLaw(mean, math.log(mean), 0.0, a, b, 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2.0))


@inlined
def poisson(law, state):
    """Draw from a Poisson law: by a product of uniforms, or for means of 10 and more by PTRS.

    PTRS is the transformed rejection of Hörmann, "The transformed rejection method for generating
    Poisson random variables", Insurance: Mathematics and Economics 12 (1993).
    """
    if law.mean < 10.0:
        count = 0
        product = 1.0 - uniform(state)
        while product > law.exp_minus_mean:
            product *= 1.0 - uniform(state)
            count += 1
        return count
    while True:
        u = uniform(state) - 0.5
        v = 1.0 - uniform(state)
        edge = 0.5 - abs(u)
        if edge < 1e-300:
            continue
        count = math.floor((2.0 * law.a / edge + law.b) * u + law.mean + 0.43)
        if edge >= 0.07 and v <= law.v_r:
            return int(count)
        if count < 0.0 or (edge < 0.013 and v > edge):
            continue
        log_hat = math.log(v * law.inverse_alpha / (law.a / (edge * edge) + law.b))
        if log_hat <= count * law.log_mean - law.mean - math.lgamma(count + 1.0):
            return int(count)
