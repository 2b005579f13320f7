"""Every shell command and every piece of Python on the pages that people read: run, or checked as far as it can be.

`COMMANDS` says of each kind of command what is done; one that fits no line fails the test.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from rankrouting import cli
from rankrouting.companion import chapters, repository
from rankrouting.sweep.file import read_sweep

from helpers import assert_detects, assert_within  # isort: skip

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "book").rglob("*.md")),
    *sorted((ROOT / "book").glob("*.ipynb")),
]
BLOCK = re.compile(r"^([ \t]*)(`{3,}|:{3,})(\w+)[ \t]*\n(.*?)^\1\2[ \t]*$", re.DOTALL | re.MULTILINE)
IN_A_SENTENCE = re.compile(r"(make|rankrouting|papermill|jupyter-book|pip|python -m|pre-commit|docker|\.venv/bin/\S+) ")
SHELL, PYTHON = {"sh", "bash", "shell", "console"}, {"python", "py"}


def text_of(page: Path) -> str:
    """Return the Markdown of a page."""
    if page.suffix != ".ipynb":
        return page.read_text("utf-8")
    cells = json.loads(page.read_text("utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def blocks(page: Path, languages: set[str]) -> list[str]:
    """Return the fenced blocks in these languages, without their indentation."""
    found = [match for match in BLOCK.finditer(text_of(page)) if match[3] in languages]
    return [re.sub(rf"^{match[1]}", "", match[4], flags=re.MULTILINE) for match in found]


def commands() -> dict[str, list[str]]:
    """Return all commands with the pages that print them: lines of blocks, and commands within sentences."""
    found: dict[str, list[str]] = {}
    for page in PAGES:
        lines = [line for block in blocks(page, SHELL) for line in block.splitlines()]
        outside = BLOCK.sub("", text_of(page))
        spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", outside)]
        lines += [span for span in spans if IN_A_SENTENCE.match(span)]
        for line in lines:
            words = shlex.split(line, comments=True)
            if words:
                found.setdefault(shlex.join(words), []).append(page.name)
    return found


def run(*words: str, cwd: Path) -> str:
    """Run a program of the environment and return what it prints."""
    environment = os.environ | {
        repository.ROOT_VARIABLE: str(ROOT),
        repository.RESULTS_VARIABLE: str(cwd / "results"),
        "PYTHONUTF8": "1",
    }
    done = subprocess.run(
        words, cwd=cwd, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def program(name: str) -> str:
    """Return the path of a program of the environment; fail if it has none of this name."""
    path = Path(sys.executable).parent / name
    assert path.is_file(), f"no {name} in the environment"
    return str(path)


# What is done with a command. Each gets its words and a folder to run in.


def make_has(words: list[str], folder: Path) -> None:
    """Check targets and variables of make, and their values."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for word in words[1:]:
        name, given, value = word.partition("=")
        if not given:
            assert re.search(rf"^{re.escape(name)}:", makefile, re.MULTILINE), f"no target {name}"
            continue
        assert re.search(rf"^{re.escape(name)} \?=", makefile, re.MULTILINE), f"no variable {name}"
        if name == "PROFILE":
            assert value in chapters.profiles(ROOT)
        elif name == "PYTHON":
            assert re.fullmatch(r"python3\.1[123]", value)


def make_runs(words: list[str], folder: Path) -> None:
    """Run make as printed."""
    assert "make book" in run(*words, cwd=ROOT)


def parsed(words: list[str]) -> dict[str, Any]:
    """Return the arguments of a command of rankrouting as it would get them; fails on an unknown one."""
    group: Any = typer.main.get_command(cli.app)
    name, *rest = cli._joined(words[1:])
    assert name in group.commands, f"no command {name}"
    context = group.commands[name].make_context(name, rest)
    arguments: dict[str, Any] = context.params
    single = arguments.get("chapter")
    named = arguments.get("names") or ([] if single is None else [single])
    for chapter in named:
        chapters.find(chapter, ROOT)
    if arguments.get("profile") is not None:
        assert arguments["profile"] in chapters.profiles(ROOT)
    return arguments


def rankrouting_parses(words: list[str], folder: Path) -> None:
    """Check the command, its options, chapters and profile."""
    parsed(words)


def rankrouting_runs(words: list[str], folder: Path) -> None:
    """Run rankrouting as printed."""
    parsed(words)
    assert run(program("rankrouting"), *words[1:], cwd=folder)


def chapter_runs_small(words: list[str], folder: Path) -> None:
    """Run a chapter with what is printed, but at the sizes of the profile smoke."""
    arguments = parsed(words)
    if arguments["profile"] is None:
        words = [*words, "--profile", "smoke"]
    run(program("rankrouting"), *words[1:], cwd=folder)
    assert (folder / arguments["output"]).is_file()


def sweep_runs_small(words: list[str], folder: Path) -> None:
    """Check a sweep; run it with one small n where it needs no cluster of others."""
    arguments = parsed(words)
    read_sweep(ROOT / arguments["file"])
    if arguments["scheduler"] is not None:
        return
    small = yaml.safe_load((ROOT / arguments["file"]).read_text("utf-8")) | {"n": 25, "seed": 1, "replications": 12}
    target = folder / arguments["file"]
    target.parent.mkdir()
    target.write_text(yaml.safe_dump(small), "utf-8")
    (folder / (arguments["output"] or "")).parent.mkdir(parents=True, exist_ok=True)
    run(program("rankrouting"), *words[1:], cwd=folder)
    assert [one for one in folder.rglob("*.parquet") if one.parent.suffix != ".cells"]


def folder_is_made(words: list[str], folder: Path) -> None:
    """Make a folder as printed, elsewhere."""
    subprocess.run([*words[:2], folder / words[2]], check=True)
    assert (folder / words[2]).is_dir()


def papermill_fits(words: list[str], folder: Path) -> None:
    """Check the notebook and the parameters."""
    program("papermill")
    values = dict(zip(words[words.index("-p") + 1 :: 3], words[words.index("-p") + 2 :: 3], strict=True))
    chapters.load(ROOT / words[1]).convert(values, words=True)


def jupyter_book_fits(words: list[str], folder: Path) -> None:
    """Check the program and the folder."""
    program("jupyter-book")
    assert words[1] == "build" and (ROOT / words[2] / "_config.yml").is_file()


def pip_fits(words: list[str], folder: Path) -> None:
    """Check that the extras that are named exist."""
    assert words[1] == "install" and words[2].startswith(".")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(re.findall(r"\w+", words[2])) <= set(extras)


def module_exists(words: list[str], folder: Path) -> None:
    """Check the module of python -m."""
    assert importlib.util.find_spec(words[2]) is not None


def hooks_fit(words: list[str], folder: Path) -> None:
    """Check that pre-commit and each program of its hooks is there."""
    program("pre-commit")
    for repo in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]:
        for hook in repo["hooks"]:
            program(hook["entry"].split()[0].removeprefix(".venv/bin/"))


Treatment = Callable[[list[str], Path], None]

# The first that fits all of a command is what is done with it; slow ones are marked.
COMMANDS: list[tuple[str, Treatment, bool]] = [
    (r"make help", make_runs, False),
    (r"make [a-z-]+( [A-Z_]+=\S+)*", make_has, False),
    (r"(\.venv/bin/)?rankrouting list( \w+)?", rankrouting_runs, False),
    (r"(\.venv/bin/)?rankrouting run \w+ .*", chapter_runs_small, True),
    (r"(\.venv/bin/)?rankrouting (book|claims|verify)( .*)?", rankrouting_parses, False),
    (r"(\.venv/bin/)?rankrouting sweep .*", sweep_runs_small, True),
    (r"mkdir -p _build/\w+", folder_is_made, False),
    (r"papermill book/\w+\.ipynb .*", papermill_fits, False),
    (r"jupyter-book build \.", jupyter_book_fits, False),
    (r"pip install '?\.(\[\w+\])?'?", pip_fits, False),
    (r"python -m [\w.]+", module_exists, False),
    (r"\.venv/bin/pre-commit install", hooks_fit, False),
]
PRINTED = commands()


def treatment(command: str) -> tuple[Treatment, bool] | None:
    """Return what `COMMANDS` says of a command."""
    for pattern, what, slow in COMMANDS:
        if re.fullmatch(pattern, command):
            return what, slow
    return None


def cases() -> list[Any]:
    """Return the commands that are known, the slow ones marked."""
    known = [(one, treatment(one)) for one in PRINTED]
    return [
        pytest.param(one, what[0], marks=pytest.mark.slow if what[1] else (), id=one) for one, what in known if what
    ]


def test_each_command_on_a_page_is_run_or_checked() -> None:
    unknown = {one: pages for one, pages in PRINTED.items() if treatment(one) is None}
    assert unknown == {}, "add what is to be done with them to COMMANDS"
    unused = [pattern for pattern, what, _ in COMMANDS if not any(treatment(o) == (what, _) for o in PRINTED)]
    assert unused == []


@pytest.mark.parametrize(
    "wrong",
    [
        "make boook",
        "make book PROFIL=smoke",
        "make book PROFILE=smokey",
        "rankrouting lst",
        "rankrouting verify workload --profil smoke",
        "rankrouting verify wrkload",
        "rankrouting claims --profile smokey",
        "papermill book/workload.ipynb mine.ipynb -p k 20",
        "pip install '.[clustr]'",
        "python -m benchmarks.sweep",
    ],
)
def test_a_wrong_command_would_be_seen(wrong: str, tmp_path: Path) -> None:
    found = treatment(shlex.join(shlex.split(wrong)))
    if found is None:
        return
    with pytest.raises((Exception, SystemExit)):
        found[0](shlex.split(wrong), tmp_path)


@pytest.mark.parametrize(("command", "what"), cases())
def test_a_command(command: str, what: Treatment, tmp_path: Path) -> None:
    what(shlex.split(command), tmp_path)


# Python.


def test_the_readme_prints_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    (source,) = blocks(ROOT / "README.md", PYTHON)
    exec(compile(source, "README.md", "exec"), {})
    printed = [[float(word) for word in line.split()] for line in capsys.readouterr().out.splitlines()]
    comments = [line.partition("#")[2] for line in source.splitlines() if line.startswith("print(")]
    stated = [[float(word) for word in re.findall(r"\d+(?:\.\d+)?", comment)] for comment in comments]
    assert len(printed) == len(stated) >= 3
    for numbers, words in zip(printed, stated, strict=True):
        assert words[-len(numbers) :] == pytest.approx(numbers, abs=0.06 if max(numbers) > 100 else 0.0006), words


HEADER = """
from dataclasses import dataclass
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rankrouting import Policy, System, analytic, checks, mjsq, plots, queues
"""
# What CONTRIBUTING.md says that a chapter has by then.
BY_THEN = """
limit = System(400, 3, 1.0, mjsq(2.0))
system = limit
frame = pd.DataFrame({"c": [1.0], "factor": [2.0]})
cs, factors, errors = [1.0], [2.0], [0.1]
factor = factors[0]
drawing, ax = plots.figure()
ax.set(xlabel="x", ylabel="y")
means = queues.simulate_stationary(system, seed=1).estimate("mean_total", controls=True)
"""


@pytest.mark.slow
def test_what_contributing_says_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(repository.RESULTS_VARIABLE, str(tmp_path))
    sources = blocks(ROOT / "CONTRIBUTING.md", PYTHON)
    names: dict[str, Any] = {"assert_within": assert_within, "assert_detects": assert_detects}
    exec(HEADER, names)
    exec("".join(parameters_of("workload")), names)
    for source in sources:
        if "save_csv" in source:
            exec(BY_THEN, names)
        exec(compile(source, "CONTRIBUTING.md", "exec"), names)
    names["test_second_shortest"]()
    assert [one.holds for one in names["ledger"].claims] == [True]
    labels = chapters.theorem_labels(ROOT)
    assert {one.theorem for one in names["ledger"].claims} <= set(labels)
    assert set(re.findall(r"prf:ref\}\}`([^`]+)`", "".join(sources))) <= set(labels)
    assert (tmp_path / "workload" / "claims.json").is_file() and (tmp_path / "workload" / "factor.svg").is_file()


def code_of(name: str) -> list[str]:
    """Return the code cells of a chapter."""
    cells = json.loads((ROOT / "book" / f"{name}.ipynb").read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def parameters_of(name: str) -> list[str]:
    """Return the lines that set the parameters of a chapter to those of the profile smoke."""
    chapter = chapters.find(name, ROOT)
    values = chapter.parameter_values(chapters.load_profile("smoke", ROOT)[name])
    return [f"{key} = {value!r}\n" for key, value in values.items()]


def wanted(source: str, known: set[str]) -> set[str]:
    """Return the names that a piece of code reads and nothing has set."""
    nodes = list(ast.walk(ast.parse(source)))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    made = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    made |= {alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names}
    made |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    made |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return {node.id for node in names} - made - known - set(vars(builtins))


SOLVED = [page.stem for page in PAGES if page.suffix == ".ipynb" and blocks(page, PYTHON)]


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVED)
def test_the_python_on_a_page_of_the_book_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(repository.RESULTS_VARIABLE, str(tmp_path))
    if chapters.find(name, ROOT).collects and name != "intro":
        for source in blocks(ROOT / "book" / f"{name}.ipynb", PYTHON):
            ast.parse(source)  # they need the results of a build
        return
    cells = [*code_of(name)[1:]]
    names: dict[str, Any] = {}
    exec("".join(parameters_of(name)), names)
    for source in blocks(ROOT / "book" / f"{name}.ipynb", PYTHON):
        # As many cells of the chapter as it takes until all names are there.
        while wanted(source, set(names)) and cells:
            exec(compile(cells.pop(0), name, "exec"), names)
        # A piece that is to fail says so: "raises" and the name of the error.
        said = re.search(r"# .*\braises (\w+)", source)
        with pytest.raises(ValueError) if said else contextlib.nullcontext() as caught:
            exec(compile(source, name, "exec"), dict(names))
        assert caught is None or type(caught.value).__name__ == said[1]  # type: ignore[index]
