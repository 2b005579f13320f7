"""The first order of the mean total against exact laws at finite n, and against its own derivation."""

import numpy as np
import pytest
from rankrouting import (
    Limit,
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


def extrapolated(K, policy, sizes):
    """Return κ from exact laws with υ = 1, and the change when the smallest size is left out."""
    systems = [System(n=n, K=K, upsilon=1.0, policy=policy) for n in sizes]
    jobs = [exact.stationary(one).mean_total - one.sqrt_n * analytic.mean_total(one) for one in systems]
    h = np.array(sizes) ** -0.5
    more, fewer = (np.polyfit(h[i:], jobs[i:], len(h) - 1 - i)[-1] for i in (0, 1))
    return more, abs(more - fewer)


@pytest.mark.parametrize(
    ("policy", "ratio"),
    [
        (mjsq(0.5), 0.5),
        (mjsq(1.0), 1.0),
        (mjsq(2.0), 2.0),
        (mjsq(4.0), 4.0),
        (msblb(2.0, [0.8, 0.2]), 1.2),
        (msblb(1.0, [0.3, 0.7]), -0.4),
    ],
)
def test_pair_constant(policy, ratio):
    measured, change = extrapolated(2, policy, [16, 25, 36, 64, 100])
    tolerance = 3 * change + 1e-5
    assert tolerance < 3e-3
    assert analytic.pair_constant(ratio) == pytest.approx(measured, abs=tolerance)
    # A ratio 3 % larger would have been seen.
    assert abs(analytic.pair_constant(1.03 * ratio) - measured) > 2 * tolerance
    system = System(n=100, K=2, upsilon=1.0, policy=policy)
    assert analytic.first_order_constant(system) == pytest.approx(analytic.pair_constant(ratio), rel=1e-12)


def as_derived(r):
    """Return κ by the last line of the derivation, in the angle η₀ = arctan r."""
    eta = np.arctan(r)
    slope = -0.25 - 2 / np.pi / np.tan(4 * eta) + (8 * eta / np.pi - 4) / np.sin(4 * eta) ** 2
    slope += (2 / (1 - np.sin(2 * eta)) + 2 / np.sin(eta) ** 2 + 6 / (1 + np.sin(2 * eta))) / 8
    E1 = (0.5 / np.cos(eta) ** 2 + slope) / 2
    alpha, beta = (r - 1) / 2, (r + 1) / 2
    return -1 - (2 + r**2) / 2 + beta * ((E1 - r / 2) / alpha + E1 / beta)


def test_the_closed_form_is_the_last_line_of_its_derivation():
    r = np.array([-0.6, 0.3, 0.6, 0.8, 1.2, 1.7, 3.0, 10.0])
    assert analytic.pair_constant(r) == pytest.approx(as_derived(r), rel=1e-10)
    # At 0 and 1 it is the limit, and it does not jump where the way to compute it changes.
    for point in (0.0, 1.0):
        around = as_derived(point + np.array([-0.01, 0.01])).mean()
        assert analytic.pair_constant(point) == pytest.approx(around, abs=1e-4)
    for edge in (-0.25, 0.25, 0.75, 1.25, 1e6):
        below, above = analytic.pair_constant(edge * (1 + np.array([-1e-9, 1e-9])))
        assert below == pytest.approx(above, abs=1e-8)
    assert analytic.pair_constant([0.0, 1e100]) == pytest.approx([-2, -1], abs=1e-12)


def test_the_transforms_solve_their_equations():
    # E on the diagonal is even, U on the wall symmetric about π/4, and E = T + U: see the chapter exact.
    eta0, rng = 0.9, np.random.default_rng(1)
    cot = lambda x: 1 / np.tan(x)  # noqa: E731

    def tangents(eta):
        return np.tan((eta + eta0) / 2) + np.tan((eta - eta0) / 2)

    def wall(eta):
        value = -2 * eta / np.pi * (cot(2 * (eta + eta0)) + cot(2 * (eta - eta0)))
        value += (2 - 2 * eta0 / np.pi) * cot(2 * (eta + eta0)) + (2 + 2 * eta0 / np.pi) * cot(2 * (eta - eta0))
        return value + sum(j * tangents(eta + j * np.pi / 2) for j in (1, 2, 3)) / 4

    def diagonal(eta):
        return np.tan((eta + eta0) / 2) + wall(eta)

    eta = rng.uniform(-0.7, 2.3, 50) + 1j * rng.uniform(-3, 3, 50)
    assert np.abs(wall(eta) - wall(np.pi / 2 - eta)).max() < 1e-9
    assert np.abs(diagonal(eta) - diagonal(-eta)).max() < 1e-9
    # No pole in the strip, not even at ±η₀.
    for pole in (eta0, -eta0, np.pi / 2 - eta0):
        around = pole + 1e-3 * np.exp(2j * np.pi * np.arange(8) / 8)
        assert np.abs(wall(around)).max() < 50


@pytest.mark.slow
@pytest.mark.parametrize(
    ("K", "c", "sizes"), [(3, 1.0, [4, 6, 9, 12]), (3, 4.0, [9, 12, 16, 20]), (4, 4.0, [3, 4, 5, 6])]
)
def test_approximate_constant_of_more_queues(K, c, sizes):
    measured, change = extrapolated(K, mjsq(c), sizes)
    assert change < 0.02
    system = System(n=100, K=K, upsilon=1.0, policy=mjsq(c))
    assert analytic.first_order_constant(system, approximate=True) == pytest.approx(measured, abs=0.03 * (K - 1))


@pytest.mark.slow
def test_slope_at_small_c():
    # κ = −K + (K−1)c/(2υ) + O(c²), here with the next term from two ratios.
    slopes = []
    for c in (0.2, 0.4):
        measured, _ = extrapolated(3, mjsq(c), [4, 6, 9])
        slopes.append((measured + 3) / c)
    assert 2 * slopes[0] - slopes[1] == pytest.approx(1.0, abs=0.03)


def test_first_order_constant_of_independent_queues():
    for K in (1, 2, 4):
        system = System(n=10_000, K=K, upsilon=0.5, policy=random_routing())
        mm1 = K * analytic.mm1_mean(system) - system.sqrt_n * analytic.mean_total(system)
        assert analytic.first_order_constant(system) == pytest.approx(mm1, rel=1e-9) == -K
        same = System(n=10_000, K=K, upsilon=0.5, policy=msblb(3.0, [1 / K] * K))
        assert analytic.first_order_constant(same) == -K
    assert analytic.first_order_constant(System(n=9, K=1, upsilon=1.0, policy=mjsq(1.0))) == -1


def test_corrected_mean_total():
    errors = []
    for n in (25, 100, 400):
        system = System(n=n, K=2, upsilon=1.0, policy=mjsq(2.0))
        true = exact.stationary(system).mean_total / system.sqrt_n
        errors.append(analytic.corrected_mean_total(system) - true)
        assert abs(errors[-1]) < 0.05 * abs(analytic.mean_total(system) - true)
    # Second order: four times as many jobs, a quarter of the error.
    assert np.divide(errors[:-1], errors[1:]) == pytest.approx([4, 4], rel=0.2)


@pytest.mark.parametrize("policy", [mjsq(2.0), marginal_power_of_d(3.0, 2), random_routing()])
def test_pauses_first_order_constant(policy):
    system = System(n=10**8, K=4, upsilon=1.5, policy=policy)
    jobs = exact.pauses_law(system).mean_total - system.sqrt_n * analytic.mean_total(system)
    assert analytic.pauses_first_order_constant(system) == pytest.approx(jobs, rel=1e-3)
    if policy == mjsq(2.0):
        assert analytic.pauses_first_order_constant(system) == pytest.approx(-4 * 7 / 4 - 3 * (2 / 1.5) ** 2 / 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: analytic.pair_constant([0.5, -1.0]), "ratio = -1: must be above -1"),
        (lambda: analytic.first_order_constant(Limit(2, [0.5, -1.5])), "must be a System"),
        (lambda: analytic.first_order_constant(System(25, 2, 1.0, jsq())), "policy = JSQ: ranks every job"),
        (lambda: analytic.first_order_constant(System(25, 3, 1.0, mjsq(1.0))), "K = 3: the constant is known for one"),
        (lambda: analytic.corrected_mean_total(System(25, 3, 1.0, marginal_power_of_d(1.0, 2))), "is for MJSQ"),
        (lambda: analytic.pauses_first_order_constant(System(25, 3, 1.0, power_of_d(2))), "ranks every job"),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_unstable_systems_are_refused():
    for function in (analytic.first_order_constant, analytic.pauses_first_order_constant):
        with pytest.raises(UnstableError):
            function(System(n=25, K=2, upsilon=-1.0, policy=mjsq(1.0)))
