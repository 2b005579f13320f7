"""A slow twin of the diffusion's simulator, written from the equations alone.

Nothing is imported from the package. All replications take a step together; the minimum within a
step is drawn by inverting its distribution function in the form it has in textbooks.
"""

import numpy as np


def simulate(drifts, variance, x0, horizon, steps, replications, rng, scheme="reflected", common=0.0):
    """Return labelled positions and local times at `horizon`, each (replications, K)."""
    drifts = np.asarray(drifts, dtype=float)
    K = len(drifts)
    x = np.zeros((replications, K)) + x0
    local_time = np.zeros((replications, K))
    h = horizon / steps
    for _ in range(steps):
        # The smaller of two equal coordinates is drawn by lot.
        order = np.lexsort((rng.random((replications, K)), x), axis=1)
        drift = np.empty((replications, K))
        np.put_along_axis(drift, order, np.broadcast_to(drifts, (replications, K)), axis=1)
        covariance = variance * h * np.eye(K) + common * h
        end = x + drift * h + rng.multivariate_normal(np.zeros(K), covariance, size=replications)
        if scheme == "projected":
            lowest = end
        else:
            # P(min ≤ b | x, end) = exp(−2(x − b)(end − b)/v) for b ≤ min(x, end), v the variance of a
            # coordinate in the step: solve (x − b)(end − b) = −v·log(U)/2 for the smaller root b.
            product = -(variance + common) * h * np.log(1 - rng.random((replications, K))) / 2
            lowest = (x + end - np.sqrt((x + end) ** 2 - 4 * (x * end - product))) / 2
        push = np.where(lowest < 0, -lowest, 0.0)
        x = end + push
        local_time += push
    return x, local_time
