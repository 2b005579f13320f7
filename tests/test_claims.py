"""The ledger: what is green, what is red, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rankrouting.companion import claims, repository
from rankrouting.companion.claims import LEVEL, Claim, ClaimFailed, Ledger, load_claims
from rankrouting.replications import Estimate, mean_of
from scipy import stats

WORDS: dict[str, Any] = {"formula": r"1/\upsilon", "theorem": "thm-x"}


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv(repository.RESULTS_VARIABLE, str(tmp_path))
    return Ledger("heavy_traffic")


def mean_claim(ledger: Ledger, predicted: Any, estimate: Any, name: str = "a", **more: Any) -> Claim:
    return ledger.equal(f"heavy-traffic-{name}", "it holds", predicted=predicted, estimate=estimate, **WORDS, **more)


def test_the_threshold_is_the_student_quantile_for_all_claims_of_a_build(ledger: Ledger) -> None:
    critical = stats.t.isf(claims.FALSE_ALARM / claims.MOST_CLAIMS / 2, 24)
    inside = mean_claim(ledger, 0.0, Estimate(0.999 * critical, 1.0, 25), "in")
    outside = mean_claim(ledger, 0.0, Estimate(1.001 * critical, 1.0, 25), "out")
    assert inside.critical == pytest.approx(critical)
    assert inside.holds and not outside.holds


def test_a_vector_is_judged_by_its_worst_component(ledger: Ledger) -> None:
    errors = np.array([1.0, 0.1, 1.0])
    claim = mean_claim(ledger, np.zeros(3), Estimate(np.array([2.0, -3.0, 0.0]), errors, 1000))
    assert (claim.measured, claim.components, claim.holds) == (-3.0, 3, False)
    assert claim.z == pytest.approx(-30)
    assert claim.critical == pytest.approx(stats.t.isf(LEVEL / 6, 999))


def test_a_prediction_is_broadcast_and_a_wrong_shape_refused(ledger: Ledger) -> None:
    assert mean_claim(ledger, 1.0, Estimate(np.ones(3), np.ones(3), 10)).holds
    with pytest.raises(ValueError, match=r"b: predicted of shape \(2,\): must fit \(3,\), that of the estimate"):
        mean_claim(ledger, np.ones(2), Estimate(np.ones(3), np.ones(3), 10), "b")


@pytest.mark.parametrize(
    ("value", "error", "predicted"),
    [(math.nan, 1.0, 0.0), (0.0, math.nan, 0.0), (0.0, 1.0, math.nan), (math.inf, 1.0, 0.0), (0.0, math.inf, 0.0)],
)
def test_what_is_no_number_is_red(ledger: Ledger, value: float, error: float, predicted: float) -> None:
    assert not mean_claim(ledger, predicted, Estimate(value, error, 10)).holds
    hidden = Estimate(np.array([0.0, value, 0.0]), np.array([1.0, error, 1.0]), 10)
    assert not mean_claim(ledger, np.array([0.0, predicted, 0.0]), hidden, "vector").holds


def test_an_allowance_widens_the_room_by_itself_only(ledger: Ledger) -> None:
    allowed = {"allowance": 0.5, "reason": "finite n"}
    assert mean_claim(ledger, 1.0, Estimate(1.5, 0.0, 10), "in", **allowed).holds
    assert not mean_claim(ledger, 1.0, Estimate(1.5000001, 0.0, 10), "out", **allowed).holds


@pytest.mark.parametrize("allowance", [0.1, [0.0, 0.1], [0.1, 0.0]])
def test_an_allowance_without_a_reason_is_refused(ledger: Ledger, allowance: Any) -> None:
    estimate = Estimate(np.array([1.0, 5.0]), np.ones(2), 10)
    with pytest.raises(ValueError, match="reason"):
        mean_claim(ledger, np.ones(2), estimate, allowance=allowance, reason=" ")


@pytest.mark.parametrize("allowance", [-0.1, math.nan, math.inf])
def test_an_allowance_is_a_number_of_at_least_zero(ledger: Ledger, allowance: float) -> None:
    with pytest.raises(ValueError, match="allowance"):
        mean_claim(ledger, 1.0, Estimate(1.0, 1.0, 10), allowance=allowance, reason="because")


@pytest.mark.parametrize("name", ["gap", "heavy_traffic-a", "heavy-traffic-", "heavy-traffic-A", "workload-a"])
def test_ids_are_in_kebab_case_and_start_with_the_chapter(ledger: Ledger, name: str) -> None:
    with pytest.raises(ValueError, match="id"):
        ledger.equal(name, "it holds", predicted=1.0, estimate=Estimate(1.0, 1.0, 10), **WORDS)


def test_an_id_is_used_once(ledger: Ledger) -> None:
    mean_claim(ledger, 1.0, Estimate(1.0, 1.0, 10))
    with pytest.raises(ValueError, match="already"):
        mean_claim(ledger, 1.0, Estimate(1.0, 1.0, 10))


def test_the_resolution_is_what_would_have_turned_the_claim_red(ledger: Ledger) -> None:
    estimate = Estimate(2.0, 0.01, 50)
    claim = mean_claim(ledger, 2.0, estimate, allowance=0.02, reason="finite n")
    for name, factor, holds in (("under", 0.999, True), ("over", 1.001, False)):
        changed = 2.0 * (1 + factor * claim.resolution)
        assert mean_claim(ledger, changed, estimate, name, allowance=0.02, reason="finite n").holds is holds


def test_one_replication_is_refused(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="replications"):
        mean_claim(ledger, 1.0, Estimate(1.0, 0.0, 1))


def test_false_alarms_are_as_rare_as_promised(monkeypatch: pytest.MonkeyPatch, ledger: Ledger) -> None:
    monkeypatch.setattr(claims, "LEVEL", 0.05)
    rng = np.random.default_rng(5)
    rounds = 2000
    red = [
        not mean_claim(ledger, np.zeros(4), mean_of(rng.standard_normal((6, 4))), f"r{i}").holds for i in range(rounds)
    ]
    # Bonferroni over four independent components: slightly below the level.
    expected = 1 - (1 - 0.05 / 4) ** 4
    assert abs(sum(red) - rounds * expected) < 4.5 * math.sqrt(rounds * expected)


def law_claim(ledger: Ledger, samples: Any, cdf: Any, name: str = "law", **more: Any) -> Claim:
    return ledger.law(f"heavy-traffic-{name}", "it has this law", samples=samples, cdf=cdf, **WORDS, **more)


def test_a_law_may_have_atoms(ledger: Ledger) -> None:
    samples = np.random.default_rng(2).geometric(0.3, size=4000)
    claim = law_claim(ledger, samples, lambda x: stats.geom.cdf(np.floor(x), 0.3))
    assert claim.holds and claim.measured < 0.03


def test_a_law_is_green_when_true_and_red_beyond_its_resolution(ledger: Ledger) -> None:
    samples = stats.expon.ppf((np.arange(20_000) + 0.5) / 20_000)
    claim = law_claim(ledger, samples, stats.expon.cdf)
    assert claim.holds and 0.01 < claim.resolution < 0.1
    assert not law_claim(ledger, samples * (1 + 1.1 * claim.resolution), stats.expon.cdf, "off").holds
    assert law_claim(ledger, samples * (1 + 0.8 * claim.resolution), stats.expon.cdf, "near").holds


def test_the_critical_value_of_a_law_is_at_the_level(ledger: Ledger) -> None:
    claim = law_claim(ledger, np.linspace(0.01, 0.99, 50), lambda x: x)
    threshold = claim.critical * claim.standard_error
    assert stats.kstwo.sf(threshold, 50) == pytest.approx(LEVEL)


def test_samples_that_are_no_numbers_are_red(ledger: Ledger) -> None:
    assert not law_claim(ledger, [0.1, math.nan, 0.3], lambda x: x).holds


def test_exact_numbers_have_a_tolerance_with_a_reason(ledger: Ledger) -> None:
    def exact(name: str, measured: Any, reason: str = "rounding") -> Claim:
        return ledger.exact(
            f"heavy-traffic-{name}", "equal", predicted=[1.0, 2.0], measured=measured, tolerance=1e-9,
            reason=reason, **WORDS,
        )  # fmt: skip

    assert exact("good", [1.0, 2.0 + 1e-10]).holds
    assert not exact("bad", [1.0, 2.0 + 1e-8]).holds
    with pytest.raises(ValueError, match="reason"):
        exact("no-reason", [1.0, 2.0], "")


@pytest.mark.parametrize(
    ("p_value", "holds"),
    [(0.5, True), (LEVEL / 2, False), (math.nan, False), ([0.9, LEVEL / 3], False), ([0.9, 0.6 * LEVEL], True)],
)
def test_a_test_is_red_below_the_level(ledger: Ledger, p_value: Any, holds: bool) -> None:
    claim = ledger.test("heavy-traffic-p", "independent", p_value=p_value, **WORDS)
    assert claim.holds is holds


def test_above_and_below_need_proof(ledger: Ledger) -> None:
    def one(kind: str, value: float, name: str) -> bool:
        method = getattr(ledger, kind)
        return method(
            f"heavy-traffic-{name}", "on one side", bound=1.0, estimate=Estimate(value, 0.1, 500), **WORDS
        ).holds

    assert one("above", 1.6, "far") and not one("above", 1.1, "near") and not one("above", 0.5, "wrong")
    assert one("below", 0.4, "far-below") and not one("below", 0.9, "near-below")
    assert not one("above", math.nan, "nan")


def test_what_is_saved_is_what_is_loaded(ledger: Ledger) -> None:
    mean_claim(ledger, 1.0, Estimate(1.0, 0.5, 10))
    ledger.test("heavy-traffic-p", "independent", p_value=0.3, **WORDS)
    ledger.save()
    assert [str(one) for one in load_claims(["heavy_traffic"])] == [str(one) for one in ledger.claims]


def test_a_chapter_that_left_no_claims_is_missed(ledger: Ledger) -> None:
    with pytest.raises(FileNotFoundError, match="workload"):
        load_claims(["workload"])


def test_a_build_with_too_many_claims_is_refused(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(3):
        mean_claim(ledger, 1.0, Estimate(1.0, 0.5, 10), f"c{i}")
    ledger.save()
    monkeypatch.setattr(claims, "MOST_CLAIMS", 2)
    with pytest.raises(ValueError, match="at most 2"):
        ledger.save()
    with pytest.raises(ValueError, match="at most 2"):
        load_claims(["heavy_traffic"])


def test_the_assertion_names_the_red_claims_with_their_numbers(ledger: Ledger) -> None:
    mean_claim(ledger, 1.0, Estimate(1.0, 0.5, 10), "green")
    ledger.assert_all()
    mean_claim(ledger, 1.0, Estimate(7.25, 0.125, 10), "red")
    with pytest.raises(ClaimFailed, match=r"1 of 2 claims.*heavy-traffic-red: predicted 1, measured 7.25 ± 0.12"):
        ledger.assert_all()


def test_a_ledger_without_claims_is_no_success(ledger: Ledger) -> None:
    with pytest.raises(ClaimFailed, match="no claim"):
        ledger.assert_all()


def test_the_table_escapes_text_and_sets_mathematics(ledger: Ledger) -> None:
    ledger.equal(
        "heavy-traffic-a", "a < b & $x<1$", formula="a<b", predicted=1.0, estimate=Estimate(1.0, 0.5, 10), theorem="",
    )  # fmt: skip
    shown = ledger.table()._repr_html_()
    assert "a &lt; b &amp; " in shown and r"\(x&lt;1\)" in shown and r"\(a&lt;b\)" in shown
    assert "holds" in shown


def test_the_share_of_the_room_is_one_at_the_edge(ledger: Ledger) -> None:
    critical = stats.t.isf(LEVEL / 2, 24)
    claim = mean_claim(ledger, 0.0, Estimate(critical, 1.0, 25))
    assert claim.used == pytest.approx(1.0)
    assert mean_claim(ledger, 0.0, Estimate(0.0, 0.0, 25), "zero").used == 0.0
