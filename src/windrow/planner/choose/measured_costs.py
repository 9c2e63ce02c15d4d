"""Unit costs of joins, measured on the running machine: each by a small piece of work of which there is much."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from math import log2

import numpy as np
import polars as pl

from windrow.operators.joins.costs import Unit
from windrow.operators.joins.window_join import side_of
from windrow.operators.state.indexed_side import with_hashes
from windrow.operators.state.join_side import JoinSide, hashed
from windrow.spec.batches import Batch
from windrow.spec.keeping import Keeping
from windrow.spec.names import PROGRESS

Timer = Callable[[], float]
KEY = ["k"]
ROWS, PROBES, BATCHES, KEYS = 8192, 512, 16, 64
NANO = 1e9


@dataclass(frozen=True)
class Stopwatch:
    """The least time that a piece of work took, in nanoseconds of CPU time unless another timer is given."""

    timer: Timer = time.process_time
    rounds: int = 7

    def of(self, work: Callable[[], object]) -> float:
        work()  # compiles what it needs
        least = float("inf")
        for _ in range(self.rounds):
            began = self.timer()
            work()
            least = min(least, self.timer() - began)
        return least * NANO


def measured(watch: Stopwatch, say: Callable[[str, float], None] = lambda *_: None) -> Unit:
    """All of them; ``say`` hears what is measured next, and which share is done."""
    found: dict[str, float] = {}
    for i, (name, cost) in enumerate(_costs(watch, found)):
        say(name, i / len(fields(Unit)))
        found[name] = max(cost(), 1e-3)
    return Unit(**found)


def _costs(watch: Stopwatch, found: dict[str, float]) -> Iterator[tuple[str, Callable[[], float]]]:
    """What is measured, in an order in which each may use those before it, which are in ``found``."""
    yield "call", lambda: watch.of(_probing("hash", 2, 2, 1))
    yield "run", lambda: watch.of(_probing("runs", 2, 2, 1))
    yield "scan", lambda: watch.of(_probing("loops", ROWS, KEYS, PROBES)) / (ROWS * PROBES)
    yield "chase", lambda: watch.of(_probing("hash", ROWS, KEYS, 4 * PROBES)) / (ROWS / KEYS * 4 * PROBES)
    yield "enter", lambda: max(watch.of(_probing("hash", ROWS, ROWS, ROWS)) / ROWS - 1.5 * found["chase"], 0)
    pairs = _pairs()
    in_order = watch.of(_pairing("runs"))
    yield "pair", lambda: max(watch.of(_pairing("hash")) - in_order, 0) / pairs - found["chase"]
    steps = ROWS * (1 + log2(1 + 8))
    yield "gallop", lambda: max(watch.of(_probing("runs", 8 * ROWS, ROWS, ROWS)) - found["run"], 0) / steps
    rows = _rows(8 * ROWS, KEYS)
    unsorted = watch.of(lambda: with_hashes(rows, KEY))
    yield "sort", lambda: max(watch.of(lambda: hashed(rows, KEY)) - unsorted, 0) / (8 * ROWS * log2(8 * ROWS))
    doublings = sum(log2(1 + i) for i in range(BATCHES)) / BATCHES
    yield "keep", lambda: watch.of(_keeping("loops")) / (ROWS * (1 + doublings / 4))
    put = watch.of(_keeping("loops"))
    yield "chain", lambda: max(watch.of(_keeping("hash")) - put, 0) / ROWS
    yield "merge", lambda: watch.of(_keeping("runs")) / (ROWS * (1 + doublings))


def _pairs() -> int:
    counts = [np.bincount(_rows(count, KEYS)["k"], minlength=KEYS) for count in (ROWS, PROBES)]
    return int((counts[0] * counts[1]).sum())


def _rows(count: int, keys: int) -> Batch:
    rng = np.random.default_rng(0)
    return pl.DataFrame({"k": rng.integers(0, keys, count), PROGRESS: 2 * np.arange(count)})


def _probing(way: Keeping, held: int, keys: int, probes: int) -> Callable[[], object]:
    """Rows that find as many with their key as there are, and none that is near."""
    side = _kept(way, [_ready(way, _rows(held, keys))])
    rows = hashed(_rows(probes, keys), KEY)
    between = np.full(probes, held | 1)
    return lambda: list(side.partners(rows, between, between))


def _pairing(way: Keeping) -> Callable[[], object]:
    """Rows that find ROWS / KEYS partners each, and the rows of these pairs."""
    side = _kept(way, [_ready(way, _rows(ROWS, KEYS))])
    rows = _ready(way, _rows(PROBES, KEYS))
    first, last = np.zeros(PROBES, np.int64), np.full(PROBES, 2 * ROWS)

    def found() -> None:
        for number, _, places in side.partners(rows, first, last):
            side.runs[number].frame[pl.Series(places)]

    return found


def _keeping(way: Keeping) -> Callable[[], object]:
    """Rows that come in batches and leave together."""
    batches = [_ready(way, each) for each in _rows(ROWS, KEYS).iter_slices(ROWS // BATCHES)]
    return lambda: _kept(way, batches).free(2 * ROWS)


def _kept(way: Keeping, batches: list[Batch]) -> JoinSide:
    side = side_of(KEY, way)
    for rows in batches:
        side.push(rows, np.zeros(rows.height, np.bool_))
    return side


def _ready(way: Keeping, rows: Batch) -> Batch:
    return hashed(rows, KEY) if way == "runs" else with_hashes(rows, KEY)
