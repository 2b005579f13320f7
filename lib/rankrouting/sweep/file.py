"""Sweeps from a file: YAML in which every key and every value is checked before anything starts.

::

    estimate: stationary              # or paths, with `times`
    quantities: [mean_total]          # names of queues.Means; for paths total, ranked
    n: [100, 10_000]                  # the grid: lists, or one value
    K: 10
    upsilon: [0.5, 1.0]
    policy:                           # a name, or a name with parameters; c and d may be lists
      - jsq
      - {name: mjsq, c: [1, 2, 4]}
      - {name: marginal_power_of_d, c: 2, d: [2, 3]}
    seed: 1
    replications: 32                  # from here on as in sweep.Stationary and sweep.Paths
    horizon: 400
    level: 0.95                       # of the intervals

A file has at most 100 kB, no aliases (``*name``) and nothing deeper than this. Where the table goes is said on the
command line only. Used by ``rankrouting sweep``; no chapter uses it directly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from .. import checks
from ..parameters import Parameter, ParameterError, parse_parameters, read_values
from ..policies import MAKERS, Policy
from .cells import MOST_CELLS, Cell, grid
from .estimates import PATH_QUANTITIES, STATIONARY_QUANTITIES, Paths, Stationary

# A value of a parameter of a policy of the list of policies of the file.
_DEEPEST = 4
_GRID = ("n", "K", "upsilon", "policy", "seed")
_BOTH = ("quantities", "replications", "method")
_KINDS = {"stationary": ("horizon", "warmup", "spacing", "controls"), "paths": ("times", "x0")}
_KEYS = ("estimate", *_BOTH, *_GRID, *_KINDS["stationary"], *_KINDS["paths"], "level")


def _parameters(source: str) -> dict[str, Parameter]:
    return {one.name: one for one in parse_parameters(source)}


# As in a chapter; the values themselves are not used.
_PARAMETERS = _parameters("""
estimate: str = "stationary"  # what is estimated [stationary, paths]
n: list[int] = [1]  # jobs that a server completes per unit time [>= 1]
K: list[int] = [1]  # queues [1 to 1000000]
upsilon: list[float] = [1.0]  # slack, in √n jobs per unit time
seed: list[int] = [0]  # of the random numbers [>= 0]
replications: int = 2  # independent runs of a cell [2 to 1000000]
method: str = "auto"  # how to simulate [auto, events, jumps, lazy]
horizon: float = 1.0  # observed time, in units of time [> 0]
warmup: float = 1.0  # discarded time, in units of time [> 0]
spacing: float = 1.0  # time between observations, in units of time [> 0]
controls: bool = False  # whether controls make the intervals shorter
times: list[float] = [0.0]  # when to look, in units of time [>= 0]
x0: float = 0.0  # length of every queue at time 0, in limit units [>= 0]
level: float = 0.95  # of the intervals [0 to 1]
""")
_POLICY_PARAMETERS = _parameters("""
c: list[float] = [1.0]  # rate of the ranked jobs, in √n jobs per unit time [>= 0]
d: list[int] = [1]  # queues that a ranked job looks at [1 to 1000000]
p: list[float] = [1.0]  # probabilities of the ranks [0 to 1]
""")


def read_sweep(path: str | Path) -> tuple[list[Cell], float]:
    """Read a file, and return its cells and the level of their intervals.

    Parameters
    ----------
    path : path
        A YAML file as above.

    Raises
    ------
    ParameterError
        With one sentence that names the key, the value and what is allowed.
    """
    path = Path(path)
    values = read_values(path, deepest=_DEEPEST)
    try:
        return _cells(values)
    except ValueError as error:
        raise ParameterError(f"{path.name}: {error}") from None


def _cells(values: Mapping[str, Any]) -> tuple[list[Cell], float]:
    for name in values:
        if name not in _KEYS:
            raise ParameterError(f"there is no key {checks.shown(name)}{checks.nearest(name, _KEYS)}")
    for name in ("estimate", *_GRID):
        if name not in values:
            raise ParameterError(f"{name}: is missing; needed are estimate, {', '.join(_GRID)}")
    kind = _PARAMETERS["estimate"].convert(values["estimate"])
    for other, names in _KINDS.items():
        for name in names:
            if name in values and other != kind:
                raise ParameterError(f"{name}: goes with estimate: {other}, not with {kind}")
    given = {name: _value(_PARAMETERS[name], value) for name, value in values.items() if name in _PARAMETERS}
    level = checks.real("level", given.get("level", 0.95), above=0, below=1)
    allowed = STATIONARY_QUANTITIES if kind == "stationary" else PATH_QUANTITIES
    settings = {name: given[name] for name in (*_BOTH, *_KINDS[kind]) if name in given}
    if "quantities" in values:
        settings["quantities"] = _quantities(values["quantities"], allowed)
    if kind == "paths" and "times" not in values:
        raise ParameterError("times: is missing, and is needed with estimate: paths")
    estimate = Stationary(**settings) if kind == "stationary" else Paths(**settings)
    axes = {name: given[name] for name in _GRID if name != "policy"}
    return grid(**axes, policy=_policies(values["policy"]), estimate=estimate), level


def _value(parameter: Parameter, value: Any) -> Any:
    """Convert a value; one value is a list of one."""
    if parameter.type.startswith("list[") and isinstance(value, (int, float, str)):
        value = [value]
    return parameter.convert(value)


def _quantities(value: Any, allowed: tuple[str, ...]) -> list[str]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        raise ParameterError(f"quantities = {checks.shown(value)}: must be a list out of {', '.join(allowed)}")
    return value


def _policies(value: Any) -> list[Policy]:
    entries = value if isinstance(value, list) else [value]
    if not entries:
        raise ParameterError("policy = []: must have at least one policy")
    return [policy for entry in entries for policy in _expanded(entry)]


def _expanded(entry: Any) -> list[Policy]:
    """Return the policies of one entry: one for each combination of its c and d."""
    given = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(given, dict) or not isinstance(given.get("name"), str):
        raise ParameterError(f"policy = {checks.shown(entry)}: must be a name, or like {{name: mjsq, c: 2}}")
    name = given["name"]
    if name not in MAKERS:
        raise ParameterError(f"policy: there is no policy {checks.shown(name)}{checks.nearest(name, MAKERS)}")
    make, parameters = MAKERS[name]
    for one in given:
        if one not in ("name", *parameters):
            raise ParameterError(
                f"policy {name}: has no parameter {checks.shown(one)}{checks.nearest(str(one), parameters)}"
            )
    for one in parameters:
        if one not in given:
            raise ParameterError(f"policy {name}: {one} is missing")
    try:
        lists = [_value(_POLICY_PARAMETERS[one], given[one]) for one in parameters]
        # Probabilities are one argument, however many.
        axes = [[values] if one == "p" else values for one, values in zip(parameters, lists, strict=True)]
        if math.prod(map(len, axes)) > MOST_CELLS:
            raise ParameterError(f"more than {MOST_CELLS} combinations")
        return [make(*arguments) for arguments in product(*axes)]
    except ValueError as error:
        raise ParameterError(f"policy {name}: {error}") from None
