"""Which claims notice a mistake in the library: ``python -m calibration.power``.

The chapters run with one mutant at a time, those that call what it changes. A mutant that no claim notices is a defect
of the claims, or a mistake that makes no difference, and the table says so.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import pandas as pd
from rankrouting.companion import chapters
from tqdm import tqdm

from .inprocess import Outcome, claim_chapters, run_chapter
from .mutants import Mutant, put, registry, replaced
from .parts import Parts, arguments, fingerprint, save

CHEAP = "smoke"


def verdicts(outcome: Outcome) -> dict[str, Any]:
    """Return what is kept of a run."""
    return {
        "error": outcome.error,
        "holds": {one.id: one.holds for one in outcome.claims},
        "numbers": {one.id: f"{one.predicted:.12g} {one.measured:.12g}" for one in outcome.claims},
    }


def touched(chapter: chapters.Chapter, mutants: list[Mutant], parameters: dict[str, Any]) -> list[str]:
    """Return the targets of mutants that a chapter calls."""
    called: set[str] = set()

    def watching(target: str, function: Any) -> Any:
        @functools.wraps(getattr(function, "py_func", function))
        def watched(*arguments: Any, **named: Any) -> Any:
            called.add(target)
            return function(*arguments, **named)

        return watched

    with contextlib.ExitStack() as stack:
        for target, mutant in {one.target: one for one in mutants}.items():
            stack.enter_context(put(mutant.original(), watching(target, mutant.original())))
        run_chapter(chapter, parameters)
    return sorted(called)


def matrix(profile: str, parts: Parts, only: set[str], names: set[str]) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return one row for each mutant and claim of the chapters that call what it changes, as far as there was time.

    And in how many chapters each mutant's target is called.
    """
    sizes = {one: chapters.load_profile(one) for one in (CHEAP, profile)}
    mutants = registry()
    book = [one for one in claim_chapters() if not only or one.name in only]
    prints = {one.name: fingerprint(one.path) for one in book}
    calls = {}
    for one in tqdm(book, desc="what chapters call", leave=False, disable=None):
        key = f"touched {one.name} {prints[one.name]} {sorted({m.target for m in mutants})}"
        calls[one.name] = parts.get(key, functools.partial(touched, one, mutants, sizes[CHEAP][one.name])) or ()
    rows = []
    right = {
        one.name: parts.get(
            f"no mistake | {one.name} {sizes[profile][one.name]} {prints[one.name]}",
            functools.partial(_without, one, sizes[profile][one.name]),
        )
        for one in book
    }
    for mutant in tqdm(mutants, desc=profile, leave=False, disable=None):
        for one in book:
            if mutant.target not in calls[one.name] or (names and mutant.name not in names):
                continue
            values = sizes[profile][one.name]
            key = f"{mutant.name} | {one.name} {values} {prints[one.name]}"
            run = parts.get(key, functools.partial(_with, mutant, one, values))
            if run is not None:
                rows += _rows(mutant, one.name, run, profile, right[one.name])
    called = {mutant.name: sum(mutant.target in targets for targets in calls.values()) for mutant in mutants}
    return pd.DataFrame(rows), called


def _without(chapter: chapters.Chapter, values: dict[str, Any]) -> dict[str, Any]:
    return verdicts(run_chapter(chapter, values))


def _with(mutant: Mutant, chapter: chapters.Chapter, values: dict[str, Any]) -> dict[str, Any]:
    with replaced(mutant):
        return _without(chapter, values)


def _rows(
    mutant: Mutant, chapter: str, run: dict[str, Any], profile: str, right: dict[str, Any] | None
) -> list[dict[str, Any]]:
    """Return a row for each claim; a chapter that stops with an error has noticed, whatever it is.

    A claim whose numbers are those without the mistake, to the last digit, has not met it.
    """
    same = {} if right is None else right["numbers"]
    met = {name: same.get(name) != numbers for name, numbers in run["numbers"].items()}
    common = {"mutant": mutant.name, "group": mutant.group, "what": mutant.what, "profile": profile, "chapter": chapter}
    rows = [common | {"claim": name, "red": not holds} for name, holds in run["holds"].items() if met[name]]
    return rows + ([common | {"claim": "error", "red": True}] if run["error"] else [])


def summary(table: pd.DataFrame, called: dict[str, int]) -> pd.DataFrame:
    """Return one row for each mutant: how many claims met it and how many noticed, over all profiles that ran."""
    rows = []
    for mutant in registry():
        part = table[table["mutant"] == mutant.name] if len(table) else table
        red = part[part["red"]] if len(part) else part
        rows.append(
            {
                "mutant": mutant.name,
                "group": mutant.group,
                "what": mutant.what,
                "place": mutant.target,
                "called in": called[mutant.name],
                "chapters": part["chapter"].nunique() if len(part) else 0,
                "claims": part["claim"].nunique() if len(part) else 0,
                "red": red["claim"].nunique() if len(red) else 0,
                "profiles": " ".join(sorted(set(part["profile"]))) if len(part) else "",
            }
        )
    return pd.DataFrame(rows)


def packed(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each mutant, profile and chapter, with the claims that noticed and those that did not."""
    rows = []
    for names, part in table.groupby(["mutant", "profile", "chapter"], sort=False):
        sides = {
            name: " ".join(part.loc[part["red"] == red, "claim"]) for name, red in (("red", True), ("green", False))
        }
        rows.append(dict(zip(("mutant", "profile", "chapter"), names, strict=True)) | sides)
    return pd.DataFrame(rows)


def main() -> None:
    """Run, print and save."""
    parser = arguments(__doc__ or "", profile="default", chapters="", mutants="")
    parser.add_argument("--unnoticed", action="store_true", help="only mutants that no claim noticed at small sizes")
    asked = parser.parse_args()
    parts = Parts("power", asked.minutes)
    only, names = ({one for one in text.split(",") if one} for text in (asked.chapters, asked.mutants))
    first, called = matrix(CHEAP, parts, only, names)
    tables = [first]
    if asked.unnoticed and len(first):
        found = summary(first, called)
        names = set(found.loc[(found["red"] == 0) & (found["claims"] > 0), "mutant"])
    if asked.profile != CHEAP and not (asked.unnoticed and not names):
        tables.append(matrix(asked.profile, parts, only, names)[0])
    table = pd.concat(tables, ignore_index=True)
    found = summary(table, called)
    save("power", power=found, power_matrix=packed(table))
    print(found.to_string(index=False))
    unnoticed = found.loc[(found["red"] == 0) & (found["claims"] > 0), "mutant"].tolist()
    print(f"noticed by no claim: {unnoticed or 'none'}")
    print(f"parts left out: {parts.missing}")


if __name__ == "__main__":
    main()
