"""The record of simulated paths that the simulators of the n-th system and of its limit share.

Chapters: heavy_traffic, overload, diffusion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


@dataclass(frozen=True, eq=False)
class Paths:
    """Independent paths read at fixed times; as an array, it is its `positions`.

    Attributes
    ----------
    times : array of shape (T,)
        The sampling times.
    positions : array of shape (replications, T, K)
        Each coordinate by its own label, not sorted: `ranks.ranked` sorts the last axis. In limit units.
    regulator : array of shape (replications, T, K), or None when it was not asked for
        What each coordinate's boundary at 0 has pushed until each time, in limit units: the local
        time L_i of the limit; for the n-th system √n × (time that server i has been idle), which
        converges to it.

    Examples
    --------
    >>> paths = Paths(times=np.array([1.0]), positions=np.array([[[3.0, 1.0]]]))
    >>> paths.shape
    (1, 1, 2)
    >>> np.sort(paths)
    array([[[1., 3.]]])
    """

    times: NDArray[np.float64]
    positions: NDArray[np.float64]
    regulator: NDArray[np.float64] | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """(replications, T, K)."""
        replications, count, K = self.positions.shape
        return replications, count, K

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the positions, so that numpy functions take the record itself."""
        # numpy 2 passes copy; np.array knows None ("only if needed") and False ("never") as it does.
        return np.array(self.positions, dtype=dtype, copy=copy)
