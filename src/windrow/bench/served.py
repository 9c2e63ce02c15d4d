"""A moving window join in virtual time: one server, which takes the tuples in turn and may fall behind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windrow.planner.choose.costs.asymmetric import Full, Weights
from windrow.planner.choose.timed_joins import SECOND, Trace
from windrow.windows.tuples import Ints

Floats = NDArray[np.float64]
LATE = 0.02  # of the time that it is watched: a server that is further behind at the end did not keep up


@dataclass(frozen=True)
class Served:
    """Results per second, work per second, and whether the server kept up. All after windows are full."""

    rate: float
    load: float
    kept_up: bool


def output(given: Trace, form: Full, weights: Weights, probing: tuple[bool, bool]) -> Served:
    """A tuple takes as long as it takes to touch what it touches; its results are there when it is done."""
    pairs, service = work(given, form, weights, probing)
    done = completed(given.times.astype(np.float64), service)
    full = max(given.streams.a.window, given.streams.b.window) * SECOND
    until = given.seconds * SECOND
    counted = (done > full) & (done <= until)
    watched = (until - full) / SECOND
    behind = (done[-1] - given.times[-1]) / SECOND
    load = service[given.times > full].sum() / SECOND / watched
    return Served(float(pairs[counted].sum() / watched), float(load), bool(behind <= LATE * watched))


def completed(arrivals: Floats, service: Floats) -> Floats:
    """When each tuple is done: it waits for those before it.

    >>> completed(np.array([0.0, 1.0, 9.0]), np.array([3.0, 3.0, 3.0])).tolist()
    [3.0, 6.0, 12.0]
    """
    total = np.cumsum(service)
    return np.asarray(total + np.maximum.accumulate(arrivals - (total - service)))


def work(given: Trace, form: Full, weights: Weights, probing: tuple[bool, bool]) -> tuple[Ints, Floats]:
    """Of each tuple its results, and how long it takes in nanoseconds (the terms of Eqs. 2 and 3)."""
    pairs, service = np.zeros(len(given.times), np.int64), np.zeros(len(given.times))
    sides = given.streams.a, given.streams.b
    for own in (0, 1):
        mine, other = given.sides == own, given.sides == 1 - own
        if probing[own]:
            window = int(sides[1 - own].window * SECOND)
            met = _held(given.times[mine], given.times[other], window, given.keys[mine], given.keys[other])
            pairs[mine] += met
            hashed = form[1 - own] == "H"
            whole = None if hashed else _held(given.times[mine], given.times[other], window)
            service[mine] += met * weights.hashed if whole is None else whole * weights.nested
        if probing[1 - own]:
            rows = _held(given.times[mine], given.times[mine], int(sides[own].window * SECOND))
            hashed = form[own] == "H"
            service[mine] += (1 + rows / sides[own].keys) * weights.hashed if hashed else 2 * weights.nested
    return pairs, service


def _held(
    times: Ints,
    held: Ints,
    window: int,
    keys: NDArray[np.uint32] | None = None,
    of_held: NDArray[np.uint32] | None = None,
) -> Ints:
    """How many tuples came within a window before each time, of the same key if there are keys."""
    if keys is None or of_held is None:
        return np.asarray(np.searchsorted(held, times, "left") - np.searchsorted(held, times - window, "right"))
    base = int(max(times.max(initial=0), held.max(initial=0))) + window + 1  # no window reaches into the key before
    places = np.sort(of_held.astype(np.int64) * base + held)
    now = keys.astype(np.int64) * base + times
    return np.asarray(np.searchsorted(places, now, "left") - np.searchsorted(places, now - window, "right"))
