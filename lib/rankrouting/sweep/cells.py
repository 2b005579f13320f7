"""The cells of a sweep: one system, what is estimated of it, and a seed, checked when it is made.

A `Cell` holds plain values, so it can be sent to another process or machine. What it computes depends on nothing
but these values: its random numbers come from ``SeedSequence([seed, stream])``, where `stream` is a hash of the
system. So different systems are independent, and neither the order of the cells, nor the executor, nor the rest of
the grid changes a number. Used by `sweep`; no chapter uses it directly.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import llvmlite
import numba
import numpy as np
import scipy
from numpy.random import SeedSequence

from .. import _jit, checks
from ..model import System, require_system
from ..policies import Policy, made_by
from .estimates import Paths, Stationary, Value, compile_kernel

MOST_CELLS = 100_000
_MOST_ROWS = 10**7


class SweepFailed(RuntimeError):  # noqa: N818 - not a programming error
    """A sweep did not come to its end; the cells that were finished are kept."""


@dataclass(frozen=True)
class Cell:
    """One cell of a sweep.

    Parameters
    ----------
    system : System
        Its policy is one that the functions of `policies` make.
    estimate : Stationary or Paths
        What is estimated.
    seed : int, default 0
        At least 0 and below 2⁶³.

    Raises
    ------
    UnstableError
        If the system has no stationary law and its means are asked for.
    ValueError
        If the system does not allow the estimate, or an argument is out of range.

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> cell = Cell(System(n=100, K=2, upsilon=1.0, policy=mjsq(c=2.0)), Stationary(), seed=1)
    >>> print(cell)
    n = 100, K = 2, upsilon = 1, policy = mjsq (c = 2.0), seed = 1
    >>> cell.random().entropy == [1, int(cell.stream, 16)]
    True
    """

    system: System
    estimate: Stationary | Paths
    seed: int = 0

    def __post_init__(self) -> None:
        """Validate, and store the seed as an int."""
        object.__setattr__(self, "seed", checks.whole("seed", self.seed, at_least=0))
        if self.seed >= 2**63:
            raise ValueError(f"seed = {checks.shown(self.seed)}: must be below 2⁶³")
        require_system(self.system)
        if not isinstance(self.estimate, (Stationary, Paths)):
            raise ValueError(f"estimate = {checks.shown(self.estimate)}: must be a Stationary or a Paths")
        made_by(self.system.policy)
        try:
            self.estimate.check(self.system)
        except ValueError as error:
            raise type(error)(f"{self}: {error}") from None

    def __str__(self) -> str:
        """Name its place in the grid."""
        system, (name, parameters) = self.system, made_by(self.system.policy)
        given = ", ".join(f"{key} = {_short(value)}" for key, value in parameters.items())
        policy = f"{name} ({given})" if given else name
        return f"n = {system.n}, K = {system.K}, upsilon = {system.upsilon:g}, policy = {policy}, seed = {self.seed}"

    @property
    def content(self) -> str:
        """All that decides the numbers of this cell but the library, as JSON: for equal cells the same text."""
        kind = type(self.estimate).__name__.lower()
        return _json({"system": _plain(self.system), "seed": self.seed, kind: asdict(self.estimate)})

    @property
    def key(self) -> str:
        """Hash of the content and of the library, in 32 hexadecimal digits: its name in the store."""
        return _hash(f"{self.content} {_jit.library_hash()}")[:32]

    @property
    def stream(self) -> str:
        """Hash of the system in 16 hexadecimal digits: the part of its random numbers beside the seed."""
        return _hash(_json(_plain(self.system)))[:16]

    def random(self) -> SeedSequence:
        """Return the source of its random numbers; `queues` gives its numbers again with this as seed."""
        return SeedSequence([self.seed, int(self.stream, 16)])

    def describe(self) -> dict[str, Any]:
        """Return the columns of the table that are known before it is computed."""
        system, (name, parameters) = self.system, made_by(self.system.policy)
        return {
            "estimate": type(self.estimate).__name__.lower(),
            "n": system.n,
            "K": system.K,
            "upsilon": system.upsilon,
            "policy": name,
            "c": system.policy.c,
            "d": parameters.get("d"),
            "p": parameters.get("p"),
            "seed": self.seed,
            "stream": self.stream,
            "cell": self.key,
            "library": _jit.library_hash(),
        }


@dataclass(frozen=True)
class Outcome:
    """What the computation of a cell returns.

    Attributes
    ----------
    values : tuple of Value
        In limit units.
    settings : dict
        The method that was used; for stationary means also horizon, warm-up and spacing in units of time, and whether
        controls were used.
    cpu_seconds, wall_seconds : float
        Of the thread that computed it, and by the clock. Compiling kernels is not part of either.
    versions : str
        Of what decides the numbers, where it was computed.
    """

    values: tuple[Value, ...]
    settings: dict[str, Any]
    cpu_seconds: float
    wall_seconds: float
    versions: str


def compute(cell: Cell, library: str) -> Outcome:
    """Compute a cell on this thread: what an executor is given.

    Parameters
    ----------
    cell : Cell
        Which.
    library : str
        `_jit.library_hash` of whoever asks.

    Raises
    ------
    SweepFailed
        If the library here is another one, whose numbers do not belong in the same table.
    """
    if _jit.library_hash() != library:
        raise SweepFailed(f"a worker has another version of rankrouting or of what it needs: {versions()}")
    settings = cell.estimate.settings(cell.system)
    compile_kernel(settings["method"], cell.system.policy.ranks_every_job)
    wall, cpu = time.perf_counter(), time.thread_time()
    values = cell.estimate.measure(cell.system, cell.random())
    cpu_seconds, wall_seconds = time.thread_time() - cpu, time.perf_counter() - wall
    return Outcome(tuple(values), settings, cpu_seconds, wall_seconds, versions())


def grid(
    n: Sequence[int],
    K: Sequence[int],
    upsilon: Sequence[float],
    policy: Sequence[Policy],
    seed: Sequence[int] = (0,),
    *,
    estimate: Stationary | Paths | None = None,
) -> list[Cell]:
    """Return the cells of all combinations, the seed changing fastest.

    Parameters
    ----------
    n, K, upsilon, policy, seed : sequence
        Values of each, no value twice. Units as in `System`.
    estimate : Stationary or Paths, default Stationary()
        What is estimated in each cell.

    Raises
    ------
    ValueError
        If a combination is not a system or does not allow the estimate, a value is given twice, or there are more
        than 100,000 cells or ten million rows.

    Examples
    --------
    >>> from rankrouting import jsq, mjsq
    >>> len(grid([100, 400], [2], [1.0], [mjsq(c=1.0), jsq()], seed=[1, 2, 3]))
    12
    """
    estimate = Stationary() if estimate is None else estimate
    axes: dict[str, Sequence[Any]] = {"n": n, "K": K, "upsilon": upsilon, "policy": policy, "seed": seed}
    for name, values in axes.items():
        is_list = isinstance(values, Sequence) or (isinstance(values, np.ndarray) and values.ndim == 1)
        if not is_list or isinstance(values, (str, bytes, Policy)) or len(values) == 0:
            raise ValueError(f"{name} = {checks.shown(values)}: must be a list with at least one element")
    count = math.prod(map(len, axes.values()))
    if count > MOST_CELLS:
        lengths = ", ".join(f"{len(values)} of {name}" for name, values in axes.items())
        raise ValueError(f"the grid has {count} cells; at most {MOST_CELLS} are allowed, not {lengths}")
    cells = [Cell(System(*place), estimate, one) for *place, one in product(*axes.values())]
    for name, values in axes.items():
        # The cells exist, so these are numbers and policies.
        value, times = Counter(values).most_common(1)[0]
        if times > 1:
            shown = made_by(value)[0] if isinstance(value, Policy) else checks.shown(value)
            raise ValueError(f"{name}: {shown} is given {times} times")
    check_size(cells)
    return cells


def check_size(cells: Sequence[Cell]) -> None:
    """Raise ValueError if a table of these cells would have more than ten million rows."""
    rows = sum(cell.estimate.rows(cell.system) for cell in cells)
    if rows > _MOST_ROWS:
        raise ValueError(f"the table would have {rows} rows; at most {_MOST_ROWS} are allowed")


def versions() -> str:
    """Return the versions of what decides the numbers."""
    from .. import __version__

    found = {
        "rankrouting": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
    }
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _plain(system: System) -> dict[str, Any]:
    """Return a system as values that JSON knows; −0 is 0."""
    name, arguments = made_by(system.policy)
    return {"n": system.n, "K": system.K, "upsilon": system.upsilon + 0.0, "policy": name, **arguments}


def _json(values: dict[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, allow_nan=False)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _short(value: Any) -> str:
    return f"{len(value)} probabilities" if isinstance(value, list) else str(value)
