"""What is exact at every n, and the laws of one coordinate in time, each against a derivation of its own."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sparse
from helpers import assert_pinned, mjsq_system
from hypothesis import given, settings
from hypothesis import strategies as st
from rankrouting import (
    CollapsedLimit,
    Limit,
    System,
    UnstableError,
    analytic,
    exact,
    jsq,
    mjsq,
    msblb,
    policies,
    power_of_d,
    random_routing,
)
from scipy import integrate, stats
from scipy.sparse.linalg import spsolve

# ---- Exact at every n --------------------------------------------------------------------------


@cache
def solve_two_queues(system, size=70):
    """The stationary law of two queues (shorter, longer), each below `size`, by a sparse solve."""
    states = [(a, b) for b in range(size) for a in range(b + 1)]
    index = {state: i for i, state in enumerate(states)}
    generator = sparse.dok_matrix((len(states), len(states)))
    for (a, b), i in index.items():
        short, long = system.rank_arrival_rates
        moves = [((a + 1, b), short), ((a, b + 1), long)]
        moves += [((a - 1, b), system.n)] * (a > 0) + [((a, b - 1), system.n)] * (b > 0)
        for state, rate in moves:
            j = index.get(tuple(sorted(state)))
            if j is not None:
                generator[i, j] += rate
                generator[i, i] -= rate
    equations = generator.T.tolil()
    equations[0, :] = 1
    law = spsolve(equations.tocsc(), np.eye(len(states))[0])
    return np.array(states), law


SMALL_SYSTEMS = [
    System(n=4, K=2, upsilon=1.0, policy=policy)
    for policy in (mjsq(2.0), msblb(1.5, [0.8, 0.2]), random_routing(), jsq(), power_of_d(1))
]


@pytest.mark.parametrize("system", SMALL_SYSTEMS, ids=lambda system: system.policy.name)
def test_balance_residual(system):
    states, law = solve_two_queues(system)
    means = law @ states / system.sqrt_n
    assert abs(analytic.balance_residual(system, means)) < 1e-6
    assert abs(analytic.balance_residual(system, means, means.sum())) < 1e-6
    assert abs(analytic.balance_residual(system, 1.05 * means)) > 0.02
    assert abs(analytic.balance_residual(system, means, 1.05 * means.sum())) > 0.02
    # The form of the paper's parameters.
    if system.policy.c is not None:
        c, total = system.policy.c, 7.0
        ranked = c * system.rank_probabilities @ means + system.arrival_rate / system.n
        assert_pinned(
            analytic.balance_residual(system, means, total), (system.upsilon + c) / 2 * total - ranked, rtol=1e-6
        )


@pytest.mark.parametrize("system", SMALL_SYSTEMS, ids=lambda system: system.policy.name)
def test_idle_servers(system):
    states, law = solve_two_queues(system)
    assert_pinned(analytic.idle_servers(system), law @ (states == 0).sum(axis=1), rtol=1e-6)


@pytest.mark.parametrize("system", SMALL_SYSTEMS[:3], ids=lambda system: system.policy.name)
def test_mean_total_by_balance(system):
    states, law = solve_two_queues(system)
    means = law @ states / system.sqrt_n
    assert_pinned(analytic.mean_total_by_balance(system, means), means.sum(), rtol=1e-6)
    if system.policy.rank_law == policies.Shortest():
        assert_pinned(analytic.mean_total_by_balance(system, means * [1, 0]), means.sum(), rtol=1e-6)


def test_balance_of_limits_and_replications():
    collapsed = CollapsedLimit(4, 1.5, variance=3.0)
    means = analytic.mean_ranked(collapsed)
    assert abs(analytic.balance_residual(collapsed, means)) < 1e-12
    assert abs(analytic.balance_residual(collapsed, 1.05 * means)) > 0.02
    general = Limit(3, [0.5, -1.0, -0.8], variance=0.7)
    assert abs(analytic.balance_residual(general, analytic.mean_ranked(general))) < 1e-12
    system = mjsq_system(K=3)
    batch = np.random.default_rng(0).uniform(0, 2, (4, 3)).cumsum(axis=1)
    for function in (analytic.balance_residual, analytic.mean_total_by_balance):
        one_by_one = [function(system, row) for row in batch]
        assert isinstance(one_by_one[0], float)
        np.testing.assert_allclose(function(system, batch), one_by_one, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("K", "p"), [(2, [1, 0]), (3, [1, 0, 0]), (3, [0.5, 0.3, 0.2])])
def test_pauses_gap_ratios(K, p):
    # Global balance of the chain written out on ordered queue lengths q_1 ≤ … ≤ q_K.
    system = System(n=25, K=K, upsilon=1.0, policy=msblb(2.0, p))
    ratios = analytic.pauses_gap_ratios(system)

    def weight(q, ratios):
        return np.prod(ratios ** np.diff(q, prepend=0))

    def moves(q):
        for k in range(K):
            if k == K - 1 or q[k] < q[k + 1]:
                yield (*q[:k], q[k] + 1, *q[k + 1 :]), system.rank_arrival_rates[k]
            if q[k] > (q[k - 1] if k else 0):
                yield (*q[:k], q[k] - 1, *q[k + 1 :]), system.n

    def imbalance(ratios, size=7):
        states = [q for q in itertools.product(range(size + 2), repeat=K) if list(q) == sorted(q)]
        flow = dict.fromkeys(states, 0.0)
        for q in states:
            for state, rate in moves(q):
                flow[q] -= rate * weight(q, ratios)
                if state in flow:
                    flow[state] += rate * weight(q, ratios)
        inner = [q for q in states if q[-1] <= size]
        return max(abs(flow[q]) for q in inner) / system.n

    assert imbalance(ratios) < 1e-12
    for k in range(K):
        assert imbalance(np.where(np.arange(K) == k, 1.05, 1) * ratios) > 1e-3
    # The same limit as without pauses.
    large = System(n=10**10, K=K, upsilon=1.0, policy=msblb(2.0, p))
    assert_pinned(-large.sqrt_n * np.log(analytic.pauses_gap_ratios(large)), analytic.gap_rates(large), rtol=1e-3)


def test_pauses_need_a_stable_chain():
    with pytest.raises(UnstableError, match=r"rho_1 = 1\.2.*: must be below 1"):
        analytic.pauses_gap_ratios(mjsq_system(n=25, K=2, upsilon=-1.0, c=1.0))
    with pytest.raises(UnstableError, match=r"rho_1 = 1, rho_2 = 1, rho_3 = 1, rho_4 = 1, …: must be below 1"):
        analytic.pauses_gap_ratios(System(n=25, K=6, upsilon=0.0, policy=random_routing()))


def test_mm1_law():
    system = System(n=25, K=3, upsilon=1.5, policy=random_routing())
    arrivals, size = system.arrival_rate / 3, 800
    chain = np.cumprod(np.append(1, np.full(size, arrivals / system.n)))  # detailed balance
    chain /= chain.sum()
    law = analytic.mm1_law(system)
    assert_pinned(law.pmf(np.arange(20)), chain[:20])
    assert_pinned(analytic.mm1_mean(system), chain @ np.arange(size + 1))
    assert_pinned(law.mean(), analytic.mm1_mean(system))
    one = System(n=25, K=1, upsilon=1.5, policy=mjsq(2.0))
    assert analytic.mm1_mean(one) == pytest.approx(one.load / (1 - one.load))
    # Close to the limit: a queue over √n is about Exp(υ/K).
    large = System(n=10**10, K=3, upsilon=1.5, policy=random_routing())
    assert_pinned(analytic.mm1_mean(large) / large.sqrt_n, 2.0, rtol=1e-4)


@pytest.mark.parametrize(("upsilon", "x0"), [(1.0, 0), (-1.0, 0), (1.0, [4, 7])])
def test_mean_idle_time(upsilon, x0):
    # Against the probability that a server is idle, integrated over time by Gauss's rule.
    system, t = System(n=9, K=2, upsilon=upsilon, policy=mjsq(1.0)), 0.5
    nodes, weights = np.polynomial.legendre.leggauss(24)
    law = exact.transient(system, x0, [*(t * (1 + nodes) / 2), t])
    idle = law.probabilities[:-1] @ (law.states == 0).sum(axis=1)
    gained = (law.mean_total[-1] - np.sum(np.broadcast_to(x0, 2))) / system.sqrt_n
    assert_pinned(analytic.mean_idle_time(system, t, gained), t / 2 * weights @ idle, rtol=1e-7)
    assert analytic.mean_idle_time(mjsq_system(), 3.0) == pytest.approx(3 * analytic.idle_servers(mjsq_system()))


def test_overload_mean_excess():
    # Two queues: half the mean of the gap's exact law, whatever υ; a general p from the chain of long queues.
    for n, upsilon in ((25, -1.0), (100, -3.0), (400, 0.0)):
        system = System(n=n, K=2, upsilon=upsilon, policy=mjsq(2.0))
        assert_pinned(analytic.overload_mean_excess(system), exact.overload_gap_law(system).mean / 2 / system.sqrt_n)
    p = [0.8, 0.2]
    system = System(n=25, K=2, upsilon=-1.0, policy=msblb(2.0, p))
    half = exact.overload_gap_law(system).mean / 2 / system.sqrt_n
    assert_pinned(analytic.overload_mean_excess(system), (p[0] - p[1]) * half)
    assert analytic.overload_mean_excess(System(n=25, K=1, upsilon=-1.0, policy=mjsq(2.0))) == 0


# ---- One coordinate in time --------------------------------------------------------------------

rbm = analytic.rbm_transition_cdf


@pytest.mark.parametrize(("beta", "variance"), [(1.0, 2.0), (-0.7, 2.0), (0.0, 3.0), (0.4, 0.5)])
def test_rbm_transition_cdf(beta, variance):
    y, x, t = 1.3, 0.6, 0.8
    # Backward equation in the start x, no flux at x = 0, and the right value as t → 0.
    h = 1e-3
    in_time = (rbm(y, x, t + h, beta, variance) - rbm(y, x, t - h, beta, variance)) / (2 * h)
    below, here, above = rbm(y, [x - h, x, x + h], t, beta, variance)
    in_space = variance / 2 * (below - 2 * here + above) / h**2 - beta * (above - below) / (2 * h)
    assert_pinned(in_time, in_space, rtol=1e-3)
    assert abs(rbm(y, 1e-5, t, beta, variance) - rbm(y, 0, t, beta, variance)) < 1e-9
    np.testing.assert_allclose(rbm(y, [y - 0.01, y + 0.01], 1e-7, beta, variance), [1, 0], atol=1e-12)
    # Chapman–Kolmogorov, by a midpoint sum over the position at time 0.3.
    grid = np.linspace(0, 12, 8001)
    masses = np.diff(rbm(grid, x, 0.3, beta, variance))
    assert_pinned(masses @ rbm(y, (grid[1:] + grid[:-1]) / 2, t - 0.3, beta, variance), here, rtol=1e-6)


def test_rbm_limits():
    y = np.array([0.1, 1.0, 5.0])
    assert_pinned(rbm(y, 2.0, 1e5, 0.6, 3.0), -np.expm1(-2 * 0.6 * y / 3.0))
    # Without drift it is |x + √(variance·t) N|.
    normal = stats.norm(0.7, math.sqrt(3.0 * 1.5))
    assert_pinned(rbm(y, 0.7, 1.5, 0.0, 3.0), normal.cdf(y) - normal.cdf(-y))
    # exp(−2βy/variance) overflows or underflows here.
    np.testing.assert_allclose(rbm([1e4, 1e-3], 0.0, 1.0, -1e4), [0.5, 0], atol=1e-3)
    np.testing.assert_allclose(rbm(1e6, [0.0, 1e6 + 1.0], 1e-3, 1.0), [1, 0], atol=1e-12)
    assert rbm(2e3, 0.0, 1.0, 1e3) == 1 and rbm(2e3, 4e3, 1e-9, -1e3) == 0
    assert rbm(-0.1, 1.0, 1.0, 1.0) == 0 and rbm(0.0, 1.0, 1.0, 1.0) == 0
    assert isinstance(rbm(1.0, 1.0, 1.0, 1.0), float) and rbm(y[:, None], y, 1.0, 1.0).shape == (3, 3)


@settings(deadline=None, max_examples=60)
@given(st.floats(-300, 300), st.floats(0, 50), st.floats(1e-4, 1e4), st.floats(0.01, 10))
def test_rbm_is_a_law(beta, x, t, variance):
    y = np.linspace(0, 2 * x + 10 * math.sqrt(variance * t) + max(0, -beta * t), 50)
    values = rbm(y, x, t, beta, variance)
    assert np.all((values >= 0) & (values <= 1)) and np.all(np.diff(values) >= -1e-15)
    assert values[-1] == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("beta", [1.0, 0.0, -0.7])
def test_rbm_local_time_cdf(beta):
    # X = x − βt + noise + L, so the means of X and L, from their two laws, differ by x − βt.
    x, t, variance = 0.6, 1.7, 3.0

    def mean(cdf):
        return integrate.quad(lambda y: 1 - cdf(y), 0, 40, epsabs=1e-12)[0]

    position = mean(lambda y: rbm(y, x, t, beta, variance))
    push = mean(lambda y: analytic.rbm_local_time_cdf(y, x, t, beta, variance))
    assert_pinned(push, position - x + beta * t)
    # Not yet pushed: the free path has not reached 0, whose density is that of the first passage.
    passage = integrate.quad(
        lambda s: x / math.sqrt(2 * math.pi * variance * s**3) * math.exp(-((x - beta * s) ** 2) / (2 * variance * s)),
        0,
        t,
    )[0]
    assert_pinned(analytic.rbm_local_time_cdf(0.0, x, t, beta, variance), 1 - passage, rtol=1e-7)
    assert analytic.rbm_local_time_cdf([-1.0, 1e3], x, t, beta, variance).tolist() == [0, 1]
