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

Used by `stationary`, and with ``controls=True`` by most chapters; the chapter speed explains it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import analytic
from ._jit import kernel
from .model import System

Floats = NDArray[np.float64]


COUNT = 5  # of the F: S_2, S_3, S_4, S_2², S_2 S_3
_SEED = 0  # of the draws that b is computed with; another one makes another, equally valid b
_LENGTHS_DRAWN = 2**18


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
    out = np.empty((len(ranked), COUNT))
    rates = (float(system.n), system.uniform_rate / system.K, system.ranked_rate)
    _drifts_kernel(np.ascontiguousarray(ranked), 1.0 / system.sqrt_n, rates, system.rank_probabilities, out)
    return out


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


@kernel
def _drifts_kernel(ranked, h, rates, p, out):  # type: ignore[no-untyped-def]
    """Write the drifts of S_2, S_3, S_4, S_2², S_2 S_3 at each state. n times second differences is written out.

    For a product 𝓛(FG) = F 𝓛G + G 𝓛F + Γ(F, G), with Γ the sum over events of rate times product of changes.
    """
    service, uniform, ranked_rate = rates
    spare = service - uniform
    for j in range(ranked.shape[0]):
        two = three = drift_two = drift_three = drift_four = squared = mixed = 0.0
        for k in range(ranked.shape[1]):
            empty = ranked[j, k] == 0
            z = (ranked[j, k] + 0.5) * h
            two += z * z
            three += z * z * z
            # What an arrival adds to z², z³ and z⁴; what a service adds, which is nothing where it is empty.
            up_two, down_two = (2.0 * z + h) * h, (h - 2.0 * z) * h
            up_three = (3.0 * z * (z + h) + h * h) * h
            down_three = 0.0 if empty else (3.0 * z * (h - z) - h * h) * h
            up_four = (4.0 * z * z * z + 6.0 * z * z * h + 4.0 * z * h * h + h * h * h) * h
            joins = ranked_rate * p[k]
            drift_two += 2.0 + (joins - spare) * up_two
            drift_three += 6.0 * z + (0.25 * h if empty else 0.0) + (joins - spare) * up_three
            drift_four += 12.0 * z * z + 2.0 * h * h + (joins - spare) * up_four
            squared += (uniform + joins) * up_two * up_two + service * down_two * down_two
            mixed += (uniform + joins) * up_two * up_three + service * down_two * down_three
        out[j, 0] = drift_two
        out[j, 1] = drift_three
        out[j, 2] = drift_four
        out[j, 3] = 2.0 * two * drift_two + squared
        out[j, 4] = two * drift_three + three * drift_two + mixed
