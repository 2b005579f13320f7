"""How the library hangs together, read from its imports: what the page on its architecture draws.

A unit is a module or a package directly in `rankrouting`; it stands on the units that it imports.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PACKAGE = Path(__file__).parents[1]

_IN_LINE = 5  # boxes that are beside each other without touching


def units() -> dict[str, str]:
    """Return each unit's name with the first line of its docstring, in alphabetical order."""
    found = {}
    for path in sorted(_PACKAGE.glob("*")):
        source = path / "__init__.py" if path.is_dir() else path
        if source.suffix == ".py" and source.is_file() and path.stem != "__init__":
            docstring = ast.get_docstring(ast.parse(source.read_text("utf-8"))) or ""
            found[path.stem] = docstring.split("\n")[0]
    return found


def imports() -> dict[str, set[str]]:
    """Return for each unit the units that it imports, also those imported only when they are used."""
    names = units()
    found: dict[str, set[str]] = {name: set() for name in names}
    for name in names:
        path = _PACKAGE / name
        for source in path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]:
            found[name] |= {one for one in _imported(source) if one in names and one != name}
    return found


def _imported(source: Path) -> Iterator[str]:
    folder = source.relative_to(_PACKAGE).parent.parts
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = folder[: len(folder) - node.level + 1]
            path = [*above, *(node.module or "").split(".")] if node.module else list(above)
            yield from [path[0]] if path else [one.name for one in node.names]


def layers(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the units in layers, the lowest first: each stands as low as what it imports allows.

    Raises
    ------
    graphlib.CycleError
        If two units import each other, by whatever detour.
    """
    height: dict[str, int] = {}
    for name in TopologicalSorter(edges).static_order():
        height[name] = max((height[below] + 1 for below in edges[name]), default=0)
    return [sorted(name for name in height if height[name] == level) for level in range(max(height.values()) + 1)]


def draw(ax: Axes, edges: Mapping[str, set[str]]) -> None:
    """Draw the units as boxes in their layers, and a line from each to those that it imports.

    An import that others imply (of what one imports already stands on it) is left out. In a layer of many boxes every
    other one is raised, so that none covers another.
    """
    levels = layers(edges)
    place = {
        name: ((index + 0.5) / len(level), height + 0.36 * (index % 2) * (len(level) > _IN_LINE))
        for height, level in enumerate(levels)
        for index, name in enumerate(level)
    }
    for name, below in edges.items():
        for one in below - _implied(edges, below):
            ax.annotate(
                "",
                place[one],
                place[name],
                arrowprops={"arrowstyle": "-|>", "color": "0.6", "shrinkA": 11, "shrinkB": 11, "linewidth": 0.8},
            )
    box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "0.3"}
    for name, (x, y) in place.items():
        ax.text(x, y, name, ha="center", va="center", family="monospace", fontsize=9, bbox=box)
    ax.set_xlim(0, 1)
    ax.set_ylim(-0.5, len(levels) - 0.5)
    ax.set_axis_off()


def _implied(edges: Mapping[str, set[str]], names: set[str]) -> set[str]:
    """Return what the units of a set stand on, by however many steps."""
    found: set[str] = set()
    todo = list(names)
    while todo:
        new = edges[todo.pop()] - found
        found |= new
        todo.extend(new)
    return found
