"""The diffusion limit of JSQ with many servers in the Halfin-Whitt regime, simulated.

K servers of rate 1, arrivals K − β√K: the numbers of idle servers and of servers with two jobs, both over √K,
tend to (Y, X) with dY = (β − Y − X) dt + √2 dB + dU, dX = −X dt + dU, where U grows only at Y = 0
(Eschenfeldt and Gamarnik, Math. Oper. Res. 43 (2018)). Time is in mean services. Chapter: many_servers_jsq.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from . import checks
from .kernels.halfin_whitt import halfin_whitt_kernel
from .replications import Estimate, Seed, mean_of, mean_with_controls, replicate

_MOST_STEPS = 1e12


class HalfinWhittMeans(NamedTuple):
    """Stationary means of the diffusion, over √K.

    Attributes
    ----------
    idle : Estimate
        E Y; exactly β in law.
    twos : Estimate
        E X, with the idle servers as a control.
    final : array of shape (replications, 2)
        Y and X at the end of each replication.
    """

    idle: Estimate
    twos: Estimate
    final: NDArray[np.float64]


def stationary_means(
    beta: float,
    *,
    horizon: float,
    warmup: float,
    step: float,
    replications: int = 32,
    seed: Seed = 0,
    threads: int | None = None,
    progress: bool | None = None,
) -> HalfinWhittMeans:
    """thm-halfin-whitt: estimate the stationary means of the Halfin-Whitt limit of JSQ by time averages.

    Parameters
    ----------
    beta : float
        β = √K(1 − load), above 0.
    horizon, warmup : float
        Averaged and discarded time of each replication, in mean services.
    step : float
        Time step; the bias is of order `step` and can be extrapolated.
    replications : int, default 32
        Independent runs from (β, 0), at least 12.
    seed : int or SeedSequence, default 0
        Equal seeds give equal numbers.
    threads, progress : optional
        See `replications.replicate`; neither changes the numbers.

    Returns
    -------
    HalfinWhittMeans
        Over √K.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> means = stationary_means(1.0, horizon=200.0, warmup=20.0, step=0.02, seed=1)
    >>> bool(abs(means.idle.z(1.0)) < 5)
    True
    """
    beta = checks.real("beta", beta, above=0)
    horizon = checks.real("horizon", horizon, above=0)
    warmup = checks.real("warmup", warmup, at_least=0)
    step = checks.real("step", step, above=0, at_most=0.5)
    replications = checks.whole("replications", replications, at_least=12)
    if not replications * (horizon + warmup) / step < _MOST_STEPS:
        raise ValueError(f"step = {step:g}: more than {_MOST_STEPS:.0e} steps in {replications} replications")
    counts = np.array([max(1, math.ceil(warmup / step)), max(1, math.ceil(horizon / step))])
    start = np.array([beta, 0.0])

    def task(rng: Generator, _: int) -> NDArray[np.float64]:
        out = np.empty((2, 4))
        halfin_whitt_kernel(beta, start, step, counts, out, rng)
        return out[1]

    ends = np.array(replicate(task, replications, seed, threads=threads, progress=progress))
    idle = mean_of(ends[:, 0])
    return HalfinWhittMeans(idle, mean_with_controls(ends[:, 1], ends[:, 0] - beta), ends[:, 2:])
