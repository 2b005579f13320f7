"""Independent replications on threads, and the mean of them with its standard error.

A replication gets its own child of one `numpy.random.SeedSequence`, so the results are the same on
any number of threads and in any order. `estimate` offers the statistics that need more than a mean.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from tqdm.auto import tqdm

from . import checks

Result = TypeVar("Result")
Seed = int | SeedSequence


def seed_sequence(seed: Any) -> SeedSequence:
    """Return the `SeedSequence` of a seed: a whole number of at least 0, or a sequence as it is.

    A sequence that was given is copied first, so that spawning does not change the caller's.
    """
    if isinstance(seed, SeedSequence):
        return SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
    return SeedSequence(checks.whole("seed", seed, at_least=0))


def replicate(
    task: Callable[[SeedSequence, int], Result],
    replications: int,
    seed: Seed,
    *,
    threads: int | None = None,
    progress: bool | None = None,
) -> list[Result]:
    """Run ``task(seed_sequence, index)`` once for each replication, on threads.

    Parameters
    ----------
    task : callable
        Gets its own `SeedSequence` and the number of the replication; its kernels release the
        interpreter lock.
    replications : int
        How many.
    seed : int or SeedSequence
        Replication i gets the i-th spawned child.
    threads : int, optional
        Default: one a processor. The results do not depend on it.
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
    """
    replications = checks.whole("replications", replications)
    children = seed_sequence(seed).spawn(replications)

    def batch(indices: range) -> list[Result]:
        return [task(children[i], i) for i in indices]

    return _on_threads(batch, replications, threads, progress)


def replicate_streams(
    task: Callable[[Generator, int], Result],
    replications: int,
    seed: Seed,
    *,
    threads: int | None = None,
    progress: bool | None = None,
) -> list[Result]:
    """Run ``task(rng, index)`` once for each replication, on threads: for many short replications.

    As `replicate`, but the task gets a `Generator` at the start of the replication's own stream,
    that of ``SFC64(child)``. The generator is lent: it is set to another stream after the call,
    which takes a third of the time of making a new one that a kernel can read.
    """
    replications = checks.whole("replications", replications)
    root = seed_sequence(seed)

    def batch(indices: range) -> list[Result]:
        bits = SFC64(0)
        rng = Generator(bits)
        results = []
        for i in indices:
            # The i-th child that spawn() would give.
            child = SeedSequence(root.entropy, spawn_key=(*root.spawn_key, i), pool_size=root.pool_size)
            bits.state = SFC64(child).state
            results.append(task(rng, i))
        return results

    return _on_threads(batch, replications, threads, progress)


def _on_threads(
    batch: Callable[[range], list[Result]], replications: int, threads: int | None, progress: bool | None
) -> list[Result]:
    """Run replications 0, 1, … in batches on threads and return their results in order."""
    threads = checks.whole("threads", os.cpu_count() or 1 if threads is None else threads)
    # Few enough a batch to keep all threads busy to the end, enough to make handing out cheap.
    size = max(1, min(64, replications // (16 * threads)))
    batches = [range(first, min(first + size, replications)) for first in range(0, replications, size)]
    bar = tqdm(
        total=replications,
        disable=None if progress is None else not progress,
        delay=2.0,
        unit="rep",
        leave=False,
    )
    results: list[Result] = []
    with bar, ThreadPoolExecutor(max_workers=min(threads, len(batches))) as pool:
        for part in pool.map(batch, batches):
            results += part
            bar.update(len(part))
    return results


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
        level = checks.real("level", level, above=0, below=1)
        width = stats.t.ppf(0.5 + level / 2, self.replications - 1) * self.standard_error
        return self.value - width, self.value + width

    def z(self, predicted: ArrayLike) -> Any:
        """Return (value − predicted) over the standard error."""
        return (self.value - np.asarray(predicted)) / self.standard_error


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
