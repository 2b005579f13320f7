"""The diffusion's simulator against closed laws, the product law, and a slow twin.

Only a change of ranks within a step makes an error, so that all that has one coordinate is tested at
any step, and the rest is extrapolated from two or more steps.
"""

import functools

import naive_diffusion
import numpy as np
import pytest
from helpers import assert_detects, assert_within
from rankrouting import CollapsedLimit, Limit, System, UnstableError, analytic, diffusion, mjsq
from rankrouting.estimate import convergence_order, extrapolate, ks_distance
from rankrouting.ranks import gaps
from rankrouting.replications import Estimate, mean_of
from scipy import integrate, stats


def mjsq_limit(K, upsilon, c):
    return System(n=10**6, K=K, upsilon=upsilon, policy=mjsq(c)).limit()


def one_coordinate(drift, variance, time, x0, step, seed, scheme="reflected"):
    paths = diffusion.simulate_paths(
        Limit(1, [drift], variance), [time], x0, 30_000, step, seed, scheme=scheme, local_times=True
    )
    return paths.positions[:, 0, 0], paths.local_times[:, 0, 0]


def p_value(samples, cdf):
    return ks_distance(samples, cdf).p_value


def local_time_cdf(level, x, t, beta, variance):
    """L_t = max(0, −x + max_{s≤t}(βs − √variance·B_s)), by the law of the maximum of a Brownian motion."""
    a, deviation = x + level, np.sqrt(variance * t)
    below = stats.norm.cdf((a - beta * t) / deviation)
    above = np.exp(2 * beta * a / variance) * stats.norm.cdf((-a - beta * t) / deviation)
    return np.where(level < 0, 0.0, below - above)


def mean_by(cdf):
    """Mean of a nonnegative variable."""
    return integrate.quad(lambda y: 1 - float(cdf(y)), 0, 50, limit=200, points=[1, 5, 15])[0]


# One coordinate: exact at any step.

CASES = [(-1.0, 2.0, 0.5), (-0.5, 5.0, 0.2), (0.8, 2.0, 0.0), (0.0, 0.5, 0.3)]


@pytest.mark.parametrize("step", [1.5, 0.03])
@pytest.mark.parametrize(("drift", "variance", "x0"), CASES)
def test_transition_law(drift, variance, x0, step):
    def cdf(y, drift=drift, variance=variance):
        return analytic.rbm_transition_cdf(y, x0, 1.5, -drift, variance)

    x, _ = one_coordinate(drift, variance, 1.5, x0, step, seed=1)
    assert p_value(x, cdf) > 1e-4
    assert p_value(x, lambda y: cdf(y, variance=1.15 * variance)) < 1e-4
    assert p_value(x, lambda y: cdf(y, drift=drift - 0.1 * np.sqrt(variance))) < 1e-4
    assert_within(mean_of(x), mean_by(cdf))
    assert_detects(mean_of(x), 1.05 * mean_by(cdf))


@pytest.mark.parametrize("step", [1.5, 0.03])
@pytest.mark.parametrize(("drift", "variance", "x0"), CASES)
def test_local_time_law(drift, variance, x0, step):
    def cdf(level):
        return local_time_cdf(level, x0, 1.5, -drift, variance)

    _, local_time = one_coordinate(drift, variance, 1.5, x0, step, seed=2)
    assert p_value(local_time, cdf) > 1e-4
    assert p_value(1.15 * local_time, cdf) < 1e-4
    assert p_value(2 * local_time, cdf) < 1e-4
    assert_within(mean_of(local_time), mean_by(cdf))
    assert_detects(mean_of(local_time), 1.05 * mean_by(cdf))


def test_projected_scheme_is_visibly_wrong():
    x, local_time = one_coordinate(-1.0, 2.0, 1.5, 0.5, 0.03, seed=3, scheme="projected")
    assert p_value(x, lambda y: analytic.rbm_transition_cdf(y, 0.5, 1.5, 1.0, 2.0)) < 1e-6
    assert p_value(local_time, lambda y: local_time_cdf(y, 0.5, 1.5, 1.0, 2.0)) < 1e-6


def gaussian_walk_mean(drift, variance, step):
    """Mean of the walk reflected at the ends of steps: Chang and Peres, Ann. Probab. 25 (1997) 787–802."""
    deviation = np.sqrt(variance * step)
    beta = drift * step / deviation
    zeta_half, zeta_minus_half = -1.4603545088, -0.2078862250
    return deviation * (1 / (2 * beta) + beta / 4 + (zeta_half + zeta_minus_half * beta**2 / 2) / np.sqrt(2 * np.pi))


@pytest.mark.slow
def test_projected_scheme_is_biased_by_the_root_of_the_step():
    limit, steps = Limit(1, [-1.0]), np.array([0.16, 0.08, 0.04, 0.02])
    means = [
        diffusion.stationary_means(limit, 4000, 20, 256, h, seed=4 + i, scheme="projected") for i, h in enumerate(steps)
    ]
    for h, mean in zip(steps, means, strict=True):
        expected = gaussian_walk_mean(1.0, 2.0, h)
        assert_within(mean, [expected])
        assert_detects(mean, [1.05 * expected])
        assert_detects(mean, [1.0])
    values = np.array([mean.value[0] for mean in means])
    errors = np.array([mean.standard_error[0] for mean in means])
    order = convergence_order(steps, values - 1, errors)
    # The term of order h bends the fit a little.
    assert abs(order.exponent - 0.5) < 4.5 * order.standard_error + 0.1
    assert abs(order.z(1.0)) > 10


# Several coordinates in the steady state.


def extrapolated_means(limit, steps, horizon, warmup, replications, seed):
    """Mean of each gap, extrapolated to step 0."""
    ranked = [
        diffusion.stationary_means(limit, horizon, warmup, replications, h, seed + i) for i, h in enumerate(steps)
    ]
    return Estimate(
        *np.array(
            [
                (fit.value, fit.standard_error)
                for fit in (
                    extrapolate(steps, [m.value[k] for m in ranked], [m.standard_error[k] for m in ranked])
                    for k in range(limit.K)
                )
            ]
        ).T,
        replications,
    )


@functools.cache
def total_biases(K, upsilon, c, steps, horizon, replications, scheme="reflected"):
    limit = mjsq_limit(K, upsilon, c)
    values, errors = [], []
    for i, h in enumerate(steps):
        times = 100 + horizon * np.arange(1, 1001) / 1000
        paths = diffusion.simulate_paths(limit, times, "stationary", replications, h, 50 + i, scheme=scheme)
        total = mean_of(paths.sum(axis=2).mean(axis=1))
        values.append(float(total.value))
        errors.append(float(total.standard_error))
    return np.array(values), np.array(errors)


@pytest.mark.slow
def test_mean_total_of_ten_queues():
    steps = (0.2, 0.1, 0.05)
    values, errors = total_biases(10, 1.0, 2.0, steps, 20_000.0, 96)
    fit = extrapolate(steps, values, errors)
    target = analytic.mean_total(mjsq_limit(10, 1.0, 2.0))
    assert target == pytest.approx(10 + 90 / 3)
    assert fit.p_value > 1e-4
    assert_within(Estimate(fit.value, fit.standard_error, 3), target)
    assert_detects(Estimate(fit.value, fit.standard_error, 3), 1.05 * target)
    # The largest step itself is wrong, and by much less than its own root.
    assert 4.5 * errors[0] < values[0] - target < 0.05 * target


@pytest.mark.slow
def test_bias_is_of_the_order_of_the_step():
    steps = (0.4, 0.2, 0.1)
    values, errors = total_biases(3, 1.0, 4.0, steps, 20_000.0, 160)
    target = analytic.mean_total(mjsq_limit(3, 1.0, 4.0))
    order = convergence_order(steps, values - target, errors)
    # The next order of the step bends the fit a little.
    assert abs(order.exponent - 1) < 4.5 * order.standard_error + 0.05
    assert abs(order.z(0.5)) > 10


@pytest.mark.slow
def test_ranks_for_general_probabilities():
    p, c, upsilon, K = np.array([0.5, 0.2, 0.3]), 3.0, 1.5, 3
    limit = Limit(K, c * p - (upsilon + c) / K, variance=3.0)
    theta = 2 / 3 * -np.cumsum(limit.drifts[::-1])[::-1]
    means = extrapolated_means(limit, (0.1, 0.05), 10_000, 60, 96, seed=60)
    assert_within(means, np.cumsum(1 / theta))
    assert_detects(means, 1.05 * np.cumsum(1 / theta))


@pytest.mark.slow
def test_local_times_grow_at_the_rate_upsilon():
    limit = mjsq_limit(3, 1.0, 4.0)
    paths = diffusion.simulate_paths(limit, [2000.0], "stationary", 64, 0.1, 70, local_times=True)
    rate = mean_of(paths.local_times[:, 0].sum(axis=1) / 2000)
    assert_within(rate, limit.upsilon)
    for factor in (0.5, 0.95, 1.05, 2.0):
        assert_detects(rate, factor * limit.upsilon)


@pytest.mark.slow
def test_gaps_in_overload():
    K, c = 4, 2.0
    limit = mjsq_limit(K, -1.0, c)
    times = np.linspace(100, 500, 800)
    steps = (0.08, 0.04)
    per_step = []
    for i, h in enumerate(steps):
        positions = diffusion.simulate_paths(limit, times, 0.0, 600, h, 80 + i)
        per_step.append(mean_of(gaps(positions)[:, :, 1:].mean(axis=1)))
        growth = mean_of((positions[:, -1] - positions[:, 0]).sum(axis=1) / 400)
        assert_within(growth, 1.0)
    fits = [
        extrapolate(steps, [e.value[k] for e in per_step], [e.standard_error[k] for e in per_step])
        for k in range(K - 1)
    ]
    means = Estimate(np.array([f.value for f in fits]), np.array([f.standard_error for f in fits]), 600)
    rates = np.array([K - 1, K - 2, K - 3]) * c / K
    assert_within(means, 1 / rates)
    assert_detects(means, 1.05 / rates)
    # A slack of +1 would enter the rates.
    assert_detects(means, K / (np.array([3, 2, 1]) * (c + 1)))


# Against the slow twin, in law.


@pytest.mark.parametrize("scheme", diffusion.SCHEMES)
def test_slow_twin(scheme):
    drifts, x0, replications = np.array([1.7, -0.6, -1.6]), np.array([0.0, 0.3, 0.35]), 20_000
    limit = Limit(3, drifts, 1.5)
    paths = diffusion.simulate_paths(limit, [1.2], x0, replications, 0.1, seed=90, scheme=scheme, local_times=True)
    rng = np.random.default_rng(91)

    def twin(drifts):
        return naive_diffusion.simulate(drifts, 1.5, x0, 1.2, 12, replications, rng, scheme)

    def distances(positions, local_times):
        pairs = [(paths.positions[:, 0], positions), (paths.local_times[:, 0], local_times)]
        pairs = [(fast[:, i], slow[:, i]) for fast, slow in pairs for i in range(3)]
        pairs += [(a.max(axis=1), b.max(axis=1)) for a, b in [(paths.positions[:, 0], positions)]]
        return [ks_distance(*pair).p_value for pair in pairs], [
            stats.ttest_ind(*pair, equal_var=False).pvalue for pair in pairs
        ]

    ks, means = distances(*twin(drifts))
    assert min(ks) > 1e-4 and min(means) > 1e-4
    ks, means = distances(*twin(drifts + np.array([0.8, 0.0, -0.8])))
    assert min(ks) < 1e-4 and min(means) < 1e-4


def test_local_times_are_what_keeps_the_paths_up():
    # X − X_0 − L is the free path: its total is normal, at every sampling time.
    limit = mjsq_limit(5, 1.0, 3.0)
    times = np.array([0.4, 1.0])
    paths = diffusion.simulate_paths(limit, times, 0.1, 4000, 0.05, 92, local_times=True)
    free = (paths.positions - 0.1 - paths.local_times).sum(axis=2)
    for j, t in enumerate(times):
        assert stats.kstest(free[:, j], stats.norm(-t, np.sqrt(2 * 5 * t)).cdf).pvalue > 1e-4
    doubled = (paths.positions - 0.1 - 2 * paths.local_times).sum(axis=2)[:, 1]
    assert stats.kstest(doubled, stats.norm(-1, np.sqrt(10)).cdf).pvalue < 1e-4
    assert np.all(paths.positions >= 0)
    assert np.all(np.diff(paths.local_times, axis=1, prepend=0) >= 0)


def test_ties_at_the_start_are_broken_at_random():
    # One step with a strong push for the first rank: which coordinate gets it?
    paths = diffusion.simulate_paths(Limit(4, [30.0, -2.0, -2.0, -2.0]), [1.0], 10.0, 4000, 1.0, 93)
    winners = np.bincount(paths[:, 0].argmax(axis=1), minlength=4)
    assert stats.chisquare(winners).pvalue > 1e-4
    assert winners.sum() == 4000


def test_ranks_decide_the_drift_of_each_label():
    x0 = [5.0, 1.0, 3.0]
    paths = diffusion.simulate_paths(Limit(3, [7.0, 0.0, -7.0], 1e-12), [0.1], x0, 2, 0.01, 94)
    np.testing.assert_allclose(paths[:, 0], [[4.3, 1.7, 3.0]] * 2, atol=1e-4)


# The collapsed limit.


def test_collapsed_limit():
    limit = CollapsedLimit(4, 1.0, 3.0)
    x0 = np.array([0.0, 0.0, 0.0, 2.0])
    paths = diffusion.simulate_paths(limit, [0.0, 1.5], x0, 20_000, 0.5, 95, local_times=True)
    assert paths.positions.shape == paths.local_times.shape == (20_000, 2, 4)
    np.testing.assert_array_equal(paths.positions[:, 0], 0.5)
    np.testing.assert_array_equal(np.ptp(paths.positions, axis=2), 0)
    total, local_time = paths.positions[:, 1].sum(axis=1), paths.local_times[:, 1].sum(axis=1)
    assert p_value(total, lambda y: analytic.rbm_transition_cdf(y, 2.0, 1.5, 1.0, 12.0)) > 1e-4
    assert p_value(total, lambda y: analytic.rbm_transition_cdf(y, 2.0, 1.5, 1.0, 3.0)) < 1e-4
    assert p_value(local_time, lambda y: local_time_cdf(y, 2.0, 1.5, 1.0, 12.0)) > 1e-4


# Starts in the steady state.


@pytest.mark.parametrize("limit", [mjsq_limit(3, 1.0, 2.0), CollapsedLimit(3, 1.0)])
def test_stationary_start(limit):
    start = diffusion.simulate_paths(limit, [0.0], "stationary", 4000, 0.1, 96)[:, 0]
    assert_within(mean_of(start.sum(axis=1)), analytic.mean_total(limit))
    assert_detects(mean_of(start.sum(axis=1)), 1.1 * analytic.mean_total(limit))
    # No coordinate is preferred.
    assert_within(mean_of(start), analytic.mean_total(limit) / 3)


@pytest.mark.parametrize(
    "limit", [mjsq_limit(3, -1.0, 2.0), Limit(2, [-2.0, 1.0]), CollapsedLimit(3, -1.0), CollapsedLimit(3, 0.0)]
)
def test_no_stationary_start_without_stability(limit):
    with pytest.raises(UnstableError):
        diffusion.simulate_paths(limit, [1.0], "stationary", 2, 0.1, 1)
    with pytest.raises(UnstableError):
        diffusion.stationary_means(limit, 10, 1, 2, 0.1, 1)
    assert np.isfinite(diffusion.simulate_paths(limit, [1.0], 0.0, 2, 0.1, 1)).all()


# The same numbers.


@pytest.mark.parametrize("scheme", diffusion.SCHEMES)
@pytest.mark.parametrize("x0", [0.5, "stationary"])
def test_threads_and_replications_do_not_matter(x0, scheme):
    def run(replications, **options):
        return diffusion.simulate_paths(
            mjsq_limit(4, 1.0, 2.0), [0.0, 0.3, 1.0], x0, replications, 0.05, 97, scheme=scheme, **options
        )

    reference = run(300, threads=1)
    assert np.unique(reference[:, 2].sum(axis=1)).size == 300
    for threads in (2, 4):
        np.testing.assert_array_equal(run(300, threads=threads), reference)
    np.testing.assert_array_equal(run(7), reference[:7])
    np.testing.assert_array_equal(run(7, local_times=True).positions, reference[:7])


def test_seeds():
    def run(seed):
        return diffusion.simulate_paths(Limit(2, [0.0, -1.0]), [1.0], 0.0, 3, 0.1, seed)

    np.testing.assert_array_equal(run(1), run(np.random.SeedSequence(1)))
    assert not np.any(run(1) == run(2))


def test_global_random_state_is_left_alone():
    before = np.random.get_state()[1].copy()
    diffusion.simulate_paths(Limit(2, [-0.5, -1.0]), [1.0], "stationary", 3, 0.1, 1)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


# Shapes, steps, arguments.


def test_many_coordinates():
    limit = mjsq_limit(200, 1.0, 2.0)
    paths = diffusion.simulate_paths(limit, [0.0, 0.5], np.linspace(0, 1, 200), 3, 0.01, 98, local_times=True)
    assert paths.positions.shape == (3, 2, 200)
    np.testing.assert_array_equal(paths.positions[:, 0], np.tile(np.linspace(0, 1, 200), (3, 1)))
    np.testing.assert_array_equal(paths.local_times[:, 0], 0)
    assert np.all(paths.positions >= 0)


def test_starts_of_every_shape():
    limit = Limit(2, [0.0, -1.0])
    given = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    paths = diffusion.simulate_paths(limit, [0.0, 1.0], given, 3, 0.1, 1)
    np.testing.assert_array_equal(paths[:, 0], given)
    np.testing.assert_array_equal(given[0], [1.0, 2.0])
    row = diffusion.simulate_paths(limit, 0.0, [1.0, 2.0], 3, 0.1, 1)
    np.testing.assert_array_equal(row[:, 0], [[1.0, 2.0]] * 3)


def test_steps_divide_each_interval(monkeypatch):
    seen = {}
    monkeypatch.setattr(
        diffusion,
        "_paths_kernel",
        lambda rng, x, steps, drifts, variances, *rest: seen.update(steps=steps, drifts=drifts, variances=variances),
    )
    diffusion.simulate_paths(Limit(1, [-1.0], 3.0), [0.0, 0.3, 0.55, 0.56], 0.0, 1, 0.1, 1)
    assert seen["steps"].tolist() == [0, 3, 3, 1]
    np.testing.assert_allclose(seen["drifts"][:, 0], [0, -0.1, -0.25 / 3, -0.01])
    np.testing.assert_allclose(seen["variances"], [0, 0.3, 0.25, 0.03])


def test_record():
    arguments = (Limit(2, [0.0, -1.0]), [0.5, 1.0], 0.0, 3, 0.1, 1)
    paths = diffusion.simulate_paths(*arguments)
    both = diffusion.simulate_paths(*arguments, local_times=True)
    np.testing.assert_array_equal(paths, both.positions)
    assert paths.shape == both.local_times.shape == (3, 2, 2)


GOOD = {"limit": Limit(2, [0.0, -1.0]), "times": [1.0], "x0": 0.0, "replications": 2, "step": 0.1, "seed": 1}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("limit", "mjsq"),
        ("times", [1.0, 1.0]),
        ("times", [-1.0]),
        ("x0", -1.0),
        ("x0", [1.0, 2.0, 3.0]),
        ("x0", "empty"),
        ("x0", np.nan),
        ("replications", 0),
        ("replications", 1.5),
        ("step", 0.0),
        ("step", np.inf),
        ("seed", -1),
        ("seed", None),
        ("scheme", "euler"),
        ("threads", 0),
    ],
)
def test_arguments_are_checked(name, value):
    with pytest.raises(ValueError, match=name):
        diffusion.simulate_paths(**{**GOOD, name: value})


@pytest.mark.parametrize(("name", "value"), [("horizon", 0.0), ("warmup", -1.0), ("replications", 1), ("samples", 0)])
def test_arguments_of_stationary_means_are_checked(name, value):
    good = {"horizon": 1.0, "warmup": 1.0, "replications": 2, "step": 0.1, "seed": 1, "samples": 3}
    with pytest.raises(ValueError, match=name):
        diffusion.stationary_means(Limit(1, [-1.0]), **{**good, name: value})
