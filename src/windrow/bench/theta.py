"""A theta join for spark-join: no keys, and a Python condition that costs about a microsecond for each pair."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import polars as pl

from windrow.api.functions import Udf, udf
from windrow.bench.join_data import BAND, MICROS, START

NANOS = 1000  # that a pair should take
CANDIDATES = 100  # right rows in the band of a left row
SPACING = 2 * BAND / CANDIDATES  # seconds from one row of a side to the next
HITS = 0.01  # the share of pairs for which it is true


@dataclass(frozen=True)
class Slow:
    """True for one pair in a hundred, after so many rounds of work."""

    rounds: int

    def __call__(self, x: pl.Series, y: pl.Series) -> pl.Series:
        apart = x.to_numpy() - y.to_numpy()
        found = np.empty(len(apart), np.bool_)
        for at in range(0, len(apart), 4096):  # what is worked on stays in the cache
            part = apart[at : at + 4096]
            worked = part
            for _ in range(self.rounds):
                worked = np.cos(worked)
            found[at : at + 4096] = (part % 1.0 < HITS) & (worked < 2)
        return pl.Series(found)


def slow() -> tuple[Udf, float]:
    """The condition with as many rounds as take NANOS on this machine, and the nanoseconds that it takes."""
    rounds = max(1, round(NANOS / (_nanos(Slow(50)) / 50)))
    return udf(Slow(rounds), "BOOLEAN", "x", "y", vectorized=True), round(_nanos(Slow(rounds)))


def _nanos(call: Slow, pairs: int = 100_000) -> float:
    """The least CPU time of a pair in some runs."""
    rng = np.random.default_rng(3)
    x, y = (pl.Series(rng.random(pairs)) for _ in range(2))
    took = []
    for _ in range(3):
        began = time.process_time_ns()
        call(x, y)
        took.append(time.process_time_ns() - began)
    return min(took) / pairs


def theta_side(number: int, rows: int) -> pl.DataFrame:
    """Rows of the left (0) or right (1) side, evenly spread and in order."""
    rng = np.random.default_rng([13, number])
    at = (np.arange(rows) * SPACING * MICROS).astype(np.int64)
    ts = pl.Series(at + START).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame({"ts": ts, "xy"[number]: rng.random(rows)})
