"""The controls of the stationary simulation: their formula, their mean of 0, and what they gain."""

from fractions import Fraction

import numpy as np
import pytest
from helpers import assert_detects, assert_within
from rankrouting import System, _controls, exact, jsq, mjsq, msblb, power_of_d, queues, random_routing
from rankrouting.policies import GivenProbabilities
from rankrouting.replications import mean_of
from scipy import stats

POLICIES = [mjsq(2.0), msblb(2.0, [0.5, 0.0, 0.5]), random_routing(), jsq(), power_of_d(2)]
PAIR = System(n=25, K=2, upsilon=1.0, policy=mjsq(2.0))


def generator(system, lengths, function):
    """The drift of a function of the sorted lengths, event by event, in whatever arithmetic the rates have."""
    here = function(lengths)
    drift = 0
    p = system.rank_probabilities
    for k in range(system.K):
        longer = [length + (i == k) for i, length in enumerate(lengths)]
        shorter = [max(length - (i == k), 0) for i, length in enumerate(lengths)]
        rate = Fraction(float(system.uniform_rate)) / system.K + Fraction(float(system.ranked_rate)) * Fraction(p[k])
        drift += rate * (function(longer) - here) + Fraction(system.n) * (function(shorter) - here)
    return drift


def functions(system):
    """The functions whose drifts are the controls, in exact arithmetic; √n must be whole."""
    root = int(system.sqrt_n)

    def power_sum(m):
        return lambda lengths: sum(abs(Fraction(2 * q + 1, 2) / root) ** m for q in lengths)

    two, three, four = map(power_sum, (2, 3, 4))
    return [two, three, four, lambda q: two(q) ** 2, lambda q: two(q) * three(q)]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("n", [1, 25, 10**4, 10**12])
def test_controls_are_drifts(policy, n):
    system = System(n=n, K=3, upsilon=0.5, policy=policy if n > 9 or policy.ranks_every_job else mjsq(0.5))
    states = np.array([[0, 0, 0], [0, 0, 1], [0, 2, 2], [1, 1, 1], [1, 3, 8]])
    states[-1] *= max(1, int(system.sqrt_n) // 4)
    expected = [[float(generator(system, list(map(int, q)), f)) for f in functions(system)] for q in states]
    np.testing.assert_allclose(_controls.drifts(system, states), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("policy", [mjsq(2.0), msblb(2.0, [0.75, 0.25]), jsq()], ids=lambda policy: policy.name)
def test_controls_have_mean_zero(policy):
    system = System(n=25, K=2, upsilon=1.0, policy=policy)
    law = exact.stationary(system)
    ranked, weights = np.sort(law.states, axis=1), law.probabilities
    drifts = _controls.drifts(system, ranked)
    size = weights @ np.abs(drifts)
    assert np.all(np.abs(weights @ drifts) < 1e-7 * size)
    # The same functions notice a stationary law that belongs to another slack.
    wrong = _controls.drifts(System(25, 2, 1.05, policy), ranked)
    assert np.all(np.abs(weights @ wrong) > 1e-3 * size)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@pytest.mark.parametrize("K", [2, 5])
def test_controls_gain_for_every_policy(policy, K):
    if isinstance(policy.rank_law, GivenProbabilities):
        policy = msblb(2.0, np.arange(K, 0, -1) / (K * (K + 1) / 2))
    system = System(n=400, K=K, upsilon=1.0, policy=policy)
    run = queues.simulate_stationary(system, replications=24, seed=1)
    for name in ("mean_total", "mean_ranked"):
        plain, controlled = run.estimate(name), run.estimate(name, controls=True)
        assert np.all(controlled.standard_error < 0.5 * plain.standard_error)
        difference = mean_of(getattr(run.samples, name) - getattr(run.controlled, name))
        assert_within(difference, 0.0)
    np.testing.assert_allclose(run.controlled.gap_means.cumsum(axis=1), run.controlled.mean_ranked)


def test_coefficients_do_what_they_are_for():
    # In the limit of one queue, x² solves Poisson's equation of x up to its factor: little variance is left.
    system = System(n=10**8, K=1, upsilon=1.0, policy=random_routing())
    states = np.arange(0, 60_000, 7)[:, np.newaxis]
    controlled = states[:, 0] / system.sqrt_n + _controls.drifts(system, states) @ _controls.coefficients(system)[:, 0]
    assert np.ptp(controlled) < 0.1 * np.ptp(states / system.sqrt_n)


@pytest.mark.slow
def test_estimates_with_controls_cover_and_gain():
    truth = exact.stationary(PAIR).mean_total / PAIR.sqrt_n
    runs = [
        queues.simulate_stationary(PAIR, replications=16, horizon=160.0, warmup=32.0, spacing=0.5, seed=seed)
        for seed in range(300)
    ]
    controlled = [run.estimate("mean_total", controls=True) for run in runs]
    covered = sum(low <= truth <= high for low, high in (one.interval() for one in controlled))
    assert stats.binomtest(covered, 300, 0.95).pvalue > 1e-4, covered
    variances = [
        np.mean([run.estimate("mean_total", controls=choice).standard_error ** 2 for run in runs])
        for choice in (False, True)
    ]
    assert variances[0] > 40 * variances[1]
    overall = mean_of([one.value for one in controlled])
    assert_within(overall, truth)
    assert_detects(overall, 1.003 * truth)
