"""Parameters with a type, a range and a meaning, and YAML files of their values: of chapters and of sweeps.

They are declared in lines like those of a chapter's cell with the tag ``parameters``, each a literal with a type, its
meaning and the values that are allowed::

    n: int = 10_000  # jobs that a server completes per unit time [>= 1]
    kind: str = "events"  # how paths are simulated [events, jumps]
    cs: list[float] = [1.0, 2.0]  # rates c of the ranked stream [> 0]

Ranges are ``[>= a]``, ``[> a]``, ``[<= a]``, ``[< a]``, ``[a to b]`` or, for text, the words that are
allowed; of a list they hold for each element.
"""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from .checks import repeated, shown

TYPES = ("int", "float", "bool", "str", "list[int]", "list[float]")
_LARGEST = 2**63 - 1
_LARGEST_FILE = 100_000


class ParameterError(ValueError):
    """A parameter that does not exist, or a value that it cannot have."""


class DeclarationError(ValueError):
    """A line that does not declare a parameter as it must."""


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
        raise DeclarationError(f"parameters cell, line {error.lineno}: {error.msg}") from None
    comments = {
        token.start[0]: token.string.lstrip("# ").rstrip()
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    parameters = [_parameter(one, comments.get(one.end_lineno or 0, "")) for one in statements]
    if (twice := repeated(one.name for one in parameters)) is not None:
        raise DeclarationError(f"parameters cell: {twice} is given twice")
    return tuple(parameters)


def _parameter(statement: ast.stmt, comment: str) -> Parameter:
    where = f"parameters cell, line {statement.lineno}"
    if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
        raise DeclarationError(f"{where}: must be like `n: int = 1  # meaning [>= 1]`")
    kind = ast.unparse(statement.annotation)
    if kind not in TYPES:
        raise DeclarationError(f"{where}: the type {kind} must be one of {', '.join(TYPES)}")
    try:
        default = ast.literal_eval(statement.value) if statement.value is not None else None
    except ValueError:
        raise DeclarationError(f"{where}: the value must be a literal") from None
    matched = re.fullmatch(r"(.+?)\s*(?:\[([^\]]*)\])?", comment)
    if matched is None:
        raise DeclarationError(f"{where}: needs a comment with the meaning and unit")
    parameter = Parameter(statement.target.id, kind, default, matched[1], (matched[2] or "").strip())
    if parameter.range and kind not in ("bool", "str"):
        _interval(parameter.range)
    converted = parameter.convert(default)
    return Parameter(parameter.name, kind, converted, parameter.meaning, parameter.range)


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
    raise DeclarationError(f"the range [{text}] is not like [>= 1], [> 0], [<= 1], [< 1] or [0 to 1]")
