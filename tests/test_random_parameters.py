"""Random and hostile arguments of every public function: a finite result, or a refusal in one sentence."""

from __future__ import annotations

import inspect
import os
from typing import Any

import cases
import pytest
import rankrouting
from hypothesis import Phase, given, settings
from rankrouting import System, mjsq, queues

import cases_beyond  # isort: skip
from hostile import accepted_or_refused, arguments  # isort: skip

CASES = cases.CASES | cases_beyond.CASES
EXAMPLES = int(os.environ.get("EX", "25"))
PHASES = [Phase.generate]
ELSEWHERE = {"sweep.connected": "opens a connection: tests/test_sweep.py"}


@pytest.fixture(autouse=True, scope="module")
def small_limits() -> Any:
    """Lower the limits of work and of memory, so that what is just allowed is quick."""
    quick = System(100, 2, 1.0, mjsq(1.0))
    for method in ("events", "jumps", "lazy"):  # compiled before anything is timed
        queues.simulate_paths(quick, [0.1], method=method, threads=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankrouting._methods._MOST_STEPS", 1e7)
        patch.setattr("rankrouting._plan._MOST_OBSERVATIONS", 1e6)
        patch.setattr("rankrouting.diffusion._MOST_STEPS", 1e6)
        patch.setattr("rankrouting.checks._LARGEST_RESULT", 2**22)
        patch.setattr("rankrouting.checks.MOST_REPLICATIONS", 10**4)
        patch.setattr("rankrouting.exact.laws.MEMORY", 2**24)
        patch.setattr("rankrouting.exact.laws._MOST_WORK", 1e9)
        patch.setattr("rankrouting.exact.stale._LONGEST", 300)
        yield


@pytest.mark.parametrize("name", CASES)
def test_a_call_returns_finite_numbers_or_refuses_in_one_sentence(name: str) -> None:
    case = CASES[name]

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, phases=PHASES)
    @given(arguments(case.good))
    def check(drawn: Any) -> None:
        accepted_or_refused(case, *drawn)

    check()


def test_every_public_function_has_a_case() -> None:
    known = {name.split(" ")[0] for name in CASES} | set(ELSEWHERE)
    missing = set()
    for module in (member for name in rankrouting.__all__ if inspect.ismodule(member := getattr(rankrouting, name))):
        if module.__name__ == "rankrouting.plots":  # takes figures: tests/test_plots.py
            continue
        own = [name for name, member in vars(module).items() if getattr(member, "__module__", "") == module.__name__]
        public = [name for name in getattr(module, "__all__", own) if inspect.isfunction(getattr(module, name))]
        parts = module.__name__.split(".")[1:]
        missing |= {".".join([*parts, name]) for name in public if not name.startswith("_")} - known
    assert not missing
