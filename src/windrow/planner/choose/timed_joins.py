"""Moving window joins that are timed on this machine: whole joins in one compiled call, tuple by tuple."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windrow.operators.kernels.asymmetric import HASH, LOOPS, moving_window_join
from windrow.operators.kernels.probe import Hashes
from windrow.planner.choose.costs.asymmetric import Full, Streams, Weights, hash_join, nested_loops
from windrow.windows.tuples import Ints

SECOND = 1_000_000_000
A_TO_B = (True, False)  # which side probes: a one-way join
BOTH = (True, True)


@dataclass(frozen=True)
class Trace:
    """The tuples of two streams in the order of time: the side of each, its time in nanoseconds, and its key."""

    streams: Streams
    seconds: float
    sides: NDArray[np.int8]
    times: Ints
    keys: Hashes


@dataclass(frozen=True)
class Ran:
    """What a join took, in seconds of CPU, and what it found and looked at."""

    seconds: float
    pairs: int
    touched: int


def trace(streams: Streams, seconds: float, seed: int = 0) -> Trace:
    """As many tuples as come in so many seconds, at random times and with keys at random.

    Arrivals at regular intervals would be learnt by the branch predictor if one rate is a multiple of the other.

    >>> from windrow.planner.choose.costs.asymmetric import Side
    >>> int(trace(Streams(Side(2, 1, 4), Side(1, 1, 4)), 10).sides.sum())
    10
    """
    rng = np.random.default_rng(seed)
    counts = [int(side.rate * seconds) for side in (streams.a, streams.b)]
    times = (rng.random(sum(counts)) * seconds * SECOND).astype(np.int64)
    order = np.argsort(times, kind="stable")
    sides = np.repeat(np.array([0, 1], np.int8), counts)[order]
    most = np.where(sides == 0, int(streams.a.keys), int(streams.b.keys))
    return Trace(streams, seconds, sides, times[order], rng.integers(0, most).astype(np.uint32))


def timed(given: Trace, form: Full, probing: tuple[bool, bool] = BOTH, in_order: bool = False, rounds: int = 3) -> Ran:
    """The best of a few runs. ``in_order``: buckets are in the order of time; else as in 2002, the newest first."""
    sides = given.streams.a, given.streams.b
    kinds = np.array([HASH if letter == "H" else LOOPS for letter in form[:2]])
    lengths = np.array([int(side.window * SECOND) for side in sides])
    buckets = np.array([1 << max(int(side.keys) - 1, 0).bit_length() for side in sides])
    best, pairs, touched = float("inf"), 0, 0
    for _ in range(rounds):
        began = time.process_time()
        pairs, touched, _ = moving_window_join(
            given.sides, given.times, given.keys, lengths, kinds, buckets, np.array(probing), not in_order, False
        )
        best = min(best, time.process_time() - began)
    return Ran(best, int(pairs), int(touched))


def weights(streams: Streams, seconds: float, nested: Ran, hashed: Ran) -> Weights:
    """C_n and C_h in nanoseconds: what two one-way joins from A to B took, over their costs by Eqs. 2 and 3."""
    unit, each = Weights(1, 1), SECOND / seconds
    by_scan, by_bucket = (cost(streams.a, streams.b, unit) for cost in (nested_loops, hash_join))
    return Weights(nested.seconds * each / by_scan, hashed.seconds * each / by_bucket)


def one_way(given: Trace, rounds: int = 3) -> tuple[Ran, Ran]:
    """Nested loops and hashing from A to B, in turn; the best run of each."""
    runs = [tuple(timed(given, form, A_TO_B, rounds=1) for form in ("HNJ", "HHJ")) for _ in range(rounds)]
    nested, hashed = (min(each, key=lambda ran: ran.seconds) for each in zip(*runs, strict=True))
    return nested, hashed
