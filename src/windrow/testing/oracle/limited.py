"""The results of joins with limits, stretch by stretch and row by row, as docs/how-to/limited-joins.md defines them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import floor
from typing import Any

import polars as pl

from windrow.operators.kernels.key_hash import hashes
from windrow.spec.allocation import Two, allocate, output_rate, split, state_shares
from windrow.spec.joining import BETTER, SEED, SIDES, Limits, drawn, held_for, stretch_length
from windrow.testing.oracle.values import Row
from windrow.windows.pairing import Pairing

Pair = Callable[[Row, Row], Any]
COUNT = tuple[int, int]


@dataclass(frozen=True)
class Timed:
    """A row of a side, its time, and the hash by which it is picked."""

    row: Row
    time: int
    hash: int


@dataclass
class Limited:
    """The pairs of rows that are kept. ``unit``: the smallest units of progress in the one that the rate is about."""

    limits: Limits
    window: Pairing
    unit: int
    came: dict[int, COUNT] = field(default_factory=dict)  # by stretch, rows of each side
    holder: int | None = None

    def __post_init__(self) -> None:
        self.windows = held_for(self.window)
        limit = self.limits.max_rate
        self.rate = None if limit is None else limit / self.unit
        self.length = stretch_length(self.windows, self.rate)

    def pairs(self, sides: Sequence[Sequence[Timed]]) -> Iterator[tuple[Row, Row]]:
        """All pairs, near or not: what each row meets when it comes."""
        held: list[list[Timed]] = [[], []]
        for number in sorted({each.time // self.length for side in sides for each in side}):
            rows = [[each for each in side if each.time // self.length == number] for side in sides]
            seen = len(rows[0]), len(rows[1])
            self.came[number] = seen
            rates = self._rates(number) if self.limits.max_state is not None else self._now(number)
            shares, memory = self._allocated(rates)
            if self.rate is not None:
                most = split(self.rate * self.length, shares, seen)
                rows = [self._picked(rows[side], most[side], number, side) for side in SIDES]
            for time in sorted({each.time for side in rows for each in side}):
                now = [[each for each in side if each.time == time] for side in rows]
                held = [[e for e in held[s] if e.time >= self.window.first_kept(s, time)] for s in SIDES]
                yield from ((a.row, b.row) for a in now[0] for b in held[1] + now[1])
                yield from ((a.row, b.row) for a in held[0] for b in now[1])
                held = self._newest([held[side] + now[side] for side in SIDES], memory)

    def _now(self, number: int) -> Two:
        a, b = self.came[number]
        return a / self.length, b / self.length

    def _rates(self, number: int) -> Two:
        """Over the longer window, or since the first stretch."""
        parts = -(-max(*self.windows, 1) // self.length)
        parts = min(parts, number - min(self.came) + 1)
        counts = [count for n, count in self.came.items() if n > number - parts]
        return tuple(sum(c[side] for c in counts) / (parts * self.length) for side in SIDES)  # type: ignore[return-value]

    def _allocated(self, rates: Two) -> tuple[Two, Two]:
        limits, windows = self.limits, self.windows
        default = None if limits.max_state is None else ("slower" if limits.max_rate is None else "best")
        policy = limits.policy or default
        if policy in ("slower", "best"):
            both = [allocate(rates, windows, self.rate, limits.max_state, policy, holder) for holder in (0, 1)]
            found = [output_rate(1.0, each.rates, each.windows) for each in both]
            best = int(found[1] > found[0])
            if self.holder is None or found[best] > BETTER * found[self.holder]:
                self.holder = best
            return both[self.holder].rates, state_shares(rates, policy, self.holder)
        memory = (1.0, 1.0) if policy is None or limits.max_state is None else state_shares(rates, policy)
        return allocate(rates, windows, self.rate, limits.max_state, policy).rates, memory

    def _picked(self, rows: Sequence[Timed], most: float, number: int, side: int) -> list[Timed]:
        """Those with the smallest hashes."""
        count = floor(most) + (drawn(self.limits.seed, number, side) < most - floor(most))
        return sorted(rows, key=lambda each: each.hash)[:count]

    def _newest(self, held: list[list[Timed]], memory: Two) -> list[list[Timed]]:
        """What fits of the windows. Rows with equal times leave together."""
        limit, have = self.limits.max_state, (len(held[0]), len(held[1]))
        if limit is None or sum(have) <= limit:
            return held
        right = floor(split(limit, memory, have)[1])
        kept = []
        for rows, count in zip(held, (min(limit - right, have[0]), right), strict=True):
            times = sorted((each.time for each in rows), reverse=True)
            last = times[count] if count < len(times) else None  # the newest one that leaves
            kept.append([each for each in rows if last is None or each.time > last])
        return kept


def picks(rows: Sequence[Row], types: dict[str, pl.DataType], seed: int) -> list[int]:
    """The hashes of rows that have these columns."""
    frame = pl.DataFrame([tuple(row[c] for c in types) for row in rows], schema=types, orient="row")
    found = hashes(frame.with_columns(pl.lit(seed).alias(SEED)), [SEED, *types])
    return [int(each) for each in found]
