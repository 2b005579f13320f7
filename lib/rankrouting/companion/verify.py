"""Whether a published chapter comes out the same again: ``rankrouting verify``.

An executed notebook carries the record of its run in its metadata (`provenance.run_record`). The chapter is executed
again with the parameters of that record, into a temporary folder, and every number that it saves is compared with
the published one, digit by digit. Used by `cli`.
"""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..parameters import ParameterError
from . import provenance, runner
from .chapters import Chapter

# Drawn from numbers that are compared; what a build took, and versions, which are in the record and named from there.
_NOT_COMPARED = {".gif", ".png", ".svg"}
_OF_THE_BUILD = {"run.json", "versions.csv"}
# Columns with times and memory that were measured differ from run to run.
_OF_THE_MACHINE = re.compile(r"\bseconds\b|\(s\)|\(MB\)")
_STANDARD_ERROR = re.compile(r"standard[ _]error")


@dataclass(frozen=True)
class Difference:
    """A saved number, or something else that was saved, that did not come out the same.

    Attributes
    ----------
    where : str
        The file and the place in it.
    published, now : str
        What was published, and what comes out now.
    standard_errors : float
        The size of the difference in published standard errors; NaN where none is known.
    """

    where: str
    published: str
    now: str
    standard_errors: float = math.nan

    def __str__(self) -> str:
        """Say it in a line."""
        size = "" if math.isnan(self.standard_errors) else f" ({self.standard_errors:.2g} standard errors)"
        return f"{self.where}: {self.published} published, {self.now} now{size}"


@dataclass(frozen=True)
class Verification:
    """What came of one chapter.

    Attributes
    ----------
    chapter : str
        Its name.
    compared : int
        How many files and claims were compared.
    changed : tuple of str
        What the chapter is computed with now that is not what it was published with: versions, code, source.
    differences : tuple of Difference
        Empty when every number is the same.
    failure : str
        Why it could not be executed again; empty if it could.
    """

    chapter: str
    compared: int
    changed: tuple[str, ...]
    differences: tuple[Difference, ...]
    failure: str = ""

    @property
    def same(self) -> bool:
        """Whether it could be executed and every saved number is the same."""
        return not self.differences and not self.failure

    def lines(self, most: int = 20) -> Iterator[str]:
        """Yield the report, at most so many differences of it."""
        verdict = "the same" if self.same else "DIFFERENT"
        yield f"{self.chapter}: {verdict} ({self.compared} files and claims compared)"
        yield from (f"  with another {one}" for one in self.changed)
        if self.failure:
            yield f"  {self.failure}"
        yield from (f"  {one}" for one in self.differences[:most])
        if len(self.differences) > most:
            yield f"  and {len(self.differences) - most} more"


@dataclass(frozen=True)
class Published:
    """Executed notebooks and results in a folder: a build's ``_build/<profile>``, or the pages made from it."""

    folder: Path

    def notebook(self, name: str) -> Path:
        """Return the executed notebook of a chapter; raise FileNotFoundError if there is none."""
        places = [self.folder / "executed" / f"{name}.ipynb", self.folder / "_sources" / "book" / f"{name}.ipynb"]
        for path in places:
            if path.is_file():
                return path
        raise FileNotFoundError(
            f"chapter {name} is not published in {self.folder}: there is neither executed/{name}.ipynb, as in a build,"
            f" nor _sources/book/{name}.ipynb, as in its pages; --profile names another build"
        )

    @property
    def results(self) -> Path:
        """One folder of numbers for each chapter."""
        return self.folder / "results"

    def record(self, chapter: Chapter) -> dict[str, Any]:
        """Return the record of the run that made the published notebook, its parameters checked."""
        path = self.notebook(chapter.name)
        if not (self.results / chapter.name).is_dir():
            raise FileNotFoundError(f"chapter {chapter.name} has no published results: {self.results / chapter.name}")
        try:
            record = json.loads(path.read_text("utf-8"))["metadata"]["rankrouting"]["run"]
            parameters = dict(record["parameters"])
        except (OSError, ValueError, KeyError, TypeError):
            raise ParameterError(
                f"{path}: has no record of its run; `make book` and `rankrouting run` leave one"
            ) from None
        return record | {"parameters": chapter.parameter_values(parameters)}


def verify(chapter: Chapter, published: Published, root: Path) -> Verification:
    """Execute a published chapter again and compare what it saves.

    Parameters
    ----------
    chapter : Chapter
        Which.
    published : Published
        What to compare with.
    root : Path
        The book's folder.

    Raises
    ------
    FileNotFoundError, ParameterError
        Before anything runs: it is not published, or without the record of its run.
    """
    record = published.record(chapter)
    changed = tuple(_changed(record, provenance.run_record(chapter, record["parameters"])))
    old = published.results / chapter.name
    with tempfile.TemporaryDirectory(prefix="rankrouting-verify-") as name:
        results = Path(name) / "results"
        if chapter.collects:  # it reads what the others have published
            shutil.copytree(published.results, results, ignore=shutil.ignore_patterns(".*"))
            shutil.rmtree(results / chapter.name, ignore_errors=True)
        try:
            # Not the tables of the repository: what a chapter took from them is to be computed again.
            with runner.private_jupyter(root, results, Path(name) / "tables"):
                runner.run_chapter(
                    chapter,
                    record["parameters"],
                    Path(name) / "executed.ipynb",
                    root=root,
                    broken=Path(name) / "broken.ipynb",
                )
        except runner.ExecutionFailed as error:
            return Verification(chapter.name, 0, changed, (), str(error).partition("; the broken notebook")[0])
        new = results / chapter.name
        names = sorted(_compared_files(old) | _compared_files(new))
        differences = [one for file in names for one in compare(old / file, new / file)]
        claims = len(_claims(old / "claims.json")) if "claims.json" in names else 0
    return Verification(chapter.name, len(names) + claims, changed, tuple(differences))


def _changed(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield what differs between two records of a run, apart from parameters."""
    versions, installed = then.get("versions", {}), now["versions"]
    for name in sorted(set(versions) | set(installed)):
        old, new = versions.get(name, "none"), installed.get(name, "none")
        if old != new:
            yield f"{name}: {old} then, {new} now"
    for key, words in (("code", "code of the library"), ("source", "source of the chapter")):
        if then.get(key) != now[key]:
            yield f"{words}: {str(then.get(key))[:12]} then, {now[key][:12]} now"


def _compared_files(folder: Path) -> set[str]:
    if not folder.is_dir():
        return set()
    names = {path.name for path in folder.iterdir() if path.suffix not in _NOT_COMPARED}
    return {name for name in names - _OF_THE_BUILD if not name.startswith(".")}


def compare(old: Path, new: Path) -> Iterator[Difference]:
    """Yield what differs between two files of results."""
    if not old.is_file() or not new.is_file():
        then, now = ("a file" if one.is_file() else "no file" for one in (old, new))
        yield Difference(old.name, then, now)
    elif old.read_bytes() == new.read_bytes():
        return
    elif old.name == "claims.json":
        yield from _compare_claims(_claims(old), _claims(new))
    elif old.suffix == ".csv":
        yield from _compare_tables(old, new)
    else:
        yield Difference(old.name, "other content", "this content")


def _claims(path: Path) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in json.loads(path.read_text("utf-8"))}


def _compare_claims(old: dict[str, dict[str, Any]], new: dict[str, dict[str, Any]]) -> Iterator[Difference]:
    """Yield the fields of claims that differ."""
    for name in [*old, *(one for one in new if one not in old)]:
        if name not in old or name not in new:
            then, now = ("made" if name in one else "not made" for one in (old, new))
            yield Difference(f"claim {name}", then, now)
            continue
        error = old[name].get("standard_error", math.nan)
        for field in sorted(set(old[name]) | set(new[name])):
            # As text, in which NaN is NaN.
            then, now = json.dumps(old[name].get(field)), json.dumps(new[name].get(field))
            if then != now:
                in_errors = field in ("measured", "predicted")
                size = _standard_errors(then, now, error if in_errors else math.nan)
                yield Difference(f"claim {name}, {field}", then, now, size)


def _compare_tables(old: Path, new: Path) -> Iterator[Difference]:
    """Yield the cells of two CSV files that differ, but for measured times."""
    (head, *rows), (new_head, *new_rows) = _cells(old), _cells(new)
    if head != new_head or len(rows) != len(new_rows):
        then, now = (f"{len(body)} rows of {', '.join(names)}" for names, body in ((head, rows), (new_head, new_rows)))
        yield Difference(old.name, then, now)
        return
    for number, (row, new_row) in enumerate(zip(rows, new_rows, strict=True), 1):
        for j, (then, now) in enumerate(zip(row, new_row, strict=True)):
            if then != now and not _OF_THE_MACHINE.search(head[j]):
                error = _error_of(head, row, j)
                place = f"{old.name}, row {number}, {head[j]}"
                yield Difference(place, then or "nothing", now or "nothing", _standard_errors(then, now, error))


def _cells(path: Path) -> list[list[str]]:
    """Return the rows of a CSV file, the head first."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file)) or [[]]


def _error_of(head: list[str], row: list[str], j: int) -> str:
    """Return the standard error in the first such column after column j, which it belongs to."""
    if _STANDARD_ERROR.search(head[j]):
        return ""
    return next((row[k] for k in range(j + 1, len(head)) if _STANDARD_ERROR.search(head[k])), "")


def _standard_errors(then: str, now: str, error: str | float) -> float:
    """Return the size of a difference in standard errors; NaN if one of them is no number."""
    try:
        size = float(error)
        return abs(float(now) - float(then)) / size if size > 0 else math.nan
    except (TypeError, ValueError):
        return math.nan
