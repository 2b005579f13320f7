"""Statistics on series and samples whose law is known: coverage, values against scipy, refusals."""

import numpy as np
import pytest
from helpers import assert_detects, assert_within
from rankrouting import estimate
from rankrouting.replications import Estimate, mean_of, replicate, replicate_together
from scipy import signal, stats


def autoregression(phi, N, series, seed):
    """Stationary AR(1) series of mean 0, shape (N, series); its τ is (1 + φ)/(1 − φ)."""
    noise = np.random.default_rng(seed).standard_normal((N, series))
    noise[0] /= np.sqrt(1 - phi**2)
    return signal.lfilter([1.0], [1.0, -phi], noise, axis=0)


def assert_covers(covered, level):
    """The number of covering intervals is what a binomial law allows, with false alarm 10⁻⁵."""
    low, high = stats.binom.interval(1 - 1e-5, covered.size, level)
    assert low <= covered.sum() <= high, f"{covered.sum()} of {covered.size} cover, not {level:.0%}"


# Correlated series.


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.5, 0.9])
def test_integrated_autocorrelation_time(phi):
    tau = (1 + phi) / (1 - phi)
    estimated = mean_of(estimate.integrated_autocorrelation_time(autoregression(phi, 100_000, 120, 1)))
    # The sum stops at a random lag, which adds a part of τ that falls with N/τ: here below 1 %.
    assert_within(estimated, tau, allowance=0.01 * tau)
    assert_detects(estimated, 1.05 * tau, allowance=0.01 * tau)
    assert_detects(estimated, 0.95 * tau, allowance=0.01 * tau)


def test_effective_sample_size():
    series = autoregression(0.5, 20_000, 3, 2)
    tau = estimate.integrated_autocorrelation_time(series)
    np.testing.assert_allclose(estimate.effective_sample_size(series), 20_000 / tau)
    assert isinstance(estimate.effective_sample_size(series[:, 0]), float)


@pytest.mark.parametrize(
    ("statistic", "length"),
    [
        (estimate.integrated_autocorrelation_time, 400),
        (estimate.effective_sample_size, 400),
        (estimate.batch_means, 400),
        (estimate.batch_means, 1500),
    ],
)
def test_short_series_are_refused(statistic, length):
    with pytest.raises(ValueError, match="integrated autocorrelation times"):
        statistic(autoregression(0.9, length, 20, 3))


def test_trend_is_refused():
    # A slow drift, of which the correlations inside a few lags say little.
    series = np.random.default_rng(4).standard_normal(10_000) + np.linspace(0, 0.5, 10_000)
    with pytest.raises(ValueError, match="series of length 10000"):
        estimate.batch_means(series)


def test_correlated_batches_are_refused(monkeypatch):
    monkeypatch.setattr(estimate, "_autocorrelation_times", lambda *_: 1.0)
    with pytest.raises(ValueError, match="means of its 20 batches are correlated"):
        estimate.batch_means(autoregression(0.0, 1000, 1, 5)[:, 0] + np.linspace(0, 3, 1000))


def test_batch_means_cover():
    series = autoregression(0.9, 20_000, 400, 6)
    result = estimate.batch_means(series)
    low, high = result.interval(0.95)
    assert_covers((low < 0) & (high > 0), 0.95)
    assert_covers((low[:200] < 0) & (high[:200] > 0), 0.95)
    # Without regard to correlation the same check fails.
    low, high = mean_of(series).interval(0.95)
    with pytest.raises(AssertionError, match="cover"):
        assert_covers((low < 0) & (high > 0), 0.95)


def test_batch_means_of_a_remainder():
    series = autoregression(0.0, 1013, 1, 7)[:, 0]
    assert estimate.batch_means(series, batches=10).value == pytest.approx(series[3:].mean())
    assert estimate.batch_means(series, batches=10).replications == 10


@pytest.mark.parametrize("series", [np.ones(100), np.zeros((100, 2)), [1.0, 2.0], 3.0, [1.0] * 50 + [np.nan]])
def test_unusable_series_are_refused(series):
    for statistic in (
        estimate.integrated_autocorrelation_time,
        estimate.effective_sample_size,
        estimate.batch_means,
    ):
        with pytest.raises(ValueError, match="series"):
            statistic(series)


# Distances.


def test_ks_distance_against_scipy():
    rng = np.random.default_rng(8)
    x, y = rng.exponential(size=500), rng.exponential(size=300)
    reference = stats.kstest(x, stats.expon.cdf)
    distance = estimate.ks_distance(x, stats.expon.cdf)
    assert distance.value == pytest.approx(reference.statistic, abs=1e-12)
    assert distance.p_value == pytest.approx(reference.pvalue, abs=1e-9)
    reference = stats.ks_2samp(x, y)
    distance = estimate.ks_distance(x, y)
    assert (distance.value, distance.p_value) == pytest.approx((reference.statistic, reference.pvalue))


def test_ks_p_value_is_uniform():
    x = np.random.default_rng(9).exponential(size=(300, 2000))
    p_values = [estimate.ks_distance(row, stats.expon.cdf).p_value for row in x]
    assert stats.kstest(p_values, "uniform").pvalue > 1e-4
    wrong = [estimate.ks_distance(row, stats.expon(scale=1.05).cdf).p_value for row in x]
    assert stats.kstest(wrong, "uniform").pvalue < 1e-4


def test_ks_distance_of_a_law_with_an_atom():
    def cdf(y, atom=0.4):
        return np.where(y < 0, 0.0, 1 - (1 - atom) * np.exp(-np.maximum(y, 0)))

    rng = np.random.default_rng(10)
    x = rng.exponential(size=2000) * (rng.random(2000) > 0.4)
    distance = estimate.ks_distance(x, cdf)
    grid = np.concatenate([x, x + 1e-12, x - 1e-12, np.linspace(-1, 10, 1000)])
    empirical = np.searchsorted(np.sort(x), grid, side="right") / x.size
    assert distance.value == pytest.approx(np.abs(empirical - cdf(grid)).max(), abs=1e-9)
    assert distance.p_value > 1e-3
    assert estimate.ks_distance(x, lambda y: cdf(y, 0.5)).p_value < 1e-3


SHIFT = 0.5


def shifted_pairs(repeats, size, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((repeats, size)), rng.standard_normal((repeats, size)) + SHIFT


def holds(distance, truth):
    return distance.low <= truth <= distance.high


@pytest.mark.parametrize("two_samples", [False, True])
def test_ks_interval_holds_the_distance_of_the_laws(two_samples):
    truth = 2 * stats.norm.cdf(SHIFT / 2) - 1
    distances = [
        estimate.ks_distance(x, y if two_samples else stats.norm(loc=SHIFT).cdf, level=0.9)
        for x, y in zip(*shifted_pairs(200, 400, 11), strict=True)
    ]
    assert sum(holds(d, truth) for d in distances) >= stats.binom.ppf(1e-4, 200, 0.9)
    assert not all(d.low == 0 for d in distances)
    # The plain value, by contrast, is biased upwards.
    assert mean_of([d.value for d in distances]).z(truth) > 3


@pytest.mark.parametrize("two_samples", [False, True])
def test_wasserstein_interval_holds_the_distance_of_the_laws(two_samples):
    distances = [
        estimate.wasserstein_distance(
            x, y if two_samples else stats.norm(loc=SHIFT).ppf, seed=i, level=0.9, resamples=200
        )
        for i, (x, y) in enumerate(zip(*shifted_pairs(200, 400, 12), strict=True))
    ]
    assert sum(holds(d, SHIFT) for d in distances) >= stats.binom.ppf(1e-4, 200, 0.9)
    assert not any(d.low == 0 for d in distances)
    assert all(d.p_value is None for d in distances)


@pytest.mark.parametrize("two_samples", [False, True])
def test_intervals_reach_0_for_equal_laws(two_samples):
    x, y = shifted_pairs(100, 300, 13)
    y -= SHIFT
    ks = [estimate.ks_distance(a, b if two_samples else stats.norm.cdf, level=0.9) for a, b in zip(x, y, strict=True)]
    w = [
        estimate.wasserstein_distance(a, b if two_samples else stats.norm.ppf, level=0.9, resamples=200)
        for a, b in zip(x, y, strict=True)
    ]
    for distances in (ks, w):
        assert sum(d.low == 0 for d in distances) >= stats.binom.ppf(1e-4, 100, 0.9)


def test_wasserstein_distance_against_other_formulas():
    rng = np.random.default_rng(14)
    x, y = rng.exponential(size=50), rng.exponential(size=70)
    assert estimate.wasserstein_distance(x, y).value == pytest.approx(stats.wasserstein_distance(x, y))
    # ∫|F_N − F| on a fine grid.
    grid = np.linspace(0, 40, 400_001)
    empirical = np.searchsorted(np.sort(x), grid, side="right") / x.size
    integral = np.trapezoid(np.abs(empirical - stats.expon.cdf(grid)), grid)
    assert estimate.wasserstein_distance(x, stats.expon.ppf).value == pytest.approx(integral, abs=1e-3)


def test_wasserstein_seed():
    x = np.random.default_rng(15).exponential(size=100)
    assert estimate.wasserstein_distance(x, x + 1, seed=1) == estimate.wasserstein_distance(x, x + 1, seed=1)
    assert estimate.wasserstein_distance(x, x + 1, seed=1) != estimate.wasserstein_distance(x, x + 1, seed=2)


@pytest.mark.parametrize("distance", [estimate.ks_distance, estimate.wasserstein_distance])
def test_distances_refuse(distance):
    with pytest.raises(ValueError, match="samples of shape"):
        distance([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="law of shape"):
        distance([1.0, 2.0], [[1.0, 2.0]])
    with pytest.raises(ValueError, match="samples"):
        distance([1.0, np.nan], [1.0, 2.0])
    with pytest.raises(ValueError, match="level = 1"):
        distance([1.0, 2.0], [1.0, 2.0], level=1.0)
    with pytest.raises(ValueError, match="law"):
        distance([1.0, 2.0], lambda u: u * np.nan)


def test_ks_refuses_what_is_no_distribution_function():
    with pytest.raises(ValueError, match="must be probabilities"):
        estimate.ks_distance([1.0, 2.0], lambda y: y)


# Extrapolation.


@pytest.mark.parametrize("orders", [(1.0,), (0.5,), (0.5, 1.0)])
def test_extrapolation_covers(orders):
    rng = np.random.default_rng(16)
    s = np.array([0.8, 0.4, 0.2, 0.1, 0.05])
    errors = np.array([0.01, 0.01, 0.02, 0.02, 0.03])
    truth = 3.0 + sum(a * s**order for a, order in zip([2.0, -1.0], orders, strict=False))
    fits = [estimate.extrapolate(s, truth + errors * rng.standard_normal(5), errors, orders) for _ in range(500)]
    for level in (0.5, 0.95):
        ends = np.array([fit.interval(level) for fit in fits])
        assert_covers((ends[:, 0] < 3) & (3 < ends[:, 1]), level)
    slopes = np.array([(fit.coefficients[0] - 2) / fit.coefficient_errors[0] for fit in fits])
    assert stats.kstest(slopes, "norm").pvalue > 1e-4
    assert stats.kstest([fit.z(3.0) for fit in fits], "norm").pvalue > 1e-4
    assert stats.kstest([fit.p_value for fit in fits], "uniform").pvalue > 1e-4
    # An error of 5 % in the stated standard errors is too little to see; doubled ones are not.
    assert stats.kstest([2 * fit.z(3.0) for fit in fits], "norm").pvalue < 1e-4


def test_goodness_of_fit_sees_a_missing_order():
    s = np.array([0.4, 0.2, 0.1, 0.05])
    fit = estimate.extrapolate(s, 1 + s + s**0.5, np.full(4, 0.005))
    assert fit.p_value < 1e-4
    assert estimate.extrapolate(s, 1 + s + s**0.5, np.full(4, 0.005), (0.5, 1.0)).p_value > 0.99


def test_extrapolation_of_exact_values():
    n = np.array([25, 100, 400, 1600])
    fit = estimate.extrapolate_n(n, 2 + 3 / np.sqrt(n) - 1 / n, orders=(0.5, 1.0))
    assert fit.value == pytest.approx(2, abs=1e-12)
    assert fit.coefficients == pytest.approx([3, -1], abs=1e-10)
    assert fit.p_value is None and fit.standard_error < 1e-12
    # A straight line with too few orders says how far it may be off.
    low, high = estimate.extrapolate_n(n, 2 + 3 / np.sqrt(n) - 1 / n).interval()
    assert low < 2 < high


def test_two_sizes_leave_no_test_of_the_fit():
    fit = estimate.extrapolate([1.0, 2.0], [3.0, 4.0], [0.1, 0.1])
    assert (fit.value, fit.p_value, fit.degrees_of_freedom) == (pytest.approx(2.0), None, 0)
    assert fit.standard_error == pytest.approx(0.1 * np.sqrt(5))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 0.0], [1.0, 2.0], [0.1, 0.1]), "small"),
        (([1.0, 1.0], [1.0, 2.0], [0.1, 0.1]), "2 of them different"),
        (([1.0, 2.0], [1.0, 2.0]), "at least 3 sizes"),
        (([1.0, 2.0], [1.0, 2.0, 3.0], [0.1, 0.1]), "values of shape"),
        (([1.0, 2.0], [1.0, 2.0], [0.1, 0.0]), "standard_errors"),
        (([1.0, 2.0], [1.0, np.inf], [0.1, 0.1]), "values"),
        (([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [0.1, 0.1, 0.1], (1.0, 1.0)), "orders"),
        (([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [0.1, 0.1, 0.1], (-0.5,)), "orders"),
    ],
)
def test_extrapolation_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        estimate.extrapolate(*arguments)


def test_extrapolate_n_refuses_sizes_that_are_not_positive():
    with pytest.raises(ValueError, match="n = "):
        estimate.extrapolate_n([0, 4], [1.0, 2.0], [0.1, 0.1])


# Orders.


def test_convergence_order():
    rng = np.random.default_rng(17)
    n = np.array([25, 100, 400, 1600, 6400])
    truth = -3 / np.sqrt(n)
    errors = 0.02 * np.abs(truth)
    fits = [estimate.convergence_order(n, truth + errors * rng.standard_normal(5), errors) for _ in range(300)]
    ends = np.array([fit.interval(0.9) for fit in fits])
    assert_covers((ends[:, 0] < -0.5) & (-0.5 < ends[:, 1]), 0.9)
    exponent = Estimate(fits[0].exponent, fits[0].standard_error, 5)
    assert_within(exponent, -0.5)
    assert_detects(exponent, -0.55)
    assert stats.kstest([fit.z(-0.5) for fit in fits], "norm").pvalue > 1e-4
    assert fits[0].coefficient == pytest.approx(-3, rel=0.2)


def test_convergence_order_of_exact_errors():
    n = np.array([100, 400, 1600])
    fit = estimate.convergence_order(n, 2 / np.sqrt(n) + 0.1 / n)
    assert fit.interval()[0] < -0.5 < fit.interval()[1]
    assert fit.exponent == pytest.approx(-0.5, abs=0.01)
    assert estimate.convergence_order(n, 2 / np.sqrt(n)).coefficient == pytest.approx(2)


@pytest.mark.parametrize(
    ("errors", "standard_errors", "message"),
    [
        ([0.4, 0.2, 0.02], [0.01, 0.01, 0.01], r"errors\[2\] = 0.02 at size 1600: must be more than 0.03 away"),
        ([0.4, 0.0, 0.1], None, r"errors\[1\]"),
        ([0.4, -0.2, 0.1], [0.01, 0.01, 0.01], "one sign"),
        ([0.4, 0.2], [0.01, 0.01], "errors of shape"),
    ],
)
def test_convergence_order_refuses(errors, standard_errors, message):
    with pytest.raises(ValueError, match=message):
        estimate.convergence_order([100, 400, 1600], errors, standard_errors)


# Controls of known mean.


def test_mean_with_controls():
    rng = np.random.default_rng(19)
    controls = rng.standard_normal((400, 40, 2))
    truth = np.array([2.0, -1.0])
    noise = controls @ np.array([[3.0, 1.0], [-1.0, 0.0]]) + 0.5 * rng.standard_normal((400, 40, 2))
    estimates = [estimate.mean_with_controls(truth + noise[i], controls[i]) for i in range(400)]
    ends = np.array([one.interval(0.9) for one in estimates])
    assert_covers(((ends[:, 0] < truth) & (truth < ends[:, 1]))[:, 0], 0.9)
    assert_covers(((ends[:, 0] < truth) & (truth < ends[:, 1]))[:, 1], 0.9)
    plain = mean_of(truth + noise[0])
    assert np.all(estimates[0].standard_error < 0.6 * plain.standard_error)
    assert estimates[0].replications == 38


@pytest.mark.parametrize("controls", [np.ones(20), np.ones((20, 11)), np.arange(19.0), np.c_[:20, :20], np.array(1.0)])
def test_mean_with_controls_refuses(controls):
    with pytest.raises(ValueError, match="controls"):
        estimate.mean_with_controls(np.arange(20.0), controls)


# Streams.


def test_each_replication_has_the_stream_of_its_own_child():
    root = np.random.SeedSequence(19, spawn_key=(3,))
    draws = replicate(lambda rng, i: (i, *rng.standard_normal(3)), 150, root, threads=2)
    children = root.spawn(150)
    expected = [
        (i, *np.random.Generator(np.random.SFC64(child)).standard_normal(3)) for i, child in enumerate(children)
    ]
    assert draws == expected
    for threads in (1, 2, 8):
        grouped = replicate_together(
            lambda rngs, indices: [(i, *rng.standard_normal(3)) for rng, i in zip(rngs, indices, strict=True)],
            150,
            root,
            together=4,
            threads=threads,
        )
        assert grouped == expected


@pytest.mark.parametrize(("replications", "threads", "sizes"), [(5, 1, [2, 2, 1]), (4, 2, [2, 2]), (3, 2, [1, 1, 1])])
def test_no_thread_is_idle_for_replications_to_be_together(replications, threads, sizes):
    def task(rngs, indices):
        return [len(rngs)] * len(indices)

    found = replicate_together(task, replications, 1, together=2, threads=threads)
    assert found == [size for size in sizes for _ in range(size)]
