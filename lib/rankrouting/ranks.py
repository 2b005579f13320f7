"""Ranks and gaps of a vector of queue lengths: the conventions, stated here and nowhere else.

* Rank 1 is the **shortest** queue. Arrays of ranked quantities hold rank k at index k − 1, so
  ranked lengths ascend along the last axis.
* Gap 1 is the shortest length itself; gap k ≥ 2 is the difference between ranks k and k − 1. All
  gaps are nonnegative.
* **Ties** are broken uniformly at random among the tied queues. The law of the sorted vector does
  not depend on the tie rule.

Chapters: most.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import checks


def ranked(lengths: ArrayLike) -> NDArray[np.float64]:
    """Sort queue lengths along the last axis, the shortest first.

    Examples
    --------
    >>> ranked([3, 1, 2])
    array([1., 2., 3.])
    """
    return np.sort(_vectors("lengths", lengths), axis=-1)


def gaps(lengths: ArrayLike) -> NDArray[np.float64]:
    """Return the gaps of queue lengths in any order along the last axis.

    Examples
    --------
    >>> gaps([7, 2, 4])
    array([2., 2., 3.])
    """
    ascending = ranked(lengths)
    return np.diff(ascending, axis=-1, prepend=np.zeros_like(ascending[..., :1]))


def from_gaps(gap_values: ArrayLike) -> NDArray[np.float64]:
    """Return the ranked lengths that have these gaps: the inverse of `gaps`.

    Examples
    --------
    >>> from_gaps([2, 2, 3])
    array([2., 4., 7.])
    """
    return np.cumsum(_vectors("gap_values", gap_values), axis=-1)


def _vectors(name: str, value: ArrayLike) -> NDArray[np.float64]:
    array = checks.finite_array(name, value)
    if array.ndim == 0:
        raise ValueError(f"{name} = {array:g}: must be a vector, or an array of vectors on its last axis")
    return array
