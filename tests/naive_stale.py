"""A slow twin of the simulator with stale ranks, written from the description alone; nothing is imported.

One event at a time, with a clock.
"""

import math
import random


class NaiveStaleQueues:
    """K queues whose ranked jobs use the order of the queues at the last multiple of tau; lengths in jobs."""

    def __init__(self, n, K, upsilon, c, p, tau, lengths, seed):
        self.n, self.K, self.p, self.tau = n, K, p, tau
        self.ranked = c * math.sqrt(n)
        self.uniform = n * K - upsilon * math.sqrt(n) - self.ranked
        self.lengths = list(lengths)
        self.random = random.Random(seed)
        self.clock = 0.0
        self.next_reading = 0.0
        self.order = None
        self.area_ranked = [0.0] * K
        self.area_read = [0.0] * K

    def read(self):
        """Sort the queues by length, a fair coin deciding between equals."""
        keyed = [(self.lengths[i], self.random.random(), i) for i in range(self.K)]
        self.order = [i for _, _, i in sorted(keyed)]
        self.next_reading += self.tau

    def run(self, until):
        """Advance the clock to `until`, adding up areas under the lengths by rank now and at the last reading."""
        while self.clock < until:
            if self.order is None or self.clock >= self.next_reading:
                self.read()
            end = min(until, self.next_reading)
            step = self.random.expovariate(self.uniform + self.ranked + self.n * self.K)
            happens = self.clock + step < end
            step = step if happens else end - self.clock
            for k, length in enumerate(sorted(self.lengths)):
                self.area_ranked[k] += step * length
                self.area_read[k] += step * self.lengths[self.order[k]]
            self.clock = self.clock + step if happens else end
            if happens:
                self.event()

    def event(self):
        """One arrival, or a service of any server, which does nothing at an empty queue."""
        which = self.random.random() * (self.uniform + self.ranked + self.n * self.K)
        if which < self.uniform:
            self.lengths[self.random.randrange(self.K)] += 1
        elif which < self.uniform + self.ranked:
            self.lengths[self.order[self.random.choices(range(self.K), weights=self.p)[0]]] += 1
        else:
            i = self.random.randrange(self.K)
            self.lengths[i] = max(self.lengths[i] - 1, 0)
