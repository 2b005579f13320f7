"""Controls: functions of the n-th system's state whose stationary mean is 0 exactly, at every n.

The generator 𝓛 of the queues gives the drift of a function F of the lengths, and its stationary mean is 0. So a
mean E h is also that of h + Σ_j b_j 𝓛F_j, with any fixed b. Were h + Σ_j b_j 𝓛F_j constant (Poisson's equation), one
observation would do; near that, the average over a run has a much smaller variance than that of h.

*Which F.* For a symmetric h the solution of Poisson's equation in the limit is symmetric in the queues, smooth where
two of them meet, and has slope 0 where one of them is empty. The F are made of sums with these properties at every n,

    S_m = Σ_i |q_i + ½|^m n^{-m/2},   m = 2, 3, 4,

in which the ½ makes a service at an empty queue change nothing. A function without them, such as the minimum, has a
drift of order √n on the rare states at a boundary, which is mostly noise. 𝓛S_2 alone is the balance identity
(`analytic.balance_residual`).

*Which b.* In the limit the labelled queues are a Langevin diffusion, with the gradient of Σ_k δ_k x_(k) as its drift:
it is reversible. For a reversible process the asymptotic variance of the average of h + Σ_j b_j 𝓛F_j is least at

    Σ_j E[∇F_i·∇F_j] b_j = Cov(F_i, h)   for all i

(Galerkin's method for Poisson's equation, in the energy norm). The means are those of the limit's stationary law,
from which it is easy to draw. So b is known before the run, and the estimator is unbiased: b from a regression on the
run itself is not, and its intervals were found to cover far too rarely, since 𝓛S_2² and 𝓛S_2 S_3 have heavy tails.

Chapters: workload.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import analytic
from .model import System

Floats = NDArray[np.float64]


_SEED = 0  # of the draws that b is computed with; another one makes another, equally valid b
_LENGTHS_DRAWN = 2**18


class PowerSum(NamedTuple):
    """A sum S_m at each observation: its value, its drift, and by how much it changes at each event.

    The first two have the shape (observations,), the others (observations, K).
    """

    value: Floats
    drift: Floats
    up: Floats
    down: Floats


def drifts(system: System, ranked: NDArray[np.int64]) -> Floats:
    """Return 𝓛F at observed states for F = S_2, S_3, S_4, S_2², S_2 S_3.

    Parameters
    ----------
    system : System
    ranked : array of shape (observations, K)
        Ascending lengths in jobs.

    Returns
    -------
    array of shape (observations, 5)
        In limit units over time.
    """
    two, three, four = _power_sums(system, ranked)
    squared, mixed = _drift_of_product(system, two, two), _drift_of_product(system, two, three)
    return np.column_stack([two.drift, three.drift, four.drift, squared, mixed])


def coefficients(system: System) -> Floats:
    """Return b for the ranked lengths: x_(k) + Σ_j drifts_j b[j, k] has the stationary mean of x_(k).

    Parameters
    ----------
    system : System
        A stable system.

    Returns
    -------
    array of shape (5, K)
        In limit units. Those of a linear combination of ranked lengths are the same combination.
    """
    draws = max(1000, _LENGTHS_DRAWN // system.K)
    x = analytic.gap_law(system).sample_ranked(draws, np.random.default_rng(_SEED))
    two, three, four = ((x**m).sum(axis=1, keepdims=True) for m in (2, 3, 4))
    values = np.hstack([two, three, four, two * two, two * three])
    gradients = np.stack([2 * x, 3 * x**2, 4 * x**3, 4 * two * x, 3 * two * x**2 + 2 * three * x]).reshape(5, -1)
    energy = gradients @ gradients.T / draws
    covariance = (values - values.mean(axis=0)).T @ (x - x.mean(axis=0)) / draws
    # Where all queues are equal (JSQ) or there is one, the F depend on each other, and the shortest b is taken.
    scale = np.sqrt(energy.diagonal())
    shares = np.linalg.lstsq(energy / np.outer(scale, scale), covariance / scale[:, np.newaxis], rcond=1e-10)[0]
    solution: Floats = shares / scale[:, np.newaxis]
    return solution


def _power_sums(system: System, ranked: NDArray[np.int64]) -> tuple[PowerSum, PowerSum, PowerSum]:
    """Return S_2, S_3 and S_4; n times the second differences is written out, so that nothing cancels."""
    h = 1.0 / system.sqrt_n
    z = (ranked.astype(np.float64) + 0.5) * h
    square: Floats = z * z
    cube: Floats = square * z
    empty = ranked == 0
    odd: Floats = 2 * z * h
    even: Floats = np.full_like(z, h**2)
    two = _power_sum(system, square, even + odd, even - odd, np.full_like(z, 2.0))
    odd, even = 3 * square * h + h**3, 3 * z * h**2
    down: Floats = np.where(empty, 0.0, even - odd)
    three = _power_sum(system, cube, even + odd, down, 6 * z + np.where(empty, h / 4, 0.0))
    odd, even = 4 * cube * h + 4 * z * h**3, 6 * square * h**2 + h**4
    four = _power_sum(system, square**2, even + odd, even - odd, 12 * square + 2 * h**2)
    return two, three, four


def _power_sum(system: System, terms: Floats, up: Floats, down: Floats, second: Floats) -> PowerSum:
    """Return the sum of `terms` over queues, given the changes and n·(up + down) of each term."""
    spare = system.n - system.uniform_rate / system.K
    drift = (second - spare * up).sum(axis=1) + system.ranked_rate * (up @ system.rank_probabilities)
    return PowerSum(terms.sum(axis=1), drift, up, down)


def _drift_of_product(system: System, one: PowerSum, other: PowerSum) -> Floats:
    """Return 𝓛(FG) = F 𝓛G + G 𝓛F + Γ(F, G), Γ the sum over events of rate times product of changes."""
    up, down = one.up * other.up, one.down * other.down
    per_queue = system.uniform_rate / system.K * up + system.n * down
    carre_du_champ = per_queue.sum(axis=1) + system.ranked_rate * (up @ system.rank_probabilities)
    return one.value * other.drift + other.value * one.drift + carre_du_champ
