"""A Sphinx extension: from a theorem to its functions and back, and names in docstrings as links.

A docstring that opens with the label of a theorem, as in ``thm-gap-law: the gaps are …``, links to the theorem, and the
theorem's block names the function. Nobody writes these links by hand.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import rankrouting
from docutils import nodes
from rankrouting.companion import chapters
from sphinx import addnodes
from sphinx.application import Sphinx

_OPENING = re.compile(r"((?:thm|prop|lem|cor|def)-[a-z0-9-]+):\s*")

# Not methods and attributes: a parameter is often called like one of them.
_OBJECTS = {"class", "exception", "function", "module"}


@cache
def functions() -> dict[str, list[str]]:
    """Return for each label the functions and classes whose docstrings open with it, each with its module."""
    found: dict[str, list[str]] = defaultdict(list)
    package = Path(rankrouting.__file__).parent
    for path in sorted(package.rglob("*.py")):
        module = path.relative_to(package.parent).with_suffix("").parts
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                opening = _OPENING.match(ast.get_docstring(node) or "")
                if opening:
                    found[opening[1]].append(".".join((*module, node.name)))
    return dict(found)


def link_theorem(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Turn the label that a docstring opens with into a reference to the theorem."""
    opening = _OPENING.match(lines[0]) if lines else None
    if opening and opening[1] in chapters.theorem_labels(Path(app.srcdir)):
        lines[0] = f":prf:ref:`{opening[1]}`: {lines[0][opening.end() :]}"


def link_functions(app: Sphinx, doctree: nodes.document) -> None:
    """Let a theorem's block end with the functions that compute what it says."""
    for block in list(doctree.findall(lambda node: node.get("label") in functions() if _is_block(node) else False)):
        line = nodes.paragraph(classes=["in-the-library"])
        line += nodes.Text("In the library: ")
        for number, name in enumerate(functions()[block["label"]]):
            if number:
                line += nodes.Text(", ")
            shown = nodes.literal(text=name.split(".")[-1])
            line += addnodes.pending_xref(
                "", shown, refdomain="py", reftype="obj", reftarget=name, refwarn=True, refdoc=app.env.docname
            )
        block += line


def without_aliases(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the fields of named tuples that Python itself describes: their class does it better."""
    return True if (getattr(obj, "__doc__", None) or "").startswith("Alias for field number") else None


def _is_block(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Element) and "label" in node.attributes and "realtype" in node.attributes


def resolve_name(app: Sphinx, env: Any, node: addnodes.pending_xref, shown: nodes.Node) -> nodes.Node | None:
    """Find what a docstring calls by its short name; a name that is nobody's is code."""
    if node.get("refdomain") != "py" or node.get("reftype") != "obj":
        return None
    domain, target = env.get_domain("py"), node["reftarget"].split(".")[-1]
    matches = [
        name
        for name, found in domain.objects.items()
        if name.split(".")[-1] == target and found.objtype in _OBJECTS and not found.aliased
    ]
    if len(matches) == 1:
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", matches[0], node, shown)
    return shown


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the above."""
    app.connect("autodoc-process-docstring", link_theorem)
    app.connect("autodoc-skip-member", without_aliases)
    app.connect("doctree-read", link_functions)
    app.connect("missing-reference", resolve_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
