"""Lazy windows and reflected jumps: exact also when windows are long and splits are frequent."""

from itertools import permutations

import numpy as np
import pytest
from helpers import assert_law, assert_same_law, assert_within
from numpy.random import SFC64, Generator
from rankrouting import System, exact, mjsq, queues, ranks
from rankrouting.kernels import events, jumps, lazy, random
from rankrouting.replications import mean_of, replicate
from scipy import stats

FORCED = 4.0  # windows 256 times as long as usual: most are reached by the minimum


def run_lazy(system, start, durations, count, window, seed):
    """Return labelled lengths in jobs, (count, durations, K)."""
    rates = events.rates_of(system)
    durations = np.asarray(durations)

    def task(rng, _):
        out = np.empty((durations.size, system.K), dtype=np.int64)
        lengths = np.array(start, dtype=np.int64)
        lazy.lazy_kernel(lengths, durations, out, rates, window, rng, random.new_state(rng))
        return out

    return np.array(replicate(task, count, seed))


def test_forced_windows_are_split_often(monkeypatch):
    splits, joins = [], []

    def counted(name, calls):
        function = getattr(lazy, name).py_func

        def wrapper(*arguments):
            calls.append(name)
            return function(*arguments)

        monkeypatch.setattr(lazy, name, wrapper)

    counted("split_window", splits)
    counted("join_shortest", joins)
    monkeypatch.setattr(lazy, "split_at_minimum", lazy.split_at_minimum.py_func)
    rng = Generator(SFC64(1))
    system = System(n=100, K=2, upsilon=1.0, policy=mjsq(2.0))
    arguments = (events.rates_of(system), FORCED, rng, random.new_state(rng))
    lengths = np.array([10, 20])
    lazy.lazy_kernel.py_func(lengths, np.full(5, 10.0), np.empty((5, 2), np.int64), *arguments)
    assert len(joins) > 500
    assert len(splits) > 0.1 * len(joins)


@pytest.mark.parametrize("window", [lazy.WINDOW, 1.0, FORCED])
def test_transient_law_with_forced_windows(window):
    system = System(n=100, K=2, upsilon=1.0, policy=mjsq(2.0))
    times = np.array([0.3, 1.0])
    law = exact.transient(system, np.array([2, 9]), times)
    lengths = ranks.ranked(run_lazy(system, [9, 2], np.diff(times, prepend=0), 20_000, window, 3)).astype(int)
    for j in range(2):
        assert_law(lengths[:, j], law.states, law.probabilities[j])


@pytest.mark.parametrize("K", [2, 3])
def test_stationary_law_with_forced_windows(K):
    system = System(n=9, K=K, upsilon=1.0, policy=mjsq(2.0))
    law = exact.stationary(system)
    lengths = run_lazy(system, [3] * K, np.full(400, 4.0), 100, FORCED, 4)[:, 20:]
    means = ranks.ranked(lengths).mean(axis=1)
    assert_within(mean_of(means), law.mean_ranked)
    assert_within(mean_of((lengths == 0).sum(axis=-1).mean(axis=1)), 1 / 3)
    finals = run_lazy(system, [3] * K, np.array([60.0]), 10_000, FORCED, 5)[:, 0]
    assert_law(np.sort(finals), law.states, law.probabilities)


def test_many_queues_with_forced_windows_agree_with_events():
    """Labels too: the queues start at different lengths and are not exchangeable."""
    system = System(n=400, K=6, upsilon=1.0, policy=mjsq(4.0))
    start = np.array([40, 0, 10, 20, 0, 30])
    lazy = run_lazy(system, start, [1.0], 8000, FORCED, 6)[:, 0]
    events = queues.simulate_paths(system, [1.0], start / 20, 8000, seed=7, method="events")[:, 0]
    events = np.rint(events * 20).astype(int)
    for i in range(6):
        assert stats.ks_2samp(lazy[:, i], events[:, i]).pvalue > 1e-4
    assert_same_law(np.sort(lazy)[:, :2], np.sort(events)[:, :2])
    assert_same_law(np.ptp(lazy, axis=1)[:, None], np.ptp(events, axis=1)[:, None])


def test_depth_by_enumeration():
    """All orders of three arrivals and four services are equally likely."""
    arrivals, services = 3, 4
    walks = [np.cumsum(order) for order in set(permutations([1] * arrivals + [-1] * services))]
    depths = np.array([max(0, -walk.min()) for walk in walks])
    levels = (np.arange(len(walks)) + 0.5) / len(walks)
    drawn = np.array([jumps.depth_at(arrivals, services, level) for level in levels])
    np.testing.assert_array_equal(np.sort(drawn), np.sort(depths))


@pytest.mark.parametrize("depth", [1, 3])
def test_a_split_window_has_the_law_given_its_depth(depth):
    """All orders of three arrivals and four services are equally likely; a binomial number comes before the split."""
    arrivals, services, share, count = 3, 4, 0.4, 20_000
    walks = [np.concatenate([[0], np.cumsum(order)]) for order in set(permutations([1] * arrivals + [-1] * services))]
    walks = [walk for walk in walks if max(0, -walk.min()) == depth]
    states = [(walk[k], max(0, *(walk[k] - walk[k:]))) for walk in walks for k in range(8)]
    probabilities = np.tile(stats.binom(7, share).pmf(np.arange(8)), len(walks)) / len(walks)
    rng = Generator(SFC64(3))
    state = random.new_state(rng)
    drawn = np.empty((count, 2), dtype=int)
    for row in drawn:
        one = lazy.Windows(*np.array([[0.0], [1.0]]), *np.array([[arrivals], [services], [depth], [0]]))
        lengths = np.array([10])  # so long that it is not reflected
        lazy.split_window(0, share, lengths, one, rng, state)
        row[:] = lengths[0] - 10, one.depth[0]
    law, places = np.unique(states, axis=0, return_inverse=True)
    assert_law(drawn, law, np.bincount(places.ravel(), probabilities))
    with pytest.raises(AssertionError):  # the law without the condition
        assert_law(drawn, law, np.full(len(law), 1 / len(law)))


@pytest.mark.parametrize(("arrivals", "services"), [(0, 0), (0, 5), (5, 0), (40, 30), (300, 350)])
def test_shortcut_of_the_depth_changes_nothing(arrivals, services):
    for length in range(0, 400, 7):
        for seed in range(20):
            state = random.new_state(Generator(SFC64(seed)))
            expected = max(length, jumps.draw_depth(arrivals, services, state.copy()))
            assert jumps.draw_depth_or(length, arrivals, services, state) == expected


@pytest.mark.parametrize("mean", [0.0, 0.3, 9.99, 10.0, 37.5, 5e5])
def test_poisson_draws(mean):
    state = random.new_state(Generator(SFC64(2)))
    law = random.poisson_law(mean)
    draws = np.array([random.poisson(law, state) for _ in range(40_000)])
    if mean == 0:
        assert np.all(draws == 0)
        return
    assert_within(mean_of(draws.astype(float)), mean)
    assert_within(mean_of((draws - mean) ** 2), mean)
    if 1 < mean < 100:
        values = np.arange(200)
        assert_law(draws[:, None], values[:, None], stats.poisson(mean).pmf(values))
        with pytest.raises(AssertionError):
            assert_law(draws[:, None], values[:, None], stats.poisson(mean * 1.02).pmf(values))
