"""How often 95 % intervals of `queues.simulate_stationary` cover: ``python -m calibration.coverage``.

The means of two and three queues are held against exact laws. For ten queues there is none at this n: the number of
idle servers and the residual of the balance identity are held against what they are exactly, the other means against
one independent run by another method that is a hundred times as long, whose error is added to that of each run.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from rankrouting import System, _plan, analytic, exact, mjsq, queues
from scipy import stats
from tqdm import tqdm

from .inprocess import remembered
from .parts import Parts, arguments, fingerprint, save

LEVEL = 0.95
C, N = 2.0, 25
METHODS = ("events", "jumps", "lazy")
RUNS = 1000  # of each case
BATCH = 20  # runs in a part
LENGTHS = ((1.0, 0.0), (1.0, 1.0), (2.0, 1.0), (5.0, 0.0), (5.0, 1.0), (20.0, 0.0))  # horizon, warm-up; short ones
COUNTS = (2, 4, 8, 16, 32)  # replications


@dataclass(frozen=True)
class Case:
    """A system and how a run of it is done; horizon and warm-up in relaxation times, those of the library if None."""

    K: int
    upsilon: float
    method: str = "events"
    replications: int = 32
    horizon: float | None = None
    warmup: float | None = None

    @property
    def system(self) -> System:
        """The system."""
        return System(N, self.K, self.upsilon, mjsq(C))

    def run(self, seed: int | np.random.SeedSequence) -> queues.StationaryEstimate:
        """Run it once."""
        relaxation = analytic.relaxation_time(self.system)
        lengths = {name: getattr(self, name) for name in ("horizon", "warmup")}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", queues.TooShortWarning)
            return queues.simulate_stationary(
                self.system,
                replications=self.replications,
                method=self.method,  # type: ignore[arg-type]
                seed=seed,
                progress=False,
                **{name: value * relaxation for name, value in lengths.items() if value is not None},
            )


def default_cases() -> list[Case]:
    """Return the cases with the library's own horizon and warm-up."""
    systems = ((2, 1.0), (3, 1.0), (2, 0.2), (10, 1.0), (10, 0.2))
    return [Case(K, upsilon, method) for K, upsilon in systems for method in METHODS]


def short_cases() -> list[Case]:
    """Return runs of two queues that are shorter or fewer than by default."""
    short = [(32, horizon, warmup) for horizon, warmup in LENGTHS]
    few = [(count, horizon, warmup) for count in COUNTS for horizon, warmup in ((5.0, 1.0), (20.0, 5.0))]
    return [Case(2, 1.0, "events", *lengths) for lengths in dict.fromkeys(short + few)]


def means(run: queues.StationaryEstimate) -> Iterator[tuple[str, float, float]]:
    """Yield the name, value and standard error of each mean of a run."""
    for controls in (False, True):
        after = ", controls" if controls else ""
        total = run.estimate("mean_total", controls=controls)
        yield f"total{after}", float(total.value), float(total.standard_error)
        ranked = run.estimate("mean_ranked", controls=controls)
        yield f"minimum{after}", float(ranked.value[0]), float(ranked.standard_error[0])
        gaps = run.estimate("gap_means", controls=controls)
        for k in range(1, len(gaps.value)):
            yield f"gap {k + 1}{after}", float(gaps.value[k]), float(gaps.standard_error[k])
    for name, shown in (("idle_servers", "idle servers"), ("balance_residual", "balance residual")):
        one = run.estimate(name)
        yield shown, float(one.value), float(one.standard_error)


def truth(case: Case, parts: Parts) -> dict[str, tuple[float, float]] | None:
    """Return the true value of each mean, and its standard error where it is itself simulated."""
    system = case.system
    known = {"idle servers": (analytic.idle_servers(system), 0.0), "balance residual": (0.0, 0.0)}
    if case.K <= 3:
        ranked = np.asarray(exact.stationary(system).mean_ranked) / system.sqrt_n
        named = {"total": float(ranked.sum()), "minimum": float(ranked[0])}
        named |= {f"gap {k + 1}": float(ranked[k] - ranked[k - 1]) for k in range(1, case.K)}
        pairs = {name: (value, 0.0) for name, value in named.items()}
    else:
        other = Case(case.K, case.upsilon, "lazy" if case.method == "events" else "events", 160, 400.0, 20.0)
        found = parts.get(_key(other, "truth"), lambda: list(means(other.run(10**6))))
        if found is None:
            return None
        pairs = {name.split(",")[0]: (value, error) for name, value, error in found if name.endswith("controls")}
    return known | pairs


def measured(case: Case, runs: int, parts: Parts) -> pd.DataFrame:
    """Return one row for each mean of a case: how often its interval covers, with a Clopper-Pearson interval."""
    true = truth(case, parts) or {}
    scores: dict[str, list[float]] = {}
    spread: dict[str, list[float]] = {}
    firsts = range(0, runs if true else 0, BATCH)
    for first in tqdm(firsts, desc=str(case), leave=False, disable=None, unit=f"{BATCH} runs"):
        seeds = range(first, min(first + BATCH, runs))
        batch = parts.get(_key(case, f"{seeds.start}-{seeds.stop}"), functools.partial(_batch, case, seeds))
        for name, value, error in batch or ():
            target, target_error = true[name.split(",")[0]]
            scores.setdefault(name, []).append(_z(value - target, math.hypot(error, target_error)))
            spread.setdefault(name, []).append(error)
    rows = [_row(case, name, np.array(z), float(np.mean(spread[name]))) for name, z in scores.items()]
    return pd.DataFrame(rows)


def _z(difference: float, error: float) -> float:
    """Return their ratio; two replications may be equal, and then an interval is a point."""
    return difference / error if error > 0 else math.copysign(math.inf, difference) if difference else 0.0


def _batch(case: Case, seeds: range) -> list[tuple[str, float, float]]:
    return [one for seed in seeds for one in means(case.run(_stream(case, seed)))]


def _stream(case: Case, seed: int) -> np.random.SeedSequence:
    """Return a seed of its own for each case: different methods and lengths have independent runs."""
    return np.random.SeedSequence([seed, *_key(case, "").encode()])


@functools.cache
def _library() -> str:
    return fingerprint()


def _key(case: Case, part: str) -> str:
    return f"{case} {part} {_library()}" if part else str(case)


def _row(case: Case, name: str, z: np.ndarray, error: float) -> dict[str, Any]:
    critical = float(stats.t.isf((1 - LEVEL) / 2, case.replications - 1))
    inside = int(np.count_nonzero(np.abs(z) <= critical))
    interval = stats.binomtest(inside, z.size).proportion_ci(0.95, method="exact")
    return {
        "K": case.K,
        "n": N,
        "upsilon": case.upsilon,
        "c": C,
        "method": case.method,
        "replications": case.replications,
        "horizon": case.horizon if case.horizon is not None else _plan.HORIZON_RELAXATIONS,
        "warmup": case.warmup if case.warmup is not None else _plan.WARM_UP_RELAXATIONS,
        "mean": name,
        "runs": z.size,
        "coverage": inside / z.size,
        "low": interval.low,
        "high": interval.high,
        "above": float(np.mean(z > critical)),
        "below": float(np.mean(z < -critical)),
        "median z": float(np.median(z)),
        "standard error": error,
    }


def main() -> None:
    """Measure, print and save."""
    asked = arguments(__doc__ or "", runs=RUNS).parse_args()
    parts = Parts("coverage", asked.minutes)
    first = [case for case in default_cases() if case.K < 10 and case.upsilon == 1.0]  # the cheap ones
    with remembered():
        order = dict.fromkeys([*first, *short_cases(), *default_cases()])
        tables = {case: measured(case, asked.runs, parts) for case in order}
    table, short = (pd.concat([tables[one] for one in cases()]) for cases in (default_cases, short_cases))
    save("coverage", asked.runs >= RUNS and not parts.missing, short_runs=short, coverage=table)
    for one in (short, table):
        print(f"{one.to_string(index=False, float_format=lambda value: f'{value:.4g}')}\n")
    off = table[(table["high"] < 0.93) | (table["low"] > 0.97)]
    print(f"outside 93 to 97 % beyond doubt: {len(off)} of {len(table)} intervals; parts left out: {parts.missing}")


if __name__ == "__main__":
    main()
