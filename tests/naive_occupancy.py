"""Slow twins of what is fast about many servers, written from the descriptions alone; nothing is imported."""

import math
import random

import numpy as np


class NaiveServers:
    """K servers of rate 1, every job to the shortest of d sampled without replacement; one event at a time."""

    def __init__(self, K, load, d, seed):
        self.K, self.load, self.d = K, load, d
        self.lengths = [1] * K
        self.random = random.Random(seed)

    def averages(self, until, depth):
        """Run with a clock; return averages of the numbers with at least 1, …, depth jobs, the total, the shortest."""
        area = [0.0] * (depth + 2)
        clock = 0.0
        while clock < until:
            busy = [i for i in range(self.K) if self.lengths[i] > 0]
            rate = self.K * self.load + len(busy)
            step = min(self.random.expovariate(rate), until - clock)
            for i in range(depth):
                area[i] += step * sum(length > i for length in self.lengths)
            area[depth] += step * sum(self.lengths)
            area[depth + 1] += step * min(self.lengths)
            clock += step
            if clock >= until:
                break
            if self.random.random() * rate < self.K * self.load:
                sample = self.random.sample(range(self.K), self.d)
                shortest = min(sample, key=lambda i: self.lengths[i])
                self.lengths[shortest] += 1
            else:
                self.lengths[self.random.choice(busy)] -= 1
        return [x / until for x in area]


def two_places_law(K, arrivals):
    """Return {(twos, idle): probability} of JSQ with at most two jobs a server, by a dense solve."""
    states = [(q, i) for q in range(K + 1) for i in range(K - q + 1)]
    place = {state: index for index, state in enumerate(states)}
    generator = np.zeros((len(states), len(states)))
    for (q, i), row in place.items():
        moves = {(q, i + 1): K - q - i, (q - 1, i): q, (q, i - 1): arrivals if i > 0 else 0}
        if i == 0:
            moves[(q + 1, 0)] = arrivals if q < K else 0
        for state, rate in moves.items():
            if rate > 0:
                generator[row, place[state]] += rate
                generator[row, row] -= rate
    equations = np.vstack([generator.T, np.ones(len(states))])
    solution = np.linalg.lstsq(equations, np.append(np.zeros(len(states)), 1.0), rcond=None)[0]
    return dict(zip(states, solution, strict=True))


def halfin_whitt_means(beta, step, horizon, paths, rng):
    """Return means of Y and X over time and paths, each path on its own, by a projected Euler scheme."""
    y, x = np.full(paths, beta), np.zeros(paths)
    y_sum, x_sum = np.zeros(paths), np.zeros(paths)
    steps, warmup = int(horizon / step), int(horizon / step) // 4
    for t in range(steps):
        free = y + (beta - y - x) * step + math.sqrt(2 * step) * rng.normal(size=paths)
        push = np.maximum(0.0, -free)
        y, x = free + push, x - x * step + push
        if t >= warmup:
            y_sum, x_sum = y_sum + y, x_sum + x
    return y_sum / (steps - warmup), x_sum / (steps - warmup)
