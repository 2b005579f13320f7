"""The record "predicted, measured, standard error, allowance, z, verdict" that chapters write.

A chapter makes one `Ledger`, states its claims through it and ends with `Ledger.save`,
`Ledger.table` and `Ledger.assert_all`. The chapter *claims* collects those of a build with
`load_claims`. Chapters: all.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, stats

from .. import checks
from ..estimate import ks_distance
from . import chapters, repository
from .claim_tables import claims_frame, claims_table
from .results import Results, Table

FALSE_ALARM = 0.01
"""Bound on the chance that any true claim of a whole build is called false."""

MOST_CLAIMS = 200
"""Number of claims that `FALSE_ALARM` is divided among; a build with more is refused."""

LEVEL = FALSE_ALARM / MOST_CLAIMS
"""Chance that one true claim is called false, at most."""

Vector = NDArray[np.float64]
Kind = Literal["mean", "law", "exact", "test", "above", "below"]
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")


class ClaimFailed(AssertionError):  # noqa: N818 - an assertion that failed
    """At least one claim is false; the message lists them with their numbers."""


@dataclass(frozen=True, repr=False)
class Claim:
    """One claim and what came of it; a vector is judged by its worst component.

    Attributes
    ----------
    id, chapter, statement, formula, theorem : str
        Its name, where it is made, what it says in words and in LaTeX, and the label of the theorem.
    kind : str
        "mean": a mean over replications against a formula. "law": a sample against a law, by the
        Kolmogorov-Smirnov distance. "exact": two numbers without Monte Carlo error. "test": a
        p-value. "above", "below": a mean that is on one side of a bound beyond doubt.
    predicted, measured, standard_error : float
        As named; of a law, 0, the distance, and its standard scale 1/√(number of samples).
    allowance : float
        By how much the two may differ apart from Monte Carlo error, in the units of the prediction.
    reason : str
        Why.
    critical : float
        The number of standard errors that the difference may have beyond the allowance.
    z : float
        (measured − predicted)/standard error; of a test or law, the normal value with the same p.
    resolution : float
        The smallest relative change of the prediction that would have turned the claim red, in the component
        where it is largest; of a law, a change of its scale. NaN where there is none, as for a test.
    components, replications : int
        How many numbers were compared, over how many independent replications.
    holds : bool
        The verdict.
    """

    id: str
    chapter: str
    kind: Kind
    statement: str
    formula: str
    theorem: str
    predicted: float
    measured: float
    standard_error: float
    allowance: float
    reason: str
    critical: float
    z: float
    resolution: float
    components: int
    replications: int
    holds: bool

    @property
    def verdict(self) -> str:
        """Return "holds" or "FAILS"."""
        return "holds" if self.holds else "FAILS"

    @property
    def used(self) -> float:
        """The share of the room that was used: the claim holds up to 1."""
        if self.kind == "test":
            return self.z / self.critical
        if self.kind in ("above", "below"):
            return self.critical / abs(self.z) if self.holds else math.inf
        error = self.critical * self.standard_error if self.standard_error > 0 else 0.0
        difference = abs(self.measured - self.predicted)
        return 0.0 if difference == 0 else difference / (error + self.allowance)

    def __repr__(self) -> str:
        """Return the claim with its numbers, in one line."""
        return (
            f"{self.id}: predicted {self.predicted:.6g}, measured {self.measured:.6g}"
            f" ± {self.standard_error:.2g}, allowance {self.allowance:.2g},"
            f" z = {self.z:.2f} (critical {self.critical:.2f}): {self.verdict}"
        )


class Ledger:
    r"""The claims of one chapter.

    Parameters
    ----------
    chapter : str
        Its name; ids of claims start with it.

    Examples
    --------
    >>> from rankrouting.replications import mean_of
    >>> ledger = Ledger("workload")
    >>> claim = ledger.equal(
    ...     "workload-mean", "The mean total is K/υ", formula=r"E\Sigma = K/\upsilon",
    ...     predicted=2.0, estimate=mean_of([1.9, 2.2, 2.0, 1.8]), theorem="thm-workload")
    >>> claim.holds
    True
    """

    def __init__(self, chapter: str) -> None:
        self.results = Results(chapter)
        self.chapter = chapter
        self._claims: dict[str, Claim] = {}

    @property
    def claims(self) -> list[Claim]:
        """The claims so far, in order."""
        return list(self._claims.values())

    def equal(
        self,
        id: str,
        statement: str,
        *,
        formula: str,
        predicted: ArrayLike,
        estimate: Any,
        theorem: str,
        allowance: ArrayLike = 0.0,
        reason: str = "",
    ) -> Claim:
        """Claim that a mean over replications equals a prediction.

        It holds when the distance of measured and predicted is ≤ critical·standard error + allowance, where `critical`
        is the two-sided Student quantile at `LEVEL`, divided by the number of components.

        Parameters
        ----------
        id : str
            ``<chapter>-<what>`` in kebab case.
        statement, formula : str
            What is claimed, in words and in LaTeX without dollars.
        predicted : float or array
            What the formula gives.
        estimate : Estimate
            Of the same shape: value, standard error and number of replications.
        theorem : str
            Label of the theorem block, as in ``thm-gap-law``; empty if there is none.
        allowance : float or array, default 0
            Bound on the difference that finite n, a step or a truncation makes.
        reason : str
            Why this bound; required when the allowance is not 0.

        Raises
        ------
        ValueError
            If the id is taken or ill-formed, an allowance has no reason, or shapes differ.
        """
        m, p, se, allowed = _vectors(id, estimate.value, predicted, estimate.standard_error, allowance)
        critical = _student(estimate.replications, LEVEL / (2 * m.size))
        words = {"id": id, "statement": statement, "formula": formula, "theorem": theorem, "reason": reason}
        return self._judge("mean", words, m, p, se, allowed, critical, estimate.replications)

    def exact(
        self,
        id: str,
        statement: str,
        *,
        formula: str,
        predicted: ArrayLike,
        measured: ArrayLike,
        tolerance: ArrayLike,
        reason: str,
        theorem: str,
    ) -> Claim:
        """Claim that two numbers computed without Monte Carlo agree within an absolute tolerance.

        Parameters are those of `equal`; the reason says why the tolerance is not 0 (rounding, a
        truncated chain, an error of order n^(-1/2) at the largest n).
        """
        m, p, se, allowed = _vectors(id, measured, predicted, 0.0, tolerance)
        words = {"id": id, "statement": statement, "formula": formula, "theorem": theorem, "reason": reason}
        return self._judge("exact", words, m, p, se, allowed, 0.0, 0)

    def above(self, id: str, statement: str, *, formula: str, bound: float, estimate: Any, theorem: str) -> Claim:
        """Claim that a mean is above a bound beyond doubt: measured − critical·standard error > bound.

        Unlike `equal`, this is red when the evidence is too weak: choose sizes that leave a margin.
        """
        words = {"id": id, "statement": statement, "formula": formula, "theorem": theorem}
        return self._one_sided("above", words, bound, estimate)

    def below(self, id: str, statement: str, *, formula: str, bound: float, estimate: Any, theorem: str) -> Claim:
        """Claim that a mean is below a bound beyond doubt: measured + critical·standard error < bound."""
        words = {"id": id, "statement": statement, "formula": formula, "theorem": theorem}
        return self._one_sided("below", words, bound, estimate)

    def law(
        self,
        id: str,
        statement: str,
        *,
        formula: str,
        samples: ArrayLike,
        cdf: Callable[[NDArray[np.float64]], ArrayLike],
        theorem: str,
        allowance: float = 0.0,
        reason: str = "",
    ) -> Claim:
        """Claim that independent samples have a given law, by their Kolmogorov-Smirnov distance to it.

        It holds when the distance is at most its critical value at `LEVEL` plus the allowance, which
        is a difference of probabilities. The law may have atoms; then the test is on the safe side.

        Parameters
        ----------
        samples : array of shape (N,)
            Independent: one from each replication.
        cdf : callable
            The distribution function, of an array.
        id, statement, formula, theorem, allowance, reason
            As in `equal`.
        """
        x = np.sort(np.asarray(samples, dtype=np.float64).ravel())
        if x.size < 2:
            raise ValueError(f"{id}: a law needs at least two samples")
        finite = bool(np.all(np.isfinite(x)))
        distance = ks_distance(x, cdf).value if finite else math.nan
        threshold = float(stats.kstwo.isf(LEVEL, x.size)) + allowance
        scale = 1 / math.sqrt(x.size)
        p_value = float(stats.kstwo.sf(distance, x.size)) if finite else math.nan
        return self._record(
            kind="law",
            words={"id": id, "statement": statement, "formula": formula, "theorem": theorem, "reason": reason},
            predicted=0.0,
            measured=distance,
            standard_error=scale,
            allowance=float(allowance),
            critical=(threshold - allowance) / scale,
            z=float(stats.norm.isf(p_value / 2)),
            resolution=_scale_resolution(x, cdf, threshold) if finite else math.nan,
            replications=x.size,
            holds=bool(distance <= threshold),
        )

    def test(
        self,
        id: str,
        statement: str,
        *,
        formula: str,
        p_value: ArrayLike,
        theorem: str,
        replications: int = 0,
    ) -> Claim:
        """Claim a hypothesis that a test does not reject: the smallest p-value, times their number,
        is at least `LEVEL`.

        Parameters
        ----------
        p_value : float or array
            The p-value, or those of several tests of one hypothesis.
        replications : int, optional
            Number of independent samples behind the test.
        id, statement, formula, theorem
            As in `equal`.
        """
        p = np.asarray(p_value, dtype=np.float64).ravel()
        worst = float(p.min()) if np.all((p >= 0) & (p <= 1)) and p.size else math.nan
        level = LEVEL / max(p.size, 1)
        return self._record(
            kind="test",
            words={"id": id, "statement": statement, "formula": formula, "theorem": theorem},
            predicted=math.nan,
            measured=worst,
            critical=float(stats.norm.isf(level / 2)),
            z=float(stats.norm.isf(worst / 2)),
            components=p.size,
            replications=int(replications),
            holds=bool(worst >= level),
        )

    def table(self) -> Table:
        """Return the claims as a table for the page."""
        return claims_table(self.claims, caption="Claims of this chapter.")

    def save(self) -> Path:
        """Write the claims into the chapter's results, for the chapter *claims*; return the file."""
        if len(self._claims) > MOST_CLAIMS:
            raise ValueError(f"{len(self._claims)} claims: the threshold is chosen for at most {MOST_CLAIMS}")
        with self.results.writing("claims.json") as beside:
            beside.write_text(json.dumps([asdict(one) for one in self.claims], indent=1), "utf-8")
        self.results.save_csv("claims", claims_frame(self.claims))
        return self.results.folder / "claims.json"

    def assert_all(self) -> None:
        """Raise `ClaimFailed` if a claim is red, or if there is none."""
        assert_claims(self.claims)

    def _one_sided(self, kind: Literal["above", "below"], words: dict[str, str], bound: float, estimate: Any) -> Claim:
        m, se, p = float(estimate.value), float(estimate.standard_error), float(bound)
        critical = _student(estimate.replications, LEVEL)
        sign = 1 if kind == "above" else -1
        return self._record(
            kind=kind,
            words=words,
            predicted=p,
            measured=m,
            standard_error=se,
            critical=critical,
            z=_ratio(m - p, se),
            resolution=_relative(abs(m - sign * critical * se - p), p),
            replications=int(estimate.replications),
            holds=bool(math.isfinite(se) and sign * (m - p) > critical * se),
        )

    def _judge(
        self, kind: Kind, words: dict[str, str], m: Vector, p: Vector, se: Vector, allowed: Vector,
        critical: float, replications: int,
    ) -> Claim:  # fmt: skip
        """Record the worst component of a comparison."""
        if np.any(allowed > 0) and not words["reason"].strip():
            raise ValueError(f"{words['id']}: an allowance needs a reason")
        limit = critical * se + allowed
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = np.where(m == p, 0.0, np.abs(m - p) / limit)
        # A component that is not a number is the worst of all.
        usable = np.isfinite(excess) & np.isfinite(m) & np.isfinite(se)
        worst = int(np.argmax(np.where(usable, excess, np.inf)))
        difference = float(m[worst] - p[worst])
        return self._record(
            kind=kind,
            words=words,
            predicted=float(p[worst]),
            measured=float(m[worst]),
            standard_error=float(se[worst]),
            allowance=float(allowed[worst]),
            critical=critical,
            z=_ratio(difference, float(se[worst])) if kind == "mean" else math.nan,
            resolution=max(
                (_relative(float(a), float(b)) for a, b in zip(limit, p, strict=True) if b), default=math.nan
            ),
            components=m.size,
            replications=int(replications),
            holds=bool(np.isfinite(limit[worst]) and abs(difference) <= limit[worst]),
        )

    def _record(
        self,
        *,
        kind: Kind,
        words: dict[str, str],
        standard_error: float = math.nan,
        allowance: float = 0.0,
        resolution: float = math.nan,
        components: int = 1,
        **numbers: Any,
    ) -> Claim:
        """Check the words of a claim and keep it."""
        claim = Claim(
            chapter=self.chapter,
            kind=kind,
            standard_error=standard_error,
            allowance=allowance,
            resolution=resolution,
            components=components,
            **({"reason": ""} | words | numbers),
        )
        prefix = self.chapter.replace("_", "-") + "-"
        if not _ID.fullmatch(claim.id) or not claim.id.startswith(prefix):
            raise ValueError(f"id {claim.id!r}: must be in kebab case and start with {prefix!r}")
        if claim.id in self._claims:
            raise ValueError(f"id {claim.id!r}: there is such a claim already")
        if not claim.statement.strip():
            raise ValueError(f"{claim.id}: a claim needs a statement in words")
        if not claim.allowance >= 0 or math.isinf(claim.allowance):
            raise ValueError(f"{claim.id}: allowance {claim.allowance}: must be finite and at least 0")
        if claim.allowance > 0 and not claim.reason.strip():
            raise ValueError(f"{claim.id}: an allowance needs a reason")
        self._claims[claim.id] = claim
        return claim


def load_claims(names: Iterable[str] | None = None, folder: Path | None = None) -> list[Claim]:
    """Return the claims of a build, chapter by chapter.

    Parameters
    ----------
    names : iterable of str, optional
        The chapters that must have results; default: all of the book that state claims.
    folder : Path, optional
        Where the results are; default: those of the running build.

    Raises
    ------
    FileNotFoundError
        If a chapter has left no claims: it has not run.
    ValueError
        If ids repeat or there are more than `MOST_CLAIMS`.
    """
    folder = repository.results_folder() if folder is None else folder
    if names is None:
        names = [one.name for one in chapters.all_chapters() if one.states_claims]
    claims: list[Claim] = []
    for name in names:
        path = folder / name / "claims.json"
        if not path.is_file():
            raise FileNotFoundError(
                f"chapter {name} has left no claims in {folder}: build the book, or run all chapters that state claims"
            )
        known = {field.name for field in fields(Claim)}
        for entry in json.loads(path.read_text("utf-8")):
            claims.append(Claim(**{key: value for key, value in entry.items() if key in known}))
    if (twice := checks.repeated(one.id for one in claims)) is not None:
        raise ValueError(f"two claims of this build have the id {twice!r}")
    if len(claims) > MOST_CLAIMS:
        raise ValueError(f"{len(claims)} claims: the threshold is chosen for at most {MOST_CLAIMS}")
    return claims


def assert_claims(claims: Iterable[Claim]) -> None:
    """Raise `ClaimFailed` listing the claims that are red, or if there is none at all."""
    claims = list(claims)
    red = [one for one in claims if not one.holds]
    if red:
        raise ClaimFailed(f"{len(red)} of {len(claims)} claims fail: " + "; ".join(map(str, red)))
    if not claims:
        raise ClaimFailed("no claim was made")


def _vectors(claim: str, *values: ArrayLike) -> tuple[NDArray[np.float64], ...]:
    """Return measured and predicted values and what belongs to them as flat arrays of one length, that of the first."""
    measured, *others = arrays = [np.asarray(one, dtype=np.float64) for one in values]
    for name, one in zip(("predicted", "standard error", "allowance"), others, strict=True):
        if not checks.fits(one.shape, measured.shape):
            raise ValueError(f"{claim}: {name} of shape {one.shape}: must fit {measured.shape}, that of the estimate")
    return tuple(np.broadcast_to(one, measured.shape).ravel() for one in arrays)


def _student(replications: int, level: float) -> float:
    if replications < 2:
        raise ValueError(f"{replications} replications: at least two are needed for a standard error")
    return float(stats.t.isf(level, replications - 1))


def _ratio(difference: float, error: float) -> float:
    if error > 0:
        return difference / error
    return 0.0 if difference == 0 else math.copysign(math.inf, difference) if error == 0 else math.nan


def _relative(change: float, of: float) -> float:
    return float(change / abs(of)) if of != 0 else math.nan


def _scale_resolution(
    x: NDArray[np.float64], cdf: Callable[[NDArray[np.float64]], ArrayLike], threshold: float
) -> float:
    """Return the smallest s for which the law of (1+s)X is farther than `threshold` from that of X."""
    grid = np.quantile(x, np.linspace(0, 1, 201))
    at_grid = np.asarray(cdf(grid), dtype=np.float64)

    def excess(s: float) -> float:
        return float(np.max(np.abs(np.asarray(cdf(grid / (1 + s))) - at_grid))) - threshold

    return float(optimize.brentq(excess, 0.0, 100.0, xtol=1e-4)) if excess(100.0) > 0 else math.nan
