"""The scripts of `calibration` judge what they should: mutants are one mistake each, and counts are right."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import probe
import pytest
from rankrouting import System, analytic, mjsq
from rankrouting.companion import chapters, state
from rankrouting.companion.claims import FALSE_ALARM
from scipy import stats

from calibration import coverage, false_alarms, inprocess, mutants, parts, power

ROOT = Path(__file__).parent.parent
SYSTEM = System(n=25, K=2, upsilon=1.0, policy=mjsq(2.0))


@pytest.mark.parametrize("mutant", mutants.registry(), ids=lambda one: one.name)
def test_a_mutant_finds_its_place_and_leaves_nothing_behind(mutant):
    right = mutant.original()
    before = {name: module for name, module in sys.modules.items() if name.startswith("rankrouting")}
    with mutants.replaced(mutant):
        assert mutant.original() is not right
    assert mutant.original() is right
    assert all(sys.modules[name] is module for name, module in before.items())


LATE = """
from calibration import mutants
mutant = next(one for one in mutants.registry() if one.name.startswith("pauses: "))
with mutants.replaced(mutant):
    from rankrouting import pauses
assert pauses.pauses_kernel is mutant.original()
"""


def test_a_module_that_is_imported_late_does_not_keep_a_mistake():
    subprocess.run([sys.executable, "-c", LATE], cwd=ROOT, check=True, timeout=120)


def test_a_mutant_is_wrong_wherever_the_library_holds_the_function():
    right = analytic.mean_total(SYSTEM)
    rates = next(one for one in mutants.registry() if one.name == "rates θ of the gaps +5 %")
    with mutants.replaced(rates):
        # `mean_total` calls `gap_rates` of another module; both are wrong.
        assert analytic.mean_total(SYSTEM) == pytest.approx(right / 1.05)
        assert analytic.gap_law(SYSTEM).rates == pytest.approx([1.05, 1.05 * 1.5])
    assert analytic.mean_total(SYSTEM) == right


# Which part of the probe calls what a mutant of a simulator changes.
PROBED = {
    "_controls:drifts": "stationary",
    "_methods:advance_with": "jumps",
    "diffusion:_paths_kernel": "diffusion",
    "kernels.events:idle_kernel": "idle",
    "kernels.events:rates_of": "events by rank",
    "kernels.events:thin_kernel": "events",
    "kernels.halfin_whitt:halfin_whitt_kernel": "many servers",
    "kernels.jumps:jumps_kernel": "jumps",
    "kernels.lazy:lazy_kernel": "lazy",
    "kernels.occupancy:occupancy_kernel": "many servers",
    "kernels.pauses:pauses_kernel": "pauses",
    "kernels.service:general_kernel": "general times",
    "kernels.sorted:event_table": "JSQ",
    "kernels.stale:stale_diffusion_kernel": "old ranks",
    "kernels.stale:stale_queues_kernel": "old ranks",
    "stationary:simulate_stationary": "stationary",
}
SIMULATORS = [one for one in mutants.registry() if one.target in PROBED]
RARE = ("lazy: split without condition",)  # so few windows are split in the probe that its numbers need not change


def test_every_mutant_of_a_simulator_is_tried() -> None:
    formulas = {one.name for one in mutants._formulas()}
    assert {one.target for one in mutants.registry() if one.name not in formulas} == {*PROBED, "ranks:gaps"}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", SIMULATORS, ids=lambda one: one.name)
def test_a_mistake_in_a_simulator_reaches_its_numbers(mutant):
    part = PROBED[mutant.target]
    right = probe.numbers(1, [part])
    with mutants.replaced(mutant), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the copy of a module has a warning of its own
        wrong = probe.numbers(1, [part])
    assert (wrong != right) or mutant.name in RARE
    assert probe.numbers(1, [part]) == right


def test_a_changed_text_must_be_there_once():
    with pytest.raises(ValueError, match="not once"):
        mutants.edited("no such text", "")(analytic.mean_total)


def test_parts_are_kept_and_a_torn_line_is_computed_again(tmp_path, monkeypatch):
    monkeypatch.setattr(parts.repository, "root", lambda: tmp_path)
    first = parts.Parts("some", minutes=1)
    assert first.get("a", lambda: [1, 2]) == [1, 2]
    with first.path.open("a") as file:
        file.write('{"key": "b", "val')
    second = parts.Parts("some", minutes=-1)
    assert second.get("a", lambda: pytest.fail("is there already")) == [1, 2]
    assert second.get("b", lambda: pytest.fail("no time is left")) is None
    assert second.missing == 1


def test_coverage_counts_what_is_inside_the_student_interval():
    case = coverage.Case(2, 1.0, replications=16)
    z = stats.t.ppf((np.arange(1000) + 0.5) / 1000, 15)
    row = coverage._row(case, "total", z, 1.0)
    assert row["coverage"] == pytest.approx(0.95) and row["above"] == row["below"] == pytest.approx(0.025)
    assert row["low"] < 0.95 < row["high"] and row["high"] - row["low"] < 0.03


def test_an_interval_that_is_a_point_covers_what_it_is():
    assert coverage._z(0.0, 0.0) == 0.0 and coverage._z(-1e-9, 0.0) == -np.inf and coverage._z(1.0, 2.0) == 0.5


def test_a_run_of_coverage_is_held_against_the_exact_law(tmp_path, monkeypatch):
    monkeypatch.setattr(parts.repository, "root", lambda: tmp_path)
    monkeypatch.setattr(coverage, "_library", lambda: "tested")
    found = coverage.measured(coverage.Case(2, 1.0, "jumps", 8, 5.0, 1.0), 40, parts.Parts("coverage", minutes=5))
    assert set(found["runs"]) == {40} and {"total", "gap 2, controls", "idle servers"} <= set(found["mean"])
    # 40 intervals at 95 %: fewer than 30 inside has a chance of 10⁻⁴.
    assert found["coverage"].min() > 30 / 40


def scores(shift=0.0, width=1.0, allowance=0.0, seeds=100):
    """Return deviations as claims about two means have them."""
    rng = np.random.default_rng(1)
    difference = shift + width * rng.standard_normal((seeds, 2))
    return np.stack([difference, np.ones_like(difference), np.full_like(difference, allowance)], axis=-1)


@pytest.mark.parametrize(
    ("wrong", "seen"),
    [
        ({}, False),
        ({"shift": 0.7}, True),
        ({"width": 3.0}, True),
        ({"width": 0.5}, True),
        ({"shift": 5.0, "allowance": 10.0}, False),
        ({"shift": 5.0, "allowance": 10.0, "width": 3.0}, True),
    ],
)
def test_z_are_tested_for_bias_and_for_width(wrong, seen):
    _, facts = false_alarms.mean_scores(scores(**wrong), replications=10_000)
    assert (facts["KS p"] < 1e-3) is seen
    if wrong.get("allowance"):
        assert facts["share of the allowance"] == pytest.approx(0.5, abs=0.05)


def test_students_z_become_normal():
    z = stats.t.ppf([0.025, 0.5, 0.999], 5)
    assert false_alarms.normal_scores(z, 6) == pytest.approx(stats.norm.ppf([0.025, 0.5, 0.999]), abs=1e-12)


def test_a_red_or_broken_chapter_makes_a_red_run():
    def run(seed, holds=True, error=""):
        return {"seed": seed, "error": error, "claims": {"a-b": {"holds": holds}}}

    first, second, third = range(false_alarms.FIRST, false_alarms.FIRST + 3)
    found = {
        "a": [run(first), run(second, False), run(third)],
        "b": [run(first), run(second), run(third, error="stop")],
    }
    facts = false_alarms.red_runs(found, 4)  # the fourth is not complete
    assert (facts["runs"], facts["red"]) == (3, 2)


@pytest.mark.slow
def test_a_chapter_in_this_process_makes_its_claims_and_sees_a_mistake():
    chapter = chapters.find("speed")
    values = chapters.load_profile("smoke")["speed"]
    outcome = inprocess.run_chapter(chapter, values)
    assert not outcome.error and all(one.holds for one in outcome.claims)
    assert set(outcome.scores) == {one.id for one in outcome.claims}
    called = power.touched(chapter, mutants.registry(), values)
    assert "analytic.formulas:mean_total" in called and "diffusion:_paths_kernel" not in called
    wrong = next(one for one in mutants.registry() if one.name == "mean total +5 %")
    with mutants.replaced(wrong):
        outcome = inprocess.run_chapter(chapter, values)
    assert [one.id for one in outcome.claims if not one.holds] == ["speed-total"]


def test_only_the_whole_of_the_work_is_published(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(parts, "RESULTS", tmp_path / "published")
    monkeypatch.setattr(parts.repository, "root", lambda: tmp_path)
    table = pd.DataFrame({"n": [1]})
    parts.save("coverage", False, coverage=table)
    assert not (tmp_path / "published").exists() and "not the whole" in capsys.readouterr().out
    assert (tmp_path / "_build" / "calibration" / "trial" / "coverage.csv").read_text() == "n\n1\n"
    parts.save("coverage", True, coverage=table)
    assert json.loads((tmp_path / "published" / "made-with.json").read_text())["coverage"]["code"]


# ---- The results that the book shows ------------------------------------------------------------


def saved(name):
    return pd.read_csv(parts.RESULTS / f"{name}.csv")


def test_saved_coverage_is_within_its_bounds():
    table = saved("coverage")
    off = table[(table["high"] < 0.93) | (table["low"] > 0.97)]
    assert off.empty, f"coverage outside 93 to 97 % beyond doubt:\n{off}"


def test_saved_false_alarms_are_as_few_as_promised():
    runs = saved("false-alarm-runs").iloc[0]
    p_value = stats.binomtest(int(runs["red"]), int(runs["runs"]), FALSE_ALARM, alternative="greater").pvalue
    assert p_value > 0.01, f"{runs['red']} of {runs['runs']} runs of the book were red"


def test_saved_power_is_about_the_mutants_there_are():
    assert set(saved("power")["mutant"]) == {one.name for one in mutants.registry()}


def test_saved_results_say_what_they_were_made_with():
    made = json.loads((parts.RESULTS / "made-with.json").read_text())
    assert set(made) == {"coverage", "false alarms", "power"}
    assert all(set(facts) >= {"Python", "numba", "numpy", "code"} for facts in made.values())


def test_the_hash_of_the_library_is_that_of_its_statements():
    before = "def f(x):\n    return x + 1  # one more\n"
    assert state._statements(before) == state._statements('def f(x):\n    """Return more."""\n    return x + 1\n')
    assert state._statements(before) != state._statements(before.replace("1 ", "2 "))
