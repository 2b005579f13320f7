"""JSQ(d) as one would write it in other simulators from the package index: what the event loop is measured against.

Each module has a function ``simulate(K, d, load, customers, seed)`` for K parallel M/M/1 queues of service rate 1
with Poisson arrivals of rate K·load. A customer joins the shortest of d queues sampled without replacement (d = K:
full JSQ), the customer in service counted, ties broken uniformly. The system starts empty; the run ends when
`customers` have left. Each model is what its package's documentation recommends, in the fastest of the forms given
there; a module says which others were tried. Needs the extra ``bench``.
"""

from __future__ import annotations

from typing import NamedTuple


class Simulated(NamedTuple):
    """What was simulated: arrivals and departures, the time that took, and the mean time in system.

    The mean is over those counted: customers who leave after the first tenth. The seconds are of the simulation
    alone, without imports, compilation and set-up.
    """

    events: int
    seconds: float
    mean_sojourn: float


def uncounted(customers: int) -> int:
    """Return how many customers leave before the first who is counted."""
    return customers // 10
