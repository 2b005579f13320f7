"""Independent replications on threads, and the mean of them with its standard error.

A replication gets its own child of one `numpy.random.SeedSequence`, so the results are the same on
any number of threads and in any order. `estimate` offers the statistics that need more than a mean.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import scipy  # its parts are imported when they are used
from numpy.random import SFC64, Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from . import checks
from ._threads import Pool

Result = TypeVar("Result")
Seed = int | SeedSequence

_SHORT = 1.5e-4  # seconds of a replication


def seed_sequence(seed: Any) -> SeedSequence:
    """Return the `SeedSequence` of a seed: a whole number of at least 0, or a sequence as it is.

    A sequence that was given is copied first, so that spawning does not change the caller's.
    """
    if isinstance(seed, SeedSequence):
        return SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
    return SeedSequence(checks.whole("seed", seed, at_least=0))


def replicate(
    task: Callable[[Generator, int], Result],
    replications: int,
    seed: Seed,
    *,
    threads: int | None = None,
    progress: bool | None = None,
) -> list[Result]:
    """Run ``task(rng, index)`` once for each replication, on threads.

    Parameters
    ----------
    task : callable
        Gets a `Generator` at the start of the replication's own stream, and the number of the
        replication. The generator is lent: it is set to another stream after the call, which takes
        a third of the time of making a new one. Kernels should release the interpreter lock.
    replications : int
        How many.
    seed : int or SeedSequence
        Replication i draws from ``SFC64(child)`` with the i-th child that the sequence would spawn.
    threads : int, optional
        Default: one a processor. The results do not depend on it. One is the calling thread itself, in which
        Ctrl-C is heard between replications only; with any other number, and by default, at once.
    progress : bool, optional
        Whether to show a bar; by default on a terminal, once a run has taken two seconds.

    Returns
    -------
    list
        The results in the order of the replications.

    Raises
    ------
    ValueError
        If `replications`, `seed` or `threads` is out of range.

    Examples
    --------
    >>> replicate(lambda rng, index: index + int(rng.integers(1)), 3, seed=1)
    [0, 1, 2]
    """
    return replicate_together(
        lambda rngs, indices: [task(rngs[0], indices[0])],
        replications,
        seed,
        together=1,
        threads=threads,
        progress=progress,
    )


def replicate_together(
    task: Callable[[Sequence[Generator], range], list[Result]],
    replications: int,
    seed: Seed,
    *,
    together: int,
    threads: int | None = None,
    progress: bool | None = None,
) -> list[Result]:
    """Run ``task(rngs, indices)`` for up to `together` replications at a time; otherwise as `replicate`.

    For kernels that advance a few replications in turn in less time than one after the other. There are fewer at
    a time at the end, and where threads would be idle. The task returns a result for each index, made with its own
    generator only, so that it does not depend on the others.

    Examples
    --------
    >>> replicate_together(lambda rngs, indices: list(indices), 3, seed=1, together=2, threads=1)
    [0, 1, 2]
    """
    replications = checks.whole("replications", replications, at_most=checks.MOST_REPLICATIONS)
    progress = None if progress is None else checks.flag("progress", progress)
    asked = threads is not None
    threads = checks.whole("threads", os.cpu_count() or 1 if threads is None else threads, at_most=checks.MOST_THREADS)
    root = seed_sequence(seed)
    together = max(1, min(together, replications // threads))

    def batch(indices: range) -> list[Result]:
        rngs = [Generator(SFC64(0)) for _ in range(together)]
        results = []
        for first in range(0, len(indices), together):
            group = indices[first : first + together]
            for i, rng in zip(group, rngs, strict=False):
                child = SeedSequence(root.entropy, spawn_key=(*root.spawn_key, i), pool_size=root.pool_size)
                rng.bit_generator.state = SFC64(child).state
            results += task(rngs[: len(group)], group)
        return results

    # One thread that was asked for is this one.
    return _on_threads(batch, replications, together, threads, progress, here=asked and threads == 1)


def _on_threads(
    batch: Callable[[range], list[Result]],
    replications: int,
    together: int,
    threads: int,
    progress: bool | None,
    *,
    here: bool,
) -> list[Result]:
    """Run replications 0, 1, … in batches on threads and return their results in order."""
    # Few enough a batch to keep all threads busy to the end, enough to make handing out cheap.
    size = together * max(1, min(64, replications // (16 * threads * together)))
    batches = [range(first, min(first + size, replications)) for first in range(0, replications, size)]
    bar = tqdm(
        total=replications,
        disable=None if progress is None else not progress,
        delay=2.0,
        unit="rep",
        leave=False,
    )
    results: list[Result] = []
    pool = Pool(1)
    try:
        with bar:
            for part in map(batch, batches) if here else _on_pool(pool, batch, batches, threads):
                results += part
                bar.update(len(part))
    finally:
        # After an interrupt or an error, do not wait for the replications that are running.
        pool.shutdown(wait=False, cancel_futures=True)
    return results


def _on_pool(
    pool: Pool, batch: Callable[[range], list[Result]], batches: Sequence[range], threads: int
) -> Iterator[list[Result]]:
    """Yield the results of batches in order; more than one thread works on them if replications are long.

    Short replications are mostly Python, in which threads wait for each other: two then take twice as long as one.
    """
    first = pool.submit(batch, batches[0])
    if wait([first], _SHORT * len(batches[0])).not_done:
        pool.threads = min(threads, len(batches))
    for future in [first, *(pool.submit(batch, one) for one in batches[1:])]:
        yield future.result()


@dataclass(frozen=True)
class Estimate:
    """A mean over independent replications.

    Attributes
    ----------
    value, standard_error : float or array
        The mean and its standard error, in the units of the samples.
    replications : int
        Number of independent samples.
    """

    value: Any
    standard_error: Any
    replications: int

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """Return the two ends of the Student confidence interval at `level`."""
        level = checks.confidence(level)
        names = ("value", "standard_error", "replications")
        value, error, count = (checks.finite_array(name, getattr(self, name))[()] for name in names)
        if np.any(count < 2):
            raise ValueError(f"replications = {checks.shown(self.replications)}: an interval needs at least 2")
        width = scipy.special.stdtrit(count - 1, 0.5 + level / 2) * error
        return value - width, value + width

    def z(self, predicted: ArrayLike) -> Any:
        """Return (value − predicted) over the standard error."""
        return standard_score(self.value, predicted, self.standard_error)


def together(estimates: Sequence[Estimate], scale: ArrayLike = 1.0) -> Estimate:
    """Return several estimates as one of arrays, each in units of its `scale`.

    Parameters
    ----------
    estimates : sequence of Estimate
        With values of one shape and equal numbers of replications.
    scale : float or array, default 1
        What values and standard errors are divided by; broadcast against the stacked values.

    Raises
    ------
    ValueError
        If there is none, they have different shapes or numbers of replications, or the scale does not fit.

    Examples
    --------
    >>> together([Estimate(2.0, 0.1, 16), Estimate(3.0, 0.2, 16)], scale=2.0).value
    array([1. , 1.5])
    """
    if not isinstance(estimates, Sequence):
        raise ValueError(f"estimates = {checks.shown(estimates)}: must be a sequence of Estimate")
    for i, one in enumerate(estimates):
        if not isinstance(one, Estimate):
            raise ValueError(f"estimates[{i}] = {checks.shown(one)}: must be an Estimate")
        if np.shape(one.value) != np.shape(estimates[0].value):
            raise ValueError(
                f"estimates[{i}].value of shape {np.shape(one.value)}: must have the shape of the first,"
                f" {np.shape(estimates[0].value)}"
            )
    counts = {one.replications for one in estimates}
    if len(counts) != 1:
        raise ValueError(f"estimates: must be at least one, with equal numbers of replications, not {sorted(counts)}")
    values, errors = (np.array([getattr(one, name) for one in estimates]) for name in ("value", "standard_error"))
    divisor = checks.finite_array("scale", scale)
    if not checks.fits(divisor.shape, values.shape):
        raise ValueError(f"scale of shape {divisor.shape}: must fit {values.shape}, that of the values")
    return Estimate(values / divisor, errors / divisor, counts.pop())


def standard_score(value: Any, predicted: ArrayLike, standard_error: Any) -> Any:
    """Return (value − predicted) over the standard error; raise if that is 0."""
    wanted = checks.finite_array("predicted", predicted)
    if np.any(np.asarray(standard_error) <= 0):
        least = float(np.min(standard_error))
        raise ValueError(
            f"standard_error = {least:g}: must be above 0; at 0 nothing is left to chance, so predicted is met exactly"
            " or not at all"
        )
    try:
        return (value - wanted) / standard_error
    except ValueError:
        raise ValueError(
            f"predicted of shape {wanted.shape}: must fit {np.shape(value)}, that of the estimate"
        ) from None


def mean_of(samples: ArrayLike) -> Estimate:
    """Return the mean over the first axis of independent samples, at least two of them.

    Examples
    --------
    >>> estimate = mean_of([1.0, 2.0, 3.0])
    >>> float(estimate.value), round(float(estimate.standard_error), 4)
    (2.0, 0.5774)
    """
    array: NDArray[np.float64] = checks.finite_array("samples", samples)
    if array.ndim == 0 or array.shape[0] < 2:
        raise ValueError(f"samples of shape {array.shape}: at least two independent samples are needed")
    count = array.shape[0]
    return Estimate(array.mean(axis=0), array.std(axis=0, ddof=1) / np.sqrt(count), count)


def mean_with_controls(samples: ArrayLike, controls: ArrayLike) -> Estimate:
    """Return the mean of independent samples with what controls of known mean 0 explain taken off.

    A control is a number that each replication also measures and whose mean is 0 exactly, such as the
    residual of the balance identity. The samples are regressed on the controls; the intercept has the
    mean of the samples, and only the variance that the controls do not explain.

    Parameters
    ----------
    samples : array of shape (N, ...)
        Independent samples.
    controls : array of shape (N,) or (N, m)
        The controls of the same replications.

    Returns
    -------
    Estimate
        Its `replications` is N − m, so that `interval` has the right number of degrees of freedom.

    Raises
    ------
    ValueError
        If there are fewer than m + 10 samples, or the controls depend on each other linearly.

    Notes
    -----
    Exact for normal samples, as time averages over long runs are; otherwise biased by order 1/N.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> noise, rest = rng.standard_normal((2, 100))
    >>> estimate = mean_with_controls(2 + noise + 0.1 * rest, noise)
    >>> bool(abs(estimate.z(2.0)) < 4), bool(0.008 < estimate.standard_error < 0.012)
    (True, True)
    """
    array: NDArray[np.float64] = checks.finite_array("samples", samples)
    known: NDArray[np.float64] = checks.finite_array("controls", controls)
    if known.ndim not in (1, 2) or known.size == 0:
        raise ValueError(f"controls of shape {known.shape}: must be of shape (N,) or (N, m), with at least one control")
    known = known.reshape(known.shape[0], -1)
    count, m = known.shape
    if array.ndim == 0 or array.shape[0] != count or count < m + 10:
        raise ValueError(
            f"samples of shape {array.shape} with controls of shape {known.shape}: must have one row for each"
            " replication, at least 10 more than there are controls"
        )
    scale = np.abs(known).max(axis=0)
    design = np.column_stack([np.ones(count), known / np.where(scale > 0, scale, 1)])
    if np.linalg.matrix_rank(design) <= m:
        raise ValueError("controls: must not be constant nor depend on each other linearly")
    inverse = np.linalg.inv(design.T @ design)
    flat = array.reshape(count, -1)
    coefficients = inverse @ design.T @ flat
    variance = ((flat - design @ coefficients) ** 2).sum(axis=0) / (count - m - 1)
    shape = array.shape[1:]
    errors = np.sqrt(inverse[0, 0] * variance)
    return Estimate(coefficients[0].reshape(shape)[()], errors.reshape(shape)[()], count - m)
