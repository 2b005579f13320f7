"""Slow twins of the exact laws: chains written out state by state, from the description of the model alone."""

import itertools

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu


def naive_generator(system, longest):
    """Rates between sorted tuples of at most `longest`; ties need no rule, sorting does it."""
    states = [s for s in itertools.product(range(longest + 1), repeat=system.K) if list(s) == sorted(s)]
    index = {state: i for i, state in enumerate(states)}
    matrix = sp.lil_array((len(states), len(states)))
    for state, i in index.items():
        for k in range(system.K):
            for step, rate in ((1, system.rank_arrival_rates[k]), (-1, system.n)):
                target = list(state)
                target[k] += step
                j = index.get(tuple(sorted(target)))
                if j is not None and target[k] >= 0:
                    matrix[i, j] += rate
                    matrix[i, i] -= rate
    return states, matrix.tocsc()


def solve(matrix):
    """Stationary law of a generator by a direct solve, state 0 set to one."""
    law = np.ones(matrix.shape[0])
    law[1:] = splu(-matrix[1:, 1:].T.tocsc()).solve(matrix[[0], 1:].toarray()[0])
    return law / law.sum()


def naive_stationary(system, longest):
    states, matrix = naive_generator(system, longest)
    return dict(zip(states, solve(matrix), strict=True))


def naive_pauses(system, largest):
    """The chain of the gaps: a move that would break the order is lost, so the last queue gains freely."""
    K, rates = system.K, system.rank_arrival_rates
    states = list(itertools.product(range(largest + 1), repeat=K))
    index = {state: i for i, state in enumerate(states)}
    matrix = sp.lil_array((len(states), len(states)))
    for state, i in index.items():
        for k in range(K):
            for step, rate in ((1, rates[k]), (-1, system.n)):
                target = list(state)
                target[k] += step
                if k + 1 < K:
                    target[k + 1] -= step
                j = index.get(tuple(target))
                if j is not None:
                    matrix[i, j] += rate
                    matrix[i, i] -= rate
    return np.array(states), solve(matrix.tocsc())
