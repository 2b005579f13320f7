"""JSQ(d) in SimPy, a process-based simulator in pure Python.

A server is a process that sleeps until woken up when nobody is there. A ``simpy.Store`` in front of each server
takes half as long again or more, a process for each customer that requests a ``simpy.Resource`` twice as long or
more; callbacks without processes would save a tenth.
"""

from __future__ import annotations

import random
import time
from collections import deque

import simpy
from simpy.events import ProcessGenerator

from . import Simulated, uncounted

NAME = "SimPy"


def simulate(K: int, d: int, load: float, customers: int, seed: int) -> Simulated:
    """Simulate with SimPy."""
    env, rng = simpy.Environment(), random.Random(seed)
    servers = range(K)
    lengths = [0] * K
    arrived: list[deque[float]] = [deque() for _ in servers]  # when those present arrived, the one in service first
    wake_up = [env.event() for _ in servers]
    sojourns: list[float] = []
    all_left = env.event()

    def shortest() -> int:
        if d < K:  # a sample is in random order: the first of the shortest is any of them
            return min(rng.sample(servers, d), key=lengths.__getitem__)
        least = min(lengths)
        return rng.choice([k for k, length in enumerate(lengths) if length == least])

    def arrivals() -> ProcessGenerator:
        while True:
            yield env.timeout(rng.expovariate(K * load))
            k = shortest()
            arrived[k].append(env.now)
            lengths[k] += 1
            if lengths[k] == 1:
                wake_up[k].succeed()

    def server(k: int) -> ProcessGenerator:
        while True:
            if lengths[k] == 0:
                wake_up[k] = env.event()
                yield wake_up[k]
            yield env.timeout(rng.expovariate(1.0))
            lengths[k] -= 1
            sojourns.append(env.now - arrived[k].popleft())
            if len(sojourns) == customers:
                all_left.succeed()

    env.process(arrivals())
    for k in servers:
        env.process(server(k))
    begin = time.perf_counter()
    env.run(until=all_left)
    seconds = time.perf_counter() - begin
    counted = sojourns[uncounted(customers) :]
    return Simulated(2 * len(sojourns) + sum(lengths), seconds, sum(counted) / len(counted))
