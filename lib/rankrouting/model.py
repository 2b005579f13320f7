"""The n-th system and its heavy-traffic limit: parameters, validated once and then trusted.

`System` is what runs, `System.limit()` what it looks like after dividing queue lengths by √n. Time
is the same in both. Lengths in *limit units* are jobs divided by √n. Used by all chapters that claim something.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import checks
from .policies import Policy, random_routing

LEAST_SPARE = 1e-12  # of the capacity: what is less is lost when it is taken from 1


@dataclass(frozen=True)
class System:
    """K parallel queues with Exp(n) services and Poisson arrivals of total rate nK − υ√n.

    Parameters
    ----------
    n : int
        Service rate of each server, at least 1.
    K : int
        Number of queues, at least 1.
    upsilon : float
        Slack: υ > 0 is stable, υ < 0 overloaded.
    policy : Policy
        How jobs are routed, for instance ``mjsq(c=2.0)``.

    Raises
    ------
    ValueError
        If an argument is out of range, if the policy does not fit K, or if the stream of jobs that
        are not ranked would have no positive rate: nK > (υ + c)√n is needed.

    Examples
    --------
    >>> from rankrouting import mjsq
    >>> system = System(n=10_000, K=10, upsilon=1.0, policy=mjsq(c=2.0))
    >>> system.arrival_rate, system.ranked_rate
    (99900.0, 200.0)
    >>> system.limit().drifts[:2]
    array([ 1.7, -0.3])
    """

    n: int
    K: int
    upsilon: float
    policy: Policy

    def __post_init__(self) -> None:
        """Validate, and store each field in its own type."""
        set_field = object.__setattr__
        set_field(self, "n", checks.whole("n", self.n, at_most=checks.LARGEST_COUNT))
        set_field(self, "K", checks.whole("K", self.K, at_most=checks.MOST_QUEUES))
        set_field(self, "upsilon", checks.real("upsilon", self.upsilon))
        if not isinstance(self.policy, Policy):
            raise ValueError(f"policy = {checks.shown(self.policy)}: must be a Policy, for instance mjsq(c=2.0)")
        if not self.n * self.K + self.arrival_rate < checks.LARGEST_COUNT:
            raise ValueError(
                f"n = {self.n:.4g}, K = {self.K:.4g}, upsilon = {self.upsilon:g}: arrivals and services must be fewer"
                f" than {checks.LARGEST_COUNT:.0e} per unit time, or they cannot be counted"
            )
        least = LEAST_SPARE * self.K * self.sqrt_n
        if 0 < abs(self.upsilon) < least:
            raise ValueError(
                f"upsilon = {self.upsilon:g}: must be 0 or at least {LEAST_SPARE:g} K√n = {least:g}"
                " in size, or it is lost in rounding"
            )
        _ = self.rank_probabilities
        taken = self.upsilon + (self.policy.c or 0.0)
        if not self.n * self.K > taken * self.sqrt_n:
            name = "upsilon" if not self.policy.c else "upsilon + c"
            raise ValueError(
                f"{name} = {taken:g}: must be below K√n = {self.K * self.sqrt_n:g},"
                " or no jobs are left for the uniform stream"
            )

    @classmethod
    def from_rates(cls, arrivals: float, service_time: float, servers: int, policy: Policy | None = None) -> System:
        """Return the stable system with these measured rates, whatever their unit of time.

        `n` is a whole number, so the system's own unit of time is ``n * service_time``: the whole number of mean
        service times that is nearest to the unit of the arguments, at least one. Nothing depends on it but how
        times and rates are written.

        Parameters
        ----------
        arrivals : float
            Jobs that arrive per unit of time, at all servers together.
        service_time : float
            Mean time that a server needs for one job, in the same unit.
        servers : int
            Number of servers.
        policy : Policy, optional
            How jobs are routed; by default at random.

        Raises
        ------
        UnstableError
            If more arrives than the servers can complete.
        ValueError
            If an argument is out of range, or the system is refused.

        Examples
        --------
        20,000 requests a second, 2.4 ms of work each, 50 servers:

        >>> system = System.from_rates(arrivals=20_000, service_time=0.0024, servers=50)
        >>> system.n, system.K, round(system.load, 9), round(system.n * 0.0024, 9)
        (417, 50, 0.96, 1.0008)
        >>> System.from_rates(arrivals=20_000, service_time=0.0025, servers=49)
        Traceback (most recent call last):
            ...
        rankrouting.checks.UnstableError: arrivals = 20000: must be below servers/service_time = 19600, all that the \
servers can complete; add servers until there are more than 50, or turn jobs away
        """
        arrivals = checks.real("arrivals", arrivals, above=0)
        service_time = checks.real("service_time", service_time, above=0)
        K = checks.whole("servers", servers, at_most=checks.MOST_QUEUES)
        capacity = K / service_time
        if not arrivals < capacity:
            raise checks.UnstableError(
                f"arrivals = {arrivals:g}: must be below servers/service_time = {capacity:g}, all that the servers can"
                f" complete; add servers until there are more than {arrivals * service_time:g}, or turn jobs away"
            )
        n = max(1, round(1 / service_time))
        upsilon = K * math.sqrt(n) * (1 - arrivals / capacity)
        return cls(n, K, upsilon, random_routing() if policy is None else policy)

    @property
    def sqrt_n(self) -> float:
        """√n, the number of jobs in one limit unit of length."""
        return math.sqrt(self.n)

    @property
    def rank_probabilities(self) -> NDArray[np.float64]:
        """p, shape (K,): where a ranked job goes, the shortest queue first."""
        return self.policy.rank_law.probabilities(self.K)

    @property
    def arrival_rate(self) -> float:
        """λ_n = nK − υ√n, jobs per unit time in all."""
        return self.n * self.K - self.upsilon * self.sqrt_n

    @property
    def load(self) -> float:
        """Arrival rate over service capacity, λ_n/(nK)."""
        return self.arrival_rate / (self.n * self.K)

    @property
    def ranked_rate(self) -> float:
        """Jobs per unit time that are routed by rank: c√n, or all of them."""
        return self.arrival_rate if self.policy.c is None else self.policy.c * self.sqrt_n

    @property
    def uniform_rate(self) -> float:
        """Jobs per unit time sent to a uniformly chosen queue."""
        return self.arrival_rate - self.ranked_rate

    @property
    def rank_arrival_rates(self) -> NDArray[np.float64]:
        """λ_1, …, λ_K, shape (K,): the arrival rate at the queue of each rank."""
        return self.ranked_rate * self.rank_probabilities + self.uniform_rate / self.K

    def limit(self) -> Limit | CollapsedLimit:
        """Return the heavy-traffic limit of Q/√n.

        A `Limit` in which every coordinate keeps its own noise, or, when every job is ranked and
        that matters (JSQ, JSQ(d) with d ≥ 2), a `CollapsedLimit` in which all coordinates are equal.
        """
        c, p = self.policy.c, self.rank_probabilities
        if c is None:
            if not np.allclose(p, 1 / self.K, rtol=1e-12, atol=0):
                return CollapsedLimit(self.K, self.upsilon)
            c = 0.0
        return Limit(self.K, c * p - (self.upsilon + c) / self.K)


@dataclass(frozen=True, eq=False)
class Limit:
    """The reflected rank-based diffusion dX_i = δ_rank(i) dt + √variance dB_i + dN_i + dL_i on [0, ∞)^K.

    The B_i are independent. With `common` = 0, as for Poisson arrivals, N is 0; otherwise every two of the
    noises √variance B_i + N_i have that covariance.

    Parameters
    ----------
    K : int
        Number of coordinates.
    drifts : array of shape (K,)
        δ_1, …, δ_K: the drift of the lowest coordinate first. For a system: δ_k = c·p_k − (υ+c)/K.
    variance : float, default 2
        Variance of each coordinate per unit time, less `common`; 2 with Poisson arrivals and exponential
        services.
    common : float, default 0
        Covariance per unit time of each two coordinates. The covariance matrix is variance on the diagonal
        and common added everywhere; at least −variance/K.

    Raises
    ------
    ValueError
        If an argument is out of range or `drifts` does not have length K.
    """

    K: int
    drifts: NDArray[np.float64]
    variance: float = 2.0
    common: float = 0.0

    def __init__(self, K: int, drifts: ArrayLike, variance: float = 2.0, common: float = 0.0) -> None:
        set_field = object.__setattr__
        set_field(self, "K", checks.whole("K", K, at_most=checks.MOST_QUEUES))
        array = np.array(checks.finite_array("drifts", drifts))
        if array.shape != (self.K,):
            raise ValueError(f"drifts of shape {array.shape}: must have one drift for each of K = {self.K} ranks")
        array.setflags(write=False)
        set_field(self, "drifts", array)
        set_field(self, "variance", checks.real("variance", variance, above=0))
        # −variance/K itself is the case without any noise in the total, and may be off by rounding.
        least = -self.variance / self.K * (1 + 1e-12)
        set_field(self, "common", checks.real("common", common, at_least=least))

    @property
    def upsilon(self) -> float:
        """υ = −Σδ_k, minus the drift of the total away from the boundary."""
        return -float(self.drifts.sum())

    def __eq__(self, other: object) -> bool:
        """Limits are equal when all their parameters are."""
        if not isinstance(other, Limit):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        """Hash by the parameters."""
        return hash(self._key)

    @property
    def _key(self) -> tuple[int, tuple[float, ...], float, float]:
        return self.K, tuple(map(float, self.drifts)), self.variance, self.common


@dataclass(frozen=True)
class CollapsedLimit:
    """State-space collapse: every coordinate equals W/K with W a one-dimensional reflected BM.

    W has drift −υ and variance K·variance per unit time. This is the limit under JSQ and JSQ(d).

    Parameters
    ----------
    K : int
        Number of coordinates.
    upsilon : float
        Minus the drift of the total.
    variance : float, default 2
        Variance that each queue contributes per unit time.
    """

    K: int
    upsilon: float
    variance: float = 2.0

    def __post_init__(self) -> None:
        """Validate, and store each field in its own type."""
        set_field = object.__setattr__
        set_field(self, "K", checks.whole("K", self.K, at_most=checks.MOST_QUEUES))
        set_field(self, "upsilon", checks.real("upsilon", self.upsilon))
        set_field(self, "variance", checks.real("variance", self.variance, above=0))


def require_system(system: Any) -> None:
    """Raise unless the argument is a `System`."""
    if not isinstance(system, System):
        why = "; a limit has no n" if isinstance(system, Limit | CollapsedLimit) else ""
        raise ValueError(f"system = {checks.shown(system)}: must be a System{why}")
