"""The same numbers everywhere: on any number of threads, in any kind of process, in any order, on any processor.

`probe.numbers` computes a little with every kernel; a test says so. Where the numbers must agree to the last bit, they
are compared with ``==``; `settings` says where.
"""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import probe
import pytest
from helpers import assert_within
from rankrouting import _jit, sweep
from rankrouting.companion import chapters, repository, runner
from rankrouting.companion.book import Places, _execute_all
from rankrouting.replications import Estimate, mean_of

from minibook import add_chapter, claim_cells, make_book, notebook  # isort: skip

TESTS = Path(__file__).parent
Numbers = dict[str, list[list[float]]]


@pytest.fixture(scope="module")
def here() -> Numbers:
    """The numbers in this process on one thread."""
    return probe.numbers(threads=1)


def test_the_probe_moves(here: Numbers) -> None:
    for name, rows in here.items():
        assert np.all(np.isfinite(rows)), name
        assert name == "without chance" or len({tuple(row) for row in rows}) > len(rows) / 2, name


@pytest.mark.parametrize("threads", [2, 8])
def test_on_any_number_of_threads(here: Numbers, threads: int) -> None:
    assert probe.numbers(threads) == here


def test_in_any_order_with_other_draws_in_between(here: Numbers) -> None:
    found = {}
    for name in [*reversed(probe.PARTS), *probe.PARTS]:
        np.random.seed(len(found))
        random.random(), np.random.random(), np.random.default_rng(3).random()
        found[name] = probe.numbers(2, [name])[name]
        assert found[name] == here[name], name


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_in_processes(here: Numbers, method: str) -> None:
    with warnings.catch_warnings(), ProcessPoolExecutor(2, mp_context=get_context(method)) as pool:
        # Python 3.12 warns of a fork where there are threads; those of pytest-xdist do not matter here.
        warnings.simplefilter("ignore", DeprecationWarning)
        futures = [pool.submit(probe.numbers, threads) for threads in (1, 2)]
        assert [future.result() for future in futures] == [here, here]


@pytest.mark.slow
def test_on_a_dask_cluster_of_this_machine(here: Numbers) -> None:
    with sweep.connected(workers=2) as client:
        client.upload_file(str(TESTS / "probe.py"))
        futures = [client.submit(probe.numbers, threads, pure=False) for threads in (1, 2)]
        assert client.gather(futures) == [here, here]


# In notebooks.


CELL = f"""import random, sys
import numpy as np
random.seed(7), np.random.seed(7), np.random.random(5)
sys.path.insert(0, {str(TESTS)!r})
import probe
rows = [(name, number) for name, rows in probe.numbers().items() for row in rows for number in row]
results.save_csv("probe", {{"part": [part for part, _ in rows], "number (1)": [number for _, number in rows]}})
"""


def saved(results: Path, name: str = "alpha") -> list[float]:
    with (results / name / "probe.csv").open(encoding="utf-8", newline="") as file:
        return [float(row["number (1)"]) for row in csv.DictReader(file)]


def flat(numbers: Numbers) -> list[float]:
    return [number for rows in numbers.values() for row in rows for number in row]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_book(tmp_path_factory.mktemp("books") / "book")
    for name in ("alpha", "beta"):
        add_chapter(root, name, notebook(name, [CELL, *claim_cells(name)]))
    return root


KERNEL = """import sys, nbclient, nbformat
nbclient.NotebookClient(nbformat.read(sys.argv[1], as_version=4), kernel_name="python3").execute()
"""
COMMANDS = {
    "command line": ["-m", "rankrouting.cli", "run", "alpha", "-o", "out.ipynb"],
    "papermill": ["-m", "papermill", "{source}", "out.ipynb", "-k", "python3", "--no-progress-bar"],
    "notebook kernel": ["-c", KERNEL, "{source}"],
}


@pytest.mark.slow
@pytest.mark.parametrize("way", COMMANDS)
def test_in_a_notebook(here: Numbers, book: Path, tmp_path: Path, way: str) -> None:
    words = [word.format(source=book / "book" / "alpha.ipynb") for word in COMMANDS[way]]
    with runner.private_jupyter(book, tmp_path / "results"):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env=os.environ | {"PYTHONUTF8": "1"},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=500,
        )
    assert done.returncode == 0, done.stderr
    assert saved(tmp_path / "results") == flat(here)


@pytest.mark.slow
@pytest.mark.parametrize(("jobs", "order"), [(1, ["beta", "alpha"]), (2, ["alpha", "beta"])])
def test_in_any_order_of_chapters(
    here: Numbers, book: Path, monkeypatch: pytest.MonkeyPatch, jobs: int, order: list[str]
) -> None:
    for variable in (repository.ROOT_VARIABLE, repository.RESULTS_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    files = "".join(f"  - file: book/{name}\n" for name in order)
    (book / "_toc.yml").write_text(f"format: jb-book\nroot: book/intro\nchapters:\n{files}", "utf-8")
    places = Places(book, f"jobs-{jobs}")
    _execute_all(places, chapters.all_chapters(book), chapters.load_profile("default", book), jobs, False)
    for name in order:
        assert saved(places.results, name) == flat(here), name


# With numba told otherwise.


def elsewhere(code: str | None = None, **environment: str) -> Any:
    """Return what the probe, or some code, prints as JSON in a Python of its own."""
    words = ["-c", code] if code else [str(TESTS / "probe.py")]
    # Without a compiler unsigned integers are numpy's, which warns when they wrap around.
    done = subprocess.run(
        [sys.executable, "-W", "ignore:overflow encountered:RuntimeWarning", *words],
        cwd=TESTS,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def estimates(rows: list[list[float]]) -> Estimate:
    return mean_of(rows) if len(rows) > 1 else Estimate(np.array(rows[0]), np.abs(rows[0]) * 1e-12, 1)


@pytest.mark.slow
def test_the_probe_calls_every_kernel() -> None:
    assert len(probe.kernels()) > 15
    assert elsewhere()["facts"]["idle"] == []


@pytest.mark.slow
def test_without_a_compiler(here: Numbers) -> None:
    found = elsewhere(NUMBA_DISABLE_JIT="1")
    assert not found["facts"]["compiled"] and probe.facts()["compiled"]
    for name, rows in here.items():
        # Independent or not, two means of one law differ by no more than this.
        there, mine = estimates(found["numbers"][name]), estimates(rows)
        error = np.hypot(there.standard_error, mine.standard_error)
        assert_within(Estimate(there.value, error, len(rows)), mine.value)
        # Lengths are whole numbers: a last digit that an exponential is rounded to does not show.
        if name not in ("diffusion", "idle", "many servers", "old ranks", "stationary", "times", "without chance"):
            assert found["numbers"][name] == rows, name


@pytest.mark.slow
def test_with_indices_checked(here: Numbers) -> None:
    assert elsewhere(NUMBA_BOUNDSCHECK="1")["numbers"] == here


@pytest.mark.slow
def test_code_with_indices_checked_is_not_mixed_with_code_without() -> None:
    code = """
import json
import numpy as np
from rankrouting import System, _methods, mjsq
from rankrouting.kernels import events
rng = np.random.default_rng(1)
rates = events.rates_of(System(n=25, K=3, upsilon=1.0, policy=mjsq(2.0)))
too_small = np.empty((0, 3), np.int64)
try:
    events.thin_kernel(np.zeros(3, np.int64), np.array([0.1]), too_small, rates, rng, np.ones(4, np.uint64))
except IndexError as error:
    print(json.dumps(str(error)))
"""
    assert "out of bounds" in elsewhere(code, NUMBA_BOUNDSCHECK="1")


def test_the_cache_knows_whether_indices_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _jit._cache_folder.__wrapped__()
    monkeypatch.setattr("numba.config.BOUNDSCHECK", 1)
    assert _jit._cache_folder.__wrapped__() == f"{before}-boundscheck"


@pytest.mark.slow
def test_for_any_processor(here: Numbers) -> None:
    found = elsewhere(NUMBA_CPU_NAME="generic")
    assert found["facts"]["processor"] == "generic" != probe.facts()["processor"]
    assert found["numbers"] == here
