"""Stale ranks: the simulators against a naive twin, against exact chains, and against what is left at both ends."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import assert_detects, assert_same_law, assert_within
from naive_stale import NaiveStaleQueues
from rankrouting import Limit, System, UnstableError, analytic, exact, jsq, mjsq, msblb, queues, random_routing, ranks
from rankrouting.kernels import stale
from rankrouting.kernels.random import new_state
from rankrouting.replications import mean_of, replicate
from scipy import stats

PAIR = System(n=9, K=2, upsilon=2.0, policy=mjsq(2.0))
TRIPLE = System(n=9, K=3, upsilon=2.0, policy=msblb(2.0, [0.7, 0.2, 0.1]))


def ends(system, start, tau, cycles, count, seed):
    """Labelled lengths after some cycles from a fixed start, (count, K), in jobs."""

    def task(rng, _):
        lengths, sums = np.array(start, dtype=np.int64), np.zeros((2, system.K))
        stale.stale_queues_kernel(
            lengths, tau, cycles, 1, 2, sums, system.rank_arrival_rates, float(system.n), new_state(rng)
        )
        return np.concatenate([lengths, sums.ravel() / (2 * cycles)])

    return np.array(replicate(task, count, seed, progress=False))


@pytest.mark.parametrize(("tau", "cycles"), [(0.1, 4), (0.7, 1)])
def test_naive_twin_of_the_queues(tau, cycles):
    start, count = [0, 2, 2], 3000
    fast = ends(TRIPLE, start, tau, cycles, 4 * count, seed=1)
    slow = []
    for seed in range(count):
        twin = NaiveStaleQueues(9, 3, 2.0, 2.0, [0.7, 0.2, 0.1], tau, start, seed)
        twin.run(tau * cycles)
        slow.append([*twin.lengths, *(area / (tau * cycles) for area in (*twin.area_ranked, *twin.area_read))])
    slow = np.array(slow)
    lengths, twins = fast[:, :3].astype(int), slow[:, :3].astype(int)
    assert_same_law(np.sort(lengths), np.sort(twins))
    # The labels too: queue 0 is alone at the bottom at the first reading, 1 and 2 are tied.
    assert_same_law(lengths[:, :1], twins[:, :1])
    assert_same_law(lengths[:, 1:2], twins[:, 2:])
    # Averages over time, by rank now and by rank at the last reading.
    difference = mean_of(fast[:, 3:])
    reference = mean_of(slow[:, 3:])
    errors = np.hypot(difference.standard_error, reference.standard_error)
    assert np.all(np.abs(difference.value - reference.value) < 4.5 * errors)


def test_naive_twin_notices_a_wrong_profile():
    other = replace(TRIPLE, policy=msblb(2.0, [0.5, 0.3, 0.2]))
    one, two = (ends(system, [0, 2, 2], 0.7, 1, 12_000, seed=1)[:, 3:].mean(axis=0) for system in (TRIPLE, other))
    assert abs(one[3] - two[3]) > 0.05


@pytest.mark.parametrize("tau", [0.02, 0.3, 2.0])
@pytest.mark.parametrize("policy", [mjsq(2.0), msblb(3.0, [0.8, 0.2])])
def test_exact_pair(tau, policy):
    system = replace(PAIR, policy=policy)
    law = exact.stale_pair(system, tau)
    run = queues.simulate_stale(system, tau, replications=200, horizon=300.0, seed=2, progress=False)
    assert_within(run.mean_total, law.mean_total / 3)
    assert_within(run.mean_read, law.mean_read / 3)
    assert_detects(run.mean_total, law.mean_total / 3 * 1.05)
    assert abs(run.balance_z) < 4.5


def test_exact_pair_balances():
    for tau in (0.01, 0.5, 5.0):
        law = exact.stale_pair(PAIR, tau)
        assert abs(analytic.balance_residual(PAIR, law.mean_read / 3)) < 1e-8
        assert law.mean_read.sum() == pytest.approx(law.mean_total)


def test_fresh_ranks_in_the_limit_of_small_tau():
    fresh = exact.stationary(PAIR).mean_total
    losses = np.array([exact.stale_pair(PAIR, tau).mean_total - fresh for tau in (4e-4, 2e-4, 1e-4)])
    assert np.all(losses > 0)
    np.testing.assert_allclose(losses[:-1] / losses[1:], 2, rtol=0.02)
    run = queues.simulate_stale(PAIR, 1e-3, replications=100, seed=3, progress=False)
    assert_within(run.mean_total, fresh / 3, allowance=losses[0] * 3)


def test_very_stale_ranks_are_two_queues_alone():
    # c < υ/(K−1): the queue that gets all ranked jobs is stable too, an M/M/1 queue for ever.
    system = System(n=9, K=2, upsilon=3.0, policy=mjsq(1.0))
    loads = system.rank_arrival_rates / system.n
    assert exact.stale_pair(system, 40.0).mean_total == pytest.approx(np.sum(loads / (1 - loads)), rel=0.02)
    far, farther = (abs(exact.stale_pair(system, t).mean_total - np.sum(loads / (1 - loads))) for t in (40.0, 80.0))
    assert farther < 0.6 * far


@pytest.mark.parametrize(("K", "upsilon", "c"), [(2, 2.0, 6.0), (5, 4.0, 8.0)])
def test_slope_for_very_stale_ranks(K, upsilon, c):
    limit = System(n=10_000, K=K, upsilon=upsilon, policy=mjsq(c)).limit()
    near, far = (queues.simulate_stale(limit, t, replications=40, seed=4, progress=False).mean_total for t in (10, 50))
    slope = (far.value - near.value) / 40
    error = np.hypot(far.standard_error, near.standard_error) / 40
    predicted = analytic.stale_growth(K, upsilon, c)
    assert abs(slope - predicted) < 4.5 * error < 0.03 * predicted


def test_the_limit_is_that_of_the_queues():
    system = System(n=10**6, K=3, upsilon=2.0, policy=mjsq(6.0))
    for tau in (0.2, 3.0):
        runs = [
            queues.simulate_stale(model, tau, replications=100, horizon=200.0, seed=5, progress=False)
            for model in (system, system.limit())
        ]
        for name in ("mean_ranked", "mean_read"):
            one, two = (getattr(run, name) for run in runs)
            assert np.all(
                np.abs(one.value - two.value)
                < 4.5 * np.hypot(one.standard_error, two.standard_error) + 2 / system.sqrt_n
            )
        assert abs(runs[0].balance_z) < 4.5 and abs(runs[1].balance_z) < 4.5


def test_one_cycle_of_the_limit_is_the_reflected_brownian_motion():
    limit, start, tau = Limit(2, [1.0, -3.0]), [0.2, 0.7], 0.5

    def task(rng, _):
        positions = np.array(start)
        stale.stale_diffusion_kernel(
            positions, tau, 1, 1, 3, np.zeros((2, 2)), limit.drifts, limit.variance, rng, new_state(rng)
        )
        return positions

    rows = np.array(replicate(task, 20_000, 6, progress=False))
    for i, drift in enumerate(limit.drifts):
        law = [lambda y, i=i, f=f, b=drift: analytic.rbm_transition_cdf(y, start[i], tau, -f * b) for f in (1.0, 1.1)]
        assert stats.kstest(rows[:, i], law[0]).pvalue > 1e-4
        assert stats.kstest(rows[:, i], law[1]).pvalue < 1e-4


def test_small_tau_gives_the_gap_law_of_the_limit():
    limit = System(n=10_000, K=3, upsilon=3.0, policy=msblb(4.0, [0.6, 0.4, 0.0])).limit()
    run = queues.simulate_stale(limit, 1e-3, replications=100, horizon=20.0, warmup=2.0, seed=7, progress=False)
    assert_within(run.mean_ranked, analytic.mean_ranked(limit), allowance=0.005)
    assert_detects(run.mean_ranked, 1.08 * analytic.mean_ranked(limit), allowance=0.005)
    assert run.final_ranked.shape == (100, 3) and np.all(ranks.gaps(run.final_ranked) >= 0)


def test_same_numbers_on_any_number_of_threads():
    one, two = (
        queues.simulate_stale(PAIR, 0.3, replications=13, horizon=20.0, seed=8, threads=threads, progress=False)
        for threads in (1, 4)
    )
    assert one.mean_total.value == two.mean_total.value
    np.testing.assert_array_equal(one.final_ranked, two.final_ranked)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: queues.simulate_stale("x", 1.0), "must be a System or a Limit"),
        (lambda: queues.simulate_stale(replace(PAIR, policy=jsq()), 1.0), "policy = JSQ"),
        (lambda: queues.simulate_stale(PAIR, 0.0), "tau = 0"),
        (lambda: queues.simulate_stale(PAIR, 1.0, replications=3), "replications = 3"),
        (lambda: queues.simulate_stale(PAIR, 1.0, horizon=-1.0), "horizon = -1"),
        (lambda: queues.simulate_stale(PAIR, 1e-15), "steps of a queue"),
        (lambda: queues.simulate_stale(replace(PAIR, upsilon=-1.0), 1.0), "theta_1"),
        (lambda: exact.stale_pair(TRIPLE, 1.0), "K = 3"),
        (lambda: exact.stale_pair(replace(PAIR, policy=jsq()), 1.0), "JSQ"),
        (lambda: exact.stale_pair(PAIR, -1.0), "tau = -1"),
        (lambda: exact.stale_pair(replace(PAIR, n=10**8), 1.0), "1500 are allowed"),
        (lambda: analytic.stale_growth(1, 1.0, 1.0), "K = 1"),
    ],
)
def test_messages(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_an_unstable_system_is_named_so():
    with pytest.raises(UnstableError):
        exact.stale_pair(replace(PAIR, upsilon=-1.0), 1.0)
    # Random routing does not read at all: any tau gives the same.
    system = System(n=9, K=2, upsilon=2.0, policy=random_routing())
    loads = system.load
    assert exact.stale_pair(system, 0.5).mean_total == pytest.approx(2 * loads / (1 - loads))
