"""Parameters cells, values, profiles, and the chapters of the book itself."""

from __future__ import annotations

import ast
import json
import math
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from rankrouting import System, mjsq, sweep
from rankrouting.companion import chapters, provenance, repository
from rankrouting.companion.chapters import ChapterError
from rankrouting.parameters import DeclarationError, Parameter, ParameterError, parse_parameters
from rankrouting.replications import Estimate
from rankrouting.sweep.file import read_sweep

from minibook import ROOT, add_chapter, make_book, notebook  # isort: skip


def one(line: str) -> Parameter:
    (parameter,) = parse_parameters(line)
    return parameter


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = make_book(tmp_path / "a bóok")
    monkeypatch.setenv(repository.ROOT_VARIABLE, str(root))
    return root


def test_a_line_has_name_type_default_meaning_and_range() -> None:
    parameter = one("c: float = 2  # rate of the ranked stream, in √n [>= 0]")
    assert parameter == Parameter("c", "float", 2.0, "rate of the ranked stream, in √n", ">= 0")
    assert isinstance(parameter.default, float)


def test_a_list_may_span_lines() -> None:
    assert one("cs: list[float] = [\n    1,\n    2.5,\n]  # rates [> 0]").default == [1.0, 2.5]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("n = 1  # jobs", "must be like"),
        ("n: int = 1", "comment"),
        ("n: int = int(1)  # jobs", "literal"),
        ("n: complex = 1  # jobs", "type"),
        ("n: int  # jobs", "n = None"),
        ("n: int = 0  # jobs [>= 1]", "n = 0"),
        ("n: int = 1  # jobs [at least 1]", "range"),
        ("n: int = True  # jobs", "n = True"),
        ("n: int = 1  # jobs\nn: int = 2  # jobs", "twice"),
        ("import os", "must be like"),
        ("n: int = (", "line 1"),
    ],
)
def test_what_is_not_by_the_convention_is_refused(source: str, said: str) -> None:
    with pytest.raises((DeclarationError, ParameterError), match=said.replace("(", r"\(")):
        parse_parameters(source)


@pytest.mark.parametrize(
    ("line", "value", "wanted"),
    [
        ("n: int = 1  # x", 1e3, 1000),
        ("n: int = 1  # x", "1e3", 1000),
        ("n: int = 1  # x", "9007199254740993", 9007199254740993),
        ("x: float = 1.0  # x", 2, 2.0),
        ("x: float = 1.0  # x", "1e-3", 1e-3),
        ("x: float = 1.0  # x [0 to 1]", 0, 0.0),
        ("x: float = 1.0  # x [0 to 1]", 1, 1.0),
        ("x: float = -1.0  # x [< 0]", -0.5, -0.5),
        ("flag: bool = True  # x", False, False),
        ("kind: str = 'events'  # x [events, jumps]", "jumps", "jumps"),
        ("xs: list[int] = [1]  # x [>= 1]", [1e2, "3"], [100, 3]),
    ],
)
def test_a_value_is_converted_to_the_type_of_the_cell(line: str, value: Any, wanted: Any) -> None:
    converted = one(line).convert(value)
    assert converted == wanted and type(converted) is type(wanted)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        *[
            ("n: int = 1  # x", value)
            for value in (2.5, "2.5", "1e400", "nan", "inf", True, None, "", "x", 1e30, 10**30)
        ],
        *[("x: float = 1.0  # x", value) for value in (math.nan, math.inf, "1e400", "true", True, [1.0], "1,5", {})],
        *[("flag: bool = True  # x", value) for value in ("true", "False", "yes", 1, 0, None)],
        *[("kind: str = 'a'  # x [a, b]", value) for value in ("c", "A", "", 1, None, "a, b")],
        *[("xs: list[int] = [1]  # x [>= 1]", value) for value in ([], [0], [1.5], 1, "[1]", (1, 2), [[1]], [True])],
        ("n: int = 1  # x [>= 1]", 0),
        ("x: float = 1.0  # x [> 0]", 0),
        ("x: float = 0.5  # x [0 to 1]", 1.0000001),
        ("x: float = -1.0  # x [< 0]", 0),
    ],
)
def test_a_wrong_value_is_refused_by_name(line: str, value: Any) -> None:
    parameter = one(line)
    with pytest.raises(ParameterError, match=f"^{parameter.name} = .*must be"):
        parameter.convert(value)


def test_words_of_a_command_line_are_truth_values_and_lists() -> None:
    assert one("flag: bool = True  # x").convert("false", words=True) is False
    assert one("xs: list[int] = [1]  # x").convert("[1, 2]", words=True) == [1, 2]
    for value in ("no", "1", "True"):
        with pytest.raises(ParameterError):
            one("flag: bool = True  # x").convert(value, words=True)


def test_an_unknown_name_is_answered_with_the_nearest(book: Path) -> None:
    with pytest.raises(ParameterError, match="no parameter 'upsilom'; did you mean 'upsilon'"):
        chapters.find("alpha").convert({"upsilom": 1})
    with pytest.raises(ChapterError, match="no chapter 'alpa'; did you mean 'alpha'"):
        chapters.find("alpa")


def test_a_chapter_needs_one_parameters_cell(book: Path) -> None:
    text = json.loads(notebook("alpha", []))
    text["cells"][1]["metadata"] = {}
    add_chapter(book, "alpha", json.dumps(text))
    with pytest.raises(ChapterError, match="0 cells"):
        chapters.find("alpha")


def test_chapters_come_in_the_order_of_the_contents(book: Path) -> None:
    found = chapters.all_chapters()
    assert [(it.name, it.collects, it.states_claims) for it in found] == [
        ("intro", True, False),
        ("alpha", False, True),
        ("beta", False, True),
    ]
    assert chapters.theorem_labels() == {f"thm-{name}": name for name in ("intro", "alpha", "beta")}


def test_a_profile_is_complete_and_checked(book: Path) -> None:
    assert chapters.load_profile("default")["alpha"] == {"n": 200, "upsilon": 1.0}
    assert chapters.load_profile("default")["beta"] == {"n": 100, "upsilon": 1.0}
    profile = book / "book" / "profiles" / "default.yml"
    for text, said in [
        ("alpah:\n  n: 1\n", "did you mean 'alpha'"),
        ("alpha:\n  m: 1\n", "no parameter 'm'"),
        ("alpha:\n  n: 0\n", "n = 0"),
        ("alpha: 3\n", "lines like"),
        ("alpha:\n  n: 1\n  n: 2\n", "twice"),
        ("alpha:\n  n: !!python/tuple [1]\n", "not YAML"),
        ("- 1\n", "lines like"),
    ]:
        profile.write_text(text, "utf-8")
        with pytest.raises((ParameterError, ChapterError), match=said):
            chapters.load_profile("default")
    with pytest.raises(ParameterError, match="did you mean 'default'"):
        chapters.load_profile("defualt")


def test_the_check_in_the_notebook_converts_what_papermill_gave(book: Path) -> None:
    namespace = {"n": 300.0, "upsilon": 2, "In": ["", "n: int = 100", "# Parameters\nn = 300.0\nupsilon = 2\n"]}
    chapters.check_parameters("alpha", namespace)
    assert namespace["n"] == 300 and isinstance(namespace["n"], int)
    assert isinstance(namespace["upsilon"], float)


def test_the_check_refuses_names_that_papermill_injected(book: Path) -> None:
    namespace = {"n": 1, "upsilon": 1.0, "m": 2, "In": ["", "# Parameters\nm = 2\n"]}
    with pytest.raises(ParameterError, match="no parameter 'm'"):
        chapters.check_parameters("alpha", namespace)
    # The same variable is fine if the reader made it.
    chapters.check_parameters("alpha", {"n": 1, "upsilon": 1.0, "m": 2, "In": ["", "m = 2"]})


def test_figures_lead_to_functions_and_tests(book: Path) -> None:
    cells = [
        "from rankrouting import analytic, exact, queues",
        "from rankrouting.estimate import extrapolate_n as at_infinity",
        "law = analytic.gap_law(limit)\npaths = queues.simulate_paths(system)\nlaw = analytic.no_such_thing",
        'plots.show(drawing, caption="c", alt="a", name="gaps", results=results)',
        'x = at_infinity(exact.stationary())\nplots.show(drawing, caption="c", alt="a", name="total", results=results)',
    ]
    add_chapter(book, "alpha", notebook("alpha", cells))
    (book / "tests").mkdir()
    (book / "tests" / "test_x.py").write_text(
        "from rankrouting import analytic\n"
        "def test_a():\n    analytic.gap_law(1)\ndef test_gap_law():\n    analytic.gap_law(2)\n"
    )
    assert [(it.figure, it.chapter, it.functions) for it in provenance.figure_sources()] == [
        ("gaps", "alpha", ("analytic.gap_law", "queues.simulate_paths")),
        ("total", "alpha", ("estimate.extrapolate_n", "exact.stationary")),
    ]
    assert provenance.figures_frame()["tests"].tolist() == ["test_x.py::test_gap_law", "–"]


BOOK = [path for path in sorted((ROOT / "book").glob("*.ipynb"))]


@pytest.mark.parametrize("path", BOOK, ids=lambda path: path.stem)
def test_a_chapter_of_the_book_follows_the_convention(path: Path) -> None:
    chapter = chapters.load(path)
    assert f"book/{path.stem}" in chapters.documents(ROOT), "not in _toc.yml"
    assert chapter.parameters
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    assert book.metadata.kernelspec.name == "python3"
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code), "committed with outputs"
    assert book.cells[0].cell_type == "markdown" and book.cells[0].source.startswith("# ")
    assert code[0].metadata.get("tags") == ["parameters"]
    assert f'check_parameters("{path.stem}", globals())' in code[1].source
    assert "downloads()" in code[-1].source or "downloads()" in code[-2].source
    text = "\n".join(cell.source for cell in book.cells if cell.cell_type == "markdown")
    assert text.count("{dropdown} Solution") >= 2, "two exercises or more, with folded solutions"
    if chapter.states_claims:
        source = "\n".join(cell.source for cell in code)
        assert "ledger.save()" in source and "ledger.assert_all()" in source


@pytest.mark.parametrize("name", ["smoke", "default", "full"])
def test_the_profiles_of_the_book_fit_its_chapters(name: str) -> None:
    assert set(chapters.load_profile(name, ROOT)) == {one.name for one in chapters.all_chapters(ROOT)}


def docstring_labels() -> set[str]:
    """Return the labels of theorems that docstrings of the library open with."""
    found = set()
    for path in (ROOT / "lib" / "rankrouting").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                opening = re.match(r"(?:thm|prop|lem|cor|def)-[a-z0-9-]+(?=:)", ast.get_docstring(node) or "")
                found |= {opening[0]} if opening else set()
    return found


def test_the_label_that_a_docstring_opens_with_is_that_of_a_theorem_in_the_book() -> None:
    assert docstring_labels() - set(chapters.theorem_labels(ROOT)) == set()


def test_claims_of_the_book_name_theorems_of_the_book() -> None:
    labels = chapters.theorem_labels(ROOT)
    for path in BOOK:
        source = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
        assert set(re.findall(r'theorem="([^"]*)"', source)) <= {*labels, ""}, path.name


def cell(name: str, tag: str) -> str:
    found = nbformat.read(ROOT / "book" / f"{name}.ipynb", as_version=4)
    return next(one.source for one in found.cells if one.id == tag)


def factor_cells(values: dict[str, Any]) -> list[Any]:
    """The cells of the sweep that the workload chapter asks for."""
    namespace: dict[str, Any] = values | {"System": System, "mjsq": mjsq, "sweep": sweep}
    exec(cell("workload", "factor-cells"), namespace)
    return list(namespace["cells"].values())


def test_the_sweep_for_a_cluster_is_what_the_full_profile_asks_for() -> None:
    values = chapters.find("workload").parameter_values(chapters.load_profile("full")["workload"])
    assert values["from_table"]
    for_cluster, _ = read_sweep(ROOT / "examples" / "workload_full.yml")
    assert {one.key for one in for_cluster} == {one.key for one in factor_cells(values)}


def test_a_table_of_a_sweep_gives_the_chapter_the_numbers_it_would_have_computed(book: Path) -> None:
    workload = chapters.find("workload", ROOT)
    values = workload.parameter_values({"queue_counts": [2], "K": 3, "sizes": [2_500, 3_600], "replications": 12})
    cells = factor_cells(values)

    def means(*, from_table: bool) -> dict[Any, Estimate]:
        named = {(one.system.K, one.system.policy.c, one.system.n): one for one in cells}
        namespace: dict[str, Any] = {"cells": named, "from_table": from_table, "sweep": sweep, "Estimate": Estimate}
        namespace["tables_folder"] = repository.tables_folder
        exec(cell("workload", "factor-means"), namespace)
        found: dict[Any, Estimate] = namespace["means"]
        return found

    here = means(from_table=False)
    assert not (book / "_build").exists()
    sweep.sweep(cells, repository.tables_folder() / "workload.parquet", threads=2, progress=False)
    finished = sorted((path, path.stat().st_mtime_ns) for path in repository.tables_folder().rglob("*.parquet"))[:-1]
    assert means(from_table=True) == here
    kept = sorted((path, path.stat().st_mtime_ns) for path in repository.tables_folder().rglob("*.parquet"))[:-1]
    assert kept == finished  # no cell was computed again
