"""Response times of joins in order, in process: arrivals in virtual time, and the time of each call as it really is.

A row is given to the operator as soon as the one before it is done, and with it the promise that it is. What
Sync-Filter has held is joined in one call, so most of what the equations have it take row by row is saved.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from heapq import heappop, heappush

import polars as pl

from windrow.bench.response import COLUMNS, MICROS, Mode, Row, arrivals, frame, join
from windrow.progress import START, Punctuation

SLOW, FAST = 10.0, 100.0  # rows a second: a call takes about a millisecond
LENGTH = 6 * MICROS  # of windows, with as many rows as windows of a minute have at 1 and 10 rows a second
END = 30 * MICROS


def in_process() -> dict[str, float]:
    """The mean response by Sync-Filter and by Filter-Order, and the share of time that their calls take."""
    rows = arrivals(SLOW, FAST, END)
    found: dict[str, float] = {}
    pairs: list[list[tuple[int, int]]] = []
    modes: dict[str, Mode] = {"sync": "sync-filter", "filter": "filter-order"}
    for name, mode in modes.items():
        complete, busy, out = timed(mode, rows)
        meant = [row for row in rows if LENGTH <= row.at < END]
        found[f"real_ms_{name}"] = round(sum(complete[row.number] - row.at for row in meant) / len(meant) / 1000, 3)
        found[f"real_busy_{name}"] = round(busy / rows[-1].at, 3)
        pairs.append(sorted(out))
    return found | {"real_same": float(pairs[0] == pairs[1])}


def timed(mode: Mode, rows: Sequence[Row]) -> tuple[dict[int, float], float, list[tuple[int, int]]]:
    """When each row was complete, how long all calls took, and the pairs."""
    operator = join(mode, window=LENGTH)
    complete: dict[int, float] = {}
    waiting: list[tuple[int, int]] = []
    promised, free, busy = [START, START], 0.0, 0.0
    pairs: list[tuple[int, int]] = []
    for row in rows:
        batch = frame(row)
        began = time.perf_counter_ns()
        items = operator.on_batch(row.port, batch) + operator.on_punctuation(row.port, Punctuation(row.time))
        took = (time.perf_counter_ns() - began) / 1000
        free, busy = max(float(row.at), free) + took, busy + took
        pairs += [pair for i in items if isinstance(i, pl.DataFrame) for pair in i.select(*COLUMNS).rows()]
        promised[row.port] = row.time
        heappush(waiting, (row.time, row.number))
        while waiting and waiting[0][0] <= min(promised):
            complete[heappop(waiting)[1]] = free
    return complete, busy, pairs
