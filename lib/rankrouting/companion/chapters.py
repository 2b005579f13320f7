"""The chapters of the book and its profiles, read without running anything.

A chapter has one code cell with the tag ``parameters``, which `parameters` reads. Chapters: all, through
`check_parameters`.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..checks import nearest
from ..parameters import DeclarationError, Parameter, ParameterError, parse_parameters, read_values
from . import repository


class ChapterError(ValueError):
    """A chapter that does not exist or does not follow the convention."""


@dataclass(frozen=True)
class Chapter:
    """A notebook of the book.

    Attributes
    ----------
    name, title : str
        The name of its file without ``.ipynb``, and its first heading.
    path : Path
        The notebook.
    parameters : tuple of Parameter
        In the order of the cell.
    states_claims : bool
        Whether it writes a ledger.
    collects : bool
        Whether it shows numbers of other chapters, and so runs after them: the notebook's metadata
        say ``"rankrouting": {"collects": true}``.
    reads : tuple of str
        Folders of the repository whose files it shows: the metadata say ``{"reads": ["benchmarks/results"]}``.
    """

    name: str
    title: str
    path: Path
    parameters: tuple[Parameter, ...]
    states_claims: bool
    collects: bool
    reads: tuple[str, ...] = ()

    def convert(self, values: Mapping[str, Any], *, words: bool = False) -> dict[str, Any]:
        """Return values in the parameters' types; raise `ParameterError` for the first that is wrong."""
        known = {one.name: one for one in self.parameters}
        for name in values:
            if name not in known:
                raise ParameterError(f"chapter {self.name} has no parameter {name!r}{nearest(name, known)}")
        return {name: known[name].convert(value, words=words) for name, value in values.items()}

    def parameter_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return all parameters: the defaults, with `values` in place of some."""
        return {one.name: one.default for one in self.parameters} | self.convert(values)


def all_chapters(root: Path | None = None) -> list[Chapter]:
    """Return the notebooks of the book in the order of its table of contents."""
    root = repository.root() if root is None else root
    paths = [root / f"{name}.ipynb" for name in documents(root)]
    return [load(path) for path in paths if path.is_file()]


def find(name: str, root: Path | None = None) -> Chapter:
    """Return the chapter of that name; raise `ChapterError` with the nearest name if there is none."""
    root = repository.root() if root is None else root
    # Pages that are no notebooks may have the name of a chapter.
    notebooks = [root / f"{one}.ipynb" for one in documents(root)]
    paths = {path.stem: path for path in notebooks if path.is_file()}
    if name not in paths:
        if re.fullmatch(r"\w+", name) and (root / "book" / f"{name}.ipynb").is_file():
            raise ChapterError(f"book/{name}.ipynb is not in _toc.yml")
        raise ChapterError(f"there is no chapter {name!r}{nearest(name, paths)}")
    return load(paths[name])


def documents(root: Path) -> list[str]:
    """Return the documents of ``_toc.yml`` in order, without suffix, relative to `root`."""

    def walk(entry: Any) -> Iterable[str]:
        if isinstance(entry, list):
            for one in entry:
                yield from walk(one)
        elif isinstance(entry, dict):
            for key, value in entry.items():
                if key in ("root", "file"):
                    yield value.removesuffix(".ipynb").removesuffix(".md")
                elif key in ("parts", "chapters", "sections"):
                    yield from walk(value)

    return list(walk(yaml.safe_load((root / "_toc.yml").read_text("utf-8"))))


def load(path: Path) -> Chapter:
    """Read a notebook; raise `ChapterError` if it does not follow the convention."""
    try:
        notebook = json.loads(path.read_text("utf-8"))
        sources = [(cell, "".join(cell["source"])) for cell in notebook["cells"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ChapterError(f"{path.name}: not a notebook: {error}") from None
    tagged = [source for cell, source in sources if "parameters" in cell.get("metadata", {}).get("tags", [])]
    if len(tagged) != 1:
        raise ChapterError(f"{path.name}: has {len(tagged)} cells with the tag 'parameters', not one")
    code = [source for cell, source in sources if cell.get("cell_type") == "code"]
    text = "\n".join(source for cell, source in sources if cell.get("cell_type") == "markdown")
    heading = re.search(r"^# +(.+)$", text, re.MULTILINE)
    try:
        parameters = parse_parameters(tagged[0])
    except (DeclarationError, ParameterError) as error:
        raise ChapterError(f"{path.name}: {error}") from None
    own = notebook.get("metadata", {}).get("rankrouting", {})
    return Chapter(
        name=path.stem,
        title=heading[1].strip() if heading else path.stem,
        path=path,
        parameters=parameters,
        states_claims=any(re.search(r"\bLedger\(", source) for source in code),
        collects=bool(own.get("collects", False)),
        reads=tuple(own.get("reads", ())),
    )


def check_parameters(chapter: str, namespace: MutableMapping[str, Any]) -> None:
    """Check a chapter's parameters in the notebook itself, whoever runs it.

    Call it with ``globals()`` in the cell after the parameters cell. Values that papermill gave in another
    type (1000.0 for an integer) are replaced; names that it injected and the chapter lacks are
    refused, as is every wrong value.

    Parameters
    ----------
    chapter : str
        Name of the chapter.
    namespace : dict
        ``globals()`` of the notebook.

    Raises
    ------
    ParameterError
        With one sentence that names the parameter and what is allowed.
    """
    spec = find(chapter)
    injected = {name: namespace[name] for name in _injected(namespace.get("In", ())) if name in namespace}
    named = {one.name: namespace[one.name] for one in spec.parameters if one.name in namespace}
    namespace.update(spec.convert(injected | named))


def _injected(inputs: Iterable[str]) -> list[str]:
    """Return the names assigned in the cells that papermill injected, which start with # Parameters."""
    names = []
    for source in inputs:
        if source.lstrip().startswith("# Parameters"):
            for statement in ast.parse(source).body:
                if isinstance(statement, ast.Assign):
                    names += [one.id for one in statement.targets if isinstance(one, ast.Name)]
    return names


def load_profile(name: str, root: Path | None = None) -> dict[str, dict[str, Any]]:
    """Return the parameters of each chapter under a profile, checked and complete.

    Raises
    ------
    ChapterError, ParameterError
        If there is no such profile, or it names a chapter or parameter that does not exist.
    """
    root = repository.root() if root is None else root
    known = profiles(root)
    if name not in known:
        raise ParameterError(f"there is no profile {name!r}{nearest(name, known)}")
    path = root / "book" / "profiles" / f"{name}.yml"
    sections = read_values(path)
    book = {one.name: one for one in all_chapters(root)}
    for section in sections:
        if section not in book:
            raise ChapterError(f"{path.name}: there is no chapter {section!r}{nearest(section, book)}")
    values: dict[str, dict[str, Any]] = {}
    for chapter in book.values():
        given = sections.get(chapter.name) or {}
        if not isinstance(given, dict):
            raise ParameterError(f"{path.name}: {chapter.name}: must have lines like `name: value`")
        try:
            values[chapter.name] = chapter.parameter_values(given)
        except ParameterError as error:
            raise ParameterError(f"{path.name}: {chapter.name}: {error}") from None
    return values


def profiles(root: Path | None = None) -> list[str]:
    """Return the names of the profiles."""
    root = repository.root() if root is None else root
    return sorted(path.stem for path in (root / "book" / "profiles").glob("*.yml"))


def theorem_labels(root: Path | None = None) -> dict[str, str]:
    """Return the chapter of each label of a theorem-like block, as in ``{"thm-gap-law": "interchange"}``."""
    try:
        root = repository.root() if root is None else root
    except FileNotFoundError:
        return {}
    labels = {}
    for document in documents(root):
        path = root / f"{document}.ipynb"
        if not path.is_file():
            continue
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            blocks = re.findall(r"\{prf:\w+\}[^\n]*\n((?::[^\n]*\n)+)", "".join(cell["source"]))
            for label in re.findall(r"^:label: *(\S+)", "".join(blocks), re.MULTILINE):
                labels[label] = path.stem
    return labels
