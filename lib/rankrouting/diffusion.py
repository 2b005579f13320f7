"""Simulation of the heavy-traffic limit: the reflected rank-based diffusion.

Within a step the drifts are those of the ranks at its start. What is left is a reflected Brownian
motion with a fixed drift, which the scheme "reflected" moves exactly, so that only the change of
ranks within a step makes an error, of order h. The scheme "projected" does what the textbook warns
against: it sets negative coordinates to 0 at the ends of steps and is wrong by order √h. Chapters:
intro, heavy_traffic, service_times, many_servers.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from . import _jit, analytic, checks
from .analytic.gap_laws import without_common
from .model import CollapsedLimit, Limit
from .ranks import ranked
from .replications import Estimate, Seed, mean_of, replicate

SCHEMES = ("reflected", "projected")

# numpy's standard_exponential cannot exceed 7.7 − log(2⁻⁵³) = 44.4.
_LARGEST_EXPONENTIAL = 45.0
_MOST_STEPS = 1e12


class PathsWithLocalTimes(NamedTuple):
    """Paths and their local times at 0, both (replications, T, K), in limit units.

    Attributes
    ----------
    positions : array
        By coordinate, not sorted.
    local_times : array
        L_i, what the boundary has pushed coordinate i until each time.
    """

    positions: NDArray[np.float64]
    local_times: NDArray[np.float64]


@overload
def simulate_paths(
    limit: Limit | CollapsedLimit,
    times: ArrayLike,
    x0: ArrayLike | analytic.GapLaw | str,
    replications: int,
    step: float,
    seed: Seed,
    *,
    scheme: str = ...,
    local_times: Literal[False] = ...,
    threads: int | None = ...,
    progress: bool | None = ...,
) -> NDArray[np.float64]: ...


@overload
def simulate_paths(
    limit: Limit | CollapsedLimit,
    times: ArrayLike,
    x0: ArrayLike | analytic.GapLaw | str,
    replications: int,
    step: float,
    seed: Seed,
    *,
    scheme: str = ...,
    local_times: Literal[True],
    threads: int | None = ...,
    progress: bool | None = ...,
) -> PathsWithLocalTimes: ...


def simulate_paths(
    limit: Limit | CollapsedLimit,
    times: ArrayLike,
    x0: ArrayLike | analytic.GapLaw | str,
    replications: int,
    step: float,
    seed: Seed,
    *,
    scheme: str = "reflected",
    local_times: bool = False,
    threads: int | None = None,
    progress: bool | None = None,
) -> NDArray[np.float64] | PathsWithLocalTimes:
    """Simulate dX_i = δ_rank(i) dt + √variance dB_i + dN_i + dL_i from time 0 and read it at `times`.

    Parameters
    ----------
    limit : Limit or CollapsedLimit
        What to simulate. Stability is not needed. A `CollapsedLimit` is moved as its total W: all
        coordinates are W/K from time 0 on, and each has the local time L_W/K.
    times : array of T floats
        Sampling times, nonnegative and increasing.
    x0 : float, array of shape (K,) or (replications, K), GapLaw or "stationary"
        The start, in limit units. A law of gaps draws it, and gives the ranks to the coordinates at
        random; "stationary" is the stationary law of the limit.
    replications : int
        Number of independent paths.
    step : float
        The largest step: the time between two sampling times is divided into the fewest equal
        steps that are not longer. To extrapolate from two steps, let both divide that time.
    seed : int or SeedSequence
        Path i depends on the seed and on i only: not on `threads`, not on `replications`.
    scheme : {"reflected", "projected"}
        "reflected": exact for fixed drifts, bias of order `step`. "projected": x ← max(0, x + Z),
        bias of order √step; kept to be shown.
    local_times : bool
        Whether to return the local times at 0 as well.
    threads, progress : optional
        As in `replications.replicate`.

    Returns
    -------
    array of shape (replications, T, K), or PathsWithLocalTimes
        Positions by coordinate, not sorted, in limit units.

    Raises
    ------
    ValueError
        If an argument is out of range, or `x0` is "stationary" where coordinates have a common noise.
    UnstableError
        If `x0` is "stationary" and there is no stationary law.

    Notes
    -----
    "reflected" draws the increment Z over the step, then the minimum m of the Brownian path given
    Z by inversion, m = (Z − √(Z² + 2·variance·h·E))/2 with E ~ Exp(1), and adds the push
    max(0, −(x + m)). With a common noise each coordinate's own path is still exact for fixed drifts; that
    the minima of two of them depend on each other beyond their Z is left out, which matters only
    where both are within √h of 0; what that adds to the bias grows with the correlation: 8 % of
    E|x₁ − x₂| for two coordinates with equal drifts and correlation 0.88 at h = 0.08·variance/drift².
    See S. Asmussen, P. Glynn and J. Pitman, Ann. Appl. Probab. 5 (1995).

    Examples
    --------
    >>> from rankrouting import System, mjsq
    >>> limit = System(n=10_000, K=3, upsilon=1.0, policy=mjsq(c=2.0)).limit()
    >>> paths = simulate_paths(limit, [0.5, 1.0], x0=0.0, replications=4, step=0.01, seed=1)
    >>> paths.shape
    (4, 2, 3)
    """
    _check_limit(limit)
    times = checks.sample_times(times)
    replications = checks.whole("replications", replications, at_most=checks.MOST_REPLICATIONS)
    local_times = checks.flag("local_times", local_times)
    step = checks.real("step", step, above=0)
    scheme = checks.one_of("scheme", scheme, SCHEMES)
    checks.result_fits(replications, times.size, limit.K)
    if not times[-1] / step * replications * limit.K < _MOST_STEPS:
        raise ValueError(
            f"step = {step:g}: more than {_MOST_STEPS:.0e} steps of a queue to the last of the times, {times[-1]:g}"
        )
    moved = limit if isinstance(limit, Limit) else Limit(1, [-limit.upsilon], limit.K * limit.variance)

    lengths = np.diff(times, prepend=0.0)
    # A ratio such as 0.3/0.1 is above 3 by rounding only.
    steps = np.ceil(lengths / step * (1 - 1e-12)).astype(np.int64)
    h = lengths / np.maximum(steps, 1)
    drifts = np.outer(h, moved.drifts)
    variances = h * (moved.variance + moved.common)
    # A noise of K independent numbers, own times each and shared times their sum, has the covariance asked for.
    own = math.sqrt(moved.variance)
    shared = (math.sqrt(max(0.0, moved.variance + moved.K * moved.common)) - own) / moved.K
    deviations = np.sqrt(h)[:, np.newaxis] * [own, shared if moved.common != 0 else 0.0]

    start = _start(moved, limit.K, x0, replications)
    positions = np.empty((replications, times.size, moved.K))
    pushed = np.empty(positions.shape if local_times else (replications, 0, moved.K))

    def one(rng: Generator, i: int) -> None:
        x = start[i] if isinstance(start, np.ndarray) else rng.permuted(start.sample_ranked(1, rng)[0])
        _paths_kernel(rng, x, steps, drifts, variances, deviations, scheme == "projected", positions[i], pushed[i])

    replicate(one, replications, seed, threads=threads, progress=progress)
    if isinstance(limit, CollapsedLimit):
        positions = np.repeat(positions / limit.K, limit.K, axis=2)
        pushed = np.repeat(pushed / limit.K, limit.K, axis=2)
    return PathsWithLocalTimes(positions, pushed) if local_times else positions


def stationary_means(
    limit: Limit | CollapsedLimit,
    horizon: float,
    warmup: float,
    replications: int,
    step: float,
    seed: Seed,
    *,
    scheme: str = "reflected",
    samples: int = 1000,
    threads: int | None = None,
    progress: bool | None = None,
) -> Estimate:
    """Estimate the stationary mean of each rank under a scheme, by time averages.

    Parameters
    ----------
    limit : Limit or CollapsedLimit
        What to simulate; it must be stable.
    horizon : float
        Length of the averaged part of each path.
    warmup : float
        Time before it. Paths start from the limit's own law, so that the warm-up has only the
        scheme's bias to build up; or, where coordinates have a common noise, from the law without it.
        A few relaxation times are enough.
    replications, step, seed, scheme, threads, progress
        As in `simulate_paths`; at least two replications.
    samples : int
        Number of equally spaced times at which the averaged part is read.

    Returns
    -------
    Estimate
        Shape (K,): the mean of rank k at index k − 1, in limit units, with its standard error.

    Raises
    ------
    ValueError
        If an argument is out of range.
    UnstableError
        If there is no stationary law.

    Examples
    --------
    >>> from rankrouting import Limit
    >>> means = stationary_means(Limit(1, [-2.0]), 100, 5, replications=20, step=0.05, seed=1)
    >>> bool(abs(means.z([0.5])) < 5)
    True
    """
    _check_limit(limit)
    horizon = checks.real("horizon", horizon, above=0)
    warmup = checks.real("warmup", warmup, at_least=0)
    replications = checks.whole("replications", replications, at_least=2, at_most=checks.MOST_REPLICATIONS)
    samples = checks.whole("samples", samples)
    checks.result_fits(samples, 1, name="samples")
    times = warmup + horizon * np.arange(1, samples + 1) / samples
    paths = simulate_paths(
        limit,
        times,
        analytic.gap_law(without_common(limit)),
        replications,
        step,
        seed,
        scheme=scheme,
        threads=threads,
        progress=progress,
    )
    return mean_of(ranked(paths).mean(axis=1))


def _check_limit(limit: object) -> None:
    if not isinstance(limit, (Limit, CollapsedLimit)):
        raise ValueError(f"limit = {checks.shown(limit)}: must be a Limit or a CollapsedLimit")


def _start(moved: Limit, K: int, x0: ArrayLike | analytic.GapLaw | str, replications: int) -> Any:
    """Return an array (replications, moved.K), or the law from which a start is drawn."""
    if isinstance(x0, str):
        checks.one_of("x0", x0, ("stationary",))
        return analytic.gap_law(moved)
    if isinstance(x0, analytic.GapLaw):
        if x0.rates.size != K:
            raise ValueError(f"x0 with {x0.rates.size} gaps: must have K = {K}")
        # A collapsed limit is moved as its total, K times the gap that is not 0.
        return x0 if moved.K == K else analytic.GapLaw(x0.rates[:1] / K)
    start = checks.starting_points(x0, replications, K)
    return start if moved.K == K else start.sum(axis=1, keepdims=True)


@_jit.kernel
def _paths_kernel(rng, x0, steps, drifts, variances, deviations, projected, positions, pushed):  # type: ignore[no-untyped-def]
    """Move one path from x0. Coordinates are kept in the order of their values, label by label."""
    K = x0.size
    # Equal coordinates get their ranks at random: shuffle, then sort stably.
    label = np.arange(K)
    for k in range(K - 1, 0, -1):
        j = rng.integers(0, k + 1)
        label[k], label[j] = label[j], label[k]
    value = np.empty(K)
    for k in range(K):
        _insert(value, label, k, x0[label[k]], label[k])

    local_time = np.zeros(K)
    noise = np.empty(K)
    for t in range(steps.size):
        own, shared = deviations[t]
        drift = drifts[t]
        # The minimum is below 0 if and only if 2xy < variance·h·E.
        reach = 0.5 * variances[t] * _LARGEST_EXPONENTIAL
        for _ in range(steps[t]):
            zeros = 0
            common = 0.0
            if shared != 0.0:
                for k in range(K):
                    noise[k] = rng.standard_normal()
                    common += noise[k]
                common *= shared
            for k in range(K):
                x = value[k]
                normal = noise[k] if shared != 0.0 else rng.standard_normal()
                z = drift[k] + own * normal + common
                y = x + z
                if projected:
                    if y < 0.0:
                        local_time[label[k]] -= y
                        y = 0.0
                elif x * y < reach:
                    root = math.sqrt(z * z + 2.0 * variances[t] * rng.standard_exponential())
                    push = 0.5 * (root - z) - x
                    if push > 0.0:
                        local_time[label[k]] += push
                        # y + push, without the rounding that could make it negative.
                        y = 0.5 * (root + z)
                # Ranks k + 1, … are not moved yet: each still finds the drift of its old rank.
                _insert(value, label, k, y, label[k])
                if projected and y == 0.0:
                    # It is behind its equals now, of which there are many: shuffle them.
                    j = rng.integers(0, zeros + 1)
                    label[zeros], label[j] = label[j], label[zeros]
                    zeros += 1
        for k in range(K):
            positions[t, label[k]] = value[k]
            if pushed.shape[0] > 0:
                pushed[t, label[k]] = local_time[label[k]]


@_jit.inlined
def _insert(value, label, k, y, i):  # type: ignore[no-untyped-def]
    """Insert y with label i among the first k entries, which are in order, after its equals."""
    while k > 0 and value[k - 1] > y:
        value[k] = value[k - 1]
        label[k] = label[k - 1]
        k -= 1
    value[k] = y
    label[k] = i
