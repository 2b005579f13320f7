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


# Numbers beyond these have no meaning here, and products of a few of them would leave the range of floats.
LARGEST, SMALLEST = 1e100, 1e-100
MOST_QUEUES = 10**6
MOST_REPLICATIONS = 10**9
MOST_THREADS = 1024


def whole(name: str, value: Any, *, at_least: int = 1, at_most: int | None = None) -> int:
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
    if at_most is not None and int(number) > at_most:
        raise ValueError(f"{name} = {_plain(number)}: {requirement} and at most {at_most}")
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
    """Return `value` as a finite float within the stated bounds: at most 1e100 in size, at least 1e-100 if above 0.

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
    if abs(number) > LARGEST or (above == 0 and number < SMALLEST):
        raise ValueError(f"{name} = {_plain(value)}: {requirement}, and {_SIZE}")
    return number


_SIZE = f"not beyond {SMALLEST:g} and {LARGEST:g} in size"


def flag(name: str, value: Any) -> bool:
    """Return `value` if it is true or false."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} = {shown(value)}: must be True or False")
    return bool(value)


def confidence(value: Any) -> float:
    """Return `value` as the level of an interval of finite width."""
    level = real("level", value, above=0, below=1)
    if level > _HIGHEST_LEVEL:
        raise ValueError(f"level = {shown(value)}: must be above 0 and at most 1 - 1e-12, for a finite interval")
    return level


_HIGHEST_LEVEL = 1 - 0.999e-12


# Counts are 64-bit integers; beyond this many a sum of a few of them could pass their end.
LARGEST_COUNT = 10**16
_LARGEST_RESULT = 2**34  # bytes


def result_fits(first: int, *shape: int, name: str = "replications") -> None:
    """Raise if an array of floats (first, *shape) would take more than 16 GiB; `name` is what `first` is."""
    size = 8.0 * first * math.prod(shape)
    if size > _LARGEST_RESULT:
        raise ValueError(
            f"{name} = {shown(first)}: a result of shape ({', '.join(map(shown, (first, *shape)))}) would take"
            f" {size / 2**30:.3g} GiB; at most {_LARGEST_RESULT / 2**30:g} GiB are allowed"
        )


def fits(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    """Return whether an array of this shape can be broadcast to the shape `into`."""
    try:
        return np.broadcast_shapes(shape, into) == into
    except ValueError:
        return False


def repeated(values: Iterable[Any]) -> Any:
    """Return the first of the values that has come before, None if there is none."""
    seen = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def generator(rng: Any) -> np.random.Generator:
    """Return `rng` if it is a numpy Generator."""
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng = {shown(rng)}: must be a numpy.random.Generator")
    return rng


def one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    """Return `value` if it is one of the `allowed` words."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} = {shown(value)}: must be one of {', '.join(map(repr, allowed))}")
    return str(value)


def finite_array(name: str, value: Any) -> NDArray[np.float64]:
    """Return `value` as a float array without NaN or infinity, its entries at most 1e100 in size."""
    array = float_array(name, value)
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} = {_plain(value)}: must be finite, without NaN or infinity")
    if array.size and np.abs(array).max() > LARGEST:
        raise ValueError(f"{name} = {_plain(value)}: must be at most {LARGEST:g} in size")
    return array


def float_array(name: str, value: Any) -> NDArray[np.float64]:
    """Return `value` as a float array; NaN and infinity are left to the caller."""
    try:
        given = np.asarray(value)
        numeric = given.dtype.kind in "iuf" or not given.size
        if given.dtype.kind == "O":
            numeric = all(isinstance(x, numbers.Real) and not isinstance(x, bool) for x in given.flat)
        if not numeric or np.ma.is_masked(value):
            raise TypeError
        with np.errstate(all="ignore"):
            return given.astype(np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise ValueError(f"{name} = {shown(value)}: must be an array of finite numbers") from None


def positive_array(name: str, value: Any) -> NDArray[np.float64]:
    """Return `value` as a float array of numbers from 1e-100 to 1e100."""
    array = finite_array(name, value)
    if np.any(array < SMALLEST):
        raise ValueError(f"{name} = {_plain(array)}: must be above 0, from {SMALLEST:g} to {LARGEST:g}")
    return array


def broadcasting(**arrays: NDArray[np.float64]) -> None:
    """Raise unless the arrays, given by their names, have shapes that numpy broadcasts.

    Examples
    --------
    >>> broadcasting(x=np.zeros(2), t=np.zeros(3))
    Traceback (most recent call last):
        ...
    ValueError: x of shape (2,), t of shape (3,): must have shapes that broadcast
    """
    try:
        np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        listed = ", ".join(f"{name} of shape {array.shape}" for name, array in arrays.items())
        raise ValueError(f"{listed}: must have shapes that broadcast") from None


def sample_times(value: Any) -> NDArray[np.float64]:
    """Return sampling times as a one-dimensional, strictly increasing, nonnegative float array."""
    times = np.atleast_1d(finite_array("times", value))
    if times.ndim != 1 or times.size == 0:
        raise ValueError(f"times of shape {times.shape}: must be a vector of at least one time")
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


def jobs_at_start(x0: Any, replications: int, K: int, sqrt_n: float) -> NDArray[np.int64]:
    """Return `x0`, in limit units, as an array (replications, K) of whole jobs."""
    jobs = starting_points(x0, replications, K) * sqrt_n
    if jobs.max() >= LARGEST_COUNT:
        raise ValueError(f"x0 up to {jobs.max() / sqrt_n:g}: too many jobs to count")
    return np.rint(jobs).astype(np.int64)


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
    except Exception:  # a number in it has thousands of digits, it is nested too deeply, or its own code fails
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
        entries = list(np.ravel(np.asarray(value, dtype=object))[:7])
        texts = [f"{x:g}" if isinstance(x, float | np.floating) else shown(x) for x in entries]
        return "[" + ", ".join(texts[:6] + (["…"] if len(texts) > 6 else [])) + "]"
    return f"{value:g}" if isinstance(value, (float, np.floating)) else shown(value)
