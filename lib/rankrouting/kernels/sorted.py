"""The event loop for policies that rank every job: JSQ and JSQ(d).

As in `kernels.events` every arrival and every service is a step. Here the lengths are kept sorted: an arrival moves
the last, a service the first of the tied queues, and both places are known from the numbers of queues below each
length, so a step costs O(1) at any K. Which of the 2K events a step is, a service or an arrival at the queue of each
rank, is one draw of 64 random bits from Walker's table. No branch depends on it: half of such branches would be
mispredicted, and that would be most of the time of a step.

What is left is waiting: a step reads what the step before has just written. So two independent replications are
advanced in turn, and while one waits the other computes. Each has its own random numbers, so it comes out the same
alone.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._jit import inlined, kernel
from ..model import System
from .events import alias_table
from .random import advance, uniform

TOGETHER = 2  # replications that `sorted_kernel` advances in turn
_SERVICE, _ARRIVAL = np.uint64(0), np.uint64(1)  # unsigned: a signed index could be negative, which costs a test
_ONE = np.uint64(1)
_SPARE = 1024  # places above the longest queue


class EventTable(NamedTuple):
    """Walker's table of the law of an event: 2k is a service at the queue of rank k, 2k + 1 an arrival there.

    The upper bits of a draw choose a cell, the others are compared with its threshold. Probabilities are rounded to
    multiples of 2^-`shift` in a cell, a number below 2^-40: they are doubles and known less well.
    """

    shift: np.uint64
    mask: np.uint64  # of the lower `shift` bits
    threshold: NDArray[np.uint64]  # (cells,)
    event: NDArray[np.uint64]  # (cells, 2): below the threshold, and from it on


@functools.lru_cache(maxsize=64)  # asked for by each replication
def event_table(system: System) -> EventTable:
    """Return the table of a system that ranks every job; the arrays are shared, kernels only read them."""
    rates = np.empty(2 * system.K)
    rates[_SERVICE::2], rates[_ARRIVAL::2] = system.n, system.ranked_rate * system.rank_probabilities
    bits = (rates.size - 1).bit_length()
    keep, alias = alias_table(np.pad(rates / rates.sum(), (0, 2**bits - rates.size)))
    shift = 64 - bits
    threshold = np.array([int(part * 2.0**shift) for part in keep], dtype=np.uint64)
    event = np.column_stack([np.arange(alias.size), alias]).astype(np.uint64)
    return EventTable(np.uint64(shift), np.uint64(2**shift - 1), threshold, event)


@inlined
def draw_event(bits, table):
    """Return an event drawn from its law with 64 random bits."""
    cell = bits >> table.shift
    return table.event[cell, np.uint64((bits & table.mask) >= table.threshold[cell])]


@inlined
def move(ascending, below, event):
    """Let an event happen to the sorted lengths; below[q] is the number of queues shorter than q."""
    arrived = event & _ONE
    upper = ascending[event >> _ONE] + arrived  # a queue goes from upper − 1 to upper or back
    changes = np.uint64(upper > 0)  # a service at an empty queue changes nothing
    moved = below[upper] - arrived
    ascending[moved] = upper + arrived - changes
    below[upper] = moved + changes - arrived


@inlined
def counts_below(ascending):
    """Return below, with places for lengths up to more than twice the longest."""
    below = np.zeros(2 * np.int64(ascending[-1]) + _SPARE, dtype=np.uint64)
    for length in ascending:
        below[length + _ONE] += _ONE
    for length in range(1, below.size):
        below[length] += below[length - 1]
    return below


@inlined
def with_room(ascending, below):
    """Return below, larger if need be, and for how many steps it is surely large enough."""
    room = below.size - 1 - np.int64(ascending[-1])
    if room < below.size // 4:
        below = counts_below(ascending)
        room = below.size - 1 - np.int64(ascending[-1])
    return below, room


@inlined
def run(ascending, below, steps, table, state):
    """Take a number of steps; return below."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    while steps > 0:
        below, room = with_room(ascending, below)
        for _ in range(min(steps, room)):
            bits, s0, s1, s2, s3 = advance(s0, s1, s2, s3)
            move(ascending, below, draw_event(bits, table))
        steps -= min(steps, room)
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3
    return below


@inlined
def run_two(ascending, below, other_ascending, other_below, steps, table, state, other_state):
    """Take a number of steps in each of two replications; return below of both."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    t0, t1, t2, t3 = other_state[0], other_state[1], other_state[2], other_state[3]
    while steps > 0:
        below, room = with_room(ascending, below)
        other_below, other_room = with_room(other_ascending, other_below)
        safe = min(steps, room, other_room)
        for _ in range(safe):
            bits, s0, s1, s2, s3 = advance(s0, s1, s2, s3)
            other_bits, t0, t1, t2, t3 = advance(t0, t1, t2, t3)
            move(ascending, below, draw_event(bits, table))
            move(other_ascending, other_below, draw_event(other_bits, table))
        steps -= safe
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3
    other_state[0], other_state[1], other_state[2], other_state[3] = t0, t1, t2, t3
    return below, other_below


@kernel
def sorted_kernel(lengths, steps, out, table, states):
    """Advance one or two replications: lengths (R, K), steps (R, T) and states (R, 4) to out (R, T, K), ascending."""
    last = lengths.shape[0] - 1  # of one replication it is the first
    ascending = np.sort(lengths[0]).astype(np.uint64)
    other_ascending = np.sort(lengths[last]).astype(np.uint64)
    below, other_below = counts_below(ascending), counts_below(other_ascending)
    for j in range(steps.shape[1]):
        both = min(steps[0, j], steps[last, j]) if last else 0
        below, other_below = run_two(
            ascending, below, other_ascending, other_below, both, table, states[0], states[last]
        )
        below = run(ascending, below, steps[0, j] - both, table, states[0])
        out[0, j] = ascending
        if last:
            other_below = run(other_ascending, other_below, steps[last, j] - both, table, states[last])
            out[last, j] = other_ascending


@kernel
def labelled_kernel(lengths, steps, out, table, state):
    """As `sorted_kernel` for one replication, lengths (K,), steps (T,), out (T, K), with the labels of the queues."""
    labels = np.argsort(lengths)
    ascending = lengths[labels].astype(np.uint64)
    below = counts_below(ascending)
    for j in range(steps.size):
        left = steps[j]
        while left > 0:
            below, room = with_room(ascending, below)
            for _ in range(min(left, room)):
                bits, state[0], state[1], state[2], state[3] = advance(state[0], state[1], state[2], state[3])
                event = draw_event(bits, table)
                arrived = event & _ONE
                rank = event >> _ONE
                length = ascending[rank]
                moved = below[length + arrived] - arrived
                if arrived:  # one of the tied queues, each as likely; a service has chosen one already
                    first = below[length]
                    rank = first + np.uint64(uniform(state) * np.float64(moved - first + _ONE))
                labels[rank], labels[moved] = labels[moved], labels[rank]
                move(ascending, below, event)
            left -= min(left, room)
        for k in range(labels.size):
            out[j, labels[k]] = ascending[k]
