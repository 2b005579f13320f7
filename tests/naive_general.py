"""A slow twin of the simulator with general times, written from the description of the model alone.

Nothing is imported from the package: a heap of events, a queue of jobs that carry their service times from their
arrival on, and the times drawn by the standard library.
"""

import heapq
import math
import random
from collections import deque


def draw(rng, law):
    """Draw a time with mean 1 from a law given as (name, parameter)."""
    name, parameter = law
    if name == "exponential":
        return rng.expovariate(1.0)
    if name == "deterministic":
        return 1.0
    if name == "erlang":
        return sum(rng.expovariate(parameter) for _ in range(parameter))
    if name == "lognormal":
        sigma = math.sqrt(math.log(1 + parameter))
        return rng.lognormvariate(-(sigma**2) / 2, sigma)
    if name == "hyperexponential":
        p = (1 + math.sqrt((parameter - 1) / (parameter + 1))) / 2
        return rng.expovariate(2 * p) if rng.random() < p else rng.expovariate(2 * (1 - p))
    if name == "pareto":
        return rng.paretovariate(parameter) * (1 - 1 / parameter)
    raise AssertionError(name)


def lengths_at(times, n, K, upsilon, c, p, start, service, arrivals, ranked_arrivals, seed):
    """Return the lengths in jobs at each time, a list of lists; c is None when every job is ranked."""
    rng = random.Random(seed)
    total = n * K - upsilon * math.sqrt(n)
    ranked = total if c is None else c * math.sqrt(n)
    uniform = total - ranked
    # Jobs are their service times; the first of each queue is served and has a uniform part of it left.
    jobs = [deque(draw(rng, service) / n for _ in range(length)) for length in start]
    heap = [(rng.random() * queue[0], "departure", i) for i, queue in enumerate(jobs) if queue]
    if uniform > 0:
        heap.append((rng.random() * draw(rng, arrivals) / uniform, "uniform", -1))
    if ranked > 0:
        heap.append((rng.random() * draw(rng, ranked_arrivals) / ranked, "ranked", -1))
    heap += [(time, "look", -1) for time in times]
    heapq.heapify(heap)
    seen = []
    while len(seen) < len(times):
        now, what, i = heapq.heappop(heap)
        if what == "look":
            seen.append([len(queue) for queue in jobs])
            continue
        if what == "departure":
            jobs[i].popleft()
            if jobs[i]:
                heapq.heappush(heap, (now + jobs[i][0], "departure", i))
            continue
        if what == "uniform":
            i = rng.randrange(K)
            heapq.heappush(heap, (now + draw(rng, arrivals) / uniform, "uniform", -1))
        else:
            by_length = sorted(rng.sample(range(K), K), key=lambda j: len(jobs[j]))
            i = by_length[rng.choices(range(K), weights=p)[0]]
            heapq.heappush(heap, (now + draw(rng, ranked_arrivals) / ranked, "ranked", -1))
        jobs[i].append(draw(rng, service) / n)
        if len(jobs[i]) == 1:
            heapq.heappush(heap, (now + jobs[i][0], "departure", i))
    return seen
