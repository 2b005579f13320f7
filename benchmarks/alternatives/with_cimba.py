"""JSQ(d) in Cimba: a model in Python, compiled by numba, on an event engine in C.

Arrivals and ends of service are scheduled events. A process for each server, the more usual form, takes a third
longer, and times drawn from input sources a tenth. One trial runs on one core; Cimba would run several at the same
time. No statistics but the sum of the times in system.
"""

from __future__ import annotations

import cimba as cb

from . import Simulated, uncounted

NAME = "Cimba"

# Cimba's stores record their lengths while the window of measurement is open. This one never opens.
NEVER = cb.Window(warmup=1e15, duration=1.0)


class Server(cb.Model):
    """A server and its queue: when those present arrived, the one in service first."""

    system: cb.Ref[System]
    index: cb.Param[int]
    arrived: cb.Store[float]

    def __init__(self, system: System, index: int) -> None:
        self.system, self.index = system, index

    @cb.function
    def join(self) -> None:
        """Take in a customer who arrives now."""
        self.arrived.put(cb.now())
        self.system.lengths[self.index] += 1
        if self.system.lengths[self.index] == 1:
            cb.schedule(self.finish, cb.random.exponential(1.0))

    @cb.event
    def finish(self) -> None:
        """End a service, and begin the next."""
        self.system.lengths[self.index] -= 1
        if self.system.lengths[self.index] > 0:
            cb.schedule(self.finish, cb.random.exponential(1.0))
        self.system.leave(self.arrived.get())


class System(cb.Model):
    """The router, with the lengths that it sees, and the count of those who left."""

    servers: list[Server]
    d: cb.Param[int]
    interarrival: cb.Param[float]
    customers: cb.Param[int]
    uncounted: cb.Param[int]
    lengths: cb.Array[int]
    candidates: cb.Array[int]
    total: float = 0.0
    arrivals: cb.Output[int] = 0
    departures: cb.Output[int] = 0
    mean_sojourn: cb.Output[float]

    def __init__(self, K: int, d: int, load: float, customers: int) -> None:
        self.servers = [Server(self, index) for index in range(K)]
        self.d, self.interarrival = d, 1 / (K * load)
        self.customers, self.uncounted = customers, uncounted(customers)
        self.lengths, self.candidates = cb.Array(K), cb.Array(list(range(K)))

    @cb.on_start
    def begin(self) -> None:
        """Wait for the first customer."""
        cb.schedule(self.arrive, cb.random.exponential(self.interarrival))

    @cb.event
    def arrive(self) -> None:
        """Send a customer to a queue, and wait for the next."""
        self.arrivals += 1
        chosen = self.shortest_of_sample() if self.d < len(self.servers) else self.shortest()
        self.servers[chosen].join()
        cb.schedule(self.arrive, cb.random.exponential(self.interarrival))

    @cb.function
    def shortest(self) -> int:
        """Return one of the shortest queues."""
        ties = 0
        least = self.lengths[0]
        for index in range(len(self.lengths)):
            length = self.lengths[index]
            if length < least:
                least = length
                ties = 0
            if length == least:
                self.candidates[ties] = index
                ties += 1
        return self.candidates[cb.random.dice(0, ties - 1) if ties > 1 else 0]  # a die needs two sides

    @cb.function
    def shortest_of_sample(self) -> int:
        """Return a shortest queue of d: the first d of a shuffle, of which the first of the shortest is any."""
        chosen = -1
        for i in range(self.d):
            j = cb.random.dice(i, len(self.candidates) - 1)
            candidate = self.candidates[j]
            self.candidates[j] = self.candidates[i]
            self.candidates[i] = candidate
            if chosen < 0 or self.lengths[candidate] < self.lengths[chosen]:
                chosen = candidate
        return chosen

    @cb.function
    def leave(self, arrived: float) -> None:
        """Count a customer who leaves now; the last one ends the run."""
        self.departures += 1
        if self.departures > self.uncounted:
            self.total += cb.now() - arrived
        if self.departures == self.customers:
            cb.end_trial()

    @cb.on_end
    def report(self) -> None:
        """Turn the sum into the mean."""
        self.mean_sojourn = self.total / (self.departures - self.uncounted)


def simulate(K: int, d: int, load: float, customers: int, seed: int) -> Simulated:
    """Simulate with Cimba; the first call compiles the model."""
    system = System(K, d, load, customers)
    results = cb.Experiment(system, window=NEVER, seed=seed).run(workers=1, on_failure="raise")
    found = results[system]
    events = int(found.arrivals[0, 0] + found.departures[0, 0])
    return Simulated(events, results.meta.native_wall_time, float(found.mean_sojourn[0, 0]))
