"""The chapters of the book and their parameters, read without running anything.

A chapter has one code cell with the tag ``parameters``. Each of its lines is a literal with a type,
its meaning and the values that are allowed::

    n: int = 10_000  # jobs that a server completes per unit time [>= 1]
    kind: str = "events"  # how paths are simulated [events, jumps]
    cs: list[float] = [1.0, 2.0]  # rates c of the ranked stream [> 0]

Ranges are ``[>= a]``, ``[> a]``, ``[<= a]``, ``[< a]``, ``[a to b]`` or, for text, the words that are
allowed; of a list they hold for each element. Chapters: all, through `check_parameters`.
"""

from __future__ import annotations

import ast
import io
import json
import math
import re
import tokenize
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..checks import nearest, shown
from . import repository

TYPES = ("int", "float", "bool", "str", "list[int]", "list[float]")
_LARGEST = 2**63 - 1
_LARGEST_FILE = 100_000


class ParameterError(ValueError):
    """A parameter that does not exist, or a value that it cannot have."""


class ChapterError(ValueError):
    """A chapter that does not exist or does not follow the convention."""


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell.

    Attributes
    ----------
    name, type, meaning : str
        Its name, one of `TYPES`, and its comment: meaning and unit.
    default : int, float, bool, str or list
        The value in the notebook.
    range : str
        What is allowed, as written; empty for every value of the type.
    """

    name: str
    type: str
    default: Any
    meaning: str
    range: str

    def convert(self, value: Any, *, words: bool = False) -> Any:
        """Return `value` in the parameter's type, or raise `ParameterError`.

        Parameters
        ----------
        value : object
            A number, or a text that is one (YAML reads 1e-3 as text); whole floats are integers. A
            text is no truth value.
        words : bool, default False
            Whether ``true`` and ``false`` as text are truth values and a text may hold a list, as on
            a command line.
        """
        if self.type.startswith("list["):
            return self._list(value, words)
        return self._scalar(value, self.type, words)

    def _refuse(self, value: Any, wanted: str) -> ParameterError:
        return ParameterError(f"{self.name} = {shown(value)}: must be {wanted}")

    def _list(self, value: Any, words: bool) -> list[Any]:
        if words and isinstance(value, str):
            try:
                value = _load(value, deepest=1)
            except (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError):
                pass
        if not isinstance(value, list) or not value:
            raise self._refuse(value, "a list with at least one element, written as in [1, 2]")
        return [self._scalar(one, self.type[5:-1], False) for one in value]

    def _scalar(self, value: Any, kind: str, words: bool) -> Any:
        allowed = f" in [{self.range}]" if self.range else ""
        if kind == "bool":
            if words and value in ("true", "false"):
                return value == "true"
            if not isinstance(value, bool):
                raise self._refuse(value, "true or false")
            return value
        if kind == "str":
            if not isinstance(value, str) or (self.range and value not in self._words()):
                raise self._refuse(value, f"one of {self.range}" if self.range else "text")
            return value
        wanted = ("a whole number" if kind == "int" else "a finite number") + allowed
        number = _number(value, kind)
        if number is None or not self._within(number):
            raise self._refuse(value, wanted)
        return number

    def _words(self) -> list[str]:
        return [word.strip() for word in self.range.split(",")]

    def _within(self, number: float) -> bool:
        if not self.range:
            return True
        low, high, low_open, high_open = _interval(self.range)
        return (low < number or (number == low and not low_open)) and (
            number < high or (number == high and not high_open)
        )


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
    except (ChapterError, ParameterError) as error:
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


def parse_parameters(source: str) -> tuple[Parameter, ...]:
    """Read the source of a parameters cell.

    Examples
    --------
    >>> parse_parameters("n: int = 1_000  # jobs per unit time [>= 1]")
    (Parameter(name='n', type='int', default=1000, meaning='jobs per unit time', range='>= 1'),)
    """
    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        raise ChapterError(f"parameters cell, line {error.lineno}: {error.msg}") from None
    comments = {
        token.start[0]: token.string.lstrip("# ").rstrip()
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    parameters = [_parameter(one, comments.get(one.end_lineno or 0, "")) for one in statements]
    names = [one.name for one in parameters]
    if len(set(names)) < len(names):
        raise ChapterError("parameters cell: a name is given twice")
    return tuple(parameters)


def _parameter(statement: ast.stmt, comment: str) -> Parameter:
    where = f"parameters cell, line {statement.lineno}"
    if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
        raise ChapterError(f"{where}: must be like `n: int = 1  # meaning [>= 1]`")
    kind = ast.unparse(statement.annotation)
    if kind not in TYPES:
        raise ChapterError(f"{where}: the type {kind} must be one of {', '.join(TYPES)}")
    try:
        default = ast.literal_eval(statement.value) if statement.value is not None else None
    except ValueError:
        raise ChapterError(f"{where}: the value must be a literal") from None
    matched = re.fullmatch(r"(.+?)\s*(?:\[([^\]]*)\])?", comment)
    if matched is None:
        raise ChapterError(f"{where}: needs a comment with the meaning and unit")
    parameter = Parameter(statement.target.id, kind, default, matched[1], (matched[2] or "").strip())
    if parameter.range and kind not in ("bool", "str"):
        _interval(parameter.range)
    converted = parameter.convert(default)
    return Parameter(parameter.name, kind, converted, parameter.meaning, parameter.range)


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


def read_values(path: Path, *, deepest: int = 3) -> dict[str, Any]:
    """Read a YAML file of parameters or profiles; raise `ParameterError` if it is not a mapping.

    A file has at most 100 kB, no aliases (``*name``), which multiply themselves, and nothing deeper than `deepest`:
    by default a list of a chapter of a profile.
    """
    if path.exists() and not path.is_file():
        raise ParameterError(f"{path}: is not a regular file")
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise ParameterError(f"{path}: is longer than {_LARGEST_FILE} bytes")
        values = _load(path.read_text("utf-8"), deepest)
    except ParameterError:
        raise
    except _TooDeep:
        raise ParameterError(f"{path}: has aliases (*name), or lists in lists, which are not allowed") from None
    except OSError as error:
        raise ParameterError(f"{path}: {error.strerror or error}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    except (ValueError, LookupError, AttributeError, RecursionError) as error:
        # What the constructors of dates, numbers and tags, or deep nesting, make of hostile values.
        raise ParameterError(f"{path}: has a value that cannot be read ({type(error).__name__})") from None
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise ParameterError(f"{path}: must have lines like `name: value`")
    return values


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


class _TooDeep(ValueError):  # noqa: N818 - not shown
    """YAML with aliases, or deeper than allowed."""


def _load(text: str, deepest: int) -> Any:
    """Return what a YAML text says, without aliases, tags of Python, and deep nesting."""
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > deepest or isinstance(event, yaml.AliasEvent):
            raise _TooDeep
    return yaml.load(text, Loader=_StrictLoader)  # a SafeLoader


class _StrictLoader(yaml.SafeLoader):
    """A YAML loader that refuses a name given twice, where PyYAML would take the last, and numbers it would misread."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        names: set[str] = set()
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(None, None, "<< is not allowed", key.start_mark)
            if isinstance(key, yaml.ScalarNode):
                if key.value in names:
                    raise yaml.constructor.ConstructorError(None, None, f"{key.value} is given twice", node.start_mark)
                names.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_scalar(self, node: Any) -> Any:
        # In YAML 1.1, 010 is eight and 1:30 is ninety.
        is_number = node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
        if is_number and re.fullmatch(r"[-+]?(0[0-9_]+|[0-9_]+(:[0-9_.]+)+)", node.value):
            message = f"{node.value} must be written as a decimal number"
            raise yaml.constructor.ConstructorError(None, None, message, node.start_mark)
        return super().construct_scalar(node)


def _number(value: Any, kind: str) -> int | float | None:
    """Return a number, or a text that is one, as int or float; None if it is not one of that kind."""
    if isinstance(value, str):
        try:
            value = int(value) if re.fullmatch(r"\s*[-+]?\d+\s*", value) else float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if abs(value) > _LARGEST if isinstance(value, int) else not math.isfinite(value):
        return None
    if kind == "float":
        return float(value)
    return int(value) if value == int(value) and abs(value) <= _LARGEST else None


def _interval(text: str) -> tuple[float, float, bool, bool]:
    """Return low, high and whether each end is excluded."""
    number = r"([-+]?[\d._]+(?:e[-+]?\d+)?)"
    if matched := re.fullmatch(rf"(>=|>|<=|<) *{number}", text):
        sign, bound = matched[1], float(matched[2])
        if ">" in sign:
            return bound, math.inf, sign == ">", False
        return -math.inf, bound, False, sign == "<"
    if matched := re.fullmatch(rf"{number} to {number}", text):
        return float(matched[1]), float(matched[2]), False, False
    raise ChapterError(f"the range [{text}] is not like [>= 1], [> 0], [<= 1], [< 1] or [0 to 1]")
