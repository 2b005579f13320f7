"""The n-th system with general service times and renewal arrivals: laws, kernel, exact cases, identity."""

import dataclasses
import math

import numpy as np
import pytest
from helpers import assert_detects, assert_law, assert_same_law, assert_within
from naive_general import lengths_at
from rankrouting import (
    CollapsedLimit,
    Limit,
    System,
    UnstableError,
    analytic,
    estimate,
    exact,
    general,
    jsq,
    mjsq,
    msblb,
    queues,
    random_routing,
    time_laws,
)
from rankrouting.replications import mean_of, mean_with_controls
from scipy import integrate, optimize, stats

LAWS = {
    "exponential": (time_laws.exponential(), stats.expon(), 0),
    "deterministic": (time_laws.deterministic(), None, 0),
    "erlang": (time_laws.erlang(3), stats.gamma(3, scale=1 / 3), 3),
    "lognormal": (
        time_laws.lognormal(2.0),
        stats.lognorm(math.sqrt(math.log(3)), scale=math.exp(-math.log(3) / 2)),
        2.0,
    ),
    "hyperexponential": (time_laws.hyperexponential(4.0), None, 4.0),
    "pareto": (time_laws.pareto(2.5), stats.pareto(2.5, scale=0.6), 2.5),
}
PAIR = System(n=25, K=2, upsilon=1.0, policy=mjsq(2.0))
RANDOM = System(n=25, K=2, upsilon=2.0, policy=random_routing())
SHORT = {"replications": 64, "spacing": 0.05, "progress": False}


def law_of(name):
    return LAWS[name][0]


# ---- Laws of times ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in LAWS if LAWS[name][1] is not None])
def test_laws_are_those_of_scipy(name):
    law, reference, _ = LAWS[name]
    samples = law.sample(100_000, np.random.default_rng(1))
    assert stats.kstest(samples, reference.cdf).pvalue > 1e-4
    assert stats.kstest(samples * 1.03, reference.cdf).pvalue < 1e-4
    assert reference.mean() == pytest.approx(1)
    assert law.scv == pytest.approx(reference.var())
    third = math.inf if name == "pareto" else reference.moment(3)
    assert law.third_moment == pytest.approx(third)


def test_hyperexponential_is_a_mixture_with_its_moments():
    law = law_of("hyperexponential")
    p, rest = law.sampler.a, 1 - law.sampler.a
    samples = law.sample(100_000, np.random.default_rng(1))
    assert stats.kstest(samples, lambda t: 1 - p * np.exp(-2 * p * t) - rest * np.exp(-2 * rest * t)).pvalue > 1e-4
    second = 2 * (p / (2 * p) ** 2 + rest / (2 * rest) ** 2)
    assert second - 1 == pytest.approx(law.scv)
    assert_within(mean_of(samples), 1.0)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("s", [0.0, 1e-7, 1e-3, 0.3, 1.0, 30.0, 1e4])
def test_transforms(name, s):
    law, reference, _ = LAWS[name]
    if reference is not None:
        y = np.linspace(-45.0 if name != "pareto" else math.log(0.6), 45.0, 400_000)
        t = np.exp(y)
        expected = integrate.trapezoid(-np.expm1(-s * t) * reference.pdf(t) * t, y)
    elif name == "deterministic":
        expected = -math.expm1(-s)
    else:
        p = law.sampler.a
        expected = 1 - p * 2 * p / (2 * p + s) - (1 - p) * 2 * (1 - p) / (2 * (1 - p) + s) if s > 1e-5 else s
    assert law.complement(s) == pytest.approx(expected, rel=3e-6)


@pytest.mark.parametrize("name", LAWS)
def test_the_transform_begins_with_the_moments(name):
    law = law_of(name)
    s = 1e-3
    second = 2 * (s - law.complement(s)) / s**2
    if law.third_moment < math.inf:
        assert second == pytest.approx(1 + law.scv - law.third_moment * s / 3, rel=1e-3)
    else:
        assert second < 1 + law.scv


@pytest.mark.parametrize(
    ("maker", "value", "message"),
    [
        (time_laws.erlang, 0, "phases = 0: must be a whole number, at least 1"),
        (time_laws.lognormal, 0.0, "scv = 0: must be"),
        (time_laws.hyperexponential, 0.5, "scv = 0.5: must be"),
        (time_laws.pareto, 2.0, "index = 2: must be"),
    ],
)
def test_parameters_out_of_range(maker, value, message):
    with pytest.raises(ValueError, match=message):
        maker(value)


# ---- The kernel ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("service", "arrivals", "ranked", "policy"),
    [
        ("exponential", "exponential", "exponential", mjsq(2.0)),
        ("deterministic", "exponential", "exponential", mjsq(2.0)),
        ("pareto", "hyperexponential", "exponential", mjsq(2.0)),
        ("hyperexponential", "erlang", "deterministic", msblb(2.0, [0.3, 0.1, 0.6])),
        ("lognormal", "deterministic", "lognormal", mjsq(1.0)),
        ("erlang", "exponential", "pareto", jsq()),
    ],
)
def test_same_law_as_the_naive_twin(service, arrivals, ranked, policy):
    """Labelled lengths, from a start that is not exchangeable, at two times."""
    system = System(n=16, K=3, upsilon=1.0, policy=policy)
    times, start, count = [0.3, 1.0], [3, 0, 5], 8000
    fast = general.simulate_paths(
        system, law_of(service), times, np.array(start) / 4, count, seed=1,
        arrivals=law_of(arrivals) if not policy.ranks_every_job else None,
        ranked_arrivals=law_of(ranked), progress=False,
    )  # fmt: skip
    laws = [(name, LAWS[name][2]) for name in (service, arrivals, ranked)]
    slow = np.array(
        [
            lengths_at(times, 16, 3, 1.0, policy.c, system.rank_probabilities, start, *laws, seed=seed)
            for seed in range(count)
        ]
    )
    fast = np.rint(fast * 4).astype(int)
    for j in range(len(times)):
        for i in range(3):
            assert_same_law(fast[:, j, i, None], slow[:, j, i, None])
        assert_same_law(np.sort(fast[:, j])[:, :2], np.sort(slow[:, j])[:, :2])
    assert_same_law(fast[:, :, 0], slow[:, :, 0])
    with pytest.raises(AssertionError):
        assert_same_law(np.sort(fast[:, 0])[:, :1], np.sort(slow[:, 0])[:, 1:2])


@pytest.mark.parametrize("policy", [mjsq(2.0), msblb(2.0, [0.75, 0.25]), jsq()], ids=lambda policy: policy.name)
def test_exponential_times_are_the_paper_s_system(policy):
    system = System(n=25, K=2, upsilon=1.0, policy=policy)
    law = exact.stationary(system)
    run = general.simulate_stationary(system, time_laws.exponential(), horizon=400.0, warmup=30.0, seed=1, **SHORT)
    for controls in (False, True):
        assert_within(run.estimate("mean_ranked", controls=controls), law.mean_ranked / 5)
    assert_detects(run.estimate("mean_ranked", controls=True), law.mean_ranked / 5 * 1.05)
    assert_within(run.estimate("idle_servers"), 0.2)
    finals = general.simulate_stationary(
        system, time_laws.exponential(), replications=4000, horizon=60.0, spacing=60.0, warmup=30.0, seed=2,
        progress=False,
    ).final_ranked  # fmt: skip
    assert_law(np.rint(finals * 5).astype(int), law.states, law.probabilities)


@pytest.mark.parametrize("name", LAWS)
def test_pollaczek_khinchine(name):
    """Without ranked jobs each queue is an M/G/1 queue."""
    service = law_of(name)
    run = general.simulate_stationary(RANDOM, service, horizon=400.0, warmup=60.0, seed=1, **SHORT)
    expected = 2 * general.mg1_mean(RANDOM, service) / 5
    assert_within(run.estimate("mean_total"), expected)
    assert_within(run.estimate("idle_servers"), analytic.idle_servers(RANDOM))
    if service.third_moment == math.inf:
        assert_detects(run.estimate("mean_total"), expected * 1.25)
        assert math.isnan(run.balance_residual)
        return
    assert_within(run.estimate("mean_total", controls=True), expected)
    assert_within(run.estimate("mean_total_by_balance"), expected)
    assert_detects(run.estimate("mean_total"), expected * 1.1)


def test_law_of_deterministic_service():
    """P(Q = 0, 1, 2) of the M/D/1 queue."""
    rho = RANDOM.load
    masses = (1 - rho) * np.array([1, math.expm1(rho), math.exp(2 * rho) - math.exp(rho) * (1 + rho)])

    def shares(ranked):
        return np.stack([(np.rint(5 * ranked) == j).mean(axis=1) for j in range(3)], axis=1)

    run = general.simulate_stationary(
        RANDOM, time_laws.deterministic(), observe=shares, horizon=400.0, warmup=20.0, seed=1, **SHORT
    )
    assert_within(run.observed, masses)
    assert_detects(run.observed, masses * 1.05)


@pytest.mark.parametrize("name", LAWS)
def test_renewal_arrivals_to_exponential_servers(name):
    """A thinned renewal stream is one; of the GI/M/1 queue P(Q ≥ j) = load·σ^(j−1), σ = E exp(−n(1−σ)T)."""
    arrivals = law_of(name)

    def thinned(s):
        transform = 1 - arrivals.complement(s / RANDOM.arrival_rate)
        return transform / 2 / (1 - transform / 2)

    sigma = optimize.brentq(lambda x: thinned(RANDOM.n * (1 - x)) - x, 0, 1 - 1e-3, xtol=1e-14)
    run = general.simulate_stationary(
        RANDOM, time_laws.exponential(), arrivals=arrivals, horizon=400.0, warmup=60.0, seed=1, **SHORT
    )
    expected = 2 * RANDOM.load / (1 - sigma) / 5
    assert_within(run.estimate("mean_total"), expected)
    if arrivals.third_moment == math.inf:
        assert_detects(run.estimate("mean_total"), expected * 1.25)
    else:
        controlled = mean_with_controls(run.samples.mean_total, run.samples.balance_residual)
        assert_within(controlled, expected)
        assert_detects(controlled, expected * 1.06)
    assert_within(run.estimate("idle_servers"), analytic.idle_servers(RANDOM))


# ---- The identity for the work ------------------------------------------------------------------


@pytest.mark.parametrize("arrivals", ["exponential", "deterministic", "hyperexponential", "lognormal"])
@pytest.mark.parametrize("service", ["deterministic", "lognormal"])
@pytest.mark.parametrize("policy", [mjsq(2.0), msblb(2.0, [0.75, 0.25])], ids=lambda policy: policy.name)
def test_balance_of_the_work(service, arrivals, policy):
    system = System(n=16, K=2, upsilon=2.0, policy=policy)
    arguments = {"arrivals": law_of(arrivals), "horizon": 150.0, "warmup": 30.0, "seed": 1}
    run = general.simulate_stationary(system, law_of(service), **arguments, **SHORT)
    assert_within(run.estimate("balance_residual"), 0.0)
    assert_within(mean_of(run.samples.mean_total_by_balance - run.samples.mean_total), 0.0)
    assert_within(run.estimate("idle_servers"), 0.5)


@pytest.mark.parametrize("name", ["deterministic", "exponential", "lognormal"])
def test_the_control_gains(name):
    system = System(n=400, K=2, upsilon=2.0, policy=mjsq(2.0))
    run = general.simulate_stationary(system, law_of(name), seed=1, replications=64, progress=False)
    plain, controlled = (run.estimate("mean_total", controls=choice) for choice in (False, True))
    assert controlled.standard_error < plain.standard_error / 2
    assert_within(mean_of(run.samples.mean_total - run.controlled.mean_total), 0.0)


def test_the_balance_notices_a_wrong_variance():
    """The residual is that of the service times that were run, not of others with the same mean."""
    true = time_laws.erlang(2)
    told = dataclasses.replace(true, scv=0.55)
    for law, check in ((true, assert_within), (told, assert_detects)):
        run = general.simulate_stationary(PAIR, law, horizon=400.0, warmup=30.0, seed=1, **SHORT)
        check(run.estimate("balance_residual"), 0.0)


def test_a_ranked_stream_that_is_not_poisson_has_no_identity():
    run = general.simulate_stationary(
        PAIR, time_laws.exponential(), ranked_arrivals=time_laws.deterministic(), horizon=60.0, warmup=20.0, **SHORT
    )
    assert math.isnan(run.balance_residual) and math.isnan(run.mean_total_by_balance)
    assert np.isfinite(run.mean_total)
    with pytest.raises(ValueError, match="not Poisson"):
        run.estimate("mean_total", controls=True)


def test_every_job_ranked():
    """JSQ: the balance holds, and the total follows the collapsed limit roughly at a moderate n."""
    system = System(n=400, K=2, upsilon=2.0, policy=jsq())
    run = general.simulate_stationary(system, time_laws.deterministic(), seed=1, replications=64, progress=False)
    assert_within(run.estimate("balance_residual"), 0.0)
    of_limit = general.limit(system, time_laws.deterministic())
    assert_within(run.estimate("mean_total", controls=True), analytic.mean_total(of_limit), allowance=3 / 20)


# ---- The limit ----------------------------------------------------------------------------------


def test_limit():
    service, arrivals = time_laws.erlang(4), time_laws.hyperexponential(3.0)
    assert general.limit(PAIR, time_laws.exponential()) == PAIR.limit()
    assert general.limit(PAIR, service, arrivals=arrivals) == Limit(2, PAIR.limit().drifts, 1.25, 1.0)
    assert general.limit(PAIR, service, ranked_arrivals=arrivals) == Limit(2, PAIR.limit().drifts, 1.25)
    system = System(n=25, K=3, upsilon=1.0, policy=jsq())
    assert general.limit(system, service, ranked_arrivals=arrivals) == CollapsedLimit(3, 1.0, 3.25)
    uniform = msblb(2.0, [0.5, 0.5])
    assert general.limit(System(25, 2, 1.0, uniform), service, arrivals=arrivals).common == 1.0


@pytest.mark.parametrize("service", [time_laws.with_scv(0), time_laws.with_scv(2)], ids=lambda law: law.name)
def test_convergence_to_the_limit(service):
    """The mean total, extrapolated in n, is (1 + s²)/2 times that with exponential services."""
    sizes = [400, 1600, 6400]
    runs = [
        general.simulate_stationary(System(n, 2, 4.0, mjsq(4.0)), service, seed=n, replications=64, progress=False)
        for n in sizes
    ]
    means = [run.estimate("mean_total", controls=True) for run in runs]
    fit = estimate.extrapolate_n(sizes, [m.value for m in means], [m.standard_error for m in means], [0.5, 1.0])
    expected = analytic.mean_total(general.limit(runs[0].run.system, service))
    assert expected == pytest.approx((1 + service.scv) / 2 * analytic.mean_total(runs[0].run.system))
    assert_within(fit, expected)
    assert_detects(fit, expected * 1.1)


def test_overload_without_a_trace_of_the_arrivals_variance():
    """The common noise cancels in the differences: gaps 2 … K have the same law for every a²."""
    system = System(n=400, K=2, upsilon=-4.0, policy=mjsq(8.0))
    service = time_laws.deterministic()
    theta = analytic.overload_gap_rates(general.limit(system, service))[0]
    gaps = {
        name: np.diff(
            np.sort(
                general.simulate_paths(
                    system, service, [6.0], 1.0, 2000, seed=1, arrivals=law_of(name), progress=False
                )[:, 0]
            )
        )[:, 0]
        for name in ("exponential", "hyperexponential")
    }
    for sample in gaps.values():
        assert_within(mean_of(sample), 1 / theta, allowance=0.5 / 20)
        assert_detects(mean_of(sample), 2 / theta, allowance=0.5 / 20)


# ---- Arguments ----------------------------------------------------------------------------------


def test_the_same_numbers_on_any_threads():
    runs = [
        general.simulate_stationary(
            PAIR, time_laws.lognormal(1.0), horizon=50.0, warmup=20.0, seed=3, threads=threads, **SHORT
        )
        for threads in (1, 2)
    ]
    np.testing.assert_array_equal(runs[0].samples.mean_ranked, runs[1].samples.mean_ranked)


def test_observed_means_agree_with_named_ones():
    run = general.simulate_stationary(
        PAIR, time_laws.erlang(2), observe=lambda x: x, horizon=50.0, warmup=20.0, **SHORT
    )
    np.testing.assert_allclose(run.observed.value, run.mean_ranked)


def test_messages():
    service = time_laws.exponential()
    with pytest.raises(UnstableError, match="theta_1"):
        general.simulate_stationary(System(100, 2, -1.0, mjsq(2.0)), service)
    with pytest.raises(ValueError, match="service = 'erlang': must be a TimeLaw"):
        general.simulate_stationary(PAIR, "erlang")
    with pytest.raises(ValueError, match="arrivals = .*ranks every job"):
        general.limit(System(100, 2, 1.0, jsq()), service, arrivals=time_laws.deterministic())
    with pytest.raises(ValueError, match=r"horizon = 0.1: must be at least one relaxation time"):
        general.simulate_stationary(PAIR, service, horizon=0.1, spacing=0.1)
    with pytest.raises(ValueError, match="at most 1e"):
        general.simulate_paths(PAIR, service, [1e14])
    with pytest.raises(ValueError, match="must be a System"):
        general.simulate_paths(PAIR.limit(), service, [1.0])
    with pytest.raises(ValueError, match="arrivals depend on the rank"):
        general.mg1_mean(PAIR, service)
    with pytest.warns(queues.TooShortWarning):
        general.simulate_stationary(PAIR, service, horizon=20.0, warmup=1.0, **SHORT)
