"""The limit in which coordinates have a common noise: its simulator, and the formulas that hold and that do not."""

import naive_diffusion
import numpy as np
import pytest
from helpers import assert_detects, assert_within
from rankrouting import Limit, System, analytic, diffusion, mjsq
from rankrouting.ranks import ranked
from rankrouting.replications import mean_of
from scipy import stats

DRIFTS = [1.0, -1.5, -1.5]


@pytest.mark.parametrize("common", [1.0, -0.4, -0.5])
def test_covariance_far_from_the_boundary(common):
    """Equal drifts, far from 0: a Gaussian vector with the covariance that was asked for."""
    limit = Limit(3, [-1.0] * 3, 1.5, common)
    ends = diffusion.simulate_paths(limit, [0.5], 30.0, 20_000, 0.1, 1)[:, 0]
    deviations = ends - 29.5
    products = deviations[:, :, None] * deviations[:, None, :]
    expected = 0.5 * (1.5 * np.eye(3) + common)
    assert_within(mean_of(products), expected)
    assert_detects(mean_of(products), expected + 0.05 * common)
    if common == -0.5:
        np.testing.assert_allclose(ends.sum(axis=1), 88.5)


@pytest.mark.parametrize("common", [1.0, -0.6])
def test_one_coordinate_has_all_of_its_variance(common):
    """Whatever the step: reflection is exact for fixed drifts."""
    ends = diffusion.simulate_paths(Limit(2, [-0.7, -0.7], 1.5, common), [1.0], 0.3, 20_000, 0.5, 1)[:, 0]
    for i in range(2):
        law = lambda y: analytic.rbm_transition_cdf(y, 0.3, 1.0, 0.7, 1.5 + common)  # noqa: E731
        assert stats.kstest(ends[:, i], law).pvalue > 1e-4
        assert stats.kstest(1.06 * ends[:, i], law).pvalue < 1e-4


@pytest.mark.parametrize("scheme", ["reflected", "projected"])
def test_slow_twin(scheme):
    paths = diffusion.simulate_paths(Limit(3, DRIFTS, 1.5, 0.8), [1.2], [0.5, 1.0, 0.2], 20_000, 0.1, 1, scheme=scheme)
    rng = np.random.default_rng(2)
    slow, _ = naive_diffusion.simulate(DRIFTS, 1.5, [0.5, 1.0, 0.2], 1.2, 12, 20_000, rng, scheme, common=0.8)
    for i in range(3):
        assert stats.ks_2samp(paths[:, 0, i], slow[:, i]).pvalue > 1e-4
    assert stats.ks_2samp(paths[:, 0].sum(axis=1), slow.sum(axis=1)).pvalue > 1e-4
    assert stats.ks_2samp(np.ptp(paths[:, 0], axis=1), np.ptp(slow, axis=1)).pvalue > 1e-4
    assert stats.ks_2samp(1.1 * paths[:, 0].sum(axis=1), slow.sum(axis=1)).pvalue < 1e-4


@pytest.mark.parametrize("common", [2.0, -0.5])
def test_balance_in_the_stationary_state(common):
    limit = Limit(3, DRIFTS, 1.5, common)
    law = analytic.gap_law(Limit(3, DRIFTS, 1.5))
    times = np.arange(20.0, 220.0, 0.2)
    paths = ranked(diffusion.simulate_paths(limit, times, law, 400, 0.01, 1, progress=False)).mean(axis=1)
    residual = mean_of(analytic.balance_residual(limit, paths))
    allowance = 0.01 * 4  # order of the step
    assert_within(residual, 0.0, allowance=allowance)
    wrong = mean_of(analytic.balance_residual(Limit(3, DRIFTS, 1.5, 0.7 * common), paths))
    assert_detects(wrong, 0.0, allowance=allowance)
    # Not the means of a product law: with that of independent noises the balance would fail.
    assert_detects(mean_of(paths), analytic.mean_ranked(Limit(3, DRIFTS, 1.5)), allowance=allowance)


def test_no_product_form():
    limit = Limit(3, DRIFTS, 1.5, 0.3)
    assert analytic.skew_symmetry_defect(limit) == pytest.approx(0.3)
    assert analytic.skew_symmetry_defect(Limit(3, DRIFTS, 1.5)) == pytest.approx(0.0)
    for function in (analytic.gap_rates, analytic.gap_law, analytic.mean_total):
        with pytest.raises(ValueError, match=r"common = 0.3: must be 0"):
            function(limit)
    with pytest.raises(ValueError, match=r"common = 0.3: must be 0"):
        diffusion.simulate_paths(limit, [1.0], "stationary", 2, 0.1, 1)


def test_gaps_without_boundary_do_not_see_the_common_noise():
    with_noise, without = Limit(3, [1.0, 0.0, 0.0], 2.0, 3.0), Limit(3, [1.0, 0.0, 0.0], 2.0)
    np.testing.assert_array_equal(analytic.overload_gap_rates(with_noise), analytic.overload_gap_rates(without))
    np.testing.assert_array_equal(
        analytic.gap_srbm(with_noise).covariance[1:], analytic.gap_srbm(without).covariance[1:]
    )


def test_relaxation_time():
    """One coordinate: a reflected Brownian motion with all of its variance."""
    assert analytic.relaxation_time(Limit(1, [-1.0], 1.0, 2.0)) == pytest.approx(2 * 3.0)
    uncommon = System(100, 4, 1.0, mjsq(2.0)).limit()
    assert analytic.relaxation_time(uncommon) == pytest.approx(max(4 * 4, 4 * 16 / 9))


def test_arguments():
    with pytest.raises(ValueError, match=r"common = -0.6: must be"):
        Limit(3, DRIFTS, 1.5, -0.6)
    assert Limit(3, DRIFTS, 1.5, -0.5) != Limit(3, DRIFTS, 1.5)
    assert Limit(3, DRIFTS, 0.3, -0.1).common == -0.1
    with pytest.raises(ValueError, match="x0 with 2 gaps: must have K = 3"):
        diffusion.simulate_paths(Limit(3, DRIFTS), [1.0], analytic.gap_law(Limit(2, [0.5, -1.5])), 2, 0.1, 1)


@pytest.mark.parametrize("common", [0.0, -0.25])
def test_order_of_the_step(common):
    """A quarter of the step leaves about a quarter of the bias of the balance, whether noise is shared or not."""
    limit = Limit(3, [4 / 3, -8 / 3, -8 / 3], 1.0, common)
    law = analytic.gap_law(Limit(3, limit.drifts, 1.0))
    times = 1 + 0.016 * np.arange(250)
    coarse, fine = (
        analytic.balance_residual(
            limit, ranked(diffusion.simulate_paths(limit, times, law, 8_000, step, 1)).mean(axis=1)
        ).mean()
        for step in (0.016, 0.004)
    )
    assert 0.2 < fine / coarse < 0.4
