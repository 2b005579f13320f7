"""Formulas of the chapters on many servers, and the mean-field equation."""

import numpy as np
import pytest
from rankrouting import Limit, System, UnstableError, analytic, marginal_power_of_d, mean_field, mjsq, msblb
from scipy import integrate, stats


def exponents(m, count=20, seed=1):
    return np.random.default_rng(seed).uniform(0.0, 3.0, (count, m))


# ---- The infinite reflected Atlas model ------------------------------------------------------------


@pytest.mark.parametrize("a", [1.01, 2.0, 7.0])
def test_the_laws_of_one_family_are_invariant_for_one_dynamics(a):
    model = Limit(8, [1.0] + [0.0] * 7)
    rates = analytic.atlas_gap_rates(a, 1.0, 8)
    assert np.abs(analytic.adjoint_residual(model, rates, exponents(7))).max() < 1e-12


@pytest.mark.parametrize("change", [0, 1, 4])
def test_laws_outside_the_family_are_not(change):
    model = Limit(8, [1.0] + [0.0] * 7)
    rates = analytic.atlas_gap_rates(3.0, 1.0, 8)
    rates[change] *= 1.05
    assert np.abs(analytic.adjoint_residual(model, rates, exponents(7))).max() > 0.1


def test_of_finitely_many_coordinates_all_gaps_count_and_the_law_is_that_of_the_gaps():
    limit = System(100, 5, 1.0, msblb(4.0, [0.5, 0.3, 0.2, 0.0, 0.0])).limit()
    rates = analytic.gap_rates(limit)
    assert np.abs(analytic.adjoint_residual(limit, rates, exponents(5))).max() < 1e-12
    # With all K exponents the top is seen: the family of the infinite model is not invariant here.
    atlas = Limit(5, [1.0, 0.0, 0.0, 0.0, 0.0])
    assert np.abs(analytic.adjoint_residual(atlas, analytic.atlas_gap_rates(3.0, 1.0, 5), exponents(5))).max() > 0.1


def test_the_adjoint_residual_is_the_integral_that_it_stands_for():
    # One reflected Brownian motion, a rate that is not invariant: ∫ Lf dπ + f'(0)·(local time rate).
    limit, theta, s = Limit(1, [-1.5]), 0.7, 1.3
    inside = integrate.quad(lambda z: (s * s + 1.5 * s) * np.exp(-s * z) * theta * np.exp(-theta * z), 0, np.inf)[0]
    mean = theta / (theta + s)
    assert analytic.adjoint_residual(limit, [theta], [s]) == pytest.approx((inside - s * theta) / mean)


def test_the_gap_rates_of_n_servers_tend_to_those_of_the_family():
    rates = analytic.gap_rates(System(10**6, 10**4, 2.0, mjsq(1.0)))
    assert rates[:5] == pytest.approx(analytic.atlas_gap_rates(3.0, 1.0, 5), rel=1e-3)


def test_the_imbalance_is_the_sum_of_the_gaps_but_the_first():
    limit = System(100, 12, 1.0, mjsq(3.0)).limit()
    law = analytic.Hypoexponential(analytic.gap_rates(limit)[1:])
    x = np.linspace(0.5, 40.0, 9)
    assert analytic.imbalance_cdf(limit, x) == pytest.approx(law.cdf(x), rel=1e-9)
    assert analytic.imbalance_cdf(limit, -1.0) == 0.0


# ---- JSQ near full load ----------------------------------------------------------------------------


def test_the_gamma_law_is_stationary_for_the_bessel_process_with_drift():
    # No flow: density' = (1/x − β)·density.
    beta, x = 1.7, np.linspace(0.2, 5.0, 9)
    density = stats.gamma.pdf(x, 2, scale=1 / beta)
    slope = (stats.gamma.pdf(x + 1e-5, 2, scale=1 / beta) - stats.gamma.pdf(x - 1e-5, 2, scale=1 / beta)) / 2e-5
    assert slope == pytest.approx((1 / x - beta) * density, abs=1e-8)
    assert analytic.super_halfin_whitt_cdf(beta, x) == pytest.approx(stats.gamma.cdf(x, 2, scale=1 / beta))


@pytest.mark.parametrize("beta", [0.3, 1.0, 4.0])
def test_the_slowdown_law_is_that_of_its_diffusion(beta):
    law = analytic.SlowdownLaw(beta)

    def potential(x):
        return (np.log(x - 1) - (x - 1) if x <= 2 else -1.0) - beta * (x - 1)

    def integral(function):
        parts = [(1.0, 1.5), (1.5, 2.0), (2.0, np.inf)]
        return sum(integrate.quad(lambda x: function(x) * np.exp(potential(x)), *part)[0] for part in parts)

    assert law.mean == pytest.approx(integral(lambda x: x) / integral(lambda x: 1.0), rel=1e-8)
    inside = [integrate.quad(lambda z, k=k: z**k * np.exp(potential(z)), 1.0, 2.0)[0] for k in (0, 1)]
    assert law.mean_with_two_places == pytest.approx(inside[1] / inside[0], rel=1e-8)
    for x in (1.2, 1.9, 2.5, 4.0):
        below = integrate.quad(lambda z: np.exp(potential(z)), 1.0, min(x, 2.0))[0]
        below += integrate.quad(lambda z: np.exp(potential(z)), 2.0, max(x, 2.0))[0]
        assert law.cdf(x) == pytest.approx(below / integral(lambda x: 1.0), rel=1e-8)


def test_for_much_slack_the_slowdown_law_is_the_gamma_law():
    slack, x = 200.0, np.array([0.5, 1.0, 2.0])
    assert analytic.SlowdownLaw(slack).cdf(1 + x / slack) == pytest.approx(stats.gamma.cdf(x, 2), abs=0.02)


# ---- The mean-field limit --------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 3, 6])
def test_the_mean_field_law_is_the_limit_of_the_product_form(d):
    slack, rate, K = 0.5, 3.0, 4_000
    limit = System(10**6, K, slack * K, marginal_power_of_d(rate * K, d)).limit()
    assert analytic.mean_total(limit) / K == pytest.approx(analytic.mean_field_mean(d, slack, rate), rel=2 * d / K)
    ranked = np.cumsum(1 / analytic.gap_rates(limit))[[K // 4, K // 2, 9 * K // 10]]
    assert analytic.mean_field_survival(ranked, d, slack, rate) == pytest.approx([0.75, 0.5, 0.1], abs=20 / K)


@pytest.mark.parametrize("d", [2, 3, 6])
def test_the_mean_field_law_solves_the_stationary_equation(d):
    slack, rate, x = 0.5, 3.0, np.linspace(0.01, 3.0, 7)
    G = analytic.mean_field_survival(x, d, slack, rate)
    above, below = (analytic.mean_field_survival(x + shift, d, slack, rate) for shift in (1e-6, -1e-6))
    slope = (above - below) / 2e-6
    assert slope == pytest.approx(-(slack + rate) * G + rate * G**d, abs=1e-8)
    mean = integrate.quad(lambda z: analytic.mean_field_survival(z, d, slack, rate), 0, np.inf)[0]
    assert mean == pytest.approx(analytic.mean_field_mean(d, slack, rate), rel=1e-8)


def test_the_solver_has_order_two_and_keeps_the_stationary_law():
    d, slack, rate = 3, 0.5, 3.0

    def stationary(x):
        return analytic.mean_field_survival(x, d, slack, rate)

    errors = []
    for cells in (200, 400, 800):
        path = mean_field.survival_path([3.0], stationary, d, slack, rate, largest=12.0, cells=cells)
        errors.append(np.abs(path.survival[0] - stationary(path.x)).max())
    assert errors[0] < 1e-2 and np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx([2.0, 2.0], abs=0.2)


def test_without_ranked_jobs_each_queue_moves_alone():
    start, t, slack = 1.0, 0.7, 0.8
    path = mean_field.survival_path([t], lambda x: np.exp(-start * x), 2, slack, 0.0, largest=30.0, cells=3_000)
    x = np.array([0.3, 1.0, 2.5])
    from_each = integrate.quad_vec(
        lambda z: start * np.exp(-start * z) * (1 - analytic.rbm_transition_cdf(x, z, t, slack)), 0, 40.0
    )[0]
    assert path.share_above(x)[0] == pytest.approx(from_each, abs=2e-5)


# ---- Messages --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("slack", "rate"), [(1.0, 3.0), (1e-17, 1.0), (1.0, 1e-14), (1e6, 1e-12), (3.0, 0.0)])
def test_mean_of_the_mean_field_keeps_its_digits(slack, rate):
    expected = np.log1p(rate / slack) / rate if rate else 1 / slack
    assert analytic.mean_field_mean(2, slack, rate) == pytest.approx(expected, rel=1e-12)


def test_messages_name_the_argument():
    with pytest.raises(ValueError, match="a = 1: must be a finite number, above 1"):
        analytic.atlas_gap_rates(1.0, 1.0, 3)
    with pytest.raises(ValueError, match="exponents of shape"):
        analytic.adjoint_residual(Limit(2, [1.0, -2.0]), [1.0, 2.0], [1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="rates of shape"):
        analytic.adjoint_residual(Limit(2, [1.0, -2.0]), [1.0], [1.0])
    with pytest.raises(ValueError, match="must be MJSQ"):
        analytic.imbalance_cdf(System(100, 4, 1.0, marginal_power_of_d(2.0, 2)), 1.0)
    with pytest.raises(UnstableError):
        analytic.imbalance_cdf(System(100, 4, -1.0, mjsq(2.0)), 1.0)
    with pytest.raises(ValueError, match="slack = 0"):
        analytic.mean_field_mean(2, 0.0, 1.0)
    with pytest.raises(ValueError, match="largest = 3"):
        mean_field.survival_path([1.0], lambda x: np.exp(-x) * (x < 3), 2, 1.0, 0.0, largest=3.0)
    with pytest.raises(ValueError, match="must be nonincreasing from 1 at x = 0"):
        mean_field.survival_path([1.0], lambda x: x, 2, 1.0, 0.0, largest=3.0)
