"""A chapter without a kernel: its code cells in this process, one after the other, its claims collected.

Imports and compiled code are loaded once for many runs, and figures are drawn but not written. The numbers are those
of `rankrouting run`.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import tempfile
import types
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
from rankrouting import _controls, exact, plots
from rankrouting.companion import chapters, claims, repository


@dataclass
class Outcome:
    """What a chapter claimed, and what stopped it, if something did.

    `scores` has one entry for each claim about means, by id: differences from the prediction, standard errors and
    allowances, a row for each component, where a `Claim` keeps only the worst.
    """

    claims: list[claims.Claim] = field(default_factory=list)
    scores: dict[str, np.ndarray] = field(default_factory=dict)
    error: str = ""


def claim_chapters() -> list[chapters.Chapter]:
    """Return the chapters that state claims, in the order of the book, without the one about calibration."""
    return [one for one in chapters.all_chapters() if one.states_claims and "calibration/results" not in one.reads]


def code_cells(chapter: chapters.Chapter) -> list[tuple[str, bool]]:
    """Return the code cells of a chapter, each with whether it is the one with the parameters."""
    cells = json.loads(chapter.path.read_text("utf-8"))["cells"]
    return [
        ("".join(cell["source"]), "parameters" in cell["metadata"].get("tags", ()))
        for cell in cells
        if cell["cell_type"] == "code"
    ]


def run_chapter(chapter: chapters.Chapter, parameters: Mapping[str, Any]) -> Outcome:
    """Run the code cells of a chapter with these parameters and return its claims, red ones as well.

    An error of a cell ends the chapter, as it would end a build, and is part of the outcome.
    """
    outcome = Outcome()
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with _quietly(), _recorded(outcome):
        for position, (source, is_parameters) in enumerate(code_cells(chapter)):
            try:
                exec(compile(source, f"{chapter.name}[{position}]", "exec"), namespace)
            except claims.ClaimFailed:
                break
            except Exception as error:
                outcome.error = f"{type(error).__name__}: {error}"[:300]
                break
            if is_parameters:
                namespace.update(parameters)
    return outcome


@contextlib.contextmanager
def _recorded(outcome: Outcome) -> Iterator[None]:
    """Keep the claims of the ledgers that are made meanwhile."""

    class Recording(claims.Ledger):
        def _judge(self, kind, words, m, p, se, allowed, critical, replications):  # type: ignore[no-untyped-def]
            if kind == "mean":
                outcome.scores[words["id"]] = np.column_stack([m - p, se, allowed])
            return super()._judge(kind, words, m, p, se, allowed, critical, replications)

        def _record(self, **words: Any) -> claims.Claim:
            claim = super()._record(**words)
            outcome.claims.append(claim)
            return claim

    with mock.patch.object(claims, "Ledger", Recording):
        yield


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Write no pictures and print nothing; what chapters save goes to a folder that is deleted."""
    with (
        tempfile.TemporaryDirectory(prefix="calibration-") as folder,
        mock.patch.dict(os.environ, {repository.RESULTS_VARIABLE: folder}),
        mock.patch.object(plots, "show", lambda *_, **__: None),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def remembered() -> Iterator[None]:
    """Compute only once what is the same for every seed: exact laws, and the coefficients of the controls."""
    functions = {
        name: _remembering(value)
        for name, value in vars(exact).items()
        if isinstance(value, types.FunctionType) and not name.startswith("_")
    }
    with (
        mock.patch.multiple(exact, **functions),
        mock.patch.object(_controls, "coefficients", _remembering(_controls.coefficients)),
    ):
        yield


def _remembering(function: Any) -> Any:
    """Return the function with a memory, which is passed by where an argument has no hash."""
    kept = functools.lru_cache(maxsize=512)(function)

    @functools.wraps(function)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        try:
            hash((arguments, tuple(named.values())))
        except TypeError:
            return function(*arguments, **named)
        return kept(*arguments, **named)

    return wrapped
