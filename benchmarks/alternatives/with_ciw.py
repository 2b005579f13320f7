"""JSQ(d) in Ciw, a simulator of queueing networks in pure Python.

The router is a part of the arrival node. The other documented form, a node without service in front of the queues
that routes, costs half as much again: every customer then has a third event. Ciw keeps a record of each customer
and looks at every node after every event, whatever the model. It draws from Python's global generator.
"""

from __future__ import annotations

import random
import time
from operator import attrgetter

import ciw

from . import Simulated, uncounted

NAME = "Ciw"


class ShortestOfSample(ciw.routing.NodeRouting):  # type: ignore[misc]
    """Routes to the shortest of d sampled queues: the first of the shortest, as a sample is in random order."""

    def __init__(self, d: int) -> None:
        self.d = d

    def next_node(self, ind: ciw.Individual) -> ciw.Node:
        """Return the node to join."""
        return min(random.sample(self.simulation.transitive_nodes, self.d), key=attrgetter("number_of_individuals"))


def dispatcher(router: ciw.routing.NodeRouting) -> type[ciw.ArrivalNode]:
    """Return a class of arrival nodes that send each customer where the router says."""

    class Dispatcher(ciw.ArrivalNode):  # type: ignore[misc]
        def initialise(self) -> None:
            super().initialise()
            router.initialise(self.simulation, self)

        def release_individual(self, next_node: ciw.Node, next_individual: ciw.Individual) -> None:
            super().release_individual(router.next_node(next_individual), next_individual)

    return Dispatcher


def simulate(K: int, d: int, load: float, customers: int, seed: int) -> Simulated:
    """Simulate with Ciw."""
    # Ciw's JoinShortestQueue leaves out the customer in service; its LoadBalancing does not.
    router = ShortestOfSample(d) if d < K else ciw.routing.LoadBalancing(destinations=list(range(1, K + 1)))
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate=K * load)] + [None] * (K - 1),
        service_distributions=[ciw.dists.Exponential(rate=1.0)] * K,
        number_of_servers=[1] * K,
        routing=ciw.routing.NetworkRouting(routers=[ciw.routing.Leave()] * K),
    )
    ciw.seed(seed)
    simulation = ciw.Simulation(network, arrival_node_class=dispatcher(router))
    begin = time.perf_counter()
    simulation.simulate_until_max_customers(customers)
    seconds = time.perf_counter() - begin
    arrivals, left = simulation.nodes[0], simulation.nodes[-1]
    records = [customer.data_records[0] for customer in left.all_individuals[uncounted(customers) :]]
    mean = sum(record.exit_date - record.arrival_date for record in records) / len(records)
    return Simulated(arrivals.number_of_individuals + left.number_of_individuals, seconds, mean)
