"""What the benchmarks compare with simulates the same queues: mean times in system against exact laws."""

import importlib
import importlib.util

import pytest
from helpers import assert_detects, assert_within
from rankrouting import System, exact, power_of_d
from rankrouting.replications import mean_of

from benchmarks import library
from benchmarks.measure import in_subprocess

pytestmark = pytest.mark.slow

LOAD = 0.5
CUSTOMERS = 5_000


# Imported here and not when a test asks: Cimba compiles its models only if it is imported before numba compiles
# anything else in the process.
ALTERNATIVES = {
    name: importlib.import_module(f"benchmarks.alternatives.with_{name}")
    for name in ("cimba", "ciw", "simpy")
    if importlib.util.find_spec(name)
}


@pytest.fixture(params=["cimba", "ciw", "simpy"])
def simulate(request):
    if request.param not in ALTERNATIVES:
        pytest.skip(f"{request.param} is not installed")
    return ALTERNATIVES[request.param].simulate


def mean_sojourn(K, d):
    """Little's law, from the exact law of the lengths; M/M/1 if nothing is compared."""
    if d == 1:
        return 1 / (1 - LOAD)
    system = System(n=1, K=K, upsilon=K * (1 - LOAD), policy=power_of_d(d))
    return exact.stationary(system).mean_total / system.arrival_rate


@pytest.mark.parametrize(("K", "d"), [(2, 1), (2, 2), (3, 2)], ids=["M/M/1", "JSQ", "JSQ(2) of 3"])
def test_mean_time_in_system(simulate, K, d):
    runs = [simulate(K, d, LOAD, CUSTOMERS, seed) for seed in range(16)]
    mean, target = mean_of([run.mean_sojourn for run in runs]), mean_sojourn(K, d)
    assert_within(mean, target)
    assert_detects(mean, 0.9 * target)
    assert_detects(mean, 1.1 * target)
    # Those still there at the end have arrived and not left.
    assert all(0 <= run.events - 2 * CUSTOMERS < 100 and run.seconds > 0 for run in runs)


@pytest.mark.parametrize("d", [1, 2, 10])
def test_equal_seeds_give_equal_numbers(simulate, d):
    first, again, other = (simulate(10, d, LOAD, 500, seed) for seed in (1, 1, 2))
    assert (again.events, again.mean_sojourn) == (first.events, first.mean_sojourn)
    assert other.mean_sojourn != first.mean_sojourn


def test_what_is_timed_as_the_compilation_of_all_kernels_calls_them_all():
    assert in_subprocess(library.ALL)["seconds"] > 0
