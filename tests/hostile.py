"""Arguments that nobody should give, and what a public function may do with them.

A call either returns finite numbers or refuses: with a `ValueError`, `TypeError` or `RuntimeError` raised in this
package, whose message is one line that names an argument. Warnings are errors.
"""

from __future__ import annotations

import math
import re
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import rankrouting
from hypothesis import strategies as st
from rankrouting.queues import TooShortWarning

PACKAGE = Path(rankrouting.__file__).parent
LONGEST_MESSAGE = 500
MOST_SECONDS = 60.0


class Rude:
    """An object that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


NUMBERS = [
    *(
        0,
        -0.0,
        1,
        -1,
        2,
        3,
        7,
        0.5,
        1.5,
        1e-3,
        1e-13,
        1 - 2**-53,
        1 + 2**-52,
        100,
        1e6,
        1e12,
        1e16,
        2**31,
        2**63,
        2**64,
    ),
    *(1e300, -1e300, 1.7e308, 1e-300, 5e-324, 1e150, 1e-150, 1e60, 1e-60, 10**30, -(10**30), 10**400, -(10**400)),
    *(math.nan, math.inf, -math.inf, True, False, np.True_, np.int8(5), np.uint64(2**64 - 1), np.float32(1.5)),
    *(np.float64(math.nan), np.longdouble(2.5), Fraction(1, 3), Fraction(10**400, 3), Decimal("1.5"), 1j, 2 + 0j),
]
THINGS = [
    *(
        None,
        "",
        "1",
        "nan",
        "x\ny",
        "\x00",
        "auto",
        "stationary",
        b"1",
        {},
        {"a": 1},
        set(),
        object(),
        Rude(),
        print,
        int,
    ),
    *(..., slice(None), range(3), iter([1.0]), np.random.default_rng(1), np.datetime64("2026-01-01"), Path("/")),
]
ARRAYS = [
    *([], [[]], [1], [1.0, 2.0], [2.0, 1.0], [0.0, 0.0], [-1.0, 1.0], [0.5, 0.5], (1, 2, 3), [[1.0, 2.0], [3.0, 4.0]]),
    *([[1.0], [1.0, 2.0]], [[[[1.0]]]], [None], ["a", "b"], [True, False], [1j, 2.0], [math.nan, 1.0], [math.inf, 1.0]),
    *([1e300, 1e300], [1e-300, 1.0], [5e-324, 5e-324], [-1e300, 1e300], [1e150, 1e-150], [10**400], [object()], ["1"]),
    *(np.array(3.0), np.array("a\nb"), np.array([1, "a", None], dtype=object), np.zeros((2, 2)), np.zeros((0, 3))),
    *(np.arange(1000.0), -np.arange(1000.0), np.arange(60.0).reshape(3, 20), np.full((30, 30), math.nan)),
    *(np.array(["2026-01-01"], dtype="datetime64[D]"), np.ones(3, dtype=np.float16), np.ones((2, 3, 4, 5))),
    *(np.ma.masked_array([1.0, 2.0], mask=[True, False]), np.zeros(3, dtype=[("a", "f8")]), [[1, 2], [3]]),
]
extreme = st.floats(-320, 308.2).map(lambda exponent: 10.0**exponent) | st.floats() | st.integers(-(10**20), 10**20)
hostile = (
    st.sampled_from(NUMBERS) | st.sampled_from(THINGS) | st.sampled_from(ARRAYS) | extreme | extreme.map(lambda x: -x)
)


@dataclass(frozen=True)
class Case:
    """A public function, with good values of its arguments.

    Attributes
    ----------
    call : callable
        Takes the arguments by name.
    good : mapping of str to strategy
        Arguments to spoil.
    also : tuple of str
        Words that name an argument as well: what a function calls a part of it.
    infinite : bool
        Whether infinity is a result, as of the rates of gaps that are 0.
    missing : tuple of str
        Fields that are NaN by their documentation.
    """

    call: Callable[..., Any]
    good: Mapping[str, st.SearchStrategy[Any]]
    also: tuple[str, ...] = ()
    infinite: bool = False
    missing: tuple[str, ...] = field(default=())


@st.composite
def arguments(
    draw: Any, good: Mapping[str, st.SearchStrategy[Any]], most_spoiled: int = 2
) -> tuple[dict[str, Any], set[str]]:
    """Draw the arguments of a call, some of them hostile, and the names of these."""
    names = sorted(good)
    spoiled = draw(st.sets(st.sampled_from(names), max_size=most_spoiled)) if names else set()
    return {name: draw(hostile if name in spoiled else good[name]) for name in names}, spoiled


def is_finite(value: Any, infinite: bool = False, missing: tuple[str, ...] = ()) -> bool:
    """Whether there is no NaN, and no infinity, in a result."""
    if value is None or isinstance(value, (str, bool, int)):
        return True
    if hasattr(value, "_fields") or is_dataclass(value):
        names = value._fields if hasattr(value, "_fields") else [one.name for one in fields(value)]
        return all(is_finite(getattr(value, name), infinite, missing) for name in names if name not in missing)
    if isinstance(value, (list, tuple)):
        return all(is_finite(one, infinite, missing) for one in value)
    if isinstance(value, (float, np.ndarray, np.generic)):
        array = np.asarray(value)
        if array.dtype.kind in "iub":
            return True
        return array.dtype.kind == "f" and bool(np.all(~np.isnan(array) if infinite else np.isfinite(array)))
    return True


def accepted_or_refused(case: Case, given: Mapping[str, Any], spoiled: set[str]) -> Any:
    """Call, and assert that the result is finite or the refusal is one sentence; return the result, if any."""
    began = time.monotonic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", TooShortWarning)
            result = case.call(**given)
    except Exception as error:
        message = str(error)
        where = traceback.extract_tb(error.__traceback__)[-1]
        shown = f"{type(error).__name__}: {message!r} at {where.filename}:{where.lineno}"
        assert isinstance(error, (ValueError, TypeError, RuntimeError, PermissionError)) and not isinstance(
            error, RecursionError
        ), shown
        assert Path(where.filename).is_relative_to(PACKAGE), f"from deep inside: {shown}"
        assert message and "\n" not in message and len(message) <= LONGEST_MESSAGE, shown
        named = [name for name in (*given, *case.also) if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message)]
        assert named, f"names none of {', '.join(given)}: {shown}"
        assert len(spoiled) != 1 or set(named) & (spoiled | set(case.also)), f"does not name {spoiled}: {shown}"
        result = None
    else:
        assert is_finite(result, case.infinite, case.missing), f"not finite: {result!r}"
    assert time.monotonic() - began < MOST_SECONDS, "took too long"
    return result
