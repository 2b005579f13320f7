"""The queue simulators against exact laws, against their naive twin, and against the limit.

Every comparison is in standard errors or by a test of distributions, and is shown to fail when the
system it is compared with is a few per cent off.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from helpers import assert_detects, assert_law, assert_same_law, assert_within
from naive import NaiveQueues
from rankrouting import (
    System,
    UnstableError,
    _methods,
    analytic,
    exact,
    jsq,
    marginal_power_of_d,
    mjsq,
    msblb,
    power_of_d,
    queues,
    random_routing,
    ranks,
)
from rankrouting.kernels import events
from rankrouting.kernels import sorted as sorted_queues
from rankrouting.replications import mean_of
from scipy import stats

PAIR = System(n=25, K=2, upsilon=1.0, policy=mjsq(2.0))
THIN = [mjsq(2.0), msblb(2.0, [0.6, 0.3, 0.1]), marginal_power_of_d(2.0, 2), random_routing()]
FULL = [jsq(), power_of_d(2)]


def methods(system):
    """Every exact method that the policy allows."""
    if system.policy.ranks_every_job:
        return ["events"]
    return ["events", "jumps", "lazy"] if system.rank_probabilities[0] == 1.0 else ["events", "jumps"]


def cases(policies, **parameters):
    systems = [System(policy=policy, **parameters) for policy in policies]
    return [
        pytest.param(system, method, id=f"{system.policy.name}-{method}")
        for system in systems
        for method in methods(system)
    ]


# One law, all of it: the sorted lengths at a fixed time, from a fixed start.


@pytest.mark.parametrize(
    ("system", "method"),
    cases([mjsq(2.0), msblb(2.0, [0.25, 0.75]), random_routing(), jsq()], n=25, K=2, upsilon=1.0)
    + cases([mjsq(2.0)], n=100, K=2, upsilon=-1.5)
    + cases([mjsq(0.5)], n=1, K=2, upsilon=0.5),
)
def test_transient_law_of_two_queues(system, method):
    start = np.array([1, 3])
    times = np.array([0.05, 0.4])
    law = exact.transient(system, start, times)
    paths = queues.simulate_paths(system, times, start / system.sqrt_n, 20_000, seed=5, method=method)
    for j in range(2):
        lengths = np.rint(ranks.ranked(paths[:, j]) * system.sqrt_n).astype(int)
        assert_law(lengths, law.states, law.probabilities[j])


def test_transient_law_notices_a_wrong_rate():
    law = exact.transient(replace(PAIR, policy=mjsq(2.3)), np.array([1, 3]), np.array([0.4]))
    paths = queues.simulate_paths(PAIR, [0.4], np.array([1, 3]) / 5, 20_000, seed=5, method="jumps")
    with pytest.raises(AssertionError):
        assert_law(np.rint(ranks.ranked(paths[:, 0]) * 5).astype(int), law.states, law.probabilities[0])


@pytest.mark.parametrize(
    ("system", "method"), cases(THIN, n=16, K=3, upsilon=1.0) + cases(FULL, n=16, K=3, upsilon=1.0)
)
def test_naive_twin(system, method):
    start, time, count = [0, 2, 2], 0.3, 3000
    naive = []
    for seed in range(count):
        twin = NaiveQueues(16, 3, 1.0, system.policy.c, system.rank_probabilities, start, seed)
        twin.run(time)
        naive.append(twin.lengths)
    paths = queues.simulate_paths(system, [time], np.array(start) / 4, 4 * count, seed=2, method=method)
    lengths = np.rint(paths[:, 0] * 4).astype(int)
    naive_lengths = np.array(naive)
    assert_same_law(np.sort(lengths), np.sort(naive_lengths))
    # The labels too: queue 0 starts alone at the bottom, 1 and 2 are tied.
    assert_same_law(lengths[:, :1], naive_lengths[:, :1])
    assert_same_law(lengths[:, 1:2], naive_lengths[:, 2:])


# The stationary law.


@pytest.mark.parametrize(
    ("system", "method"),
    cases([mjsq(2.0), msblb(2.0, [0.7, 0.3]), jsq(), random_routing()], n=25, K=2, upsilon=1.0)
    + cases(THIN[:3] + FULL, n=9, K=3, upsilon=1.0),
)
def test_stationary_means(system, method):
    law = exact.stationary(system)
    result = queues.simulate_stationary(system, replications=48, seed=11, method=method)
    assert result.run.method == method
    scale = system.sqrt_n
    assert_within(result.estimate("mean_total"), law.mean_total / scale)
    assert_within(result.estimate("mean_ranked"), law.mean_ranked / scale)
    assert_within(result.estimate("gap_means"), np.diff(law.mean_ranked, prepend=0) / scale)
    assert_within(result.estimate("idle_servers"), system.upsilon / scale)
    assert abs(result.balance_z) < 4.5
    if system.policy.c:
        assert_within(result.estimate("mean_total_by_balance"), law.mean_total / scale)
        errors = result.standard_error
        assert errors.mean_total_by_balance < errors.mean_total


@pytest.mark.parametrize("method", ["events", "jumps", "lazy"])
@pytest.mark.parametrize("change", [{"policy": mjsq(2.2)}, {"upsilon": 1.05}, {"upsilon": 0.95}])
def test_stationary_means_notice_a_few_per_cent(method, change):
    wrong = exact.stationary(replace(PAIR, **change))
    result = queues.simulate_stationary(PAIR, replications=200, horizon=4000.0, spacing=0.25, seed=3, method=method)
    assert_within(result.estimate("mean_ranked"), exact.stationary(PAIR).mean_ranked / 5)
    assert_detects(result.estimate("mean_ranked"), wrong.mean_ranked / 5)


def test_reference_value():
    result = queues.simulate_stationary(PAIR, replications=200, horizon=2000.0, seed=4)
    assert_within(result.estimate("mean_total_by_balance"), 11.877518 / 5)
    assert result.standard_error.mean_total_by_balance < 0.005 * 11.877518 / 5


@pytest.mark.parametrize("method", ["events", "jumps", "lazy"])
def test_stationary_distribution(method):
    law = exact.stationary(PAIR)
    paths = queues.simulate_paths(PAIR, [80.0], 1.0, 20_000, seed=6, method=method)
    lengths = np.rint(ranks.ranked(paths[:, 0]) * 5).astype(int)
    assert_law(lengths, law.states, law.probabilities)
    with pytest.raises(AssertionError):
        wrong = exact.stationary(replace(PAIR, upsilon=1.1))
        assert_law(lengths, wrong.states, wrong.probabilities)


@pytest.mark.parametrize("method", ["events", "jumps", "lazy"])
def test_random_routing_is_independent_mm1(method):
    system = System(n=100, K=4, upsilon=2.0, policy=random_routing())
    result = queues.simulate_stationary(
        system, replications=64, horizon=3000.0, warmup=50.0, spacing=0.5, seed=1, method=method
    )
    load = system.load
    assert_within(result.estimate("mean_total"), 4 * load / (1 - load) / 10)
    assert_within(result.estimate("idle_servers"), 4 * (1 - load))
    assert_detects(result.estimate("mean_total"), 4 * load / (1 - load) / 10 * 1.05)


@pytest.mark.parametrize(
    ("K", "load", "sojourn"),
    [(2, 0.5, 1.426321), (2, 0.8, 2.955737), (2, 0.9, 5.474913), (3, 0.5, 1.244836), (3, 0.8, 2.285548)],
)
def test_jsq_sojourn_times(K, load, sojourn):
    system = System(n=1, K=K, upsilon=K * (1 - load), policy=jsq())
    result = queues.simulate_stationary(system, replications=100, horizon=3e4, warmup=1e3, seed=8)
    assert_within(result.estimate("mean_total"), sojourn * K * load)
    assert_detects(result.estimate("mean_total"), sojourn * K * load * 1.05)


@pytest.mark.slow
@pytest.mark.parametrize(("K", "horizon"), [(5, 20.0), (10, 40.0)])
def test_gap_laws_at_large_n(K, horizon):
    system = System(n=10**6, K=K, upsilon=4.0, policy=mjsq(8.0))
    rates = analytic.gap_rates(system)
    result = queues.simulate_stationary(system, replications=200, horizon=horizon, warmup=6.0, seed=9)
    # At finite n a gap is off by at most about two jobs.
    allowance = 2 / system.sqrt_n
    assert_within(result.estimate("gap_means"), 1 / rates, sigmas=4, allowance=allowance)
    for k, gap in enumerate(ranks.gaps(result.final_ranked).T):
        assert stats.kstest(gap, stats.expon(scale=1 / rates[k]).cdf).pvalue > 1e-4
    assert_detects(result.estimate("gap_means"), 1.05 / rates, allowance=allowance)


# Overload.


@pytest.mark.slow
def test_overload_gaps():
    system = System(n=10**6, K=4, upsilon=-2.0, policy=mjsq(6.0))
    rates = analytic.overload_gap_rates(system)
    times = np.arange(10.0, 40.1, 0.25)
    paths = queues.simulate_paths(system, times, 0.0, 150, seed=10)
    gaps = ranks.gaps(paths)[..., 1:]
    means = mean_of(gaps.mean(axis=1))
    assert_within(means, 1 / rates, sigmas=4, allowance=2 / system.sqrt_n)
    assert_detects(means, 1.05 / rates, allowance=2 / system.sqrt_n)
    for k, gap in enumerate(gaps[:, -1].T):
        assert stats.kstest(gap, stats.expon(scale=1 / rates[k]).cdf).pvalue > 1e-4
    lowest = mean_of(paths[:, -1].min(axis=1) - paths[:, 0].min(axis=1))
    assert_within(lowest, 2.0 / 4 * 30)


@pytest.mark.parametrize("method", ["events", "jumps", "lazy"])
def test_overload_gap_is_geometric_for_two_queues(method):
    system = System(n=100, K=2, upsilon=-4.0, policy=mjsq(3.0))
    paths = queues.simulate_paths(system, [30.0], 5.0, 20_000, seed=12, method=method)
    gap = np.rint(np.ptp(paths[:, 0], axis=-1) * 10).astype(int)
    law = exact.overload_gap_law(system)
    lengths = np.arange(400)
    assert_law(gap[:, None], lengths[:, None], law.pmf(lengths))
    wrong = exact.overload_gap_law(replace(system, policy=mjsq(3.15)))
    with pytest.raises(AssertionError):
        assert_law(gap[:, None], lengths[:, None], wrong.pmf(lengths))


# Idle times.


@pytest.mark.parametrize("policy", [mjsq(2.0), jsq()])
def test_idle_times_against_the_naive_twin(policy):
    system = System(n=16, K=3, upsilon=1.0, policy=policy)
    count, times = 2000, [0.2, 0.5]
    naive = []
    for seed in range(count):
        twin = NaiveQueues(16, 3, 1.0, policy.c, system.rank_probabilities, [0, 1, 1], seed)
        row = []
        for time in times:
            twin.run(time)
            row.append([*twin.idle, *twin.lengths])
        naive.append(row)
    naive_rows = np.array(naive)
    result = queues.simulate_paths(system, times, np.array([0, 1, 1]) / 4, 4 * count, seed=13, idle=True)
    for j in range(2):
        for i in range(3):
            idle = result.idle[:, j, i] / system.sqrt_n
            assert stats.ks_2samp(idle, naive_rows[:, j, i]).pvalue > 1e-4
        assert_same_law(
            np.sort(np.rint(result.lengths[:, j] * 4).astype(int)), np.sort(naive_rows[:, j, 3:].astype(int))
        )


def test_mean_idle_time_in_steady_state():
    system = System(n=100, K=2, upsilon=1.0, policy=mjsq(2.0))
    result = queues.simulate_paths(system, [100.0, 200.0], 1.0, 1200, seed=14, idle=True)
    rate = mean_of((result.idle[:, 1] - result.idle[:, 0]).sum(axis=1) / 100)
    assert_within(rate, system.upsilon)
    assert_detects(rate, 1.05 * system.upsilon)


# The same numbers.


@pytest.mark.parametrize(("system", "method"), cases([mjsq(2.0), jsq()], n=100, K=5, upsilon=1.0))
def test_same_numbers_on_any_number_of_threads(system, method):
    def run(threads):
        paths = queues.simulate_paths(system, [0.1, 1.0], 1.0, 8, seed=3, method=method, threads=threads)
        result = queues.simulate_stationary(
            system, replications=4, horizon=200.0, warmup=50.0, seed=3, method=method, threads=threads
        )
        return [*paths.ravel(), result.mean_total, *result.final_ranked.ravel()]

    np.random.random()
    assert run(1) == run(2) == run(8)


def test_a_replication_does_not_depend_on_the_others():
    few = queues.simulate_paths(PAIR, [1.0], 1.0, 3, seed=7)
    many = queues.simulate_paths(PAIR, [1.0], 1.0, 30, seed=7)
    np.testing.assert_array_equal(few, many[:3])
    assert not np.array_equal(many, queues.simulate_paths(PAIR, [1.0], 1.0, 30, seed=8))


def test_global_random_state_is_left_alone():
    np.random.seed(1)
    before = np.random.get_state()[1].copy()
    queues.simulate_paths(PAIR, [1.0], 1.0, 2, seed=7)
    np.testing.assert_array_equal(before, np.random.get_state()[1])


# Edges.


@pytest.mark.parametrize(
    "system",
    [
        System(n=1, K=1, upsilon=0.5, policy=mjsq(0.2)),
        System(n=100, K=1, upsilon=1.0, policy=jsq()),
        System(n=100, K=200, upsilon=50.0, policy=mjsq(100.0)),
        System(n=100, K=200, upsilon=50.0, policy=jsq()),
        System(n=100, K=3, upsilon=1.0, policy=mjsq(0.0)),
        System(n=100, K=3, upsilon=1.0, policy=mjsq(1e-300)),
    ],
)
def test_edge_cases_balance(system):
    for method in methods(system):
        result = queues.simulate_stationary(system, replications=16, seed=1, method=method)
        assert np.all(np.isfinite(result.mean_ranked))
        assert abs(result.balance_z) < 4.5
        assert_within(result.estimate("idle_servers"), system.upsilon / system.sqrt_n, sigmas=5)


@pytest.mark.parametrize("method", ["events", "jumps", "lazy"])
def test_critical_system_has_paths(method):
    system = System(n=100, K=2, upsilon=0.0, policy=mjsq(1.0))
    paths = queues.simulate_paths(system, [0.0, 1.0], [0.5, 0.25], 3, method=method)
    np.testing.assert_allclose(np.sort(paths[:, 0]), [[0.25, 0.5]] * 3, atol=0.05)


def test_counts_beyond_32_bits():
    system = System(n=10**10, K=2, upsilon=1.0, policy=mjsq(1.0))
    lengths = queues.simulate_paths(system, [0.5], 1.0, 200, seed=1, method="jumps")
    assert np.all(lengths >= 0) and np.all(lengths < 20)
    # 2.6·10⁹ services in one interval without a ranked arrival, and lengths that mean something.
    one = System(n=2_600_000_000, K=1, upsilon=0.0, policy=random_routing())
    lengths = queues.simulate_paths(one, [1.0], 3.0, 4000, seed=1, method="jumps")[:, 0, 0]
    assert stats.kstest(lengths, lambda y: analytic.rbm_transition_cdf(y, 3.0, 1.0, 0.0)).pvalue > 1e-4


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: queues.simulate_paths(PAIR, [1.0, 0.5]), "times = "),
        (lambda: queues.simulate_paths(PAIR, [-1.0]), "times = "),
        (lambda: queues.simulate_paths(PAIR, []), "times of shape"),
        (lambda: queues.simulate_paths(PAIR, [math.nan]), "times = "),
        (lambda: queues.simulate_paths(PAIR, [1.0], x0=[1.0, 2.0, 3.0]), r"x0 of shape \(3,\)"),
        (lambda: queues.simulate_paths(PAIR, [1.0], x0=-1.0), "x0 = "),
        (lambda: queues.simulate_paths(PAIR, [1.0], x0=math.inf), "x0 = "),
        (lambda: queues.simulate_paths(PAIR, [1.0], replications=0), "replications = 0"),
        (lambda: queues.simulate_paths(PAIR, [1.0], seed=-1), "seed = -1"),
        (lambda: queues.simulate_paths(PAIR, [1.0], method="euler"), "method = 'euler'"),
        (lambda: queues.simulate_paths(PAIR, [1.0], method="jumps", idle=True), "skip the moments"),
        (lambda: queues.simulate_paths(PAIR, [1.0], threads=0), "threads = 0"),
        (lambda: queues.simulate_paths("x", [1.0]), "must be a System"),
        (lambda: queues.simulate_paths(PAIR, [1e90]), "times up to 1e\\+90"),
        (lambda: queues.simulate_paths(PAIR, [1e300]), r"times = \[1e\+300\]: must be at most 1e\+100 in size"),
        (lambda: queues.simulate_paths(PAIR, [1e12], method="events"), "steps of events"),
        (lambda: queues.simulate_paths(PAIR, [1.0], x0=1e90), "too many jobs"),
        (lambda: queues.simulate_paths(PAIR, [1.0], x0=1e300), r"x0 = 1e\+300: must be at most 1e\+100 in size"),
        (lambda: queues.simulate_paths(PAIR, [1, 2, 3], replications=10**9), "replications = 1000000000: a result"),
        (lambda: queues.simulate_paths(PAIR, [1.0], replications=10**12), "replications = 1000000000000: .* at most 1"),
        (lambda: queues.simulate_stationary(PAIR, horizon=1e90), r"horizon \+ warmup up to 1e\+90"),
        (lambda: queues.simulate_stationary(PAIR, horizon=1e300), r"horizon = 1e\+300: .* not beyond .* 1e\+100"),
        (lambda: queues.simulate_stationary(PAIR, spacing=1e-90), "observations"),
        (lambda: queues.simulate_stationary(PAIR, spacing=1e-300), r"spacing = 1e-300: .* not beyond 1e-100 and"),
        (
            lambda: queues.simulate_paths(replace(PAIR, policy=jsq()), [1.0], method="jumps"),
            "ranks every job",
        ),
        (lambda: queues.simulate_paths(replace(PAIR, policy=jsq()), [1.0], method="lazy"), "ranks every job"),
        (
            lambda: queues.simulate_paths(replace(PAIR, policy=msblb(1, [0, 1])), [1.0], method="lazy"),
            "'lazy'",
        ),
        (
            lambda: queues.simulate_stationary(PAIR, horizon=1.0),
            "horizon = 1: must be at least one relaxation",
        ),
        (lambda: queues.simulate_stationary(PAIR, replications=1), "replications = 1"),
        (lambda: queues.simulate_stationary(PAIR, horizon=100.0, spacing=200.0), "spacing = 200"),
        (lambda: queues.simulate_stationary(PAIR, warmup=-1.0), "warmup = -1"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(call, words):
    with pytest.raises(ValueError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("change", [{"upsilon": 0.0}, {"upsilon": -1.0}, {"policy": msblb(5.0, [0.0, 1.0])}])
def test_unstable_systems_have_no_stationary_law(change):
    with pytest.raises(UnstableError, match="θ_|theta"):
        queues.simulate_stationary(replace(PAIR, **change))


def test_short_runs_warn():
    with pytest.warns(queues.TooShortWarning, match="relaxation time"):
        queues.simulate_stationary(PAIR, replications=2, horizon=16.0)


@pytest.mark.parametrize("p", [[0.1, 0.2, 0.7], [0.0, 1.0], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.25, 0.125, 0.125]])
def test_ranks_are_drawn_exactly_at_the_edges_of_the_bits(p):
    # All 2³² values of the bits, in blocks: inside a block the rank is one and the same, at the edges it is drawn.
    system = System(n=10**4, K=len(p), upsilon=1.0, policy=msblb(2.0, p))
    rates = events.rates_of(system)
    rng = np.random.default_rng(1)

    def draw(bits):
        return int(events.choose_rank(np.uint64(bits << 32), rates, rng))

    K, whole = len(p), 2**32
    cuts = sorted({round(cut * whole) for j in range(K) for cut in (j / K, (j + rates.keep[j]) / K)} | {whole})
    chance = np.zeros(K)
    first = 0
    for cut in cuts:
        edge = range(max(first, cut - 2), min(cut + 2, whole))
        for bits in edge:
            chance += np.bincount([draw(bits) for _ in range(200)], minlength=K) / 200
        if edge.start > first:
            assert draw(first) == draw((first + edge.start - 1) // 2) == draw(edge.start - 1)
            chance[draw(first)] += edge.start - first
        first = max(first, edge.stop)
    np.testing.assert_allclose(chance, np.asarray(p) * whole, atol=1.0)


# The loop for policies that rank every job.


@pytest.mark.parametrize("K", [1, 2, 3, 10, 100])
@pytest.mark.parametrize("policy", [jsq(), power_of_d(1), power_of_d(2)], ids=lambda policy: policy.name)
def test_events_of_a_fully_ranked_system_have_their_rates(policy, K):
    if K == 1 and policy.name == "JSQ(2)":
        policy = power_of_d(1)
    system = System(n=400, K=K, upsilon=2.0, policy=policy)
    table = sorted_queues.event_table(system)
    # The law of `draw_event`, added up over the draws of each cell on either side of the threshold.
    whole = 2 ** int(table.shift)
    chance = np.zeros(2 * K)
    for cell, threshold in enumerate(map(int, table.threshold)):
        first = cell << int(table.shift)
        for place, count in ((0, threshold), (threshold, whole - threshold)):
            if count:
                chance[sorted_queues.draw_event(np.uint64(first + place), table)] += count / 2**64
                assert sorted_queues.draw_event(np.uint64(first + place), table) == sorted_queues.draw_event(
                    np.uint64(first + place + count - 1), table
                )
    total = system.n * K + system.arrival_rate
    np.testing.assert_allclose(chance[0::2], system.n / total, rtol=1e-12)
    np.testing.assert_allclose(chance[1::2], system.rank_arrival_rates / total, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("policy", FULL, ids=lambda policy: policy.name)
def test_each_event_moves_the_queue_of_its_rank(policy):
    rng = np.random.default_rng(1)
    lengths = [0, 0, 2, 2, 2, 3]
    ascending = np.array(lengths, dtype=np.uint64)
    below = sorted_queues.counts_below(ascending)
    for event in rng.integers(12, size=2000):
        rank, arrival = event // 2, event % 2
        lengths[rank] = max(lengths[rank] + 2 * arrival - 1, 0)
        lengths.sort()
        sorted_queues.move(ascending, below, np.uint64(event))
        assert ascending.tolist() == lengths
        assert below[: lengths[-1] + 2].tolist() == [
            sum(one < length for one in lengths) for length in range(lengths[-1] + 2)
        ]


def advanced(system, seeds, starts, durations, *, labelled=False):
    rngs = [np.random.Generator(np.random.SFC64(seed)) for seed in seeds]
    return _methods.advance_with(system, "events", rngs, labelled=labelled)(np.array(starts), np.array(durations))


@pytest.mark.parametrize("policy", FULL, ids=lambda policy: policy.name)
def test_replications_that_are_advanced_in_turn_are_those_advanced_alone(policy):
    system, durations = System(100, 4, 1.0, policy), [0.5, 1.0, 0.0, 20.0]
    starts = [[3, 1, 2, 3], [0, 0, 900, 0]]
    together = advanced(system, [5, 6], starts, durations)
    for i in range(2):
        alone = advanced(system, [5 + i], starts[i : i + 1], durations)
        np.testing.assert_array_equal(together[i], alone[0])
    assert not np.array_equal(together[0], together[1])


@pytest.mark.parametrize("labelled", [False, True])
def test_queues_that_outgrow_their_tables_have_the_right_mean(labelled):
    # Overloaded: 30,000 jobs more arrive than leave, and the tables start with a thousand places.
    system = System(n=10_000, K=3, upsilon=-300.0, policy=jsq())
    totals, spreads = [], []
    for seed in range(60):
        starts = [[4000] * 3] * (1 if labelled else 2)
        ends = advanced(system, range(2 * seed, 2 * seed + len(starts)), starts, [0.4, 0.6], labelled=labelled)[:, -1]
        totals += ends.sum(axis=1).tolist()
        spreads += np.ptp(ends, axis=1).tolist()
    assert_within(mean_of(totals), 12_000 + 30_000)
    assert_detects(mean_of(totals), 12_000 + 30_000 * 1.05)
    assert max(spreads) < 30
