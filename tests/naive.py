"""A slow twin of the queue simulators, written from the description of the model alone.

Nothing is imported from the package and nothing is clever: one event at a time, with a clock, and a
full sort at each ranked arrival.
"""

import math
import random


class NaiveQueues:
    """K queues with a uniform and a ranked stream; lengths in jobs, time as in the model."""

    def __init__(self, n, K, upsilon, c, p, lengths, seed):
        """c is None when every job is ranked."""
        self.n, self.K, self.p = n, K, p
        total = n * K - upsilon * math.sqrt(n)
        self.ranked = total if c is None else c * math.sqrt(n)
        self.uniform = total - self.ranked
        self.lengths = list(lengths)
        self.random = random.Random(seed)
        self.clock = 0.0
        self.idle = [0.0] * K
        self.area_ranked = [0.0] * K

    def run(self, until):
        """Advance the clock to `until`, adding up idle times and areas under the ranked lengths."""
        while True:
            busy = [i for i in range(self.K) if self.lengths[i] > 0]
            rate = self.uniform + self.ranked + self.n * len(busy)
            wait = self.random.expovariate(rate)
            step = min(wait, until - self.clock)
            for i in range(self.K):
                if self.lengths[i] == 0:
                    self.idle[i] += step
            for k, length in enumerate(sorted(self.lengths)):
                self.area_ranked[k] += step * length
            self.clock += step
            if step < wait:
                return
            which = self.random.random() * rate
            if which < self.uniform:
                self.lengths[self.random.randrange(self.K)] += 1
            elif which < self.uniform + self.ranked:
                shuffled = self.random.sample(range(self.K), self.K)
                by_length = sorted(shuffled, key=lambda i: self.lengths[i])
                rank = self.random.choices(range(self.K), weights=self.p)[0]
                self.lengths[by_length[rank]] += 1
            else:
                self.lengths[self.random.choice(busy)] -= 1


class NaivePauses:
    """The system with pauses: a move that leaves the lengths, in their first order, unsorted is undone."""

    def __init__(self, n, arrival_rates, lengths, seed):
        self.moves = [(k, +1) for k in range(len(arrival_rates))] + [(k, -1) for k in range(len(arrival_rates))]
        self.rates = [*arrival_rates, *[n] * len(arrival_rates)]
        self.lengths = list(lengths)
        self.random = random.Random(seed)

    def run(self, duration):
        """Advance by a duration, one event at a time with a clock."""
        clock = self.random.expovariate(sum(self.rates))
        while clock < duration:
            k, step = self.random.choices(self.moves, weights=self.rates)[0]
            self.lengths[k] += step
            if self.lengths != sorted(self.lengths) or self.lengths[0] < 0:
                self.lengths[k] -= step
            clock += self.random.expovariate(sum(self.rates))
