"""The reflected diffusion of idle servers and second jobs under JSQ in the Halfin-Whitt regime.

dY = (β − Y − X) dt + √2 dB + dU, dX = −X dt + dU, U growing only at Y = 0. Used by `halfin_whitt`.
"""

from __future__ import annotations

import math

from .._jit import kernel


@kernel
def halfin_whitt_kernel(beta, start, step, counts, out, rng):
    """Take counts[t] steps from `start` (y, x); out[t] gets the averages of y, x and the state at their end.

    Within a step the drift of y is that of its start; the path with that drift is reflected exactly, its minimum
    drawn given its end. What is pushed joins x in the middle of the step.
    """
    y, x = start[0], start[1]
    deviation, decay, half_decay = math.sqrt(2.0 * step), math.exp(-step), math.exp(-0.5 * step)
    for t in range(counts.size):
        y_sum, x_sum = 0.0, 0.0
        for _ in range(counts[t]):
            z = (beta - y - x) * step + deviation * rng.standard_normal()
            end, push = y + z, 0.0
            # The minimum m of the path solves m² − z·m = step·E, E exponential, in the form without cancellation.
            if y * end < 45.0 * step:
                root = math.sqrt(z * z + 4.0 * step * rng.standard_exponential())
                push = max(0.0, 0.5 * (root - z) - y)
                if push > 0.0:
                    end = 0.5 * (root + z)
            x_end = x * decay + push * half_decay
            y_sum += 0.5 * (y + end)
            x_sum += 0.5 * (x + x_end)
            y, x = end, x_end
        out[t, 0], out[t, 1], out[t, 2], out[t, 3] = y_sum / counts[t], x_sum / counts[t], y, x
