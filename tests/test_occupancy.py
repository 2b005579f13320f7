"""JSQ with many servers: the occupancy kernel, the exact law with two places, the Halfin-Whitt diffusion."""

import naive_occupancy
import numpy as np
import pytest
from helpers import assert_detects, assert_law, assert_within
from rankrouting import System, UnstableError, exact, halfin_whitt, jsq, mjsq, occupancy, power_of_d
from rankrouting.replications import mean_of

LONG = {"horizon": 2_000.0, "warmup": 200.0, "replications": 64}


def jsq_at(K, load):
    return System(1, K, K * (1 - load), jsq())


# ---- The occupancy kernel --------------------------------------------------------------------------


@pytest.mark.parametrize(("K", "load"), [(2, 0.8), (3, 0.9)])
def test_jsq_has_the_exact_means_of_few_servers(K, load):
    system = jsq_at(K, load)
    run, law = occupancy.simulate_stationary(system, seed=1, **LONG), exact.stationary(system)
    assert_within(run.mean_total, law.mean_total)
    assert_detects(run.mean_total, 1.05 * law.mean_total)
    assert_within(
        run.mean_at_least, [sum(1 - law.ranked_law(k)[:i].sum() for k in range(1, K + 1)) for i in range(1, 5)]
    )
    assert_within(mean_of(run.shortest), law.mean_ranked[0])
    assert_within(mean_of(run.residuals), 0.0)


def test_power_of_two_has_the_exact_means_of_three_servers():
    system = System(4, 3, 0.6, power_of_d(2))
    run, law = occupancy.simulate_stationary(system, seed=2, **LONG), exact.stationary(system)
    assert_within(run.mean_total, law.mean_total)
    assert_detects(run.mean_total, exact.stationary(System(4, 3, 0.6, jsq())).mean_total)


def test_states_at_the_end_have_the_exact_law():
    system = jsq_at(2, 0.7)
    run = occupancy.simulate_stationary(system, horizon=30.0, warmup=20.0, replications=4_000, depth=12, seed=3)
    law = exact.stationary(system)
    # The number of queues with at least i jobs, from the two lengths and back.
    lengths = np.column_stack([(run.final_at_least == 2).sum(axis=1), (run.final_at_least >= 1).sum(axis=1)])
    assert_law(lengths, law.states, law.probabilities)
    assert np.array_equal(run.final_total[run.final_total < 12], lengths.sum(axis=1)[run.final_total < 12])


@pytest.mark.parametrize("d", [1, 2, 20])
def test_the_kernel_agrees_with_its_slow_twin(d):
    K, load, depth = 20, 0.8, 3
    policy = jsq() if d == K else power_of_d(d)
    run = occupancy.simulate_stationary(
        System(1, K, K * (1 - load), policy), horizon=200.0, warmup=50.0, replications=64, depth=depth, seed=4
    )
    twin = []
    for seed in range(24):
        servers = naive_occupancy.NaiveServers(K, load, d, seed)
        servers.averages(50.0, depth)
        twin.append(servers.averages(60.0, depth))
    fast = mean_of(np.column_stack([run.at_least, run.total, run.shortest]))
    slow = mean_of(twin)
    error = np.hypot(fast.standard_error, slow.standard_error)
    assert np.all(np.abs(fast.value - slow.value) <= 4.5 * error)
    assert error[depth] < 0.06 * slow.value[depth]


def test_a_balanced_start_grows_and_shrinks_as_long_as_it_must():
    # Far more jobs than the levels that there is room for at first, and service only, nearly.
    system = jsq_at(5, 1e-9)
    run = occupancy.simulate_stationary(
        system, horizon=1e-9, warmup=1e-9, totals=203, replications=13, depth=50, seed=5
    )
    assert np.all(run.final_total == 203) and np.all(run.final_at_least.sum(axis=1) == 203)
    assert np.all(run.shortest == 40) and np.all(run.final_at_least[:, 40] == 3)
    heavy = occupancy.simulate_stationary(
        jsq_at(5, 1 - 1e-9), horizon=50.0, warmup=400.0, replications=13, depth=200, seed=6
    )
    assert np.all(heavy.final_at_least.sum(axis=1) == heavy.final_total) and heavy.final_total.max() > 40


def test_numbers_do_not_depend_on_threads_or_replications():
    arguments = {"horizon": 5.0, "warmup": 1.0, "seed": 7}
    one = occupancy.simulate_stationary(jsq_at(50, 0.9), replications=14, threads=1, **arguments)
    many = occupancy.simulate_stationary(jsq_at(50, 0.9), replications=20, threads=3, **arguments)
    assert np.array_equal(one.total, many.total[:14]) and np.array_equal(one.final_at_least, many.final_at_least[:14])


# ---- The exact law with two places -----------------------------------------------------------------


@pytest.mark.parametrize(("K", "upsilon"), [(1, 0.3), (2, 1.0), (6, 1.5), (9, -2.0), (15, 4.0)])
def test_two_places_agrees_with_a_dense_solve(K, upsilon):
    law = exact.two_places(System(1, K, upsilon, jsq()))
    dense = naive_occupancy.two_places_law(K, K - upsilon)
    for value, function in (
        (law.mean_twos, lambda q, i: q),
        (law.mean_idle, lambda q, i: i),
        (law.second_moment_idle, lambda q, i: i * i),
        (law.none_idle, lambda q, i: i == 0),
        (law.lost, lambda q, i: q == K),
        (law.mean_total, lambda q, i: K - i + q),
        (law.twos_law[0], lambda q, i: q == 0),
    ):
        assert value == pytest.approx(sum(p * function(q, i) for (q, i), p in dense.items()), rel=1e-9, abs=1e-12)


def test_two_places_fulfils_the_identities_of_many_servers():
    for K, slack in ((10_000, 200.0), (3_000, 30.0)):
        law = exact.two_places(System(1, K, slack, jsq()))
        assert law.mean_idle == pytest.approx(slack, rel=1e-7)
        assert law.mean_total == pytest.approx((K - slack) * (1 + law.none_idle), rel=1e-9)
        assert law.twos_law.sum() == pytest.approx(1.0) and law.lost < 1e-9


def test_where_no_job_is_lost_two_places_is_jsq():
    system = jsq_at(900, 0.96)
    law = exact.two_places(system)
    assert law.lost < 1e-9
    run = occupancy.simulate_stationary(system, horizon=300.0, warmup=20.0, replications=64, seed=8)
    assert_within(run.mean_total, law.mean_total)
    assert_within(run.controlled(run.at_least[:, 1]), law.mean_twos)
    assert_detects(run.controlled(run.at_least[:, 1]), 1.2 * law.mean_twos)


# ---- The Halfin-Whitt diffusion --------------------------------------------------------------------


def test_the_diffusion_agrees_with_its_slow_twin_and_with_many_servers():
    beta = 1.0
    means = halfin_whitt.stationary_means(beta, horizon=2_000.0, warmup=20.0, step=0.01, replications=64, seed=9)
    assert_within(means.idle, beta, allowance=0.005)
    assert_detects(means.idle, 1.05 * beta, allowance=0.005)
    # Twice the difference to a quarter of the servers is what is left, of order K^(-1/2).
    small, large = (exact.two_places(System(1, K, beta * K**0.5, jsq())).mean_twos / K**0.5 for K in (2_500, 10_000))
    assert_within(means.twos, 2 * large - small, allowance=0.01)
    assert_detects(means.twos, small, allowance=0.01)
    # Projected Euler is off by order √step: two steps, extrapolated.
    rng = np.random.default_rng(10)
    fine, coarse = (
        mean_of(naive_occupancy.halfin_whitt_means(beta, step, 60.0, 1_000, rng)[1]) for step in (0.01, 0.04)
    )
    value = 2 * fine.value - coarse.value
    error = np.sqrt(4 * fine.standard_error**2 + coarse.standard_error**2 + means.twos.standard_error**2)
    assert abs(value - means.twos.value) < 4.5 * error + 0.01


# ---- Messages --------------------------------------------------------------------------------------


def test_messages_name_the_argument():
    system, ok = jsq_at(10, 0.9), {"horizon": 1.0, "warmup": 1.0}
    with pytest.raises(ValueError, match="policy = MJSQ: must rank every job"):
        occupancy.simulate_stationary(System(100, 3, 1.0, mjsq(2.0)), **ok)
    with pytest.raises(UnstableError, match="upsilon = -1"):
        occupancy.simulate_stationary(System(1, 10, -1.0, jsq()), **ok)
    with pytest.raises(ValueError, match="totals of shape"):
        occupancy.simulate_stationary(system, totals=[1, 2], **ok)
    with pytest.raises(ValueError, match="totals from 0.5"):
        occupancy.simulate_stationary(system, totals=0.5, **ok)
    with pytest.raises(ValueError, match="horizon = 0"):
        occupancy.simulate_stationary(system, horizon=0.0, warmup=0.0)
    with pytest.raises(ValueError, match="policy = MJSQ: must be jsq"):
        exact.two_places(System(100, 3, 1.0, mjsq(2.0)))
    with pytest.raises(ValueError, match="K = 100000000"):
        exact.two_places(System(1, 10**8, 1e4, jsq()))
    with pytest.raises(ValueError, match="step = 2"):
        halfin_whitt.stationary_means(1.0, horizon=1.0, warmup=0.0, step=2.0)
