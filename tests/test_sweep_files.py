"""Files that describe a sweep: what they mean, and what is refused in one sentence before anything starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from rankrouting import System, jsq, marginal_power_of_d, power_of_d
from rankrouting.parameters import ParameterError
from rankrouting.sweep import Cell, Paths, Stationary
from rankrouting.sweep.file import read_sweep

from sweeping import GRID, STATIONARY, command_line, yml  # isort: skip

ROOT = Path(__file__).parent.parent

# What is refused.


REFUSED = [
    ({"policies": ["jsq"]}, "there is no key 'policies'; did you mean 'policy'?"),
    ({"output": "/etc/passwd"}, "there is no key 'output'"),
    ({"estimate": "stationery"}, "estimate = 'stationery': must be one of stationary, paths"),
    ({"n": 2.5}, "n = 2.5: must be a whole number in [>= 1]"),
    ({"n": []}, "n = []: must be a list with at least one element"),
    ({"n": {"a": 1}}, "n = {'a': 1}: must be a list"),
    ({"n": "__import__('os').abort()"}, "must be a whole number"),
    ({"n": 10**30}, "must be a whole number"),
    ({"n": 10**17}, "n = 100000000000000000: must be a whole number, at least 1 and at most"),
    ({"n": 10**12, "K": 10**5}, "arrivals and services must be fewer"),
    ({"K": 10**9}, "K = 1000000000: must be a whole number in [1 to 1000000]"),
    ({"K": True}, "K = True: must be a"),
    ({"upsilon": "1e999"}, "upsilon = '1e999': must be a finite number"),
    ({"upsilon": 100}, "must be below K√n"),
    ({"n": [100, 100]}, "n: 100 is given 2 times"),
    ({"policy": ["jsq", "jsq"]}, "policy: jsq is given 2 times"),
    ({"seed": -1}, "seed = -1: must be a whole number in [>= 0]"),
    ({"replications": 1}, "replications = 1: must be a whole number in [2 to 1000000]"),
    ({"replications": "10**6"}, "must be a whole number"),
    ({"method": "evnts"}, "method = 'evnts': must be one of auto, events, jumps, lazy"),
    ({"method": "jumps"}, "nothing to jump over"),
    ({"level": 1}, "level = 1: must be a finite number, above 0, below 1"),
    ({"quantities": ["totl"]}, "quantities: there is no 'totl'; did you mean 'total'?"),
    ({"quantities": ["total", "total"]}, "given twice"),
    ({"quantities": {}}, "quantities = {}: must be a list out of total, ranked"),
    ({"quantities": [[1]]}, "quantities: there is no [1]"),
    ({"policy": "mjqs"}, "policy: there is no policy 'mjqs'; did you mean 'mjsq'?"),
    ({"policy": "mjsq"}, "policy mjsq: c is missing"),
    ({"policy": {"name": "mjsq", "c": -1}}, "policy mjsq: c = -1: must be a finite number in [>= 0]"),
    ({"policy": {"name": "mjsq", "c": 1, "dd": 2}}, "policy mjsq: has no parameter 'dd'"),
    ({"policy": {"name": "power_of_d", "d": 3}}, "d = 3: a sample of distinct queues has at most K = 2"),
    ({"policy": {"name": "msblb", "c": 1, "p": [0.5, 0.6]}}, "must be probabilities that sum to 1"),
    ({"policy": {"name": "msblb", "c": 1, "p": [1.0]}}, "must have one probability for each of K = 2"),
    ({"policy": {"c": 1}}, "must be a name, or like {name: mjsq, c: 2}"),
    ({"policy": []}, "at least one policy"),
    ({"policy": 3}, "policy = 3: must be a name"),
    ({"times": [1, 0.5]}, "times = [1, 0.5]: must be nonnegative and strictly increasing"),
    ({"times": 1e12}, "are allowed"),
    ({"times": None}, "times = None"),
    ({"x0": -1}, "x0 = -1: must be a finite number in [>= 0]"),
    ({"x0": 1e300}, "x0 = 1e+300: must be a finite number, at least 0, and not beyond"),
    ({"x0": 1e30}, "too many jobs to count"),
    ({"controls": True}, "controls: goes with estimate: stationary"),
    ({"horizon": 3}, "horizon: goes with estimate: stationary, not with paths"),
    ({"n": list(range(1, 1001)), "seed": list(range(1000))}, "the grid has 1000000 cells; at most 100000"),
    ({"policy": {"name": "marginal_power_of_d", "c": list(range(1000)), "d": list(range(1, 1001))}}, "combinations"),
    ({"K": 10**5, "n": 10**6, "quantities": "ranked", "times": list(range(1000)), "replications": 2}, "GiB"),
    (
        {"K": 10**5, "quantities": "ranked", "replications": 2, "seed": list(range(101)), "policy": "jsq"},
        "the table would have 10100000 rows",
    ),
]


@pytest.mark.parametrize(("changes", "said"), REFUSED, ids=lambda value: str(value)[:40])
def test_a_wrong_value_is_refused_in_one_sentence(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read_sweep(yml(tmp_path, GRID | changes))
    message = str(caught.value)
    assert said in message and message.startswith("mine.yml: ") and "\n" not in message and len(message) < 400


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"times": [1]}, "times: goes with estimate: paths, not with stationary"),
        ({"upsilon": -1}, "upsilon = -1"),
        ({"horizon": 2}, "horizon = 2: must be at least one relaxation time"),
        ({"horizon": 30}, "5 times the relaxation time, for an interval that covers"),
        ({"warmup": 0.1}, "warmup = 0.1: must be at least"),
        ({"horizon": 1e14}, "are allowed"),
        ({"spacing": 1e-9}, "observations of a horizon are allowed"),
        ({"quantities": ["total"]}, "did you mean 'mean_total'?"),
        ({"controls": "yes"}, "controls = 'yes': must be true or false"),
    ],
)
def test_a_stationary_mean_that_cannot_be_had_is_refused(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match="mine.yml") as caught:
        read_sweep(yml(tmp_path, STATIONARY | changes))
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("n: !!python/object/apply:os.abort []\n", "not YAML"),
        ("n: &a [1]\nK: *a\n", "has aliases"),
        ("a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "has aliases"),
        ("n: 1\nn: 2\n", "n is given twice"),
        ("n: [1\n", "not YAML"),
        ("- 1\n", "must have lines like"),
        ("n: 0x" + "f" * 20_000 + "\n", "n = about 10^24082: must be a whole number"),
        ("n: " + "9" * 20_000 + "\n", "cannot be read"),
        ("n: {a: 0x" + "f" * 20_000 + "}\n", "n = a dict: must be a list"),
        ("n: " + "[" * 50_000, "lists in lists"),
        ("n: 1\n" + "#" * 100_000, "is longer than 100000 bytes"),
        ("n: \x00\n", "not YAML"),
        ("", "estimate: is missing; needed are estimate, n, K, upsilon, policy, seed"),
    ],
    ids=range(13),
)
def test_hostile_text_is_only_refused(tmp_path: Path, text: str, said: str) -> None:
    rest = "estimate: paths\nK: 1\nupsilon: 1\npolicy: jsq\nseed: 1\ntimes: 1\n"
    with pytest.raises(ParameterError) as caught:
        read_sweep(yml(tmp_path, text + rest if len(text) > 20_000 else text))
    assert said in str(caught.value) and len(str(caught.value)) < 600


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yml")
    for path in (tmp_path / "absent.yml", tmp_path, tmp_path / "pipe.yml", Path("/dev/zero")):
        with pytest.raises(ParameterError):
            read_sweep(path)


def test_the_command_refuses_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = command_line(tmp_path, monkeypatch)
    yml(tmp_path, GRID)
    yml(tmp_path, GRID | {"N": 1}, "bad.yml")
    (tmp_path / "folder.parquet").mkdir()
    (tmp_path / "used.cells").write_text("")
    (tmp_path / "link.parquet").symlink_to(tmp_path / "elsewhere.parquet")
    before = sorted(tmp_path.rglob("*"))
    for words, said in [
        (["bad.yml"], "did you mean 'n'?"),
        (["mine.yml", "-o", "mine.csv"], "must end in .parquet"),
        (["mine.yml", "-o", "absent/mine.parquet"], "is not a folder that can be written"),
        (["mine.yml", "-o", "folder.parquet"], "must be a regular file"),
        (["mine.yml", "-o", "link.parquet"], "must be a regular file"),
        (["mine.yml", "-o", "used.parquet"], "must be a folder, for the finished cells"),
        (["mine.yml", "--threads", "2", "--local-cluster", "2"], "at most one of"),
        (["mine.yml", "--scheduler", "inproc://x"], "must be an address such as"),
        (["mine.yml", "--scheduler", "tcp://127.0.0.1:1; ls"], "must be an address such as"),
    ]:
        shown = command(*words)
        assert shown.exit_code == 2 and said in shown.stderr and len(shown.stderr.splitlines()) == 1, shown.stderr
        assert shown.stdout == ""
    assert sorted(tmp_path.rglob("*")) == before


# What is read.


def test_a_file_means_the_grid_that_it_says(tmp_path: Path) -> None:
    entries = [{"name": "marginal_power_of_d", "c": [2], "d": "2"}, {"name": "power_of_d", "d": [1, 2]}, "jsq"]
    cells, level = read_sweep(yml(tmp_path, GRID | {"n": "1e2", "policy": entries, "seed": 3, "level": 0.9}))
    policies = [marginal_power_of_d(2.0, 2), power_of_d(1), power_of_d(2), jsq()]
    assert level == 0.9
    assert cells == [Cell(System(100, 2, 1.0, policy), Paths([0.5]), 3) for policy in policies]
    settings = {"horizon": 100, "warmup": 40, "spacing": 1, "replications": 3, "method": "events"}
    (cell,), level = read_sweep(yml(tmp_path, STATIONARY | settings | {"quantities": "idle_servers"}))
    assert level == 0.95 and cell.estimate == Stationary(["idle_servers"], 3, 100.0, 40.0, 1.0, "events")


def test_the_examples_can_be_read() -> None:
    cells, _ = read_sweep(ROOT / "examples" / "sweep.yml")
    assert len(cells) == 24
    compile((ROOT / "examples" / "slurm.py").read_text("utf-8"), "slurm.py", "exec")
