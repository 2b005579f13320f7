"""Two queues by the matrix-geometric method: levels of the shorter length, phases of the gap.

Above level 0 the chain looks the same at every level, so its law is geometric in a matrix R, and
only the gap has to be truncated. At the largest gap kept, an arrival at the longer queue is lost, and
a departure from the shorter one takes a job from the longer one as well. Used by `exact`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ..model import System

Floats = NDArray[np.float64]

NEGLIGIBLE = 1e-17
MAX_STEPS = 60
BLOCK = 64


@dataclass(frozen=True)
class TwoQueues:
    """The law of (shorter length, gap), with its moments in closed form.

    Attributes
    ----------
    levels : array (levels, gaps)
        Probabilities; levels of mass below 1e-16 in all are left out.
    shortest, gap : float
        Mean shorter length and mean gap.
    second_moment_total : float
        Mean of the squared total.
    edge_mass : float
        Probability of the largest gap and of the levels left out.
    residual : float
        Σ|πQ| over the rate of all events.
    """

    levels: Floats
    shortest: float
    gap: float
    second_moment_total: float
    edge_mass: float
    residual: float


def levels_needed(system: System) -> int:
    """Return how many levels hold all but about 1e-16 of the mass: a level is two jobs of the total."""
    return ceil(37 / (-2 * log(system.load))) + 2


def two_queues(system: System, largest_gap: int) -> TwoQueues:
    """Return the stationary law with gaps up to `largest_gap`, at least 1."""
    up, local, down = _blocks(system, largest_gap)
    gaps = np.arange(largest_gap + 1.0)
    visits = _visits(up, local, down)
    rates = up @ visits
    # Censored on level 0: an excursion above starts with a move up and ends with one down.
    censored = local + rates @ down
    _close(censored)
    start = np.ones(len(gaps))
    start[1:] = scipy.linalg.solve(-censored[1:, 1:].T, censored[0, 1:], check_finite=False)
    beyond = scipy.linalg.lu_factor(np.eye(len(gaps)) - rates.T, check_finite=False)

    def summed(vector: Floats) -> Floats:
        return scipy.linalg.lu_solve(beyond, vector, check_finite=False)

    # Σ R^m, Σ m R^m and Σ m² R^m, all applied to level 0.
    moment0 = summed(start)
    start, moment0 = start / moment0.sum(), moment0 / moment0.sum()
    moment1 = summed(moment0 @ rates)
    moment2 = summed(moment1 + moment1 @ rates)
    levels = _levels(start, rates, levels_needed(system))
    return TwoQueues(
        levels=levels,
        shortest=float(moment1.sum()),
        gap=float(moment0 @ gaps),
        second_moment_total=float(4 * moment2.sum() + 4 * moment1 @ gaps + moment0 @ gaps**2),
        edge_mass=float(moment0[-1] + max(0.0, 1 - levels.sum())),
        residual=_residual(levels, system),
    )


def _blocks(system: System, largest_gap: int) -> tuple[Floats, Floats, Floats]:
    """Return the rates to the next level, within a level without the diagonal, and to the one before."""
    n, (shorter, longer) = system.n, system.rank_arrival_rates
    up, local, down = np.zeros((3, largest_gap + 1, largest_gap + 1))
    gap = np.arange(largest_gap)
    up[gap + 1, gap] = shorter
    local[gap + 1, gap] = n
    local[gap, gap + 1] = longer
    local[0, 1] += shorter
    down[gap, gap + 1] = n
    down[0, 1] *= 2
    down[-1, -1] = n
    return up, local, down


def _close(matrix: Floats, *others: Floats) -> None:
    """Set the diagonal so that the rows of `matrix` and `others` sum to zero, without subtraction."""
    np.fill_diagonal(matrix, 0)
    np.fill_diagonal(matrix, -sum((other.sum(axis=1) for other in others), matrix.sum(axis=1)))


def _visits(up: Floats, local: Floats, down: Floats) -> Floats:
    """Return the mean times spent in a level's phases before the level below is reached.

    Cyclic reduction: each step leaves out every other level, so the moves up that remain vanish
    quadratically. Diagonals come from row sums, which keeps full relative accuracy.
    """
    size = len(up)
    middle, first, first_down = local.copy(), local.copy(), down
    for _ in range(MAX_STEPS):
        _close(middle, up, down)
        factor = scipy.linalg.lu_factor(-middle, overwrite_a=True, check_finite=False)
        both = scipy.linalg.lu_solve(factor, np.hstack([up, down]), overwrite_b=True, check_finite=False)
        then_up, then_down = both[:, :size], both[:, size:]
        np.fill_diagonal(middle, 0)
        up_down = up @ then_down
        first += up_down
        middle += up_down
        middle += down @ then_up
        up, down = up @ then_up, down @ then_down
        if up.sum(axis=1).max() < NEGLIGIBLE * first_down.sum(axis=1).max():
            break
    _close(first, first_down, up)
    return scipy.linalg.inv(-first, overwrite_a=True, check_finite=False)


def _levels(start: Floats, rates: Floats, count: int) -> Floats:
    """Return start·R^m for m < count, by blocks so that it is matrix products."""
    levels = np.empty((count, len(start)))
    levels[0], filled, power = start, 1, rates
    while filled < min(count, BLOCK):
        more = min(filled, count - filled)
        np.matmul(levels[:more], power, out=levels[filled : filled + more])
        filled += more
        if filled < count:
            power = power @ power
    step = filled
    while filled < count:
        more = min(step, count - filled)
        np.matmul(levels[filled - step : filled - step + more], power, out=levels[filled : filled + more])
        filled += more
    return levels


def _residual(levels: Floats, system: System) -> float:
    """Return Σ|πQ| over the rate of all events, written out move by move."""
    n, (shorter, longer) = system.n, system.rank_arrival_rates
    everything = shorter + longer + 2 * n
    total = 0.0
    for begin in range(0, len(levels), 512):
        # One level more on both sides, empty where there is none.
        block = np.zeros((min(512, len(levels) - begin) + 2, levels.shape[1]))
        low, high = max(begin - 1, 0), min(begin + 513, len(levels))
        block[low - begin + 1 : high - begin + 1] = levels[low:high]
        here, below, above = block[1:-1], block[:-2], block[2:]
        change = -everything * here
        change[:, -1] += longer * here[:, -1]
        if begin == 0:
            change[0] += n * here[0]
            change[0, 0] += n * here[0, 0]
        change[:, :-1] += shorter * below[:, 1:] + n * here[:, 1:]
        change[:, 1:] += longer * here[:, :-1] + n * above[:, :-1]
        change[:, 1] += shorter * here[:, 0] + n * above[:, 0]
        change[:, -1] += n * above[:, -1]
        total += float(np.abs(change).sum())
    return total / everything
