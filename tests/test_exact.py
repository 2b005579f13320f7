"""Exact laws at finite n, against closed forms and against chains written out state by state."""

import numpy as np
import pytest
import scipy.linalg
from rankrouting import (
    System,
    UnstableError,
    analytic,
    exact,
    jsq,
    marginal_power_of_d,
    mjsq,
    msblb,
    power_of_d,
    random_routing,
)
from rankrouting.exact import _chain, _multigrid, _qbd, laws

from naive_chains import naive_generator, naive_pauses, naive_stationary  # isort: skip

POLICIES = {
    "MJSQ": mjsq(c=1.0),
    "MJSQ, much": mjsq(c=1.9),
    "general p": msblb(c=1.0, p=[0.4, 0.6]),
    "uniform p": msblb(c=1.0, p=[0.5, 0.5]),
    "marginal JSQ(d)": marginal_power_of_d(c=1.0, d=2),
    "marginal JSQ(1)": marginal_power_of_d(c=1.0, d=1),
    "JSQ": jsq(),
    "random": random_routing(),
    "JSQ(d)": power_of_d(2),
    "JSQ(1)": power_of_d(1),
}


def case(n=25, K=2, upsilon=1.0, c=2.0):
    return System(n=n, K=K, upsilon=upsilon, policy=mjsq(c))


def as_dict(states, probabilities):
    return dict(zip(map(tuple, states.tolist()), probabilities, strict=True))


def assert_same(law, other, tolerance):
    ours, theirs = as_dict(law.states, law.probabilities), dict(other)
    difference = max(abs(ours.get(s, 0.0) - theirs.get(s, 0.0)) for s in ours.keys() | theirs.keys())
    assert difference < tolerance, difference
    mean = sum(p * np.array(s) for s, p in theirs.items())
    second = sum(p * sum(s) ** 2 for s, p in theirs.items())
    assert law.mean_ranked == pytest.approx(mean, rel=1e3 * tolerance)
    assert law.mean_total == pytest.approx(mean.sum(), rel=1e3 * tolerance)
    assert law.second_moment_total == pytest.approx(second, rel=1e3 * tolerance)


def assert_identities(system, law, relative=1e-8):
    """Balance of the squares and the idle servers: exact at every n, whatever the policy."""
    rates = system.rank_arrival_rates
    drift = (system.n - rates) @ law.mean_ranked
    assert drift == pytest.approx(system.arrival_rate, rel=relative)
    assert law.mean_idle == pytest.approx(system.upsilon / system.sqrt_n, rel=relative)
    assert law.edge_mass < 1e-10
    assert law.probabilities.sum() == pytest.approx(1, abs=1e-12)
    assert law.probabilities.min() >= 0
    assert law.mean_ranked == pytest.approx(law.probabilities @ law.states, rel=relative)
    total = law.total_law()
    assert total @ np.arange(total.size) == pytest.approx(law.mean_total, rel=relative)
    assert total @ np.arange(total.size) ** 2.0 == pytest.approx(law.second_moment_total, rel=relative)
    for k in range(1, system.K + 1):
        ranked, gap = law.ranked_law(k), law.gap_law(k)
        below = law.mean_ranked[k - 2] if k > 1 else 0.0
        assert ranked @ np.arange(ranked.size) == pytest.approx(law.mean_ranked[k - 1], rel=relative)
        assert gap @ np.arange(gap.size) == pytest.approx(law.mean_ranked[k - 1] - below, rel=relative)


# ---- The stationary law -------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "upsilon"), [(1, 0.3), (25, 1.0), (10_000, 0.05)])
def test_one_queue_is_mm1(n, upsilon):
    system = System(n=n, K=1, upsilon=upsilon, policy=jsq())
    law, load = exact.stationary(system), 1 - upsilon / np.sqrt(n)
    geometric = (1 - load) * load ** np.arange(len(law.states))
    assert law.ranked_law(1) == pytest.approx(geometric, rel=1e-10)
    assert law.mean_total == pytest.approx(load / (1 - load), rel=1e-10)
    assert law.variance_total == pytest.approx(load / (1 - load) ** 2, rel=1e-9)
    assert_identities(system, law)


def test_one_queue_with_a_longest_length():
    law = exact.stationary(System(n=4, K=1, upsilon=0.5, policy=random_routing()), truncation=2000)
    geometric = 0.75 ** np.arange(2001)
    assert law.probabilities == pytest.approx(geometric / geometric.sum(), abs=1e-12)
    assert law.truncation == 2000


@pytest.mark.parametrize("n", [1, 25])
def test_random_routing_is_a_product(n):
    system = System(n=n, K=2, upsilon=0.7, policy=random_routing())
    law, load = exact.stationary(system), system.load
    q1, q2 = law.states.T
    product = np.where(q1 == q2, 1, 2) * (1 - load) ** 2 * load ** (q1 + q2)
    assert np.abs(law.probabilities - product).max() < 1e-11
    assert law.mean_total == pytest.approx(2 * load / (1 - load), rel=1e-9)
    assert law.mean_total / 2 == pytest.approx(analytic.mm1_mean(system), rel=1e-9)
    assert_identities(system, law)


@pytest.mark.parametrize("name", POLICIES)
def test_two_queues_against_the_chain_written_out(name):
    system = System(n=4, K=2, upsilon=2.0, policy=POLICIES[name])
    law = exact.stationary(system)
    assert_same(law, naive_stationary(system, longest=60), 1e-11)
    assert_identities(system, law)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("upsilon", [0.5, 1.5])
def test_two_queues_by_two_methods(name, upsilon):
    system = System(n=4, K=2, upsilon=upsilon, policy=POLICIES[name])
    decay, size = _chain.decay_rates(system), 36.0
    sparse, result = laws._sparse(system, decay, size), _qbd.two_queues(system, int(size / decay[1]))
    means = [result.shortest, result.shortest + result.gap]
    assert sparse.mean_ranked == pytest.approx(means, rel=1e-9)
    assert sparse.second_moment_total == pytest.approx(result.second_moment_total, rel=1e-8)
    m, gap = sparse.states[:, 0], np.diff(sparse.states, axis=1)[:, 0]
    kept = (m < result.levels.shape[0]) & (gap < result.levels.shape[1])
    assert np.abs(sparse.probabilities[kept] - result.levels[m[kept], gap[kept]]).max() < 1e-11
    assert_identities(system, exact.stationary(system))


@pytest.mark.parametrize(
    "policy", [mjsq(1.0), jsq(), power_of_d(2), msblb(1.0, [0.2, 0.5, 0.3]), marginal_power_of_d(1.0, 2)]
)
def test_three_queues_against_the_chain_written_out(policy):
    system = System(n=4, K=3, upsilon=3.0, policy=policy)
    law = exact.stationary(system)
    assert_same(law, naive_stationary(system, longest=24), 1e-8)
    assert_identities(system, law)


@pytest.mark.parametrize(("K", "longest"), [(2, 3), (2, 12), (3, 6), (4, 4), (5, 3)])
@pytest.mark.parametrize("policy", [mjsq(0.5), jsq()])
def test_truncation_is_the_longest_queue_kept(K, longest, policy):
    system = System(n=4, K=K, upsilon=0.5, policy=policy)
    law = exact.stationary(system, truncation=longest)
    naive = naive_stationary(system, longest)
    assert_same(law, naive, 1e-13)
    assert len(law.states) == len(naive)
    assert law.truncation == longest
    full = law.states[:, -1] == longest
    # Under JSQ the longest queue gets an arrival only when all are equal.
    edge = full & (law.states[:, 0] == longest) if policy.ranks_every_job else full
    assert law.edge_mass == pytest.approx(law.probabilities[edge].sum())


def test_known_values():
    law = exact.stationary(case())
    assert round(law.mean_total, 6) == 11.877518
    assert round(float(law.mean_ranked[0]), 6) == 4.408138
    # Sharp enough to see 3 % in a rate.
    for other in (case(c=2.06), case(upsilon=1.03), case(upsilon=0.97)):
        assert abs(exact.stationary(other).mean_total - 11.877518) > 0.01


@pytest.mark.parametrize(
    ("K", "load", "sojourn"),
    [
        (2, 0.5, 1.426321),
        (2, 0.7, 2.108197),
        (2, 0.8, 2.955737),
        (2, 0.9, 5.474913),
        (2, 0.95, 10.486639),
        (3, 0.5, 1.244836),
        (3, 0.8, 2.285548),
        (3, 0.9, 3.982422),
    ],
)
def test_shortest_queue_sojourns(K, load, sojourn):
    system = System(n=1, K=K, upsilon=K * (1 - load), policy=jsq())
    law = exact.stationary(system)
    assert round(law.mean_total / system.arrival_rate, 6) == sojourn
    assert_identities(system, law)


@pytest.mark.parametrize(
    "system",
    [
        case(upsilon=0.05),
        System(n=100, K=2, upsilon=0.05, policy=jsq()),
        System(n=100, K=3, upsilon=1.0, policy=jsq()),
        System(n=100, K=3, upsilon=1.0, policy=power_of_d(2)),
        System(n=9, K=5, upsilon=1.0, policy=jsq()),
        case(n=9, K=3),
        case(n=1, K=4, upsilon=0.5, c=3.0),
        System(n=100, K=2, upsilon=1.0, policy=msblb(1.0, [0.2, 0.8])),
    ],
    ids=str,
)
def test_identities(system):
    law = exact.stationary(system)
    assert_identities(system, law)
    defect = laws._balance_defect(system, law.mean_ranked)
    assert abs(defect) < 1e-8
    assert analytic.balance_residual(system, law.mean_ranked / system.sqrt_n) == pytest.approx(0, abs=1e-8)
    # The identity tells apart the law of a system with 3 % more of the ranked stream, or of slack.
    p = list(system.rank_probabilities)
    if not system.policy.ranks_every_job:
        other = System(system.n, system.K, system.upsilon, msblb(1.03 * system.policy.c, p))
        assert abs(laws._balance_defect(other, law.mean_ranked)) > 1e-3
    other = System(system.n, system.K, 1.03 * system.upsilon, system.policy)
    assert abs(laws._balance_defect(other, law.mean_ranked)) > 1e-3


@pytest.mark.slow
def test_distance_from_the_limit():
    errors = []
    for n in (25, 100, 400, 2500):
        system = case(n=n)
        law = exact.stationary(system)
        assert_identities(system, law)
        limit = analytic.mean_total(system)
        assert limit == pytest.approx(8 / 3)
        errors.append((law.mean_total / system.sqrt_n - limit) * system.sqrt_n)
    # First order in 1/√n: times √n it tends to a constant.
    assert errors == pytest.approx([-1.47] * 4, abs=0.015)
    gaps = law.gap_law(2)
    length = np.arange(gaps.size) / system.sqrt_n
    assert np.abs(np.cumsum(gaps) - (1 - np.exp(-1.5 * length))).max() < 0.03


@pytest.mark.slow
def test_three_queues_of_moderate_n():
    system = case(n=25, K=3)
    law = exact.stationary(system)
    assert_identities(system, law)
    assert law.mean_total / 5 == pytest.approx(analytic.mean_total(system), rel=0.1)


def test_too_small_a_first_truncation_is_grown(monkeypatch):
    decay = _chain.decay_rates
    expected = {K: exact.stationary(case(n=9, K=K)) for K in (2, 3)}
    monkeypatch.setattr(_chain, "decay_rates", lambda system: 1.6 * decay(system))
    for K, law in expected.items():
        grown = exact.stationary(case(n=9, K=K))
        assert grown.mean_total == pytest.approx(law.mean_total, rel=1e-9)
        assert grown.edge_mass < 1e-10
    monkeypatch.setattr(laws, "ATTEMPTS", 1)
    with pytest.raises(exact.NotConvergedError, match="edge mass"):
        exact.stationary(case(n=9))


def test_no_answer_without_convergence(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(_multigrid, "RESTART", 1)
        patch.setattr(_multigrid, "ROUNDS", 1)
        with pytest.raises(exact.NotConvergedError, match="was not reached"):
            exact.stationary(case(n=9, K=3))
    with monkeypatch.context() as patch:
        patch.setattr(_qbd, "MAX_STEPS", 4)
        with pytest.raises(exact.NotConvergedError, match="residual"):
            exact.stationary(case())
    with monkeypatch.context() as patch:
        patch.setattr(_multigrid, "stationary_law", lambda matrix, states, guess: guess / guess.sum())
        with pytest.raises(exact.NotConvergedError, match="residual"):
            exact.stationary(case(n=9, K=3))


def test_too_many_states_are_refused_at_once():
    with pytest.raises(exact.TooManyStatesError, match=r"K = 4, n = 10000: about 1\.\de\+12 states .* are allowed"):
        exact.stationary(case(n=10_000, K=4))
    with pytest.raises(exact.TooManyStatesError, match="truncation = 1000"):
        exact.stationary(case(K=4), truncation=1000)
    with pytest.raises(exact.TooManyStatesError, match="K = 500"):
        exact.stationary(case(K=500), truncation=500)
    with pytest.raises(exact.TooManyStatesError, match="K = 500"):
        exact.stationary(case(K=500))
    with pytest.raises(exact.TooManyStatesError, match="64-bit"):
        exact.stationary(case(K=20), truncation=7)
    with pytest.raises(exact.TooManyStatesError, match="K = 1"):
        exact.stationary(System(n=10**15, K=1, upsilon=1.0, policy=jsq()))
    with pytest.raises(exact.TooManyStatesError, match="2 times"):
        exact.transient(case(n=10**7), [0, 0], [1.0, 2.0])


@pytest.mark.parametrize("truncation", [0, -1, 2.5, "10", True, np.nan])
def test_bad_truncation(truncation):
    with pytest.raises(ValueError, match="truncation = .*: must be a whole number, at least 1"):
        exact.stationary(case(), truncation)


def test_unstable_systems_are_refused():
    with pytest.raises(UnstableError, match="k = 1: the 2 longest queues get 55 jobs"):
        exact.stationary(case(upsilon=-1.0))
    with pytest.raises(UnstableError, match="k = 1"):
        exact.stationary(case(upsilon=0.0), truncation=10)
    longest = System(n=100, K=3, upsilon=1.0, policy=msblb(1.0, [0, 0, 1]))
    with pytest.raises(UnstableError, match="k = 3: the 1 longest queues get"):
        exact.stationary(longest)
    with pytest.raises(ValueError, match="must be a System"):
        exact.stationary(case().limit())


def test_ranks_of_a_law():
    law = exact.stationary(case(n=4))
    for method in (law.ranked_law, law.gap_law):
        for k in (0, 3, 1.5):
            with pytest.raises(ValueError, match="k = "):
                method(k)


def test_states_are_in_order():
    for K in (1, 2, 3):
        law = exact.stationary(case(n=9, K=K, c=1.0))
        assert np.all(np.diff(law.states, axis=1) >= 0)
        rows = list(map(tuple, law.states.tolist()))
        assert rows == sorted(set(rows))
        assert law.truncation == law.states.max()


# ---- The law at given times ---------------------------------------------------------------------------


@pytest.mark.parametrize("upsilon", [1.0, 0.0, -1.0])
@pytest.mark.parametrize("x0", [0, 6])
def test_one_queue_at_given_times(upsilon, x0):
    system = System(n=4, K=1, upsilon=upsilon, policy=random_routing())
    times = [0.0, 0.1, 1.0, 3.0]
    law = exact.transient(system, x0, times)
    states, matrix = naive_generator(system, 120)
    for row, t in enumerate(times):
        start = np.eye(len(states))[x0]
        expected = start @ scipy.linalg.expm(matrix.toarray() * t)
        ours = np.bincount(law.states[:, 0], weights=law.probabilities[row], minlength=121)[:121]
        assert np.abs(ours - expected).max() < 1e-11
    assert np.all(law.edge_mass <= 1e-10)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(("upsilon", "x0"), [(1.0, (0, 0)), (-1.0, (7, 2)), (0.5, (4, 4))])
def test_two_queues_at_given_times(name, upsilon, x0):
    system = System(n=4, K=2, upsilon=upsilon, policy=POLICIES[name])
    times = np.array([0.3, 0.9])
    law = exact.transient(system, x0, times)
    states, matrix = naive_generator(system, 32)
    step = scipy.linalg.expm(matrix.toarray() * 0.3)
    expected = np.zeros(len(states))
    expected[states.index(tuple(sorted(x0)))] = 1.0
    for row, steps in enumerate((1, 2)):
        for _ in range(steps):
            expected = expected @ step
        ours, theirs = as_dict(law.states, law.probabilities[row]), dict(zip(states, expected, strict=True))
        assert max(abs(ours.get(s, 0.0) - theirs.get(s, 0.0)) for s in ours.keys() | theirs.keys()) < 1e-9
        mean = expected @ np.array(states)
        assert law.mean_ranked[row] == pytest.approx(mean, rel=1e-7)
        assert law.mean_total[row] == pytest.approx(mean.sum(), rel=1e-7)
        shorter = np.cumsum(np.bincount(np.array(states)[:, 0], weights=expected))
        assert law.ranked_cdf(1, row)[:20] == pytest.approx(shorter[:20], abs=1e-9)
    assert law.ranked_cdf(2, 0)[-1] == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("policy", [mjsq(2.0), jsq(), random_routing()])
def test_transient_tends_to_stationary(policy):
    system = System(n=9, K=2, upsilon=3.0, policy=policy)
    law, limit = exact.transient(system, [5, 1], [45.0]), exact.stationary(system)
    ours, theirs = as_dict(law.states, law.probabilities[0]), as_dict(limit.states, limit.probabilities)
    assert max(abs(ours.get(s, 0.0) - p) for s, p in theirs.items()) < 1e-11
    assert law.mean_ranked[0] == pytest.approx(limit.mean_ranked, rel=1e-9)


@pytest.mark.parametrize("K", [1, 2])
def test_drift_at_time_zero(K):
    system = System(n=9, K=K, upsilon=1.0, policy=mjsq(1.0))
    rates, h = system.rank_arrival_rates, 1e-6
    empty = exact.transient(system, 0, [h]).mean_total[0] / h
    assert empty == pytest.approx(system.arrival_rate, rel=1e-4)
    x0 = np.array([20, 30])[:K]
    law = exact.transient(system, x0[::-1], [0.0, h, 0.5])
    assert (law.mean_ranked[1] - x0) / h == pytest.approx(rates - system.n, rel=1e-4)
    # Far from zero the drift of the total is constant.
    change = law.mean_total[2] - x0.sum()
    assert change == pytest.approx(0.5 * (system.arrival_rate - K * system.n), abs=1e-3)
    assert as_dict(law.states, law.probabilities[0])[tuple(x0.tolist())] == 1


def test_windows_are_grown(monkeypatch):
    whole = laws._transient.window
    expected = exact.transient(case(), [3, 3], [1.0])

    def small(system, start, horizon, widen):
        return whole(system, start, horizon, 0.4 * widen)

    monkeypatch.setattr(laws._transient, "window", small)
    law = exact.transient(case(), [3, 3], [1.0])
    assert law.edge_mass[0] <= 1e-10
    assert law.mean_total == pytest.approx(expected.mean_total, abs=1e-7)
    monkeypatch.setattr(laws, "ATTEMPTS", 1)
    with pytest.raises(exact.NotConvergedError, match="of the mass left"):
        exact.transient(case(), [3, 3], [1.0])


def test_transient_arguments():
    with pytest.raises(ValueError, match="K = 3: the law at given times is computed for one or two queues"):
        exact.transient(case(K=3), 0, [1.0])
    with pytest.raises(ValueError, match="whole numbers of jobs"):
        exact.transient(case(), [0.5, 1], [1.0])
    with pytest.raises(ValueError, match="at least 0"):
        exact.transient(case(), [-1, 1], [1.0])
    with pytest.raises(ValueError, match="shape"):
        exact.transient(case(), [1, 1, 1], [1.0])
    with pytest.raises(ValueError, match="strictly increasing"):
        exact.transient(case(), [1, 1], [1.0, 1.0])
    with pytest.raises(ValueError, match="must be a System"):
        exact.transient(case().limit(), [1, 1], [1.0])


# ---- Overload and pauses ------------------------------------------------------------------------------


def test_overload_gap_law_is_that_of_two_long_queues():
    system = System(n=25, K=2, upsilon=-1.0, policy=mjsq(8.0))
    law = exact.overload_gap_law(system)
    later = exact.transient(system, [150, 150], [4.0])
    assert later.states[later.probabilities[0] > 1e-14].min() > 0
    gap = np.bincount(np.diff(later.states, axis=1)[:, 0], weights=later.probabilities[0])
    assert gap == pytest.approx(law.pmf(np.arange(gap.size)), abs=1e-10)
    # 3 % less of the ranked stream would have been seen.
    other = exact.overload_gap_law(System(n=25, K=2, upsilon=-1.0, policy=mjsq(7.76)))
    assert np.abs(gap - other.pmf(np.arange(gap.size))).max() > 1e-3


def test_overload_gap_law_is_a_law():
    system = case(upsilon=-1.0)
    law = exact.overload_gap_law(system)
    m = np.arange(400)
    assert law.pmf(m).sum() == pytest.approx(1, abs=1e-12)
    assert law.pmf(m) @ m == pytest.approx(law.mean, rel=1e-12)
    assert law.cdf(m) == pytest.approx(np.cumsum(law.pmf(m)), abs=1e-12)
    assert law.pmf(-1) == law.cdf(-0.5) == 0
    shorter, longer = system.rank_arrival_rates / system.n
    assert law.ratio == pytest.approx((1 + longer) / (1 + shorter))
    assert law.pmf(m[3:]) / law.pmf(m[2:-1]) == pytest.approx(np.full(397, law.ratio))
    # Out of 0 at the rate of every event, into it from 1.
    assert law.pmf(0) * (2 + shorter + longer) == pytest.approx(law.pmf(1) * (1 + shorter))
    # In limit units the gap is exponential with rate c/2, whatever υ.
    for upsilon in (-1.0, 0.0, 3.0):
        large = exact.overload_gap_law(case(n=10**8, upsilon=upsilon))
        assert large.mean / 10**4 == pytest.approx(1.0, rel=1e-3)


def test_overload_gap_law_arguments():
    with pytest.raises(ValueError, match="K = 3"):
        exact.overload_gap_law(case(K=3, upsilon=-1.0))
    with pytest.raises(UnstableError, match="lambda_2"):
        exact.overload_gap_law(System(n=25, K=2, upsilon=-1.0, policy=random_routing()))


@pytest.mark.parametrize(("K", "policy"), [(1, jsq()), (2, mjsq(0.5)), (2, msblb(0.5, [0.4, 0.6]))])
def test_pauses_are_geometric(K, policy):
    system = System(n=4, K=K, upsilon=1.2 * K, policy=policy)
    law = exact.pauses_law(system)
    gaps, probabilities = naive_pauses(system, 45)
    product = np.prod((1 - law.gap_ratios) * law.gap_ratios**gaps, axis=1)
    inside = gaps.sum(axis=1) < 20
    assert probabilities[inside] == pytest.approx(product[inside], abs=1e-9)
    assert np.cumsum(probabilities @ gaps) == pytest.approx(law.mean_ranked, rel=1e-6)
    assert law.mean_total == pytest.approx(law.mean_ranked.sum())


def test_pauses_are_far_from_the_system():
    law = exact.pauses_law(case())
    assert law.gap_ratios == pytest.approx([0.77, 0.7])
    assert round(law.mean_total, 2) == 9.03
    assert exact.stationary(case()).mean_total - law.mean_total > 2.8
    # But the limit is the same.
    large = case(n=10**10)
    assert exact.pauses_law(large).mean_total / large.sqrt_n == pytest.approx(8 / 3, rel=1e-4)
    with pytest.raises(UnstableError, match="rho_1"):
        exact.pauses_law(case(upsilon=-1.0))
