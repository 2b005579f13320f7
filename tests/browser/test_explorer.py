"""The explorer in Chromium: its formulas against rankrouting.analytic, its chain against the exact law, its controls.

Skipped, as the other tests of pages, without RANKROUTING_SITE.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import assert_detects, assert_within
from rankrouting import System, analytic, exact, jsq, marginal_power_of_d, mjsq, random_routing
from rankrouting.analytic import Hypoexponential
from rankrouting.replications import mean_of

pytestmark = pytest.mark.skipif("RANKROUTING_SITE" not in os.environ, reason="RANKROUTING_SITE names no built book")

SCRIPTS = Path(__file__).parents[2] / "book" / "_static" / "explorer"
PAGE = "book/explorer.html"
LARGE = 10**9  # an n at which every system below exists
POLICIES = {
    "random": lambda c, d: random_routing(),
    "mjsq": lambda c, d: mjsq(c),
    "marginal": marginal_power_of_d,
    "jsq": lambda c, d: jsq(),
}


def random_points() -> list[dict[str, Any]]:
    """One hundred systems over the ranges of the sliders, and with each n a system that exists."""
    rng = np.random.default_rng(20260)
    points = []
    for i in range(100):
        K = int(rng.integers(2, 101))
        upsilon, c = 10 ** rng.uniform(-1, 2), 10 ** rng.uniform(-1, 3)
        least = ((upsilon + c) / K) ** 2
        points.append(
            {
                "K": K,
                "upsilon": upsilon,
                "c": c,
                "d": int(rng.integers(1, min(K, 12) + 1)),
                "policy": list(POLICIES)[i % 4],
                "excess": 10 ** rng.uniform(-2, 1),
                "n": int(np.ceil(least * 10 ** rng.uniform(0.1, 4))),
            }
        )
    return points


def system_of(point: dict[str, Any], n: int = LARGE) -> System:
    return System(n, point["K"], point["upsilon"], POLICIES[point["policy"]](point["c"], point["d"]))


@pytest.fixture(scope="module")
def blank(browser: Any) -> Iterator[Any]:
    """An empty page with the scripts that need no page."""
    page = browser.new_page()
    for name in ("formulas.js", "chain.js"):
        page.add_script_tag(path=SCRIPTS / name)
    yield page
    page.close()


def called(page: Any, code: str, argument: Any) -> Any:
    """Return what JavaScript makes of an argument, infinities included."""
    return page.evaluate(f"(given) => {{ const {{ formulas, Chain }} = rankrouting; {code} }}", argument)


def test_means_and_rates_are_those_of_the_library(blank: Any) -> None:
    points = random_points()
    names = ["gapRates", "gapMeans", "meanMin", "meanMax", "meanTotal", "varianceTotal", "workloadFactor"]
    code = f"return given.map((one) => {names}.map((name) => formulas[name](one)));"
    for point, values in zip(points, called(blank, code, points), strict=True):
        system = system_of(point)
        rates = analytic.gap_rates(system)
        mean = analytic.mean_total(system)
        wanted = [
            rates,
            1 / rates,
            analytic.mean_min(system),
            analytic.mean_max(system),
            mean,
            analytic.variance_total(system),
            mean * point["upsilon"] / point["K"],
        ]
        for name, value, right in zip(names, values, wanted, strict=True):
            np.testing.assert_allclose(value, right, rtol=1e-9, atol=0, err_msg=f"{name} at {point}")
        if point["policy"] == "mjsq":
            factor = analytic.workload_factor(point["K"], point["upsilon"], point["c"])
            np.testing.assert_allclose(values[-1], factor, rtol=1e-9, err_msg=str(point))


def test_laws_are_those_of_the_library_in_both_tails(blank: Any) -> None:
    points = random_points()
    levels = np.array([1e-9, 1e-4, 0.02, 0.3, 0.5, 0.7, 0.98, 1 - 1e-4, 1 - 1e-9])
    laws = []
    for point in points:
        rates = analytic.gap_rates(system_of(point))
        laws.append([analytic.total_law(system_of(point)), Hypoexponential(rates[:1]), Hypoexponential(rates)])
    xs = [[law.quantile(levels).tolist() for law in three] for three in laws]
    code = """return given.map(([one, xs]) =>
        ["totalLaw", "minLaw", "maxLaw"].map((name, index) => {
            const law = formulas[name](one);
            return ["cdf", "sf", "pdf"].map((kind) => xs[index].map(law[kind]));
        }));"""
    answers = called(blank, code, [list(pair) for pair in zip(points, xs, strict=True)])
    for point, three, at, answer in zip(points, laws, xs, answers, strict=True):
        for law, x, values in zip(three, at, answer, strict=True):
            wanted = [law.cdf(x), law.sf(x), law.pdf(x)]
            np.testing.assert_allclose(values, wanted, rtol=1e-9, atol=0, err_msg=str(point))


def test_the_least_c_and_the_messages_are_those_of_the_library(blank: Any) -> None:
    points = random_points()
    code = """return given.map((one) => {
        const { arrivalRate, load, exists } = formulas.nthSystem(one, one.n);
        return [formulas.requiredC(one, one.excess), formulas.communicationRate(one, one.n), arrivalRate, load, exists];
    });"""
    for point, (c, asked, arrivals, load, exists) in zip(points, called(blank, code, points), strict=True):
        system = system_of(point, point["n"])
        wanted = [analytic.communication_rate(system), system.arrival_rate, system.load]
        np.testing.assert_allclose([asked, arrivals, load], wanted, rtol=1e-9, atol=0, err_msg=str(point))
        assert exists, point
        K, upsilon, excess = point["K"], point["upsilon"], point["excess"]
        if point["policy"] == "marginal" and point["d"] == 1 and excess < K - 1:
            assert c == np.inf
        elif point["policy"] == "marginal":
            factor = analytic.mean_total(system_of(point | {"c": c}, 10**12)) * upsilon / K
            assert factor == pytest.approx(1 + excess, rel=1e-9) or (c == 0 and excess >= K - 1), point
        else:
            assert c == pytest.approx(analytic.required_c(K, upsilon, excess), rel=1e-9, abs=1e-12), point


def test_a_system_without_uniform_stream_is_said_not_to_exist(blank: Any) -> None:
    point = {"K": 4, "upsilon": 2.0, "c": 10.0, "d": 2, "policy": "mjsq"}
    code = "return [9, 10].map((n) => formulas.nthSystem(given, n).exists);"  # 4√n > 12
    assert called(blank, code, point) == [False, True]
    with pytest.raises(ValueError, match="uniform stream"):
        system_of(point, 9)
    system_of(point, 10)


@pytest.mark.parametrize(
    ("K", "n", "upsilon", "c", "d"),
    [(2, 25, 1.0, 2.0, 2), (3, 9, 1.5, 2.0, 2), (3, 16, 2.0, 3.0, 3)],
)
def test_the_chain_has_the_exact_stationary_means(blank: Any, K: int, n: int, upsilon: float, c: float, d: int) -> None:
    """Each router's mean total, from batches much longer than the memory, against the law of the finite chain."""
    code = """const chain = new Chain(given);
        const read = () => ["random", "marginal", "jsq"].map((router) => chain[router].sum);
        for (let i = 0; i < given.batch; i += 1) chain.step();
        return Array.from({ length: 40 }, () => {
            const before = read();
            for (let i = 0; i < given.batch; i += 1) chain.step();
            return read().map((sum, index) => (sum - before[index]) / given.batch);
        });"""
    batch = int(25 * 2 * n * K * 4 * K**2 / upsilon**2)  # 25 relaxation times of random routing
    rows = called(blank, code, {"K": K, "n": n, "upsilon": upsilon, "c": c, "d": d, "seed": 7, "batch": batch})
    policies = [random_routing(), marginal_power_of_d(c, d), jsq()]
    wanted = np.array([exact.stationary(System(n, K, upsilon, one)).mean_total for one in policies])
    means = mean_of(np.array(rows))
    assert_within(means, wanted)
    assert_detects(means, 1.15 * wanted)


def test_the_seed_decides_and_the_routers_share_their_events(blank: Any) -> None:
    code = """const path = (seed, d, routers) => {
            const chain = new Chain({ K: 6, n: 100, upsilon: 2, c: 10, d, seed });
            return JSON.stringify(Array.from({ length: 300 }, () => {
                chain.run(10);
                return routers.map((router) => [...chain[router].lengths]);
            }));
        };
        const [all, ends] = [["random", "marginal", "jsq"], ["random", "jsq"]];
        return [
            path(3, 2, all) === path(3, 2, all),
            path(3, 2, ends) === path(4, 2, ends),
            path(3, 2, ends) === path(3, 5, ends),
            path(3, 2, ["marginal"]) === path(3, 5, ["marginal"]),
        ];"""
    again, other_seed, shared, other_d = called(blank, code, None)
    assert again and shared, "random routing and JSQ run on the same events whatever the third router samples"
    assert not other_seed and not other_d


def test_the_start_has_the_stationary_law_of_the_limit_and_one_shortest_queue_for_all(blank: Any) -> None:
    point = {"K": 5, "upsilon": 1.5, "c": 4.0, "d": 3, "policy": "marginal", "n": 10**8}
    code = """const routers = ["random", "marginal", "jsq"];
        const gapRates = Object.fromEntries(routers.map((router) =>
            [router, formulas.gapRates({ ...given, policy: router })]));
        return Array.from({ length: 4000 }, (_, seed) => {
            const chain = new Chain({ ...given, seed, gapRates });
            return routers.map((router) => [...chain[router].lengths].map((jobs) => jobs / Math.sqrt(given.n)));
        });"""
    lengths = np.array(called(blank, code, point))  # (seeds, routers, queues)
    assert np.all(np.ptp(lengths.min(axis=2), axis=1) <= 1e-4), "the shortest queue is the same under each router"
    for index, policy in enumerate(["random", "marginal", "jsq"]):
        system = system_of(point | {"policy": policy})
        totals = mean_of(lengths[:, index].sum(axis=1))
        assert_within(totals, analytic.mean_total(system), allowance=5e-4)
        assert_detects(totals, 1.1 * analytic.mean_total(system), allowance=5e-4)
        first = mean_of(lengths[:, index, 0])  # each queue has the same law
        assert_within(first, analytic.mean_total(system) / point["K"], allowance=1e-4)


# ---- The page ---------------------------------------------------------------------------------------


def number(page: Any, name: str) -> float:
    """Return the first number in what the page shows under an id."""
    found = re.search(r"[\d,.]+", page.locator(f"#rx-{name}").inner_text())
    assert found, name
    return float(found[0].replace(",", ""))


def settled(page: Any) -> None:
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_the_page_shows_what_the_library_says_and_follows_the_keyboard(visit: Any) -> None:
    page = visit(PAGE)
    shown = page.evaluate(
        "['K', 'upsilon', 'c'].map((name) => Number(document.getElementById(`rx-${name}-number`).value))"
    )
    K, upsilon, c = int(shown[0]), *shown[1:]
    assert number(page, "total") == pytest.approx(analytic.mean_total(System(LARGE, K, upsilon, mjsq(c))), rel=5e-3)
    assert number(page, "factor") == pytest.approx(analytic.workload_factor(K, upsilon, c), rel=5e-3)
    slider = page.locator("#rx-c")
    slider.focus()
    before = slider.get_attribute("aria-valuetext")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    settled(page)
    more = float(page.locator("#rx-c-number").input_value())
    assert more > c and slider.get_attribute("aria-valuetext") != before
    assert number(page, "factor") == pytest.approx(analytic.workload_factor(K, upsilon, more), rel=5e-3)
    page.locator("input[name='rx-policy'][value='mjsq']").focus()
    page.keyboard.press("ArrowRight")
    settled(page)
    d = int(page.locator("#rx-d-number").input_value())
    marginal = System(LARGE, K, upsilon, marginal_power_of_d(more, d))
    assert number(page, "total") == pytest.approx(analytic.mean_total(marginal), rel=5e-3)


def test_a_number_that_is_typed_is_taken_within_its_range(visit: Any) -> None:
    page = visit(PAGE)
    typed = page.locator("#rx-K-number")
    for text, wanted in [("7", "7"), ("1", "2"), ("1e9", "100"), ("12.4", "12"), ("", "12")]:
        typed.fill(text)
        typed.press("Enter")
        typed.blur()
        assert typed.input_value() == wanted
    settled(page)
    assert number(page, "min") == pytest.approx(1 / float(page.locator("#rx-upsilon-number").input_value()), rel=5e-3)


def test_the_design_is_a_click_away(visit: Any) -> None:
    page = visit(PAGE)
    page.locator("input[name='rx-policy'][value='random']").check(force=True)
    page.locator("#rx-use").click()
    settled(page)
    excess = float(page.locator("#rx-excess-number").input_value()) / 100
    assert page.locator("input[name='rx-policy'][value='mjsq']").is_checked()
    assert number(page, "factor") == pytest.approx(1 + excess, rel=5e-3)


@pytest.mark.parametrize("screen", ["desk", "phone"])
def test_nothing_is_cut_and_nothing_fails_at_the_ends_of_the_sliders(visit: Any, screen: str) -> None:
    page = visit(PAGE, screen)
    out = """() => [...document.querySelectorAll('#rx *')].filter((one) => {
        const box = one.getBoundingClientRect();
        return box.width > 1 && (box.right > innerWidth + 1 || box.left < -1);
    }).map((one) => one.outerHTML.slice(0, 80))"""
    boxes = "dd, dt, label, button, p, td, th, .rx-panel, .rx-control, .rx-buttons"
    cut = f"""() => [...document.querySelectorAll('#rx :is({boxes})')]
        .filter((one) => !one.closest('.rx-hidden') && one.clientWidth && one.scrollWidth > one.clientWidth + 1)
        .map((one) => one.outerHTML.slice(0, 80))"""
    for policy in POLICIES:
        page.locator(f"input[name='rx-policy'][value='{policy}']").check(force=True)
        for key in ("Home", "End"):
            for name in ("K", "upsilon", "n", "speed", "excess", "seed", *(["c", "d"] if policy == "marginal" else [])):
                page.locator(f"#rx-{name}").press(key)
            settled(page)
            assert page.evaluate(out) == [] and page.evaluate(cut) == [], (policy, key)
            text = page.locator("#rx").inner_text()
            assert not re.search(r"NaN|undefined|null|Infinity", text), (policy, key)
    for what in ("total", "min", "max"):
        for curve in ("pdf", "sf"):
            page.locator(f"input[name='rx-what'][value='{what}']").check(force=True)
            page.locator(f"input[name='rx-curve'][value='{curve}']").check(force=True)
            settled(page)
            paths = page.locator("#rx-law .scatterlayer path.js-line")
            drawn = paths.evaluate_all("all => all.map((one) => one.getAttribute('d'))")
            assert drawn and not any("NaN" in one for one in drawn)


def test_a_system_that_does_not_exist_is_explained(visit: Any) -> None:
    page = visit(PAGE)
    page.locator("#rx-c").press("End")
    page.locator("#rx-n").press("Home")
    settled(page)
    note = page.locator("#rx-impossible")
    assert note.is_visible() and page.locator("#rx-messages").inner_text() == "–"
    least = float(re.search(r"above ([\d,.]+)", note.inner_text())[1].replace(",", ""))  # type: ignore[index]
    typed = page.locator("#rx-n-number")
    typed.fill(str(int(1.01 * least) + 1))
    typed.blur()
    settled(page)
    assert note.is_hidden() and number(page, "messages") > 0


def test_every_control_has_a_name_and_a_label_to_click(visit: Any) -> None:
    page = visit(PAGE)
    inputs = page.locator("#rx input, #rx button")
    nameless = """all => all.filter((one) => {
        const labels = [...one.labels || []].map((label) => label.textContent);
        const said = [one.getAttribute('aria-label'), one.textContent, ...labels];
        return !said.some((text) => text && text.trim());
    }).map((one) => one.id)"""
    assert inputs.count() > 20 and inputs.evaluate_all(nameless) == []
    ranges = page.locator("#rx input[type=range]")
    assert ranges.evaluate_all("all => all.every((one) => one.labels.length && one.getAttribute('aria-valuetext'))")
    pictures = page.locator("#rx [role=img]")
    assert pictures.count() == 5 and pictures.evaluate_all("all => all.every((one) => one.getAttribute('aria-label'))")


def totals(page: Any) -> list[str]:
    return page.locator("#rx .rx-table tbody td:nth-child(2)").all_inner_texts()


def wait_for_change(page: Any, before: list[str]) -> None:
    page.wait_for_function(f"document.querySelector('#rx .rx-table td').textContent !== '{before[0]}'")


def test_the_animation_runs_pauses_steps_and_starts_again(visit: Any) -> None:
    page = visit(PAGE)
    before = totals(page)
    page.wait_for_timeout(300)
    assert totals(page) == before, "nothing moves before it is seen"
    run, one, reset = (page.locator(f"#rx-{name}") for name in ("run", "one", "reset"))
    run.scroll_into_view_if_needed()
    page.locator("#rx-queues").scroll_into_view_if_needed()
    wait_for_change(page, before)
    assert run.inner_text() == "Pause"
    run.click()
    still = totals(page)
    page.wait_for_timeout(300)
    assert totals(page) == still and run.inner_text() == "Run"
    reset.click()
    assert totals(page) == before
    page.locator("input[name='rx-start'][value='empty']").check(force=True)
    assert totals(page) == ["0", "0", "0"]
    paths = []
    for seed in ("5", "5", "6"):
        page.locator("#rx-seed-number").fill(seed)
        page.locator("#rx-seed-number").blur()
        reset.click()
        paths.append([])
        for _ in range(40):
            one.click()
            paths[-1].append(totals(page))
    assert paths[0] == paths[1] != paths[2]


def test_the_animation_waits_where_less_motion_is_wanted(visit: Any) -> None:
    page = visit(PAGE, reduced_motion="reduce")
    page.locator("#rx-queues").scroll_into_view_if_needed()
    before = totals(page)
    page.wait_for_timeout(400)
    assert totals(page) == before
    page.locator("#rx-run").click()
    wait_for_change(page, before)


def test_moving_a_slider_keeps_the_queues(visit: Any) -> None:
    page = visit(PAGE, reduced_motion="reduce")
    first = totals(page)
    for _ in range(30):
        page.locator("#rx-one").click()
    before = totals(page)
    assert before != first
    page.locator("#rx-c").press("ArrowLeft")
    settled(page)
    assert totals(page) == before
    page.locator("#rx-K").press("ArrowRight")
    settled(page)
    assert totals(page) != before, "other queues start anew"


def test_charts_take_the_colours_of_the_theme(visit: Any) -> None:
    colours = []
    for scheme in ("light", "dark"):
        page = visit(PAGE, scheme=scheme)
        label = page.locator("#rx-law .xtitle")
        colours.append(label.evaluate("one => getComputedStyle(one).fill"))
    assert len(set(colours)) == 2
    before = label.evaluate("one => getComputedStyle(one).fill")
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    settled(page)
    assert page.locator("#rx-law .xtitle").evaluate("one => getComputedStyle(one).fill") == colours[0] != before


def test_every_heading_is_in_the_contents(visit: Any) -> None:
    page = visit(PAGE)
    headings = page.locator("article h2").evaluate_all("all => all.map((one) => (one.id || one.parentElement.id))")
    links = page.locator("nav.page-toc a").evaluate_all("all => all.map((one) => one.hash.slice(1))")
    assert len(headings) > 1 and links == headings
