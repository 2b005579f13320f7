"""The library's parts stand on each other without a circle, and the picture shows what the imports say."""

from __future__ import annotations

import ast
import re
from graphlib import CycleError
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import rankrouting
from rankrouting.companion import architecture, chapters

# As CONTRIBUTING.md has it: nothing depends on what comes later, not even through others.
ORDER = [
    {"model"},
    {"analytic", "exact", "kernels"},
    {"queues", "general", "diffusion"},
    {"estimate", "sweep"},
    {"companion", "plots"},
    {"cli"},
]


def below(name: str, edges: dict[str, set[str]]) -> set[str]:
    """Return all that a unit depends on."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = edges[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def test_imports_lead_down() -> None:
    edges = architecture.imports()
    architecture.layers(edges)  # raises where there is a circle
    for level, names in enumerate(ORDER):
        later = set[str]().union(*ORDER[level + 1 :])
        for name in names:
            assert not below(name, edges) & later, name


def test_nothing_that_simulates_or_computes_knows_the_book() -> None:
    edges = architecture.imports()
    machinery = {"companion", "cli", "plots"}
    assert machinery <= set(edges)
    for name in set(edges) - machinery:
        assert not edges[name] & machinery, name


def test_docstrings_name_chapters_that_there_are() -> None:
    book = {one.name for one in chapters.all_chapters()} | {"all", "most"}
    named = {}
    for source in Path(rankrouting.__file__).parent.rglob("*.py"):
        text = ast.get_docstring(ast.parse(source.read_text("utf-8"))) or ""
        for found in re.findall(r"\b[Cc]hapters?: ([a-z_,\s]+?)[.;]", text):
            named[source.relative_to(Path(rankrouting.__file__).parent)] = {one.strip() for one in found.split(",")}
    assert len(named) > 20
    assert not {name: one - book for name, one in named.items() if one - book}


def test_units_and_imports_are_those_of_the_sources() -> None:
    edges = architecture.imports()
    assert set(edges) == set(architecture.units())
    assert {"model", "policies"} <= set(edges) and "checks" in edges["model"] and "policies" in edges["model"]
    assert "sweep" in edges["cli"], "an import inside a function counts"
    assert all(line for line in architecture.units().values())


def test_a_circle_is_an_error() -> None:
    with pytest.raises(CycleError):
        architecture.layers({"a": {"b"}, "b": {"c"}, "c": {"a"}})


def test_the_picture_has_a_box_for_each_unit() -> None:
    edges = architecture.imports()
    _, ax = plt.subplots()
    architecture.draw(ax, edges)
    assert sorted(text.get_text() for text in ax.texts if text.get_text()) == sorted(edges)
    plt.close("all")
