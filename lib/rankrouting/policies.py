"""Routing policies: how many of the jobs are ranked, and to which rank a ranked job goes.

A `Policy` has two parts: the rate of the *ranked* stream (``c√n``, or every job), and a
`RankLaw`, the probabilities ``p_k`` with which a ranked job goes to the k-th shortest queue. All
other jobs go to a uniformly chosen queue. Used by all chapters that claim something.

Examples
--------
>>> mjsq(c=2.0).rank_law.probabilities(3)
array([1., 0., 0.])
>>> marginal_power_of_d(c=2.0, d=2).rank_law.probabilities(3)
array([0.66666667, 0.33333333, 0.        ])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import checks


class RankLaw(Protocol):
    """To which rank a ranked job goes, and how many queue lengths that takes to find out."""

    def probabilities(self, K: int) -> NDArray[np.float64]:
        """Return p, shape (K,): p[k-1] is the probability of the k-th shortest queue."""
        ...

    def lookups(self, K: int) -> int:
        """Return the number of queue lengths asked for one ranked job."""
        ...


@dataclass(frozen=True)
class Shortest:
    """Every ranked job goes to the shortest queue: p = (1, 0, …, 0)."""

    def probabilities(self, K: int) -> NDArray[np.float64]:
        """Return (1, 0, …, 0)."""
        p = np.zeros(K)
        p[0] = 1.0
        return p

    def lookups(self, K: int) -> int:
        """All K lengths are needed."""
        return K


@dataclass(frozen=True)
class ShortestOfSample:
    """The shortest of d queues sampled without replacement: p_k = C(K−k, d−1) / C(K, d)."""

    d: int

    def probabilities(self, K: int) -> NDArray[np.float64]:
        """Return the law of the smallest of d ranks; raise if d > K."""
        if self.d > K:
            raise ValueError(f"d = {self.d}: a sample of distinct queues has at most K = {K}")
        k = np.arange(1.0, K)
        return self.d / K * np.cumprod(np.append(1.0, np.maximum(K - k - self.d + 1, 0) / (K - k)))

    def lookups(self, K: int) -> int:
        """The d sampled lengths; none when d = 1, which is uniform routing."""
        return self.d if self.d > 1 else 0


@dataclass(frozen=True)
class GivenProbabilities:
    """A ranked job goes to the k-th shortest queue with a given probability p_k."""

    p: tuple[float, ...]

    def probabilities(self, K: int) -> NDArray[np.float64]:
        """Return p; raise if its length is not K."""
        if len(self.p) != K:
            raise ValueError(f"p of length {len(self.p)}: must have one probability for each of K = {K} ranks")
        return np.array(self.p)

    def lookups(self, K: int) -> int:
        """All K lengths, unless p is uniform and needs no ranks."""
        return 0 if len(set(self.p)) == 1 else K


@dataclass(frozen=True)
class Policy:
    """A routing policy; make one with `mjsq`, `msblb`, `jsq`, `random_routing`, `power_of_d` or
    `marginal_power_of_d`.

    Attributes
    ----------
    name : str
        Short name for tables and figures.
    rank_law : RankLaw
        Where ranked jobs go.
    c : float or None
        The ranked stream has rate c√n; None means that every job is ranked.
    """

    name: str
    rank_law: RankLaw
    c: float | None

    def __post_init__(self) -> None:
        """Validate."""
        if self.c is not None:
            checks.real("c", self.c, at_least=0)
        if not callable(getattr(self.rank_law, "probabilities", None)):
            raise ValueError(f"rank_law = {checks.shown(self.rank_law)}: must be a RankLaw, for instance Shortest()")

    @property
    def ranks_every_job(self) -> bool:
        """Whether all jobs are ranked (JSQ, JSQ(d)), not only a stream of rate c√n."""
        return self.c is None


def mjsq(c: float) -> Policy:
    """Marginal join-the-shortest-queue: a stream of rate c√n joins the shortest queue.

    Parameters
    ----------
    c : float
        Rate of the ranked stream over √n, at least 0.

    Raises
    ------
    ValueError
        If c is negative or not finite.
    """
    return Policy("MJSQ", Shortest(), checks.real("c", c, at_least=0))


def msblb(c: float, p: Sequence[float] | ArrayLike) -> Policy:
    """Marginal size-bias load balancing: ranked jobs go to rank k with probability p[k-1].

    Parameters
    ----------
    c : float
        Rate of the ranked stream over √n, at least 0.
    p : sequence of K floats
        Probabilities of the ranks, the shortest queue first; they sum to 1.

    Raises
    ------
    ValueError
        If c is negative or p is not a probability vector.
    """
    return Policy("MSBLB", GivenProbabilities(checks.rank_probabilities(p)), checks.real("c", c, at_least=0))


def jsq() -> Policy:
    """Join-the-shortest-queue: every job is sent to the shortest queue."""
    return Policy("JSQ", Shortest(), None)


def random_routing() -> Policy:
    """Uniform random routing: no job is ranked (c = 0)."""
    return Policy("random", Shortest(), 0.0)


def power_of_d(d: int) -> Policy:
    """JSQ(d): every job joins the shortest of d queues sampled without replacement.

    Raises
    ------
    ValueError
        If d is not a whole number of at least 1; a `System` also checks d ≤ K.
    """
    d = checks.whole("d", d)
    return Policy(f"JSQ({d})", ShortestOfSample(d), None)


def marginal_power_of_d(c: float, d: int) -> Policy:
    """Marginal JSQ(d): a stream of rate c√n joins the shortest of d sampled queues.

    Raises
    ------
    ValueError
        If c is negative or d is not a whole number of at least 1; a `System` also checks d ≤ K.
    """
    d = checks.whole("d", d)
    return Policy(f"marginal JSQ({d})", ShortestOfSample(d), checks.real("c", c, at_least=0))


# The functions that make a policy, with the names of their parameters.
MAKERS: dict[str, tuple[Callable[..., Policy], tuple[str, ...]]] = {
    "mjsq": (mjsq, ("c",)),
    "msblb": (msblb, ("c", "p")),
    "jsq": (jsq, ()),
    "random_routing": (random_routing, ()),
    "power_of_d": (power_of_d, ("d",)),
    "marginal_power_of_d": (marginal_power_of_d, ("c", "d")),
}


def made_by(policy: Policy) -> tuple[str, dict[str, Any]]:
    """Return the name of the function in `MAKERS` that makes a policy, and its arguments.

    Raises
    ------
    ValueError
        If none of them makes it: its law of ranks or its name is another.

    Examples
    --------
    >>> made_by(marginal_power_of_d(c=2.0, d=3))
    ('marginal_power_of_d', {'c': 2.0, 'd': 3})
    """
    law = policy.rank_law
    if isinstance(law, GivenProbabilities) and policy == Policy("MSBLB", law, policy.c) and policy.c is not None:
        return "msblb", {"c": policy.c, "p": list(law.p)}
    given = {"c": policy.c, "d": law.d if isinstance(law, ShortestOfSample) else None}
    for name, (make, parameters) in MAKERS.items():
        arguments = {one: given.get(one) for one in parameters}
        if None not in arguments.values() and make(**arguments) == policy:
            return name, arguments
    raise ValueError(f"policy = {policy.name}: must be made by one of {', '.join(MAKERS)}")
