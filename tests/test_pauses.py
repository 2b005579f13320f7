"""The simulated system with pauses against its slow twin and against its law."""

import numpy as np
import pytest
from helpers import assert_detects, assert_law, assert_same_law, assert_within
from naive import NaivePauses
from rankrouting import System, exact, mjsq, msblb, queues, random_routing
from rankrouting.pauses import simulate_pauses
from rankrouting.replications import mean_of


def jobs(system, *arguments, **options):
    return np.rint(simulate_pauses(system, *arguments, **options) * system.sqrt_n).astype(int)


@pytest.mark.parametrize("policy", [mjsq(2.0), msblb(2.0, [0.2, 0.5, 0.3])])
def test_same_law_as_the_slow_twin(policy):
    system = System(n=9, K=3, upsilon=1.0, policy=policy)
    ours = jobs(system, [0.7], np.array([3.0, 1.0, 1.0]) / 3, 6_000, seed=1)[:, 0]
    theirs = []
    for seed in range(3_000):
        twin = NaivePauses(9, system.rank_arrival_rates, [1, 1, 3], seed)
        twin.run(0.7)
        theirs.append(list(twin.lengths))
    assert_same_law(ours, np.array(theirs))
    # The system itself, in which nothing is lost, has another law.
    with pytest.raises(AssertionError, match="not the same law"):
        others = queues.simulate_paths(system, [0.7], np.array([3.0, 1.0, 1.0]) / 3, 6_000, seed=2)[:, 0]
        assert_same_law(np.sort(np.rint(others * 3).astype(int), axis=1), np.array(theirs))


def test_stationary_law_is_that_of_geometric_gaps():
    system = System(n=9, K=2, upsilon=1.5, policy=mjsq(2.0))
    law = exact.pauses_law(system)
    lengths = jobs(system, [30.0], 0.0, 20_000, seed=3)[:, 0]
    gaps = np.diff(lengths, axis=1, prepend=0)
    states = np.indices((40, 40)).reshape(2, -1).T
    assert_law(gaps, states, np.prod((1 - law.gap_ratios) * law.gap_ratios**states, axis=1))
    with pytest.raises(AssertionError, match="not this law"):
        wrong = 1.05 * law.gap_ratios
        assert_law(gaps, states, np.prod((1 - wrong) * wrong**states, axis=1))


def test_one_queue_loses_nothing():
    system = System(n=16, K=1, upsilon=2.0, policy=random_routing())
    total = mean_of(simulate_pauses(system, [12.0], 0.0, 20_000, seed=4)[:, 0, 0])
    mean = exact.stationary(system).mean_total / 4
    assert_within(total, mean)
    assert_detects(total, 1.05 * mean)


def test_numbers_do_not_depend_on_threads():
    system = System(n=25, K=3, upsilon=1.0, policy=mjsq(2.0))
    paths = [simulate_pauses(system, [0.0, 0.5, 2.0], 1.0, 6, seed=5, threads=threads) for threads in (1, 3)]
    assert np.array_equal(*paths)
    assert np.all(paths[0][:, 0] == 1.0)
    assert np.array_equal(paths[0][:2], simulate_pauses(system, [0.0, 0.5, 2.0], 1.0, 2, seed=5))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"system": System(n=25, K=2, upsilon=1.0, policy=mjsq(2.0)).limit()}, "must be a System"),
        ({"times": [1.0, 0.5]}, "strictly increasing"),
        ({"replications": 0}, "replications = 0"),
        ({"x0": [1.0, 2.0, 3.0]}, "x0"),
        ({"x0": 1e90}, "too many jobs to count"),
        ({"x0": 1e300}, "x0 = .* at most 1e\\+100 in size"),
        ({"times": [1e90]}, "about .* steps"),
        ({"times": [1e300]}, "times = .* at most 1e\\+100 in size"),
    ],
)
def test_refuses(arguments, message):
    system = System(n=25, K=2, upsilon=1.0, policy=mjsq(2.0))
    with pytest.raises(ValueError, match=message):
        simulate_pauses(**({"system": system, "times": [1.0]} | arguments))
