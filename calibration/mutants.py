"""The library with one mistake in it, at one place: a formula off by 5 %, a wrong rate, rule or boundary.

A mutant replaces one function, wherever the library holds it, by a wrong one: made from the right one, or from the
source of its module with one piece of text changed. Nothing is written to a file. Finished runs are kept by the name
of the mutant: one that is changed gets another name.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import inspect
import pkgutil
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import rankrouting
from rankrouting import System, _jit
from rankrouting.kernels import events

OFF = 0.05


@dataclass(frozen=True)
class Mutant:
    """One mistake.

    Attributes
    ----------
    name, group, what : str
        What it is called, what kind of thing it is about, and the mistake in words.
    target : str
        The function that is wrong, as ``module:name`` in the package.
    change : callable
        The right function to the wrong one.
    """

    name: str
    group: str
    what: str
    target: str
    change: Callable[[Any], Any]

    def original(self) -> Any:
        """Return the right function."""
        module, name = self.target.split(":")
        return getattr(importlib.import_module(f"rankrouting.{module}"), name)


@contextlib.contextmanager
def replaced(mutant: Mutant) -> Iterator[None]:
    """Put the mistake into the library for a while."""
    with put(mutant.original(), _changed(mutant)):
        yield


@functools.cache
def _changed(mutant: Mutant) -> Any:
    """Return the wrong function, the same one each time: it may have to be compiled."""
    return mutant.change(mutant.original())


@functools.cache
def _import_everything() -> None:
    """Import all modules of the library: one that is imported later would keep the wrong function for good."""
    for one in pkgutil.walk_packages(rankrouting.__path__, "rankrouting."):
        importlib.import_module(one.name)


@contextlib.contextmanager
def put(original: Any, other: Any) -> Iterator[None]:
    """Replace a function in every module of the library that holds it."""
    _import_everything()
    with contextlib.ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "rankrouting" and isinstance(module, types.ModuleType):
                for attribute, value in list(vars(module).items()):
                    if value is original:
                        stack.enter_context(mock.patch.object(module, attribute, other))
        yield


def edited(old: str, new: str) -> Callable[[Any], Any]:
    """Return the change that reads the function from its module's source with one piece of text replaced."""

    def change(function: Any) -> Any:
        python = getattr(function, "py_func", function)
        module = sys.modules[python.__module__]
        source = inspect.getsource(module)
        if source.count(old) != 1:
            raise ValueError(f"{module.__name__}: has {source.count(old)} times the text {old!r}, not once")
        copy = types.ModuleType(module.__name__)
        copy.__file__, copy.__package__ = module.__file__, module.__package__
        # Machine code of a mistake is not kept; dataclasses look their module up.
        with mock.patch.object(_jit, "kernel", _jit.inlined), mock.patch.dict(sys.modules, {module.__name__: copy}):
            exec(compile(source.replace(old, new), f"<{module.__name__}, changed>", "exec"), vars(copy))
        return getattr(copy, python.__name__)

    return change


def result(wrong: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the change after which a function returns `wrong` of what is right."""

    def change(function: Any) -> Any:
        @functools.wraps(function)
        def mistaken(*arguments: Any, **named: Any) -> Any:
            return wrong(function(*arguments, **named))

        return mistaken

    return change


def argument(wrong: Callable[[Any], Any], position: int = 0) -> Callable[[Any], Any]:
    """Return the change after which a function is given `wrong` of the argument at a position."""
    return arguments({position: wrong})


def arguments(wrong: dict[int, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Return the change after which a function is given something wrong at some positions."""

    def change(function: Any) -> Any:
        def mistaken(*given: Any, **named: Any) -> Any:
            changed = [wrong.get(position, lambda same: same)(one) for position, one in enumerate(given)]
            return function(*changed, **named)

        return functools.update_wrapper(mistaken, getattr(function, "py_func", function))

    return change


def _times(factor: float) -> Callable[[Any], Any]:
    return lambda value: factor * np.asarray(value) if np.ndim(value) else factor * value


def _entry(index: int, factor: float) -> Callable[[Any], Any]:
    def wrong(values: np.ndarray) -> np.ndarray:
        values = np.array(values)
        values[index] *= factor
        return values

    return wrong


def _law(factor: float) -> Callable[[Any], Any]:
    """Stretch a law that is given by rates."""
    return lambda law: dataclasses.replace(law, rates=law.rates / factor)


def _more_ranked(factor: float) -> Callable[[System], System]:
    """Return the change of a system's c, for what computes from a system."""

    def wrong(system: System) -> System:
        if not system.policy.c:
            return system
        return dataclasses.replace(system, policy=dataclasses.replace(system.policy, c=factor * system.policy.c))

    return wrong


def _more_slack(factor: float) -> Callable[[System], System]:
    return lambda system: dataclasses.replace(system, upsilon=factor * system.upsilon)


def _formulas() -> Iterator[Mutant]:
    """Each formula up and down by 5 %."""
    plain = {
        "gap_laws:gap_rates": "rates θ of the gaps",
        "gap_laws:overload_gap_rates": "rates θ of the gaps in overload",
        "formulas:mean_total": "mean total",
        "formulas:mean_max": "mean of the longest queue",
        "formulas:mean_min": "mean of the shortest queue",
        "formulas:mean_ranked": "means of the ranked lengths",
        "formulas:variance_total": "variance of the total",
        "formulas:workload_factor": "workload factor",
        "formulas:required_c": "c that a bound needs",
        "formulas:overload_mean_spread": "mean spread in overload",
        "identities:mean_total_by_balance": "mean total by the balance identity",
        "identities:idle_servers": "idle servers",
        "identities:mm1_mean": "mean of an M/M/1 queue",
        "identities:communication_rate": "messages",
        "identities:mean_idle_time": "mean idle time",
        "identities:overload_mean_excess": "mean excess in overload",
        "identities:pauses_gap_ratios": "ratios of the gaps with pauses",
        "first_order:corrected_mean_total": "mean total with its first correction",
        "first_order:first_order_constant": "constant of order n^(−1/2)",
        "first_order:pair_constant": "the same of two queues",
        "first_order:pauses_first_order_constant": "the same with pauses",
        "rank_profiles:growth_speeds": "speeds of growth by rank",
        "rank_profiles:profile_gap_rates": "rates of the gaps of a profile",
        "rank_profiles:profile_mean_total": "mean total of a profile",
        "rank_profiles:required_c_of_sample": "c that JSQ(d) needs",
        "rank_profiles:sample_rate_ratio": "ratio of the rates of JSQ(d) and MJSQ",
        "rank_profiles:stale_growth": "growth by old ranks",
        "many_servers:atlas_gap_rates": "rates of the gaps of the Atlas model",
        "many_servers:mean_field_mean": "mean length of the mean field",
    }
    for sign, factor in (("+", 1 + OFF), ("−", 1 - OFF)):
        for target, what in plain.items():
            yield Mutant(f"{what} {sign}5 %", "formula", "result", f"analytic.{target}", result(_times(factor)))
        for name, target, change in (
            ("first rate θ₁", "gap_laws:gap_rates", result(_entry(0, factor))),
            ("last rate θ_K", "gap_laws:gap_rates", result(_entry(-1, factor))),
            ("law of the total", "formulas:total_law", result(_law(factor))),
            ("law of the spread in overload", "formulas:overload_spread_law", result(_law(factor))),
            ("level of a reflected Brownian motion", "formulas:rbm_transition_cdf", argument(_times(1 / factor))),
            ("level of a local time", "formulas:rbm_local_time_cdf", argument(_times(1 / factor))),
            ("lengths in the balance identity", "identities:balance_residual", argument(_times(factor), 1)),
            ("law of an M/M/1 queue", "identities:mm1_law", result(_geometric(factor))),
            ("level of the imbalance", "many_servers:imbalance_cdf", argument(_times(1 / factor), 1)),
            ("level of the mean field", "many_servers:mean_field_survival", argument(_times(1 / factor))),
            ("level of the Gamma law", "many_servers:super_halfin_whitt_cdf", argument(_times(1 / factor), 1)),
            ("β of the law of slowdown", "many_servers:SlowdownLaw", argument(_times(factor))),
        ):
            yield Mutant(f"{name} {sign}5 %", "formula", "argument or part of the result", f"analytic.{target}", change)
        for function in ("stationary", "transient"):
            name = f"c in the exact {function} law {sign}5 %"
            yield Mutant(name, "exact law", "argument", f"exact.laws:{function}", argument(_more_ranked(factor)))
        for function in ("overload_gap_law", "pauses_law"):
            name = f"c in exact.{function} {sign}5 %"
            yield Mutant(name, "exact law", "argument", f"exact.closed:{function}", argument(_more_ranked(factor)))
        yield Mutant(
            f"c in exact.stale_pair {sign}5 %", "exact law", "argument", "exact.stale:stale_pair",
            argument(_more_ranked(factor)),
        )  # fmt: skip
        yield Mutant(
            f"slack in exact.two_places {sign}5 %", "exact law", "argument", "exact.two_places:two_places",
            argument(_more_slack(factor)),
        )  # fmt: skip
        yield Mutant(
            f"mean of an M/G/1 queue {sign}5 %", "formula", "result", "general:mg1_mean", result(_times(factor))
        )
        yield Mutant(
            f"variability of service times {sign}5 %", "formula", "argument", "time_laws:with_scv",
            argument(_times(factor)),
        )  # fmt: skip
    old = "limit.variance * differences @ differences.T"
    for new, name in ((f"{1 + OFF} * {old}", "covariance of the gaps +5 %"),):
        yield Mutant(name, "formula", "one factor", "analytic.formulas:gap_srbm", edited(old, new))


def _geometric(factor: float) -> Callable[[Any], Any]:
    def wrong(law: Any) -> Any:
        from scipy import stats

        (p,) = law.args
        return stats.geom(p / factor, loc=-1)

    return wrong


def _rates(**factors: float) -> Callable[[Any], Any]:
    """Rates of the simulated queues, each times a factor."""

    def wrong(rates: events.Rates) -> events.Rates:
        return rates._replace(**{name: factor * getattr(rates, name) for name, factor in factors.items()})

    return result(wrong)


def _slack(factor: float) -> Callable[[Any], Any]:
    """The simulated system has another slack: the uniform stream is right for it."""

    def change(function: Any) -> Any:
        def mistaken(system: System) -> events.Rates:
            return function(system)._replace(
                uniform=(system.uniform_rate - (factor - 1) * system.upsilon * system.sqrt_n) / system.K
            )

        return mistaken

    return change


def _ranks(wrong: Callable[[np.ndarray], np.ndarray]) -> Callable[[Any], Any]:
    """Ranked jobs go to other ranks."""

    def change(function: Any) -> Any:
        def mistaken(system: System) -> events.Rates:
            p = np.ascontiguousarray(wrong(system.rank_probabilities))
            keep, alias = events.alias_table(p)
            return function(system)._replace(always_shortest=bool(p[0] == 1.0), keep=keep, alias=alias)

        return mistaken

    return change


def _simulators() -> Iterator[Mutant]:
    """Wrong rates, ranks, ties and boundaries of the simulators."""
    rates = "kernels.events:rates_of"
    for sign, factor in (("+", 1 + OFF), ("−", 1 - OFF)):
        yield Mutant(f"slack {sign}5 %", "rate of the queues", "uniform stream", rates, _slack(factor))
        yield Mutant(
            f"ranked stream {sign}5 %", "rate of the queues", "and the uniform one fewer by as many",
            "_methods:advance_with", argument(_more_ranked(factor)),
        )  # fmt: skip
        for name, change in (
            ("drift", argument(_times(factor), 3)),
            ("noise", arguments({4: _times(factor**2), 5: _times(factor)})),
        ):
            yield Mutant(
                f"{name} {sign}5 %", "rate of the diffusion", "of each step", "diffusion:_paths_kernel", change
            )
    yield Mutant("arrivals −5 %", "rate of the queues", "uniform stream", rates, _rates(uniform=1 - OFF))
    yield Mutant("services +5 %", "rate of the queues", "of each server", rates, _rates(service=1 + OFF))
    yield Mutant("ranks shifted by one", "rank", "second shortest for shortest", rates, _ranks(lambda p: np.roll(p, 1)))
    yield Mutant("longest for shortest", "rank", "p reversed", rates, _ranks(lambda p: p[::-1]))
    yield Mutant(
        "lazy: next queue", "rank", "a ranked job joins the next one of the known queues", "kernels.lazy:lazy_kernel",
        edited("        i = known[j]\n        if lengths[i] == shortest:\n            if skip == 0:\n",
               "        i = known[j]\n        if lengths[i] == shortest:\n            if skip == 0:\n"
               "                i = known[(j + 1) % count]\n"),
    )  # fmt: skip
    yield Mutant(
        "diffusion: ranks shifted by one", "rank", "each coordinate has the drift of the rank below",
        "diffusion:_paths_kernel", argument(lambda drifts: np.roll(drifts, 1, axis=1), 3),
    )  # fmt: skip
    yield Mutant(
        "diffusion: projection to 0", "boundary", "coordinates are set to 0 at the ends of steps",
        "diffusion:_paths_kernel", argument(lambda _: True, 6),
    )  # fmt: skip
    yield Mutant(
        "diffusion: local time +5 %", "boundary", "each push counted 1.05 times", "diffusion:_paths_kernel",
        edited("                    if push > 0.0:\n                        local_time[label[k]] += push",
               "                    if push > 0.0:\n                        local_time[label[k]] += 1.05 * push"),
    )  # fmt: skip
    yield Mutant(
        "jumps: projection", "boundary", "a queue below 0 is set to 0 after a jump", "kernels.jumps:jumps_kernel",
        edited("return draw_depth_or(length, arrivals, services, state) + arrivals - services",
               "return max(length + arrivals - services, 0)"),
    )  # fmt: skip
    yield Mutant(
        "lazy: projection", "boundary", "a queue below 0 is set to 0 after a jump", "kernels.lazy:lazy_kernel",
        edited("lengths[i] = jump_one(lengths[i], arrival_law, service_law, state)",
               "lengths[i] = max(lengths[i] + poisson(arrival_law, state) - poisson(service_law, state), 0)"),
    )  # fmt: skip
    yield Mutant(
        "lazy: split without condition", "boundary", "the depths of the parts of a window are not conditioned",
        "kernels.lazy:lazy_kernel",
        edited("if max(first_depth, sunk + second_depth) == windows.depth[i]:", "if windows.depth[i] >= 0:"),
    )  # fmt: skip
    yield Mutant(
        "idle times +5 %", "boundary", "each idle period counted 1.05 times", "kernels.events:idle_kernel",
        edited("idle[i] += now - empty_since[i]", "idle[i] += 1.05 * (now - empty_since[i])"),
    )  # fmt: skip


def _other_simulators() -> Iterator[Mutant]:
    """Wrong rates and ranks where every job is ranked, and in the models beyond the paper's."""
    table = "kernels.sorted:event_table"
    kind = "rate of the queues"
    yield Mutant("JSQ: arrivals −5 %", kind, "of every rank", table,
                 edited("system.ranked_rate *", f"{1 - OFF} * system.ranked_rate *"))  # fmt: skip
    yield Mutant(
        "JSQ: services +5 %", kind, "of each server", table, edited("= system.n, s", f"= {1 + OFF} * system.n, s")
    )
    yield Mutant("JSQ: longest for shortest", "rank", "p reversed", table,
                 edited("* system.rank_probabilities", "* system.rank_probabilities[::-1]"))  # fmt: skip
    stale = "kernels.stale:stale_queues_kernel"
    yield Mutant("old ranks: services +5 %", kind, "of each server", stale, argument(_times(1 + OFF), 7))
    yield Mutant("old ranks: longest for shortest", "rank", "arrivals by rank in the other order", stale,
                 edited("arrival_rates[k] * time", "arrival_rates[order.size - 1 - k] * time"))  # fmt: skip
    yield Mutant("old ranks: drift of the limit +5 %", "rate of the diffusion", "of each rank",
                 "kernels.stale:stale_diffusion_kernel", argument(_times(1 + OFF), 6))  # fmt: skip
    yield Mutant(
        "pauses: services +5 %", kind, "of each server", "kernels.pauses:pauses_kernel", argument(_times(1 + OFF), 3)
    )
    yield Mutant("occupancy: services +5 %", kind, "of each server", "kernels.occupancy:occupancy_kernel",
                 argument(lambda rates: rates._replace(service=(1 + OFF) * rates.service), 4))  # fmt: skip
    yield Mutant("Halfin–Whitt: β +5 %", "rate of the diffusion", "of the first coordinate",
                 "kernels.halfin_whitt:halfin_whitt_kernel", argument(_times(1 + OFF)))  # fmt: skip
    yield Mutant("service times −5 %", kind, "of general service times", "kernels.service:general_kernel",
                 argument(lambda rates: rates._replace(service=(1 + OFF) * rates.service), 5))  # fmt: skip


def _rules() -> Iterator[Mutant]:
    """Wrong tie rules, starts and controls."""
    yield Mutant(
        "events: first of ties", "tie rule", "the first of the shortest queues", "kernels.events:thin_kernel",
        edited("skip = int(rng.random() * ties)", "skip = 0"),
    )  # fmt: skip
    yield Mutant(
        "lazy: first of ties", "tie rule", "the first of the known shortest queues", "kernels.lazy:lazy_kernel",
        edited("skip = int(rng.random() * ties) if ties > 1 else 0", "skip = 0"),
    )  # fmt: skip
    yield Mutant(
        "no warm-up", "start", "observed from the first moment, the limit's law", "stationary:simulate_stationary",
        edited("if warmup > 0:", "if warmup < 0:"),
    )  # fmt: skip
    yield Mutant(
        "no warm-up, empty queues", "start", "observed from the first moment", "stationary:simulate_stationary",
        edited("if warmup > 0:", "lengths = 0 * lengths\n        if warmup < 0:"),
    )  # fmt: skip
    yield Mutant(
        "controls with a mean", "estimator", "one constant of the first control +5 %", "_controls:drifts",
        edited("drift_two += 2.0 + (joins - spare) * up_two", "drift_two += 2.1 + (joins - spare) * up_two"),
    )  # fmt: skip
    yield Mutant("gaps −5 %", "estimator", "ranks.gaps", "ranks:gaps", result(_times(1 - OFF)))


def registry() -> list[Mutant]:
    """Return all mutants."""
    found = [*_simulators(), *_other_simulators(), *_rules(), *_formulas()]
    if len({one.name for one in found}) < len(found):
        raise ValueError("two mutants have one name")
    return found
