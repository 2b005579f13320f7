"""Rank profiles, delays and the design calculator: against other formulas, exact chains and simulation."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import assert_detects, assert_within
from rankrouting import (
    CollapsedLimit,
    Limit,
    System,
    UnstableError,
    analytic,
    exact,
    jsq,
    marginal_power_of_d,
    mjsq,
    msblb,
    queues,
    random_routing,
    ranks,
)
from rankrouting.replications import mean_of
from scipy import special, stats


def random_profiles(K, count, seed):
    return np.random.default_rng(seed).dirichlet(np.full(K, 0.7), size=count)


# ---- Profiles -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("K", "upsilon", "c"), [(3, 1.0, 4.0), (6, 2.0, 1.0), (1, 1.0, 3.0)])
def test_profile_gap_rates(K, upsilon, c):
    stable = 0
    for p in random_profiles(K, 40, 1):
        rates = analytic.profile_gap_rates(p, upsilon, c)
        system = System(n=10_000, K=K, upsilon=upsilon, policy=msblb(c, p))
        assert rates[0] == pytest.approx(upsilon)
        if np.all(rates > 0):
            stable += 1
            np.testing.assert_allclose(rates, analytic.gap_rates(system))
            assert analytic.profile_mean_total(p, upsilon, c) == pytest.approx(analytic.mean_total(system))
        else:
            assert analytic.profile_mean_total(p, upsilon, c) == np.inf
            with pytest.raises(UnstableError):
                analytic.gap_rates(system)
    assert stable > 0


def test_stability_region_is_that_of_every_finite_n():
    # The finite chain is stable exactly where the limit is: on both sides of an edge, a hair apart.
    for p in ([0.2, 0.8 - 0.25, 0.25], [0.3, 0.3, 0.4]):
        p = np.array(p)
        upper = p[1:].sum(), p[2]
        # The c at which the first of the rates vanishes.
        edge = min(1.0 * m / (3 * s - m) for m, s in zip((2, 1), upper, strict=True) if 3 * s > m)
        for n in (9, 100, 10_000):
            inside, outside = (System(n, 3, 1.0, msblb(factor * edge, p)) for factor in (1 - 1e-6, 1 + 1e-6))
            analytic.gap_rates(inside)
            rates = outside.rank_arrival_rates
            assert any(rates[k:].sum() > (3 - k) * outside.n for k in range(3))
            assert all(inside.rank_arrival_rates[k:].sum() < (3 - k) * inside.n for k in range(3))


@pytest.mark.parametrize("c", [0.3, 0.5, 0.7, 1.5, 2.0, 2.5, 40.0])
def test_stability_polygon(c):
    corners = analytic.stability_polygon(1.0, c)
    np.testing.assert_allclose(corners.sum(axis=1), 1)
    assert np.all(corners > -1e-12)
    vertices_of_simplex = {tuple(row) for row in corners.round(9) if row.max() == pytest.approx(1)}
    assert (len(vertices_of_simplex) == 3) == (c <= 0.5)
    # Each corner is on the boundary; a point is stable if and only if it is in the polygon.
    p = random_profiles(3, 4000, 2)
    stable = np.all(analytic.profile_gap_rates(p, 1.0, c) > 0, axis=1)
    a, b = corners[:, 1:], np.roll(corners[:, 1:], -1, axis=0)
    edges, to_point = b - a, p[:, np.newaxis, 1:] - a
    cross = edges[:, 0] * to_point[..., 1] - edges[:, 1] * to_point[..., 0]
    # The corners run in one sense; corners that coincide give edges of length 0, which cut nothing.
    inside = np.all(cross >= -1e-12, axis=1) | np.all(cross <= 1e-12, axis=1)
    np.testing.assert_array_equal(stable, inside)


def test_mjsq_is_best_and_profiles_are_ordered():
    upsilon, c, K = 1.0, 2.0, 5
    best = analytic.profile_gap_rates(np.eye(K)[0], upsilon, c)
    p = random_profiles(K, 500, 3)
    assert np.all(analytic.profile_gap_rates(p, upsilon, c) <= best + 1e-12)
    # Moving mass to a longer queue lowers every rate.
    worse = p.copy()
    worse[:, -1] += worse[:, 0] / 2
    worse[:, 0] /= 2
    assert np.all(analytic.profile_gap_rates(worse, upsilon, c) <= analytic.profile_gap_rates(p, upsilon, c) + 1e-12)


def top_sums(lengths):
    return np.cumsum(np.sort(lengths)[::-1])


def test_majorization_coupling_never_breaks():
    """prop-best-profile, path by path: events at equal ranks, ranked jobs at ordered ranks."""
    rng = np.random.default_rng(4)
    for K in (2, 3, 5):
        better, worse = np.zeros(K, dtype=int), np.zeros(K, dtype=int)
        strict = 0
        for _ in range(5_000):
            kind, rank = rng.random(), rng.integers(K)
            better.sort()
            worse.sort()
            if kind < 0.5:
                better[rank], worse[rank] = max(better[rank] - 1, 0), max(worse[rank] - 1, 0)
            elif kind < 0.8:
                better[rank] += 1
                worse[rank] += 1
            else:
                better[rng.integers(rank + 1)] += 1
                worse[rank] += 1
            assert np.all(top_sums(better) <= top_sums(worse))
            strict += top_sums(better)[-1] < top_sums(worse)[-1]
        assert strict > 30


def test_mjsq_is_best_at_finite_n():
    base = System(n=9, K=3, upsilon=1.5, policy=mjsq(1.5))
    best = np.cumsum(exact.stationary(base).mean_ranked[::-1])
    for p in ([0.9, 0.1, 0.0], [0.7, 0.2, 0.1], [0.5, 0.5, 0.0]):
        worse = np.cumsum(exact.stationary(replace(base, policy=msblb(1.5, p))).mean_ranked[::-1])
        assert np.all(worse > best * 1.005)


def test_growth_speeds():
    system = System(n=100, K=3, upsilon=1.0, policy=msblb(4.0, [0.1, 0.1, 0.8]))
    speeds = analytic.growth_speeds(system)
    drifts = system.limit().drifts
    assert speeds[2] == pytest.approx(drifts[2]) and np.all(speeds[:2] == 0)
    t, count = 60.0, 600
    ends = ranks.ranked(queues.simulate_paths(system, [t / 2, t], 0.0, count, seed=5, progress=False))
    growth = mean_of((ends[:, 1] - ends[:, 0]) / (t / 2))
    assert_within(Scalar(growth, 2), speeds[2])
    assert_detects(Scalar(growth, 2), speeds[2] * 1.08)
    # The bound of the proposition.
    assert np.mean(((ends[:, 1] - speeds * t) ** 2).sum(axis=1)) <= 2 * 3 * t


class Scalar:
    """One component of an estimate."""

    def __init__(self, estimate, k):
        self.value, self.standard_error = estimate.value[k], estimate.standard_error[k]


def test_growth_speeds_dominate_the_drifts():
    rng = np.random.default_rng(6)
    for _ in range(200):
        drifts = rng.normal(size=6)
        speeds = analytic.growth_speeds(Limit(6, drifts))
        assert np.all(np.diff(speeds) >= 0) and np.all(speeds >= 0)
        top, over = np.cumsum(drifts[::-1]), np.cumsum(speeds[::-1])
        assert np.all(over >= top - 1e-12)
        # No smaller concave function will do: it touches where the speed changes.
        for m in np.flatnonzero(np.diff(speeds[::-1]) < -1e-12):
            assert over[m] == pytest.approx(top[m])
    assert np.all(analytic.growth_speeds(CollapsedLimit(3, 1.0)) == 0)
    np.testing.assert_allclose(analytic.growth_speeds(CollapsedLimit(3, -1.5)), 0.5)
    overloaded = System(n=100, K=4, upsilon=-2.0, policy=mjsq(3.0))
    np.testing.assert_allclose(analytic.growth_speeds(overloaded), 0.5)


# ---- Marginal JSQ(d) ------------------------------------------------------------------------------


@pytest.mark.parametrize(("K", "d"), [(2, 2), (5, 2), (5, 4), (12, 3), (12, 12), (200, 2)])
@pytest.mark.parametrize("excess", [0.01, 0.5])
def test_required_c_of_sample(K, d, excess):
    c = analytic.required_c_of_sample(K, 1.5, d, excess)
    limit = System(n=10**12, K=K, upsilon=1.5, policy=marginal_power_of_d(c, d)).limit()
    assert analytic.mean_total(limit) == pytest.approx((1 + excess) * K / 1.5)
    if d == K:
        assert c == pytest.approx(analytic.required_c(K, 1.5, excess))


def test_mean_total_of_a_sample():
    K, upsilon, c = 9, 2.0, 7.0
    for d in (2, 3, 8):
        m = np.arange(1, K + 1)
        r = special.comb(m - 1, d - 1) / special.comb(K - 1, d - 1)
        system = System(n=10_000, K=K, upsilon=upsilon, policy=marginal_power_of_d(c, d))
        assert analytic.mean_total(system) == pytest.approx(K * np.sum(1 / (upsilon + c * (1 - r))))


def test_sample_rate_ratio():
    for K in (2, 7, 40):
        assert analytic.sample_rate_ratio(K, 2) == pytest.approx(np.sum(1 / np.arange(1, K)))
        for d in {2, min(3, K), K}:
            small = analytic.required_c_of_sample(K, 1.0, d, 1e-7) / analytic.required_c(K, 1.0, 1e-7)
            assert small == pytest.approx(analytic.sample_rate_ratio(K, d), rel=1e-5)
    assert analytic.required_c_of_sample(5, 1.0, 3, 4.0) == 0.0


# ---- Delays and design ----------------------------------------------------------------------------


def test_delay_law_of_random_routing_is_exponential():
    system = System(n=100, K=4, upsilon=2.0, policy=random_routing())
    law, wanted = analytic.delay_law(system), stats.expon(scale=1 / (100 * (1 - system.load)))
    t = np.array([0.0, 0.05, 0.3, 2.0])
    np.testing.assert_allclose(law.sf(t), wanted.sf(t), rtol=1e-10)
    np.testing.assert_allclose(law.quantile([0.1, 0.95, 0.99]), wanted.ppf([0.1, 0.95, 0.99]), rtol=1e-9)
    assert law.mean == pytest.approx(wanted.mean())


@pytest.mark.parametrize("policy", [mjsq(5.0), marginal_power_of_d(5.0, 2), msblb(2.0, [0.4, 0.3, 0.2, 0.1])])
def test_delay_law_against_samples_and_little(policy):
    system = System(n=10_000, K=4, upsilon=2.0, policy=policy)
    law = analytic.delay_law(system)
    # Little: the mean delay times the arrival rate is the mean number of jobs, but for the ranked share.
    of_limit = analytic.delay_law(system.limit())
    assert of_limit.mean * 4 == pytest.approx(analytic.mean_total(system))
    rng = np.random.default_rng(7)
    lengths = analytic.gap_law(system).sample_ranked(10_000, rng) / system.sqrt_n
    rank = rng.choice(4, size=10_000, p=system.rank_arrival_rates / system.arrival_rate)
    delays = lengths[np.arange(10_000), rank]
    assert stats.kstest(delays, law.cdf).pvalue > 1e-4
    assert stats.kstest(delays * 1.1, law.cdf).pvalue < 1e-4
    for q in (0.01, 0.5, 0.999):
        assert law.cdf(law.quantile(q)) == pytest.approx(q, rel=1e-9)


def test_delay_law_of_jsq():
    system = System(n=100, K=4, upsilon=2.0, policy=jsq())
    law = analytic.delay_law(system)
    assert law.mean == pytest.approx(1 / 2.0 / 10)
    assert law.quantile(0.99) == pytest.approx(np.log(100) / 20)


def test_delays_by_simulation():
    system = System(n=10_000, K=4, upsilon=8.0, policy=mjsq(8.0))
    law = analytic.delay_law(system)
    times = 6 * analytic.relaxation_time(system) * np.arange(1, 5)
    paths = queues.simulate_paths(system, times, 0.0, 500, seed=8, progress=False)
    jobs = np.rint(ranks.ranked(paths) * system.sqrt_n)
    weights = system.rank_arrival_rates / system.arrival_rate
    for q in (0.95, 0.99):
        late = special.gammaincc(jobs + 1, system.n * law.quantile(q)) @ weights
        measured = mean_of(late.mean(axis=1))
        # A shift of all by up to a job a gap, times the slope of the tail.
        allowance = 4 / system.sqrt_n * 8.0 * (1 - q)
        assert_within(measured, 1 - q, allowance=allowance)
    assert_detects(measured, law.sf(law.quantile(0.99) / 1.4), allowance=allowance)


@pytest.mark.parametrize("d", [None, 2, 8])
def test_design_meets_its_target(d):
    by_excess = analytic.design(10_000, 8, 0.995, excess=0.3, d=d)
    assert by_excess.mean_jobs == pytest.approx(1.3 * by_excess.mean_jobs_jsq)
    assert by_excess.c == pytest.approx(analytic.required_c_of_sample(8, by_excess.system.upsilon, d or 8, 0.3))
    again = analytic.design(10_000, 8, 0.995, mean_jobs=by_excess.mean_jobs, d=d)
    assert again.c == pytest.approx(by_excess.c, rel=1e-6)
    once_more = analytic.design(10_000, 8, 0.995, p99_ms=by_excess.p99_ms, d=d)
    assert once_more.c == pytest.approx(by_excess.c, rel=1e-6)
    assert by_excess.mean_jobs_jsq == pytest.approx(200.0) and by_excess.mean_jobs_random == pytest.approx(1600.0)
    assert by_excess.messages_per_job == pytest.approx((d or 8) * by_excess.ranked_share)
    assert by_excess.mean_ms < by_excess.p95_ms < by_excess.p99_ms


def test_design_does_not_depend_on_the_unit_of_time():
    seconds = analytic.design(400, 8, 0.99, excess=0.5)
    minutes = analytic.design(24_000, 8, 0.99, excess=0.5, unit_seconds=60.0)
    for name in ("ranked_share", "messages_saved", "mean_jobs", "gap_jobs", "mean_ms", "p95_ms", "p99_ms"):
        assert getattr(seconds, name) == pytest.approx(getattr(minutes, name)), name


def test_design_without_need_for_ranks():
    router = analytic.design(400, 4, 0.9, excess=10.0)
    assert router.c == 0 and router.messages_per_job == 0 and router.mean_jobs == pytest.approx(40.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: analytic.design(400, 8, 0.99), "targets none"),
        (lambda: analytic.design(400, 8, 0.99, excess=0.1, p99_ms=3.0), "targets excess, p99_ms"),
        (lambda: analytic.design(400, 8, 1.0, excess=0.1), "load = 1"),
        (lambda: analytic.design(400, 1, 0.9, excess=0.1), "K = 1"),
        (lambda: analytic.design(400, 8, 0.9, excess=0.1, d=1), "d = 1"),
        (lambda: analytic.design(400, 8, 0.9, excess=-0.1), "excess = -0.1"),
        (lambda: analytic.design(400, 8, 0.9, mean_jobs=1.0), "mean_jobs = 1: must be at least"),
        (lambda: analytic.design(400, 8, 0.9, p99_ms=1e-3), "p99_ms = 0.001: must be at least"),
        (lambda: analytic.required_c_of_sample(5, 1.0, 1, 0.1), "d = 1"),
        (lambda: analytic.required_c_of_sample(1, 1.0, 2, 0.1), "K = 1"),
        (lambda: analytic.required_c_of_sample(5, 1.0, 2, 0.0), "excess = 0"),
        (lambda: analytic.stability_polygon(0.0, 1.0), "upsilon = 0"),
        (lambda: analytic.profile_gap_rates([0.5, 0.4], 1.0, 1.0), "sum to 1"),
        (lambda: analytic.profile_gap_rates(1.0, 1.0, 1.0), "p of shape"),
        (lambda: analytic.delay_law(Limit(2, [1.0, 1.0])), "theta"),
    ],
)
def test_messages(call, words):
    with pytest.raises(ValueError, match=words):
        call()
