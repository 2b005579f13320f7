"""Lazy windows: jumps for MJSQ in which only the queues near the minimum are looked at.

A ranked job goes to a shortest queue, so a queue that is certainly longer need not be known. A queue
far above the minimum is given a *window*: the numbers A of arrivals and D of services until the
window's end are drawn, and the depth M of the free walk (see `kernels.jumps`). Its length stays at or
above the *bound* q − M throughout, and while the minimum is below the bound nothing more of it is
asked. At the window's end its length is A − D + max(q, M).

If at a ranked arrival the minimum has come up to the bound, the window is *split* there. Given A and
D, the times of the events are uniform and their order is exchangeable, so the numbers in the first
part are binomial, and the two parts have independent depths M₁ and M₂ given the numbers; they are
drawn from that law conditioned on what is known, max(M₁, D₁ − A₁ + M₂) = M. The second part is a
window again. A ranked job that joins a queue in the middle of a split window raises its length and
its bound, and changes nothing in the window.

Why this is exact: the queues' arrivals and services are independent of each other and of the ranked
stream. When a window begins, how long it is depends only on lengths already known. What is then
revealed is a function of (A, D, M) of that queue alone, and each later draw is from the conditional
law given exactly what was revealed. That a window was not split reveals only that its bound
exceeded a minimum that other queues determine: an event in terms of M again.

A window of length g²/(64 n) for a queue g above the minimum is left by some four standard deviations
of their difference, so splits are rare; and of all queues only those within some n^{1/4} of the
minimum are drawn at every ranked arrival.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._jit import inlined, kernel
from .jumps import draw_depth, jump_one
from .random import exponential, poisson, poisson_law

WINDOW = 1.0 / 64.0  # length of a window in units of gap²/n
WORTHWHILE = 2.0  # mean numbers of ranked arrivals that a window must span to be opened
_NEVER = np.iinfo(np.int64).max


class Windows(NamedTuple):
    """What is known of each queue, arrays (K,). `lengths` hold at the time `since`.

    A queue without a window has the bound `_NEVER`.
    """

    since: NDArray[np.float64]
    until: NDArray[np.float64]
    arrivals: NDArray[np.int64]
    services: NDArray[np.int64]
    depth: NDArray[np.int64]
    bound: NDArray[np.int64]


@inlined
def open_window(i, time, end, lengths, windows, rates, state):
    """Draw what happens to queue i, whose length is known at `time`, until `end`."""
    arrivals = poisson(poisson_law(rates.uniform * (end - time)), state)
    services = poisson(poisson_law(rates.service * (end - time)), state)
    windows.since[i] = time
    windows.until[i] = end
    windows.arrivals[i] = arrivals
    windows.services[i] = services
    windows.depth[i] = draw_depth(arrivals, services, state)
    windows.bound[i] = lengths[i] - windows.depth[i]


@inlined
def finish_window(i, lengths, windows):
    """Bring queue i to the end of its window and leave it without one."""
    grown = windows.arrivals[i] - windows.services[i]
    lengths[i] = grown + max(lengths[i], windows.depth[i])
    windows.since[i] = windows.until[i]
    windows.bound[i] = _NEVER


@inlined
def split_window(i, time, lengths, windows, rng, state):
    """Learn the length of queue i at `time`; the rest of the window stays a window."""
    share = (time - windows.since[i]) / (windows.until[i] - windows.since[i])
    arrivals, services = windows.arrivals[i], windows.services[i]
    while True:
        first_arrivals = rng.binomial(arrivals, share)
        first_services = rng.binomial(services, share)
        sunk = first_services - first_arrivals
        first_depth = draw_depth(first_arrivals, first_services, state)
        second_depth = draw_depth(arrivals - first_arrivals, services - first_services, state)
        if max(first_depth, sunk + second_depth) == windows.depth[i]:
            break
    lengths[i] = max(lengths[i], first_depth) - sunk
    windows.since[i] = time
    windows.arrivals[i] = arrivals - first_arrivals
    windows.services[i] = services - first_services
    windows.depth[i] = second_depth
    windows.bound[i] = lengths[i] - second_depth


@inlined
def window_end(gap, time, latest, rates, window):
    """Return when a window of a queue `gap` above the minimum ends; `time` when it is not worthwhile."""
    end = min(latest, time + window * gap * gap / rates.service)
    return end if (end - time) * rates.ranked >= WORTHWHILE else time


@inlined
def next_to_watch(windows):
    """Return when the first window ends, and the lowest bound."""
    first_end = np.inf
    lowest_bound = _NEVER
    for i in range(windows.bound.size):
        if windows.bound[i] != _NEVER:
            first_end = min(first_end, windows.until[i])
            lowest_bound = min(lowest_bound, windows.bound[i])
    return first_end, lowest_bound


@inlined
def finish_windows(time, latest, shortest, window, lengths, windows, known, count, rates, state):
    """Finish the windows that end by `time`. Queues far above `shortest` get another one, the others
    are brought to `time` and added to the `count` queues on the list `known`; return its new length.
    """
    for i in range(lengths.size):
        if windows.bound[i] == _NEVER or windows.until[i] > time:
            continue
        while windows.bound[i] != _NEVER and windows.until[i] <= time:
            ended = windows.until[i]
            finish_window(i, lengths, windows)
            if ended < time:
                end = window_end(lengths[i] - shortest, ended, latest, rates, window)
                open_window(i, ended, end if end > ended else time, lengths, windows, rates, state)
        if windows.bound[i] == _NEVER:
            known[count] = i
            count += 1
    return count


@inlined
def jump_known(time, clock, lengths, windows, known, count, rates, state):
    """Bring the queues on the list from `clock` to `time`, and return the least of their lengths."""
    arrival_law = poisson_law(rates.uniform * (time - clock))
    service_law = poisson_law(rates.service * (time - clock))
    shortest = _NEVER
    for j in range(count):
        i = known[j]
        if windows.since[i] != time:
            lengths[i] = jump_one(lengths[i], arrival_law, service_law, state)
            windows.since[i] = time
        shortest = min(shortest, lengths[i])
    return shortest


@inlined
def split_at_minimum(time, shortest, lengths, windows, known, count, rng, state):
    """Split windows, the lowest bound first, until all other bounds are above the minimum.

    Return the minimum of all queues, and the length of the list `known` with the split queues added.
    """
    while True:
        lowest = -1
        for i in range(lengths.size):
            if windows.bound[i] <= shortest and windows.since[i] != time:
                if lowest < 0 or windows.bound[i] < windows.bound[lowest]:
                    lowest = i
        if lowest < 0:
            return shortest, count
        split_window(lowest, time, lengths, windows, rng, state)
        shortest = min(shortest, lengths[lowest])
        known[count] = lowest
        count += 1


@inlined
def join_shortest(shortest, lengths, windows, known, count, rng):
    """Send a job to a uniformly chosen one of the shortest queues, all of which are on the list."""
    ties = 0
    for j in range(count):
        ties += lengths[known[j]] == shortest
    skip = int(rng.random() * ties) if ties > 1 else 0
    for j in range(count):
        i = known[j]
        if lengths[i] == shortest:
            if skip == 0:
                lengths[i] += 1
                if windows.bound[i] != _NEVER:
                    windows.bound[i] += 1
                return
            skip -= 1


@inlined
def open_windows(time, latest, shortest, window, lengths, windows, known, count, rates, state):
    """Give the queues on the list that are far above the minimum a window; return how many are left."""
    left = 0
    for j in range(count):
        i = known[j]
        end = window_end(lengths[i] - shortest, time, latest, rates, window)
        if end > time:
            open_window(i, time, end, lengths, windows, rates, state)
        else:
            known[left] = i
            left += 1
    return left


@kernel
def lazy_kernel(lengths, durations, out, rates, window, rng, state):
    """Advance labelled lengths (K,) over each duration under MJSQ; out[j] gets the lengths at its end."""
    K = lengths.size
    zeros = np.zeros(K, np.int64)
    windows = Windows(np.zeros(K), np.zeros(K), zeros, zeros.copy(), zeros.copy(), np.full(K, _NEVER))
    known = np.arange(K)
    for j in range(durations.size):
        # All queues are known now; times count from here, so that no clock drifts.
        latest = durations[j]
        clock = 0.0
        windows.since[:] = 0.0
        shortest = lengths.min()
        count = open_windows(0.0, latest, shortest, window, lengths, windows, known, K, rates, state)
        first_end, lowest_bound = next_to_watch(windows)
        while clock < latest:
            time = min(latest, clock + exponential(state) / rates.ranked)
            changed = first_end <= time
            if changed:
                count = finish_windows(time, latest, shortest, window, lengths, windows, known, count, rates, state)
            shortest = jump_known(time, clock, lengths, windows, known, count, rates, state)
            clock = time
            if time == latest:
                break
            with_split = count
            if changed or lowest_bound <= shortest:
                changed = True
                shortest, with_split = split_at_minimum(time, shortest, lengths, windows, known, count, rng, state)
            join_shortest(shortest, lengths, windows, known, with_split, rng)
            left = open_windows(time, latest, shortest, window, lengths, windows, known, count, rates, state)
            if changed or left < count:
                first_end, lowest_bound = next_to_watch(windows)
            count = left
        out[j] = lengths
