"""The library's parts stand on each other without a circle, and the picture shows what the imports say."""

from __future__ import annotations

from graphlib import CycleError

import matplotlib.pyplot as plt
import pytest
from rankrouting.companion import architecture


def test_imports_lead_down() -> None:
    edges = architecture.imports()
    heights = {name: level for level, names in enumerate(architecture.layers(edges)) for name in names}
    assert all(heights[below] < heights[name] for name, found in edges.items() for below in found)


def test_nothing_that_simulates_or_computes_knows_the_book() -> None:
    edges = architecture.imports()
    machinery = {"companion", "cli", "plots"}
    assert machinery <= set(edges)
    for name in set(edges) - machinery - {"sweep"}:
        assert not edges[name] & machinery, name


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
