"""Books of a few tiny chapters, to test the pipeline on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT = Path(__file__).parent.parent

PARAMETERS = """n: int = 100  # jobs per unit time [>= 1]
upsilon: float = 1.0  # slack [> 0]
"""

CLAIM = """from rankrouting.companion.claims import Ledger
from rankrouting.replications import mean_of
ledger = Ledger("{name}")
ledger.equal(
    "{id}-mean", "the mean is $1/υ$", formula=r"1/\\upsilon", predicted=1 / upsilon,
    estimate=mean_of([0.9, 1.1, 1.05, 0.95]), theorem="thm-{name}");
ledger.save()
ledger.table()
"""


def notebook(name: str, cells: list[str], *, parameters: str = PARAMETERS, collects: bool = False) -> str:
    """Return a chapter as JSON: a theorem, the parameters, the check, then code cells."""
    title = new_markdown_cell(
        f"# On {name}\n\nReflected Atlas model {{cite}}`HarrisonWilliams1987`: $x^2$.\n\n"
        f"```{{prf:theorem}} Main\n:label: thm-{name}\n:nonumber:\n\nIt holds.\n```\n"
    )
    check = (
        "from rankrouting.companion.chapters import check_parameters\n"
        "from rankrouting.companion.results import Results\n"
        f'check_parameters("{name}", globals())\nresults = Results("{name}")'
    )
    if name == "intro":
        title.source += "\n```{bibliography}\n```\n"
    first = new_code_cell(parameters, metadata={"tags": ["parameters"]})
    book = new_notebook(cells=[title, first, new_code_cell(check), *map(new_code_cell, cells)])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    if collects:
        book.metadata["rankrouting"] = {"collects": True}
    for i, cell in enumerate(book.cells):
        cell["id"] = f"cell-{i}"
    return nbformat.writes(book)


def claim_cells(name: str) -> list[str]:
    """Return the cells of a chapter that makes one claim."""
    return [
        'results.save_csv("numbers", {"n": [n], "upsilon": [upsilon]})',
        CLAIM.format(name=name, id=name.replace("_", "-")),
        "ledger.assert_all()\nresults.downloads()",
    ]


def add_chapter(root: Path, name: str, text: str) -> None:
    """Write a chapter of a book."""
    (root / "book" / f"{name}.ipynb").write_text(text, "utf-8")


def make_book(root: Path) -> Path:
    """Make a book of an introduction that collects and two chapters; return its folder."""
    book = root / "book"
    book.mkdir(parents=True)
    for name in ("_ext", "_static"):
        shutil.copytree(ROOT / "book" / name, book / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(ROOT / "book" / "references.bib", book / "references.bib")
    shutil.copyfile(ROOT / "_config.yml", root / "_config.yml")
    (root / "_toc.yml").write_text(
        "format: jb-book\nroot: book/intro\nchapters:\n  - file: book/alpha\n  - file: book/beta\n",
        "utf-8",
    )
    (book / "profiles").mkdir()
    (book / "profiles" / "default.yml").write_text("alpha:\n  n: 200\n", "utf-8")
    collecting = (
        "from rankrouting.companion.claims import load_claims\n"
        'found = load_claims(["alpha", "beta"])\n'
        "assert len(found) == 2 and all(one.holds for one in found)\nlen(found)"
    )
    add_chapter(root, "intro", notebook("intro", [collecting], collects=True))
    for name in ("alpha", "beta"):
        add_chapter(root, name, notebook(name, claim_cells(name)))
    return root


def outputs(path: Path) -> str:
    """Return all outputs of a notebook as text."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return json.dumps([cell.get("outputs", []) for cell in cells], ensure_ascii=False)
