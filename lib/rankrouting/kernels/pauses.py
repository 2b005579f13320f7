"""The event loop of the system with pauses, in which an event that would break the order of tied queues is lost.

Queues keep their ranks for ever, so no ranking is needed and a step is a draw and two comparisons.
"""

from __future__ import annotations

from .._jit import kernel
from .random import uniform


@kernel
def pauses_kernel(lengths, durations, out, service, arrivals, rng, state):
    """Advance ascending lengths (K,) over each duration; out[j] gets the lengths at its end."""
    K = lengths.size
    services = K * service
    total_rate = services + arrivals.sum()
    for j in range(durations.size):
        for _ in range(rng.poisson(total_rate * durations[j])):
            place = uniform(state) * total_rate
            if place < services:
                # The quotient may be rounded up to K.
                k = min(int(place / service), K - 1)
                if lengths[k] > (lengths[k - 1] if k > 0 else 0):
                    lengths[k] -= 1
                continue
            place -= services
            k = 0
            while k < K - 1 and place >= arrivals[k]:
                place -= arrivals[k]
                k += 1
            if k == K - 1 or lengths[k] < lengths[k + 1]:
                lengths[k] += 1
        out[j] = lengths
