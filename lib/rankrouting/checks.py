"""Checks of arguments, made before any work starts.

Each function returns the value in the type that the rest of the package relies on, or raises a
`ValueError` whose one sentence names the argument, the value given and what is allowed. Used by
every public function; no chapter uses it directly.
"""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class UnstableError(ValueError):
    """There is no stationary law (or no stationary gaps) for these parameters."""


def whole(name: str, value: Any, *, at_least: int = 1) -> int:
    """Return `value` as an int, accepting floats that are whole.

    Examples
    --------
    >>> whole("n", 1e3)
    1000
    >>> whole("n", 2.5)
    Traceback (most recent call last):
        ...
    ValueError: n = 2.5: must be a whole number, at least 1
    """
    requirement = f"must be a whole number, at least {at_least}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise ValueError(f"{name} = {shown(value)}: {requirement}")
    number: Any = value
    if not _finite(number) or number != int(number) or int(number) < at_least:
        raise ValueError(f"{name} = {_plain(number)}: {requirement}")
    return int(number)


def real(
    name: str,
    value: Any,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    below: float = math.inf,
) -> float:
    """Return `value` as a finite float within the stated bounds.

    Examples
    --------
    >>> real("c", -1, at_least=0)
    Traceback (most recent call last):
        ...
    ValueError: c = -1: must be a finite number, at least 0
    """
    requirement = "must be a finite number"
    for words, bound in (("above", above), ("at least", at_least), ("at most", at_most), ("below", below)):
        if math.isfinite(bound):
            requirement += f", {words} {bound:g}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real) or not _finite(value):
        raise ValueError(f"{name} = {shown(value)}: {requirement}")
    number = float(value)
    if not math.isfinite(number) or not (above < number < below and at_least <= number <= at_most):
        raise ValueError(f"{name} = {_plain(value)}: {requirement}")
    return number


# Counts are 64-bit integers; beyond this many a sum of a few of them could pass their end.
LARGEST_COUNT = 10**16
_LARGEST_RESULT = 2**34  # bytes


def result_fits(replications: int, *shape: int) -> None:
    """Raise if an array of floats (replications, *shape) would take more than 16 GiB."""
    size = 8.0 * replications * math.prod(shape)
    if size > _LARGEST_RESULT:
        raise ValueError(
            f"replications = {replications}: a result of shape {(replications, *shape)} would take"
            f" {size / 2**30:.3g} GiB; at most {_LARGEST_RESULT // 2**30} GiB are allowed"
        )


def one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    """Return `value` if it is one of the `allowed` words."""
    if value not in allowed:
        raise ValueError(f"{name} = {value!r}: must be one of {', '.join(map(repr, allowed))}")
    return str(value)


def finite_array(name: str, value: Any) -> NDArray[np.float64]:
    """Return `value` as a float array without NaN or infinity."""
    try:
        given = np.asarray(value)
        if given.dtype.kind not in "iufO" and given.size:
            raise TypeError
        array = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} = {shown(value)}: must be an array of finite numbers") from None
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} = {_plain(value)}: must be finite, without NaN or infinity")
    return array


def sample_times(value: Any) -> NDArray[np.float64]:
    """Return sampling times as a one-dimensional, strictly increasing, nonnegative float array."""
    times = np.atleast_1d(finite_array("times", value))
    if times.ndim != 1 or times.size == 0:
        raise ValueError(f"times of shape {times.shape}: must be a non-empty one-dimensional array")
    if times[0] < 0 or np.any(np.diff(times) <= 0):
        raise ValueError(f"times = {_plain(times)}: must be nonnegative and strictly increasing")
    return times


def starting_points(value: Any, replications: int, K: int) -> NDArray[np.float64]:
    """Return `x0` as an array (replications, K) of nonnegative lengths, broadcasting as numpy does."""
    x0 = finite_array("x0", value)
    if np.any(x0 < 0):
        raise ValueError(f"x0 = {_plain(x0)}: queue lengths must be at least 0")
    if x0.shape not in ((), (K,), (replications, K)):
        raise ValueError(f"x0 of shape {x0.shape}: must be a number, ({K},) or ({replications}, {K})")
    return np.array(np.broadcast_to(x0, (replications, K)))


def rank_probabilities(value: Any) -> tuple[float, ...]:
    """Return `p` as a tuple of probabilities that sum to one."""
    p = finite_array("p", value)
    if p.ndim != 1 or p.size == 0:
        raise ValueError(f"p of shape {p.shape}: must be a vector of K probabilities")
    if np.any(p < 0) or abs(p.sum() - 1.0) > 1e-9:
        raise ValueError(f"p = {_plain(p)}: must be probabilities that sum to 1")
    return tuple(float(x) for x in p / p.sum())


def shown(value: Any) -> str:
    """Show what is no number, in one line of at most 60 characters."""
    whole_number = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    try:
        text = _digits(int(value)) if whole_number else " ".join(repr(value).split())
    except (ValueError, RecursionError):  # a number in it has thousands of digits, or it is nested too deeply
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:59] + "…"


def nearest(name: Any, known: Iterable[str]) -> str:
    """Return the end of a sentence about a name that is not known: the nearest that is, or all.

    Examples
    --------
    >>> nearest("mjqs", ["jsq", "mjsq"])
    "; did you mean 'mjsq'?"
    """
    name, known = name if isinstance(name, str) else shown(name), list(known)
    close = [one for one in known if one.casefold() == name.casefold()]
    close = close or difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known) or 'none'}"


def _finite(value: Any) -> bool:
    """Whether a real number is finite as a float."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _digits(value: int) -> str:
    return str(value) if abs(value) < 10**60 else f"about 10^{round(math.log10(abs(value)))}"


def _plain(value: Any) -> str:
    """Show a number as typed and a long array by its first entries."""
    if isinstance(value, np.ndarray | list | tuple):
        entries: Iterable[Any] = np.ravel(np.asarray(value, dtype=object))
        texts = [f"{x:g}" if isinstance(x, numbers.Real) else repr(x) for x in entries]
        return "[" + ", ".join(texts[:6] + (["…"] if len(texts) > 6 else [])) + "]"
    return f"{value:g}" if isinstance(value, (float, np.floating)) else shown(value)
