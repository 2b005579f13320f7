"""How often a right book is called wrong: ``python -m calibration.false_alarms``.

Every claim of the book at small sizes over many seeds. In a seed, claims of one chapter may share a simulation, so no
test here takes them for independent: claims are tested one by one over the seeds, and a kind of claims by one value
from each seed.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
from rankrouting.companion import chapters
from rankrouting.companion.claims import FALSE_ALARM
from scipy import stats
from tqdm import tqdm

from .inprocess import Outcome, claim_chapters, remembered, run_chapter
from .parts import Parts, arguments, fingerprint, save

FIRST = 8000  # far from the seeds of the profiles; once a claim was changed for what they showed, take others
SEEDS, PROFILE = 100, "smoke"
KINDS = {
    "mean": "mean, no allowance",
    "centred": "mean, with an allowance: less its average over the seeds",
    "law": "law",
    "test": "test",
}


def _run(chapter: chapters.Chapter, values: dict[str, Any]) -> dict[str, Any]:
    return packed(run_chapter(chapter, values))


def packed(outcome: Outcome) -> dict[str, Any]:
    """Return what is kept of a chapter's run."""
    return {
        "error": outcome.error,
        "scores": {name: rows.tolist() for name, rows in outcome.scores.items()},
        "claims": {
            one.id: {
                "kind": one.kind,
                "holds": one.holds,
                "z": one.z,
                "replications": one.replications,
                "components": one.components,
                "allowance": one.allowance,
            }
            for one in outcome.claims
        },
    }


def collect(seeds: int, profile: str, parts: Parts) -> dict[str, list[dict[str, Any]]]:
    """Return what was kept of each chapter's runs, seed by seed, as far as there was time."""
    parameters = chapters.load_profile(profile)
    book = claim_chapters()
    found: dict[str, list[dict[str, Any]]] = {one.name: [] for one in book}
    prints = {one.name: fingerprint(one.path) for one in book}
    with remembered():
        for seed in tqdm(range(FIRST, FIRST + seeds), desc="seeds", leave=False, disable=None):
            for one in book:
                values = parameters[one.name] | {"seed": seed}
                key = f"{one.name} {values} {prints[one.name]}"
                run = parts.get(key, functools.partial(_run, one, values))
                if run is not None:
                    found[one.name].append(run | {"seed": seed})
    return found


def normal_scores(scores: np.ndarray, replications: int) -> np.ndarray:
    """Return the scores of Student's law as those of the normal law, which have the same probabilities."""
    tails = stats.t.sf(np.abs(scores), replications - 1)
    return np.sign(scores) * stats.norm.isf(np.maximum(tails, 1e-300))


def claim_rows(chapter: str, runs: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return for each claim of a chapter how often it was red and whether its z is what it should be; and the z."""
    rows, values = [], []
    for name, first in (runs[0]["claims"] if runs else {}).items():
        claims = [(run["seed"], run["claims"][name], run["scores"].get(name)) for run in runs if name in run["claims"]]
        red = sum(not claim["holds"] for _, claim, _ in claims)
        row = {"chapter": chapter, "claim": name, "kind": first["kind"], "seeds": len(claims), "red": red}
        if first["kind"] == "mean":
            deviations = np.array([scores for _, _, scores in claims])
            if np.all(deviations[..., 1] > 0):
                z, facts = mean_scores(deviations, first["replications"])
                row |= facts
                kind = "centred" if np.any(deviations[..., 2] > 0) else "mean"
                values += [
                    {"kind": kind, "claim": name, "seed": seed, "z": value}
                    for (seed, _, _), scores in zip(claims, z, strict=True)
                    for value in scores
                ]
        elif first["kind"] in ("law", "test"):
            # A law with atoms or an allowance, and the least of several p-values, may only be too harmless.
            z = np.array([claim["z"] for _, claim, _ in claims])
            p = np.minimum(1, 2 * stats.norm.sf(z) * (first["components"] if first["kind"] == "test" else 1))
            row["KS p"] = float(stats.kstest(p, "uniform", alternative="greater").pvalue)
            row["sd of z"] = float("nan")
            values += [
                {"kind": first["kind"], "claim": name, "seed": seed, "z": float(stats.norm.isf(one / 2))}
                for (seed, _, _), one in zip(claims, p, strict=True)
            ]
        rows.append(row)
    return rows, values


def mean_scores(deviations: np.ndarray, replications: int) -> tuple[np.ndarray, dict[str, float]]:
    """Test the z of a claim about means over seeds.

    Parameters
    ----------
    deviations : array of shape (seeds, components, 3)
        Measured less predicted, standard error and allowance.
    replications : int
        Behind each standard error.

    Returns
    -------
    z : array of shape (seeds, components)
        Normal scores, standard normal if all is right. Where there is an allowance the two sides differ by more than
        noise, so the average difference is taken off first: then they say whether the standard errors are right.
    facts : dict
        The p-value of the Kolmogorov-Smirnov test against the normal law, Bonferroni over the components; the largest
        average z; the p-value of an average difference beyond the allowance, Bonferroni too; and with an allowance the
        share of it that the average difference takes, the worst component.
    """
    difference, error, allowance = np.moveaxis(deviations, -1, 0)
    seeds = len(difference)
    if seeds < 2:
        raise ValueError(f"{seeds} seeds: at least two are needed")
    centred = allowance.max(axis=0) > 0
    average = difference.mean(axis=0)
    z = normal_scores((difference - np.where(centred, average, 0.0)) / error, replications)
    z = np.where(centred, z * np.sqrt(seeds / (seeds - 1)), z)
    p = [float(stats.kstest(column, "norm").pvalue) for column in z.T]
    mean_z = average / error.mean(axis=0)
    beyond = (np.abs(average) - allowance.mean(axis=0)) / (difference.std(axis=0, ddof=1) / np.sqrt(seeds))
    facts = {
        "bias p": min(1.0, 2 * len(p) * float(stats.t.sf(beyond.max(), seeds - 1))),
        "KS p": min(1.0, len(p) * min(p)),
        "mean of z": float(mean_z[np.argmax(np.abs(mean_z))]),
        "sd of z": float(np.sqrt(np.mean(z**2))),
        "share of the allowance": float("nan"),
    }
    if centred.any():
        facts["share of the allowance"] = float(np.max(np.abs(average[centred]) / allowance.mean(axis=0)[centred]))
    return z, facts


def red_runs(found: dict[str, list[dict[str, Any]]], seeds: int) -> dict[str, Any]:
    """Return in how many runs of the whole book something was red, with a Clopper-Pearson interval."""
    by_seed: dict[int, list[bool]] = {seed: [] for seed in range(FIRST, FIRST + seeds)}
    for runs in found.values():
        for run in runs:
            by_seed[run["seed"]].append(not run["error"] and all(one["holds"] for one in run["claims"].values()))
    complete = [verdicts for verdicts in by_seed.values() if len(verdicts) == len(found)]
    red = sum(not all(verdicts) for verdicts in complete)
    interval = stats.binomtest(red, max(len(complete), 1)).proportion_ci(0.95, method="exact")
    return {
        "runs": len(complete),
        "red": red,
        "share": red / max(len(complete), 1),
        "low": interval.low,
        "high": interval.high,
        "bound": FALSE_ALARM,
    }


def kinds(values: pd.DataFrame) -> pd.DataFrame:
    """Return the Kolmogorov-Smirnov test of each kind, by one value drawn from each seed, and shares beyond levels."""
    rng = np.random.default_rng(1)
    rows = []
    for kind, shown in KINDS.items():
        part = values[values["kind"] == kind]
        drawn = np.array([rng.choice(group.to_numpy()) for _, group in part.groupby("seed")["z"]])
        two_sided = kind in ("mean", "centred")
        p = 2 * stats.norm.sf(np.abs(drawn))
        test = stats.kstest(drawn, "norm") if two_sided else stats.kstest(p, "uniform", alternative="greater")
        z = np.abs(part["z"])
        rows.append(
            {
                "kind": shown,
                "claims": part["claim"].nunique(),
                "values": len(part),
                "independent values": drawn.size,
                "KS p": float(test.pvalue),
                "beyond 95 %": float(np.mean(z > stats.norm.isf(0.025))),
                "beyond 99.9 %": float(np.mean(z > stats.norm.isf(0.0005))),
            }
        )
    return pd.DataFrame(rows)


def quantiles(values: pd.DataFrame) -> pd.DataFrame:
    """Return the quantiles of all z of each kind, at most 200 of them, for a picture."""
    frames = []
    for kind, part in values.groupby("kind"):
        levels = (np.arange(1, 200) - 0.5) / 199
        frames.append(pd.DataFrame({"kind": KINDS[str(kind)], "level": levels, "z": np.quantile(part["z"], levels)}))
    return pd.concat(frames)


def main() -> None:
    """Measure, print and save."""
    parser = arguments(__doc__ or "", seeds=SEEDS, profile=PROFILE)
    asked = parser.parse_args()
    parts = Parts("false-alarms", asked.minutes)
    found = collect(asked.seeds, asked.profile, parts)
    pairs = [claim_rows(name, runs) for name, runs in found.items()]
    claims = pd.DataFrame([row for rows, _ in pairs for row in rows])
    values = pd.DataFrame([value for _, rows in pairs for value in rows])
    runs = pd.DataFrame([red_runs(found, asked.seeds) | {"profile": asked.profile}])
    errors = {f"{name}: {run['error']}" for name, runs_ in found.items() for run in runs_ if run["error"]}
    by_kind = kinds(values)
    tables = {"false_alarms": claims, "false_alarm_runs": runs, "false_alarm_kinds": by_kind}
    whole = asked.seeds >= SEEDS and asked.profile == PROFILE and not parts.missing
    save("false alarms", whole, **tables, z_quantiles=quantiles(values))
    for one in (claims, by_kind, runs):
        print(f"{one.to_string(index=False, float_format=lambda value: f'{value:.4g}')}\n")
    print(f"errors: {sorted(errors) or 'none'}; parts left out: {parts.missing}")


if __name__ == "__main__":
    main()
