"""Where the book's numbers come from: parameters, versions, what a build took, figure to function to test.

Chapter: reproduce.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from . import chapters, repository, state

# What nearly every figure uses says nothing about it.
_WITHOUT = ("companion", "replications")
_OF_EVERY_FIGURE = (
    "plots.figure",
    "plots.show",
    "plots.theory",
    "plots.measured",
    "plots.log_ticks",
    "plots.COLOURS",
    "plots.POLICY_COLOURS",
    "plots.THEORY",
)


def run_facts(chapter: str) -> dict[str, Any]:
    """Return what the build recorded of a chapter, or an empty mapping if no build ran it."""
    path = repository.results_folder() / chapter / "run.json"
    facts = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return facts if isinstance(facts, dict) else {}


def parameters_frame(chapter: chapters.Chapter) -> pd.DataFrame:
    """Return a chapter's parameters: value in this build, default, type, allowed values, meaning."""
    values = run_facts(chapter.name).get("parameters", {})
    rows = [
        {
            "parameter": one.name,
            "this build": str(values.get(one.name, one.default)),
            "default": str(one.default),
            "type": one.type,
            "allowed": one.range or "any",
            "meaning": one.meaning,
        }
        for one in chapter.parameters
    ]
    return pd.DataFrame(rows, columns=["parameter", "this build", "default", "type", "allowed", "meaning"])


def profiles_frame() -> pd.DataFrame:
    """Return the parameters in which profiles differ, one column for each profile."""
    names = chapters.profiles()
    loaded = {name: chapters.load_profile(name) for name in names}
    rows = []
    for chapter in chapters.all_chapters():
        for one in chapter.parameters:
            values = {name: str(loaded[name][chapter.name][one.name]) for name in names}
            if len(set(values.values())) > 1:
                rows.append({"chapter": chapter.name, "parameter": one.name, **values})
    return pd.DataFrame(rows, columns=["chapter", "parameter", *names])


def cost_frame() -> pd.DataFrame:
    """Return the wall time and peak memory of each chapter of this build, as far as they are known."""
    rows = []
    for chapter in chapters.all_chapters():
        facts = run_facts(chapter.name)
        if facts:
            megabytes = facts["peak_memory_bytes"] / 1e6
            rows.append({"chapter": chapter.name, "time (s)": facts["seconds"], "peak memory (MB)": megabytes})
    return pd.DataFrame(rows, columns=["chapter", "time (s)", "peak memory (MB)"])


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package and of all that it names as a dependency."""
    found = {"Python": platform.python_version(), "rankrouting": metadata.version("rankrouting")}
    for requirement in metadata.requires("rankrouting") or []:
        if "extra ==" not in requirement:
            name = re.split(r"[^A-Za-z0-9._-]", requirement)[0]
            found[name] = metadata.version(name)
    return found


def versions_frame() -> pd.DataFrame:
    """Return `versions` as a table, with a line for the machine."""
    rows = [*versions().items(), ("system", f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors")]
    return pd.DataFrame(rows, columns=["name", "version"])


def run_record(chapter: chapters.Chapter, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an executed notebook says of its run, in its metadata at ``rankrouting.run``.

    Parameters
    ----------
    chapter : Chapter
        Which.
    parameters : mapping
        All of its parameters.

    Returns
    -------
    dict
        ``chapter``; ``parameters``, and ``seed``, the one of them that decides the random numbers (None without
        any); ``source`` and ``code``, hashes of the chapter's notebook and of the library; ``versions``, among them
        the kind of processor that kernels are compiled for, since they may round differently on another.
    """
    machine = {"system": f"{platform.system()} {platform.machine()}", "processor": processor()}
    return {
        "chapter": chapter.name,
        "parameters": dict(parameters),
        "seed": parameters.get("seed"),
        "source": state.files_hash([chapter.path], chapter.path.parent),
        "code": state.code_hash(),
        "versions": versions() | machine,
    }


def processor() -> str:
    """Return the kind of processor that kernels are compiled for, as LLVM names it."""
    import numba
    from llvmlite import binding

    return str(numba.config.CPU_NAME or binding.get_host_cpu_name())


@dataclass(frozen=True)
class FigureSource:
    """What a figure is made with.

    Attributes
    ----------
    figure, chapter : str
        Name of the figure's files, and the chapter that shows it.
    functions : tuple of str
        Functions of the library that the cells since the figure before it use, also through names of the notebook
        that they read, as in
        ``analytic.gap_law``.
    """

    figure: str
    chapter: str
    functions: tuple[str, ...]


def figure_sources(root: Path | None = None) -> list[FigureSource]:
    """Return the sources of every figure, read from the chapters without running them."""
    found = []
    for chapter in chapters.all_chapters(root):
        behind: dict[str, list[str]] = {}  # the functions of the library behind each name of the notebook
        used: list[str] = []  # since the figure before
        cells = list(_code(chapter.path))
        library = _Library(cells)
        for tree in cells:
            for part, bound in _parts(tree.body):
                mine = list(dict.fromkeys([*library.used_by(part), *_inherited(part, behind)]))
                used += mine
                behind |= dict.fromkeys(bound, mine)
                for name in _grown_names(part):
                    behind[name] = list(dict.fromkeys([*behind.get(name, []), *mine]))
            for figure in _shown_figures(tree):
                found.append(FigureSource(figure, chapter.name, tuple(dict.fromkeys(used))))
                used = []
    return found


def _parts(body: list[ast.stmt]) -> Iterator[tuple[ast.AST, list[str]]]:
    """Yield the simple statements and loop heads of a cell, each with the names that it binds."""
    for statement in body:
        if isinstance(statement, ast.For):
            yield statement.iter, _stored(statement.target)
            yield from _parts(statement.body)
        elif isinstance(statement, (ast.If, ast.With, ast.While)):
            yield from _parts(statement.body)
        elif isinstance(statement, ast.FunctionDef):
            yield statement, [statement.name]
        elif isinstance(statement, ast.Assign):
            yield statement, [name for target in statement.targets for name in _stored(target)]
        else:
            yield statement, []


def _stored(target: ast.expr) -> list[str]:
    return [node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def _inherited(part: ast.AST, behind: dict[str, list[str]]) -> Iterator[str]:
    """Yield the functions behind the names that a part reads."""
    for node in ast.walk(part):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield from behind.get(node.id, [])


def _grown_names(part: ast.AST) -> Iterator[str]:
    """Yield the names whose contents a part adds to: ``totals.append(…)``, ``columns["c"] = …``."""
    for node in ast.walk(part):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            holder: ast.expr = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            holder = node.func.value
        else:
            continue
        if isinstance(holder, ast.Name):
            yield holder.id


def figures_frame() -> pd.DataFrame:
    """Return the map from figure to chapter, functions and the tests that name them."""
    tests = _tests_by_name(repository.root() / "tests")
    rows = []
    for one in figure_sources():
        named = [test for name in one.functions for test in tests.get(name, [])[:1]]
        rows.append(
            {
                "figure": one.figure,
                "chapter": one.chapter,
                "functions": ", ".join(one.functions) or "–",
                "tests": ", ".join(dict.fromkeys(named)) or "–",
            }
        )
    return pd.DataFrame(rows, columns=["figure", "chapter", "functions", "tests"])


def _code(path: Path) -> Iterator[ast.Module]:
    """Yield the code cells of a notebook, parsed; lines for IPython only are dropped."""
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            lines = "".join(cell["source"]).splitlines()
            yield ast.parse("\n".join(line for line in lines if not line.startswith(("%", "!"))))


class _Library:
    """What code has imported of this package, and what parts of it use: names such as analytic.gap_law."""

    def __init__(self, trees: Iterable[ast.AST]) -> None:
        self._modules: dict[str, ModuleType] = {}
        self._functions: dict[str, str] = {}
        for node in (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)):
            package, _, module = (node.module or "").partition(".")
            if package != "rankrouting" or module.startswith(_WITHOUT):
                continue
            for one in node.names:
                path = f"rankrouting.{module or one.name}"
                if module:
                    self._functions[one.asname or one.name] = f"{module}.{one.name}"
                elif importlib.util.find_spec(path) is not None:
                    self._modules[one.asname or one.name] = importlib.import_module(path)

    def used_by(self, tree: ast.AST) -> Iterator[str]:
        """Yield what a part of the code uses; a variable that is called like a module lacks what the module has."""
        for node in ast.walk(tree):
            name = ""
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module = self._modules.get(node.value.id)
                if hasattr(module, node.attr):
                    name = f"{node.value.id}.{node.attr}"
            elif isinstance(node, ast.Name):
                name = self._functions.get(node.id, "")
            if name and name not in _OF_EVERY_FIGURE:
                yield name


def _shown_figures(tree: ast.Module) -> Iterator[str]:
    """Yield the names of figures that a cell shows through `plots.show`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("plots.show", "show"):
            for keyword in node.keywords:
                if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                    yield str(keyword.value.value)


def _tests_by_name(folder: Path) -> dict[str, list[str]]:
    """Return the tests that use each function: for ``analytic.gap_law``, ``test_analytic.py::test_gap_law`` first."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.glob("test_*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        library = _Library([tree])
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for name in dict.fromkeys(library.used_by(node)):
                    found.setdefault(name, []).append(f"{path.name}::{node.name}")
    # A test that is named after the function comes first, then one in the file that is named after its module.
    for name, tests in found.items():
        module, _, function = name.partition(".")
        tests.sort(key=lambda test, m=module, f=function: (f"::test_{f}" not in test, f"_{m}.py" not in test))  # type: ignore[misc]
    return found
