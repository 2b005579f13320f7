"""Parameters: what is derived from them, and what is refused."""

import math
import pickle

import numpy as np
import pytest
from rankrouting import (
    CollapsedLimit,
    Limit,
    Policy,
    System,
    analytic,
    jsq,
    marginal_power_of_d,
    mjsq,
    msblb,
    power_of_d,
    random_routing,
    ranks,
)


def test_rates_add_up():
    system = System(n=400, K=4, upsilon=1.0, policy=msblb(2.0, [0.4, 0.3, 0.2, 0.1]))
    assert system.arrival_rate == 400 * 4 - 20
    assert system.ranked_rate == 40
    assert system.rank_arrival_rates.sum() == pytest.approx(system.arrival_rate)
    assert system.rank_arrival_rates[0] - system.rank_arrival_rates[3] == pytest.approx(40 * 0.3)
    assert system.load == pytest.approx(1 - 20 / 1600)


def test_limit_drifts():
    limit = System(n=100, K=5, upsilon=1.0, policy=mjsq(2.0)).limit()
    assert limit == Limit(5, [2 - 3 / 5] + [-3 / 5] * 4)
    assert hash(limit) == hash(Limit(5, limit.drifts))
    assert limit.upsilon == pytest.approx(1.0)
    assert not limit.drifts.flags.writeable


@pytest.mark.parametrize(
    ("policy", "limit"),
    [
        (jsq(), CollapsedLimit(3, 1.0)),
        (power_of_d(2), CollapsedLimit(3, 1.0)),
        (power_of_d(1), Limit(3, [-1 / 3] * 3)),
        (random_routing(), Limit(3, [-1 / 3] * 3)),
    ],
)
def test_which_policies_collapse(policy, limit):
    assert System(n=100, K=3, upsilon=1.0, policy=policy).limit() == limit


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_sampled_rank_law_by_enumeration(d):
    from itertools import combinations

    K = 5
    shortest = [min(sample) for sample in combinations(range(K), d)]
    counts = np.bincount(shortest, minlength=K) / len(shortest)
    np.testing.assert_allclose(marginal_power_of_d(1.0, d).rank_law.probabilities(K), counts, rtol=1e-12)


def test_lookups():
    assert [policy.rank_law.lookups(7) for policy in (jsq(), power_of_d(2), power_of_d(1))] == [7, 2, 0]


def test_gaps_and_back():
    lengths = np.random.default_rng(1).random((5, 4))
    np.testing.assert_allclose(ranks.from_gaps(ranks.gaps(lengths)), np.sort(lengths))
    np.testing.assert_array_equal(ranks.gaps(lengths)[:, 0], lengths.min(axis=1))


def test_systems_travel_between_processes():
    system = System(n=100, K=3, upsilon=1.0, policy=marginal_power_of_d(2.0, 2))
    assert pickle.loads(pickle.dumps(system)) == system
    assert pickle.loads(pickle.dumps(system.limit())) == system.limit()


GOOD = {"n": 100, "K": 3, "upsilon": 1.0, "policy": mjsq(2.0)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n": 0}, "n = 0: must be a whole number, at least 1"),
        ({"n": 2.5}, "n = 2.5"),
        ({"n": True}, "n = True"),
        ({"n": math.nan}, "n = nan"),
        ({"n": "10"}, "n = '10'"),
        ({"K": 0}, "K = 0"),
        ({"K": math.inf}, "K = inf"),
        ({"upsilon": math.inf}, "upsilon = inf"),
        ({"policy": "mjsq"}, "policy = 'mjsq'"),
        ({"policy": msblb(2.0, [0.5, 0.5])}, "p of length 2: must have one probability for each of K = 3"),
        ({"policy": power_of_d(4)}, "d = 4"),
        ({"upsilon": 29.0}, r"upsilon \+ c = 31: must be below K√n = 30"),
        ({"n": 10**18}, r"n = 10{18}: must be a whole number, at least 1 and at most 10{16}$"),
        ({"upsilon": -1e300}, r"upsilon = -1e\+300: must be a finite number, and not beyond"),
        ({"K": 10**300}, "K = about 10.300: must be a whole number, at least 1 and at most 10{6}$"),
        ({"n": 10**12, "K": 10**5}, "they cannot be counted"),
        ({"upsilon": 1e-12}, "upsilon = 1e-12: must be 0 or at least 1e-12 K√n = 3e-11 in size"),
        ({"n": 1}, r"upsilon \+ c = 3: must be below K√n = 3"),
    ],
)
def test_bad_systems_are_refused_in_one_sentence(change, words):
    with pytest.raises(ValueError, match=words) as caught:
        System(**{**GOOD, **change})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: mjsq(-1), "c = -1: must be a finite number, at least 0"),
        (lambda: mjsq(math.nan), "c = nan"),
        (lambda: mjsq("2"), "c = '2'"),
        (lambda: mjsq(np.complex128(2j)), "c = "),
        (lambda: mjsq(10**400), "c = about 10"),
        (lambda: Policy("own", jsq().rank_law, -1.0), "c = -1"),
        (lambda: Policy("own", None, 1.0), "rank_law = None"),
        (lambda: msblb(1.0, [0.5j, 1.0]), "p = "),
        (lambda: msblb(1.0, [0.5, 0.6]), r"p = \[0.5, 0.6\]: must be probabilities that sum to 1"),
        (lambda: msblb(1.0, [1.5, -0.5]), "must be probabilities"),
        (lambda: msblb(1.0, [[1.0]]), "shape"),
        (lambda: msblb(1.0, []), "shape"),
        (lambda: msblb(1.0, "abc"), "must be an array of finite numbers"),
        (lambda: power_of_d(0), "d = 0"),
        (lambda: marginal_power_of_d(1.0, 1.5), "d = 1.5"),
        (lambda: Limit(2, [1.0]), "drifts of shape"),
        (lambda: Limit(2, [1.0, math.nan]), "drifts"),
        (lambda: Limit(2, [1.0, 1.0], variance=0.0), "variance = 0"),
    ],
)
def test_bad_policies_and_limits_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_whole_floats_are_whole_numbers():
    assert System(n=1e4, K=np.int64(3), upsilon=1, policy=mjsq(2)) == System(10_000, 3, 1.0, mjsq(2.0))


@pytest.mark.parametrize("service_time", [0.0024, 0.37, 2.5, 90.0])
@pytest.mark.parametrize("load", [0.3, 0.97])
def test_a_system_from_rates_has_these_rates_in_its_own_unit_of_time(service_time, load):
    arrivals = 7 * load / service_time
    system = System.from_rates(arrivals, service_time, 7, mjsq(0.1))
    unit = system.n * service_time
    assert system.load == pytest.approx(load, rel=1e-12)
    assert system.arrival_rate / unit == pytest.approx(arrivals, rel=1e-12)
    assert unit == service_time or abs(unit - 1) <= service_time / 2 * (1 + 1e-9)
    assert system.policy == mjsq(0.1)


def test_random_routing_from_rates_takes_the_time_of_one_queue():
    system = System.from_rates(arrivals=20_000, service_time=0.0024, servers=50)
    # An M/M/1 queue of rates 416.67 and 400 per second: exponential of their difference.
    seconds = analytic.delay_law(system).mean * system.n * 0.0024
    assert seconds == pytest.approx(1 / (1 / 0.0024 - 20_000 / 50), rel=1e-9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"arrivals": 25_000},
            "arrivals = 25000: must be below servers/service_time = 20833.3, all that",
        ),
        ({"servers": 48}, "add servers until there are more than 48, or turn jobs away"),
        ({"arrivals": 0}, "arrivals = 0: must be a finite number, above 0"),
        ({"service_time": -1}, "service_time = -1: must be a finite number, above 0"),
        ({"service_time": "2.4 ms"}, "service_time = '2.4 ms': must be a finite number"),
        ({"servers": 2.5}, "servers = 2.5: must be a whole number"),
    ],
)
def test_bad_rates_are_refused_in_one_sentence(change, words):
    rates = {"arrivals": 20_000, "service_time": 0.0024, "servers": 50}
    with pytest.raises(ValueError, match=words) as caught:
        System.from_rates(**{**rates, **change})
    assert "\n" not in str(caught.value)
