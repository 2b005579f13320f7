"""Which claims notice a mistake in the library: ``python -m calibration.power``.

The chapters run with one mutant at a time, those that call what it changes: at small sizes all of them, then at those
of the book until one notices, the quickest of those that noticed before first. A mutant that no claim notices is a
defect of the claims, or a mistake that makes no difference, and the table says so.
"""

from __future__ import annotations

import contextlib
import functools
import time
from typing import Any

import pandas as pd
from rankrouting.companion import chapters
from tqdm import tqdm

from .inprocess import Outcome, claim_chapters, run_chapter
from .mutants import Mutant, put, registry, replaced
from .parts import Parts, arguments, fingerprint, save

CHEAP, PROFILE = "smoke", "default"


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


def matrix(
    profile: str, parts: Parts, only: set[str], names: set[str], before: pd.DataFrame | None = None
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return one row for each mutant and claim of the chapters that call what it changes, as far as there was time.

    And in how many chapters each mutant's target is called. With `before`, the rows at other sizes, those mutants go
    first that no claim noticed there, and each runs only until a chapter notices, the likely and quick ones first.
    """
    sizes = {one: chapters.load_profile(one) for one in (CHEAP, profile)}
    mutants = registry()
    book = {one.name: one for one in claim_chapters() if not only or one.name in only}
    prints = {name: fingerprint(one.path) for name, one in book.items()}
    calls = {}
    for name, one in tqdm(book.items(), desc="what chapters call", leave=False, disable=None):
        key = f"touched {name} {prints[name]} {sorted({m.target for m in mutants})}"
        calls[name] = parts.get(key, functools.partial(touched, one, mutants, sizes[CHEAP][name])) or ()

    def run(mutant: Mutant | None, name: str) -> dict[str, Any] | None:
        values = sizes[profile][name]
        key = f"{mutant.name if mutant else 'no mistake'} | {name} {values} {prints[name]}"
        return parts.get(key, functools.partial(_with, mutant, book[name], values))

    right = {name: run(None, name) for name in book}
    seen = _noticed(before)
    noticed = {mutant for mutant, _ in seen}
    rows = []
    for mutant in tqdm(sorted(mutants, key=lambda one: one.name in noticed), desc=profile, leave=False, disable=None):
        if names and mutant.name not in names:
            continue
        callers = [name for name in book if mutant.target in calls[name]]
        if before is not None:
            callers.sort(key=lambda name: ((mutant.name, name) not in seen, (right[name] or {}).get("seconds", 0.0)))
        for name in callers:
            found = run(mutant, name)
            made = [] if found is None else _rows(mutant, name, found, profile, right[name])
            rows += made
            if before is not None and any(row["red"] for row in made):
                break
    called = {mutant.name: sum(mutant.target in targets for targets in calls.values()) for mutant in mutants}
    return pd.DataFrame(rows), called


def _noticed(rows: pd.DataFrame | None) -> set[tuple[str, str]]:
    """Return the mutants that were noticed, each with a chapter that noticed it."""
    if rows is None or rows.empty:
        return set()
    return set(rows.loc[rows["red"], ["mutant", "chapter"]].itertuples(index=False, name=None))


def _with(mutant: Mutant | None, chapter: chapters.Chapter, values: dict[str, Any]) -> dict[str, Any]:
    with replaced(mutant) if mutant else contextlib.nullcontext():
        start = time.process_time()
        outcome = run_chapter(chapter, values)
        return verdicts(outcome) | {"seconds": round(time.process_time() - start, 1)}


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
    parser = arguments(__doc__ or "", profile=PROFILE, chapters="", mutants="")
    parser.add_argument("--whole", action="store_true", help="all chapters at the profile's sizes too, many hours")
    asked = parser.parse_args()
    parts = Parts("power", asked.minutes)
    only, names = ({one for one in text.split(",") if one} for text in (asked.chapters, asked.mutants))
    first, called = matrix(CHEAP, parts, only, names)
    tables = [first]
    if asked.profile != CHEAP:
        tables.append(matrix(asked.profile, parts, only, names, None if asked.whole else first)[0])
    table = pd.concat(tables, ignore_index=True)
    found = summary(table, called)
    whole = asked.profile == PROFILE and not (only or names or parts.missing)
    save("power", whole, power=found, power_matrix=packed(table))
    print(found.to_string(index=False))
    unnoticed = found.loc[(found["red"] == 0) & (found["claims"] > 0), "mutant"].tolist()
    print(f"noticed by no claim: {unnoticed or 'none'}")
    print(f"parts left out: {parts.missing}")


if __name__ == "__main__":
    main()
