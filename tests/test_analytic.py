"""Each formula against a derivation of its own: chains solved exactly, quadrature, closed special cases."""

import inspect
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from helpers import assert_pinned, mjsq_system
from hypothesis import given, settings
from hypothesis import strategies as st
from rankrouting import (
    CollapsedLimit,
    Limit,
    System,
    UnstableError,
    analytic,
    jsq,
    marginal_power_of_d,
    mjsq,
    msblb,
    power_of_d,
    random_routing,
)
from rankrouting.analytic import formulas
from rankrouting.companion.chapters import theorem_labels
from scipy import integrate, stats


def harmonic(m):
    return sum(1 / j for j in range(1, m + 1))


@st.composite
def stable_systems(draw):
    """Systems whose p favours short queues, which makes every theta_k positive."""
    K = draw(st.integers(1, 8))
    weights = sorted(draw(st.lists(st.floats(0, 1), min_size=K, max_size=K)), reverse=True)
    p = np.array(weights) + 1e-3
    c, upsilon = draw(st.floats(0, 20)), draw(st.floats(0.05, 5))
    return System(n=10_000, K=K, upsilon=upsilon, policy=msblb(c, p / p.sum()))


# ---- The stationary law of the limit -----------------------------------------------------------


def test_gap_rates():
    # MJSQ and a general p, from the definition, one k at a time.
    K, upsilon, c, p = 4, 0.7, 2.5, [0.1, 0.6, 0.2, 0.1]
    system = System(n=400, K=K, upsilon=upsilon, policy=msblb(c, p))
    by_hand = [(K - k + 1) * (upsilon + c) / K - c * sum(p[k - 1 :]) for k in range(1, K + 1)]
    assert_pinned(analytic.gap_rates(system), by_hand)
    assert_pinned(analytic.gap_rates(mjsq_system(K=4)), [1, 3, 2, 1])
    # The rates of a skew-symmetric SRBM with drift m are −2 diag(Σ)⁻¹ R⁻¹ m.
    limit = Limit(3, [0.4, -0.5, -0.9], variance=3.0)
    covariance = 1.5 * np.array([[2.0, -2, 0], [-2, 4, -2], [0, -2, 4]])
    reflection = np.array([[1, -0.5, 0], [-1, 1, -0.5], [0, -0.5, 1]])
    drift = np.array([0.4, -0.9, -0.4])
    assert_pinned(analytic.gap_rates(limit), -2 / np.diag(covariance) * np.linalg.solve(reflection, drift))


def test_gap_rates_of_a_collapsed_limit():
    # W has drift −υ and variance K·variance, so W ~ Exp(2υ/(K·variance)), and W/K is K times steeper.
    assert analytic.gap_rates(CollapsedLimit(3, 1.5, variance=4.0)).tolist() == [0.75, math.inf, math.inf]
    collapsed = System(n=100, K=3, upsilon=0.5, policy=jsq())
    assert analytic.gap_rates(collapsed).tolist() == [0.5, math.inf, math.inf]
    assert_pinned(analytic.mean_total(CollapsedLimit(3, 1.5, 4.0)), 3 * 4.0 / (2 * 1.5))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Limit(3, [-1.0, -1.0, 0.5]), r"theta_3 = -0\.5: must be above 0"),
        (Limit(3, [-2.0, 0.5, 0.25]), r"theta_2 = -0\.75, theta_3 = -0\.25: must be above 0"),
        (mjsq_system(upsilon=-1.0), r"theta_1 = -1: must be above 0.*upsilon > 0"),
        (mjsq_system(upsilon=0.0), r"theta_1 = 0: must be above 0"),
        (System(n=100, K=3, upsilon=-1.0, policy=jsq()), r"theta_1 = -1: must be above 0"),
        (System(n=100, K=3, upsilon=1.0, policy=msblb(6.0, [0, 0, 1])), r"theta_2 = .*, theta_3 = "),
    ],
)
@pytest.mark.parametrize(
    "function",
    [analytic.gap_rates, analytic.gap_law, analytic.total_law, analytic.mean_max, analytic.relaxation_time],
)
def test_no_stationary_law(function, model, message):
    with pytest.raises(UnstableError, match=message):
        function(model)


def adjoint_residual(limit, rates, test_rates):
    """∫ (generator f) dπ over −Σ_k ∫ (R_k · ∇f) dν_k, minus 1, for f(z) = exp(−a·z) and π a product law.

    The density of ν_k is half of Σ_kk times that of π on the face z_k = 0.
    """
    drift, covariance, reflection = analytic.gap_srbm(limit)
    nodes, weights = np.polynomial.laguerre.laggauss(60)
    a, rates = np.asarray(test_rates), np.asarray(rates)
    # One-dimensional integrals of exp(−a z) θ exp(−θ z), by Gauss–Laguerre in θ z.
    factors = np.array([weights @ np.exp(-a_k / rate * nodes) for a_k, rate in zip(a, rates, strict=True)])
    inside = (a @ covariance @ a / 2 - drift @ a) * factors.prod()
    faces = [
        covariance[k, k] / 2 * rates[k] * np.delete(factors, k).prod() * -(reflection[:, k] @ a) for k in range(limit.K)
    ]
    return -inside / sum(faces) - 1


@pytest.mark.parametrize(
    "limit",
    [Limit(2, [0.5, -1.5]), Limit(2, [-0.2, -0.1], variance=3.5), Limit(4, [1.0, 0.5, -2.0, -1.0], variance=0.8)],
)
def test_gap_law(limit):
    rates = analytic.gap_law(limit).rates
    trials = np.random.default_rng(1).uniform(0.3, 3.0, (5, limit.K)) * rates
    assert max(abs(adjoint_residual(limit, rates, a)) for a in trials) < 1e-10
    for k in range(limit.K):
        wrong = np.where(np.arange(limit.K) == k, 1.05, 1.0) * rates
        assert max(abs(adjoint_residual(limit, wrong, a)) for a in trials) > 1e-3


def test_gap_law_density():
    limit = Limit(3, [0.5, -0.3, -1.5])
    law = analytic.gap_law(limit)
    x = np.array([[0.2, 1.0, 1.5], [0.7, 0.9, 4.0]])
    # Proportional to exp(Σ δ_k x_(k)) when the variance is 2, in any order, and of total mass 1.
    assert_pinned(np.subtract(*law.log_density(x)), (x[0] - x[1]) @ limit.drifts)
    np.testing.assert_allclose(law.log_density(x[:, [2, 0, 1]]), law.log_density(x))
    assert law.log_density([-0.1, 1.0, 1.0]) == -math.inf
    pair = analytic.gap_law(Limit(2, [0.5, -1.5]))
    density = lambda b, a: math.exp(pair.log_density([a, b]))  # noqa: E731
    below_diagonal = integrate.dblquad(density, 0, 50, lambda a: a, lambda a: a + 50)[0]
    assert_pinned(2 * below_diagonal, 1, rtol=1e-6)
    with pytest.raises(ValueError, match="no joint density"):
        analytic.gap_law(CollapsedLimit(2, 1.0)).log_density([1.0, 1.0])


def test_gap_law_cdf_and_quantile():
    law = analytic.gap_law(mjsq_system(K=3))
    x = np.array([0.1, 1.0, 3.0])
    exponential = stats.expon(scale=1 / law.rates)
    assert_pinned(law.cdf(x), exponential.cdf(x))
    assert_pinned(law.mean, exponential.mean())
    np.testing.assert_allclose(law.cdf(x, k=2), exponential.cdf(x[:, None])[:, 1])
    np.testing.assert_allclose(law.quantile(law.cdf(x)), x)
    np.testing.assert_allclose(law.quantile([0.0, 0.5], k=3), [0, math.log(2) / law.rates[2]])
    assert law.cdf(-1.0).tolist() == [0, 0, 0] and isinstance(law.cdf(1.0, k=1), float)
    collapsed = analytic.gap_law(CollapsedLimit(2, 1.0))
    np.testing.assert_allclose(collapsed.cdf([[-1.0, -1.0], [0, 0], [1, 1]]), [[0, 0], [0, 1], [1 - math.exp(-1), 1]])
    assert collapsed.quantile(0.5).tolist() == [pytest.approx(math.log(2)), 0]


def test_gap_law_samples():
    law, size = analytic.gap_law(Limit(3, [0.4, -0.5, -0.9], variance=3.0)), 40_000
    sample = law.sample_gaps(size, np.random.default_rng(5))
    assert sample.shape == (size, 3)
    for k in range(3):
        assert stats.kstest(sample[:, k], lambda x, k=k: law.cdf(x, k=k + 1)).pvalue > 1e-4
        assert stats.kstest(1.05 * sample[:, k], lambda x, k=k: law.cdf(x, k=k + 1)).pvalue < 1e-4
    correlations = np.corrcoef(sample.T)[np.triu_indices(3, 1)]
    assert np.all(np.abs(correlations) < 4.5 / math.sqrt(size))
    ranked = law.sample_ranked(size, np.random.default_rng(5))
    np.testing.assert_allclose(ranked, sample.cumsum(axis=1))
    together = analytic.gap_law(CollapsedLimit(3, 1.0)).sample_ranked(10, np.random.default_rng(5))
    assert np.all(together == together[:, :1]) and np.all(together > 0)


@pytest.mark.parametrize("K", [2, 5, 40])
def test_total_law(K):
    # MJSQ: Exp(υ/K) + Gamma(K−1, (υ+c)/K), convolved by quadrature.
    upsilon, c = 0.8, 2.0
    law = analytic.total_law(mjsq_system(K=K, upsilon=upsilon, c=c))
    slow, gamma = stats.expon(scale=K / upsilon), stats.gamma(K - 1, scale=K / (upsilon + c))
    for x in law.quantile([0.01, 0.3, 0.7, 0.999]):
        convolve = lambda f, x=x: integrate.quad(  # noqa: E731
            lambda u: f(x - u) * gamma.pdf(u), 0, x, epsabs=0, epsrel=1e-11, points=[min(gamma.mean(), x / 2)]
        )[0]
        assert_pinned(law.cdf(x), convolve(slow.cdf), rtol=1e-8)
        assert_pinned(law.pdf(x), convolve(slow.pdf), rtol=1e-8)
    # Uniform random routing: K independent Exp(υ/K). JSQ: Exp(υ/K).
    x = np.linspace(0.1, 3, 7) * K**2
    independent = analytic.total_law(System(n=100, K=K, upsilon=1.0, policy=random_routing()))
    assert_pinned(independent.cdf(x), stats.gamma(K, scale=K).cdf(x))
    assert_pinned(analytic.total_law(CollapsedLimit(K, 1.0)).cdf(x / K), -np.expm1(-x / K**2))


@pytest.mark.parametrize("K", [1, 2, 10, 200])
@pytest.mark.parametrize("c", [0.0, 0.3, 50.0])
def test_means_of_mjsq(K, c):
    upsilon = 0.8
    system = mjsq_system(n=10**6, K=K, upsilon=upsilon, c=c)
    assert_pinned(analytic.mean_total(system), K / upsilon + K * (K - 1) / (upsilon + c))
    assert_pinned(analytic.variance_total(system), (K / upsilon) ** 2 + (K - 1) * K**2 / (upsilon + c) ** 2)
    assert_pinned(analytic.mean_min(system), 1 / upsilon)
    assert_pinned(analytic.mean_max(system), 1 / upsilon + K * harmonic(K - 1) / (upsilon + c))
    ranked = analytic.mean_ranked(system)
    assert ranked.shape == (K,)
    assert_pinned(ranked.sum(), analytic.mean_total(system))


def test_means_by_integration_over_the_density():
    # E min, E max and E total of the density exp(Σ δ_k x_(k)) for K = 2, by quadrature.
    limit = Limit(2, [0.5, -1.5])
    weight = lambda b, a: math.exp(0.5 * a - 1.5 * b)  # noqa: E731

    def integral(f):
        return integrate.dblquad(lambda b, a: f(a, b) * weight(b, a), 0, 40, lambda a: a, lambda a: a + 40)[0]

    mass = integral(lambda a, b: 1)
    assert_pinned(analytic.mean_min(limit), integral(lambda a, b: a) / mass, rtol=1e-6)
    assert_pinned(analytic.mean_max(limit), integral(lambda a, b: b) / mass, rtol=1e-6)
    assert_pinned(analytic.mean_ranked(limit), [integral(lambda a, b: a) / mass, integral(lambda a, b: b) / mass], 1e-6)
    assert_pinned(analytic.mean_total(limit), integral(lambda a, b: a + b) / mass, rtol=1e-6)
    second = integral(lambda a, b: (a + b) ** 2) / mass
    assert_pinned(analytic.variance_total(limit), second - analytic.mean_total(limit) ** 2, rtol=1e-6)


@settings(deadline=None, max_examples=60)
@given(stable_systems())
def test_properties_of_the_stationary_law(system):
    limit = system.limit()
    means = analytic.mean_ranked(system)
    total = analytic.mean_total(system)
    assert means.sum() == pytest.approx(total, rel=1e-12)
    assert np.all(np.diff(means) >= 0)
    assert analytic.gap_rates(system)[0] == pytest.approx(system.upsilon, rel=1e-9)
    scale = np.abs(limit.drifts) @ means + 2 * system.K
    assert abs(analytic.balance_residual(limit, means)) < 1e-12 * scale
    assert abs(analytic.balance_residual(limit, 1.05 * means)) > 1e-3
    assert analytic.skew_symmetry_defect(system) == 0
    cdf = analytic.total_law(system).cdf(np.linspace(0, 4, 30) * total)
    assert np.all(np.diff(cdf) >= 0) and cdf[0] == 0 and cdf[-1] <= 1
    # Ranking jobs shortens queues, but never below JSQ.
    K, upsilon = system.K, system.upsilon
    assert K / upsilon * (1 - 1e-9) <= total <= K**2 / upsilon * (1 + 1e-9)


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 50), st.floats(0.05, 5), st.floats(0, 50))
def test_workload_factor(K, upsilon, c):
    factor = analytic.workload_factor(K, upsilon, c)
    limit = Limit(K, c * np.eye(K)[0] - (upsilon + c) / K)
    assert_pinned(factor, analytic.mean_total(limit) / analytic.mean_total(CollapsedLimit(K, upsilon)))
    assert analytic.required_c(K, upsilon, factor - 1) == pytest.approx(c, rel=1e-9, abs=1e-9 * upsilon)


def test_required_c():
    assert_pinned(analytic.required_c(10, 2.0, [0.1, 1.0]), [178, 16])
    assert analytic.required_c(10, 2.0, 9.5) == 0 and analytic.required_c(1, 2.0, 0.1) == 0
    excess = np.array([[0.05, 0.5, 3.0]])
    c = analytic.required_c(7, 1.3, excess)
    assert_pinned(analytic.workload_factor(7, 1.3, c) - 1, excess)
    assert analytic.workload_factor(7, 1.3, 0.0) == 7 and isinstance(analytic.workload_factor(7, 1.3, 0.0), float)


def test_gap_srbm():
    drift, covariance, reflection = analytic.gap_srbm(Limit(3, [1.0, -0.5, -2.0], variance=3.0))
    np.testing.assert_allclose(drift, [1, -1.5, -1.5])
    np.testing.assert_allclose(covariance, 1.5 * np.array([[2, -2, 0], [-2, 4, -2], [0, -2, 4]]))
    np.testing.assert_allclose(reflection, [[1, -0.5, 0], [-1, 1, -0.5], [0, -0.5, 1]])
    drift, covariance, reflection = analytic.gap_srbm(mjsq_system(K=1))
    np.testing.assert_allclose([drift[0], covariance[0, 0], reflection[0, 0]], [-1, 2, 1])


def test_skew_symmetry_defect(monkeypatch):
    limit = Limit(4, [1.0, -1, -1, -1])
    assert analytic.skew_symmetry_defect(limit) == 0
    srbm = analytic.gap_srbm(limit)
    for i, k in itertools.product(range(4), repeat=2):
        if srbm.reflection[i, k] not in (0, 1):
            bent = srbm.reflection.copy()
            bent[i, k] *= 1.05
            monkeypatch.setattr(formulas, "gap_srbm", lambda model, bent=bent: srbm._replace(reflection=bent))
            assert analytic.skew_symmetry_defect(limit) > 0.05


# ---- Overload ----------------------------------------------------------------------------------


@pytest.mark.parametrize("upsilon", [-3.0, -0.5, 0.0])
def test_overload_gap_rates(upsilon):
    # K = 2 while no queue is empty: the gap is a birth–death chain, up from m ≥ 1 at rate n + λ_2
    # (a job for the longer queue or from the shorter one) and down at n + λ_1.
    system = System(n=10**10, K=2, upsilon=upsilon, policy=msblb(2.0, [0.9, 0.1]))
    short, long = system.rank_arrival_rates
    ratio = (system.n + long) / (system.n + short)
    assert_pinned(analytic.overload_gap_rates(system), [-system.sqrt_n * math.log(ratio)], rtol=1e-4)
    # υ does not enter, and MJSQ has θ_k = (K−k+1)c/K.
    assert_pinned(analytic.overload_gap_rates(mjsq_system(K=5, upsilon=upsilon, c=2.0)), [1.6, 1.2, 0.8, 0.4])
    doubled = Limit(2, system.limit().drifts, variance=4.0)
    assert_pinned(analytic.overload_gap_rates(doubled), analytic.overload_gap_rates(system) / 2)


def test_overload_spread_law():
    # MJSQ: K/c times the largest of K−1 independent Exp(1).
    K, c = 8, 2.0
    system = mjsq_system(K=K, upsilon=-1.0, c=c)
    law, x = analytic.overload_spread_law(system), np.linspace(0.5, 40, 30)
    assert_pinned(law.cdf(x), (-np.expm1(-c * x / K)) ** (K - 1))
    assert_pinned(analytic.overload_mean_spread(system), K / c * harmonic(K - 1))
    assert_pinned(law.mean, integrate.quad(law.sf, 0, 400, limit=200)[0], rtol=1e-7)
    collapsed = System(n=100, K=3, upsilon=-1.0, policy=jsq())
    assert analytic.overload_gap_rates(collapsed).tolist() == [math.inf, math.inf]
    assert analytic.overload_mean_spread(collapsed) == 0
    assert analytic.overload_gap_rates(mjsq_system(K=1, upsilon=-1.0)).shape == (0,)


@pytest.mark.parametrize("model", [mjsq_system(upsilon=0.1), System(n=100, K=3, upsilon=0.1, policy=jsq())])
def test_overload_refuses_a_stable_system(model):
    for function in (analytic.overload_gap_rates, analytic.overload_mean_spread, analytic.overload_relaxation_time):
        with pytest.raises(ValueError, match=r"upsilon = 0\.1: must be at most 0.*gap_rates"):
            function(model)


def test_overload_refuses_loose_gaps():
    with pytest.raises(UnstableError, match="theta_2 = 0, theta_3 = 0: must be above 0"):
        analytic.overload_gap_rates(System(n=900, K=3, upsilon=-1.1, policy=random_routing()))
    with pytest.raises(UnstableError, match=r"theta_2 = 0, theta_3 = 0, theta_4 = 0, theta_5 = 0, …"):
        analytic.overload_gap_rates(System(n=900, K=7, upsilon=-0.3, policy=msblb(0.7, [1 / 7] * 7)))
    with pytest.raises(UnstableError, match=r"theta_3 = -0\.666667: must be above 0"):
        analytic.overload_gap_rates(System(n=900, K=3, upsilon=-1.0, policy=msblb(2.0, [1 / 3, 0, 2 / 3])))


# ---- Time scales and cost ----------------------------------------------------------------------


def decay_time(beta, variance, around):
    """1/rate at which a reflected Brownian motion approaches its law, t^(−3/2) taken out."""
    early, late = 15 * around, 20 * around
    end = analytic.rbm_transition_cdf(1.0, 0.5, 1e4 * around, beta, variance)
    left = [abs(analytic.rbm_transition_cdf(1.0, 0.5, t, beta, variance) - end) * t**1.5 for t in (early, late)]
    return (late - early) / math.log(left[0] / left[1])


def test_relaxation_time():
    assert_pinned(analytic.relaxation_time(Limit(1, [-0.8], variance=3.0)), 2 * 3.0 / 0.8**2)
    assert_pinned(analytic.relaxation_time(Limit(1, [-0.8], variance=3.0)), decay_time(0.8, 3.0, 9.4), rtol=0.02)
    for c in (0.5, 20.0):
        expected = max(4 * 5 / 0.6**2, 4 * 25 / (0.6 + c) ** 2)
        assert_pinned(analytic.relaxation_time(mjsq_system(K=5, upsilon=0.6, c=c)), expected)
    independent = System(n=100, K=5, upsilon=0.6, policy=random_routing())
    assert_pinned(analytic.relaxation_time(independent), 4 * 25 / 0.6**2)
    # Collapsed: W has drift −υ and variance K·variance.
    assert_pinned(analytic.relaxation_time(CollapsedLimit(5, 0.6, 3.0)), 2 * 15.0 / 0.6**2)


def test_overload_relaxation_time():
    # K = 2: the gap is a reflected Brownian motion of drift δ_2 − δ_1 and twice the variance.
    limit = Limit(2, [1.3, -0.1], variance=3.0)
    assert_pinned(analytic.overload_relaxation_time(limit), 2 * 6.0 / 1.4**2)
    assert_pinned(analytic.overload_relaxation_time(limit), decay_time(1.4, 6.0, 6.1), rtol=0.02)
    K, c = 6, 2.0
    assert_pinned(analytic.overload_relaxation_time(mjsq_system(K=K, upsilon=-1.0, c=c)), 4 * K * (K - 1) / c**2)
    assert analytic.overload_relaxation_time(CollapsedLimit(3, -1.0)) == 0
    assert analytic.overload_relaxation_time(Limit(1, [1.0])) == 0


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (mjsq(2.0), 2 * 5 * 10),
        (msblb(2.0, [0.5, 0.5, 0, 0, 0]), 2 * 5 * 10),
        (marginal_power_of_d(2.0, 3), 2 * 3 * 10),
        (jsq(), 5 * 490),
        (power_of_d(2), 2 * 490),
        (random_routing(), 0),
        (power_of_d(1), 0),
    ],
)
def test_communication_rate(policy, expected):
    system = System(n=100, K=5, upsilon=1.0, policy=policy)
    assert analytic.communication_rate(system) == pytest.approx(expected, rel=1e-12)


# ---- What is refused, and names ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: analytic.gap_rates("MJSQ"), "model = 'MJSQ': must be a System, a Limit or a CollapsedLimit"),
        (lambda: analytic.mean_total(None), "model = None: must be a System"),
        (lambda: analytic.workload_factor(0, 1.0, 1.0), "K = 0: must be a whole number, at least 1"),
        (lambda: analytic.workload_factor(2, -1.0, 1.0), "upsilon = -1: must be a finite number, above 0"),
        (lambda: analytic.workload_factor(2, 1.0, [1.0, -2.0]), "c = -2: must be at least 0"),
        (lambda: analytic.required_c(2, 0.0, 1.0), "upsilon = 0: must be a finite number, above 0"),
        (lambda: analytic.required_c(2, 1.0, [0.1, 0.0]), "excess = 0: must be above 0"),
        (lambda: analytic.gap_srbm(CollapsedLimit(2, 1.0)), "collapsed"),
        (lambda: analytic.rbm_transition_cdf(1.0, -1.0, 1.0, 1.0), "x = -1: must be at least 0"),
        (lambda: analytic.rbm_transition_cdf(1.0, 1.0, 0.0, 1.0), r"t = \[0\]: must be above 0"),
        (lambda: analytic.rbm_transition_cdf(1.0, 1.0, 1.0, math.inf), "beta = inf: must be a finite number"),
        (
            lambda: analytic.rbm_transition_cdf(1.0, 1.0, 1.0, 1.0, 0.0),
            "variance = 0: must be a finite number, above 0",
        ),
        (lambda: analytic.rbm_local_time_cdf(1.0, -1.0, 1.0, 1.0), "x = -1: must be at least 0"),
        (lambda: analytic.idle_servers(Limit(1, [-1.0])), "system = Limit.*: must be a System"),
        (lambda: analytic.idle_servers(mjsq_system(upsilon=-1.0)), "theta_1 = -1: must be above 0"),
        (lambda: analytic.communication_rate(None), "system = None: must be a System"),
        (
            lambda: analytic.balance_residual(mjsq_system(), [1.0, 2.0]),
            r"mean_ranked of shape \(2,\): must end in K",
        ),
        (lambda: analytic.balance_residual(Limit(1, [-1.0]), [1.0], 1.0), "mean_total: only a System"),
        (lambda: analytic.balance_residual(mjsq_system(upsilon=-1.0), np.ones(5)), "theta_1 = -1"),
        (
            lambda: analytic.mean_total_by_balance(System(n=9, K=2, upsilon=1.0, policy=jsq()), [1.0, 1.0]),
            "policy = JSQ: ranks every job",
        ),
        (lambda: analytic.mm1_law(mjsq_system()), "policy = MJSQ: arrivals depend on the rank"),
        (lambda: analytic.mm1_law(System(n=9, K=2, upsilon=-1.0, policy=random_routing())), "theta_1 = -1"),
        (lambda: analytic.gap_law(mjsq_system()).cdf(1.0, k=6), "k = 6: must be a rank, from 1 to K = 5"),
        (lambda: analytic.gap_law(mjsq_system()).cdf(1.0, k=0), "k = 0: must be a whole number, at least 1"),
        (
            lambda: analytic.gap_law(mjsq_system()).cdf([1.0, 2.0]),
            r"x of shape \(2,\): must be a number or end",
        ),
        (lambda: analytic.overload_mean_excess(System(25, 2, -1.0, jsq())), "policy = JSQ: ranks every job"),
        (lambda: analytic.mean_idle_time(mjsq_system(), -1.0), "t = -1: must be a finite number, at least 0"),
        (lambda: analytic.gap_law(mjsq_system()).quantile([0.5, 1.0], k=1), "q from 0.5 to 1: must be at least 0"),
        (lambda: analytic.gap_law(mjsq_system()).log_density([1.0]), r"lengths of shape \(1,\): must end in K = 5"),
        (lambda: analytic.gap_law(mjsq_system()).sample_gaps(3, 7), "rng = 7: must be a numpy.random.Generator"),
        (lambda: analytic.gap_law(mjsq_system()).sample_ranked(0, np.random.default_rng(1)), "size = 0"),
        (lambda: analytic.GapLaw(np.array([1.0, -1.0])), r"rates\[1\] = -1: must be above 0"),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_function_named_after_a_theorem_has_its_test_and_its_block():
    tests = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    labels = {}
    for name in analytic.__all__:
        member = getattr(analytic, name)
        opening = (inspect.getdoc(member) or "").split(":")[0]
        if inspect.isfunction(member) and opening.startswith("thm-"):
            labels[opening] = name
            assert f"analytic.{name}(" in tests, name
    assert len(labels) >= 7
    assert set(labels) <= set(theorem_labels())
