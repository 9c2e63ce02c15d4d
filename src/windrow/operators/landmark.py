"""Landmark windows (RANGE ALL): a running total per group, put out whenever progress passes the end of a slide."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from windrow.aggregates import Partials
from windrow.operators.chunks import CHUNK, Chunks
from windrow.operators.operator import PANE, Batch, Item
from windrow.operators.options import PLAIN, Options
from windrow.operators.ranges import merged, windows_of
from windrow.operators.released import Released, check_amount, clipped, locating, numbered
from windrow.progress import END, START, Punctuation
from windrow.windows import Landmark
from windrow.windows.tuples import Ints

CELLS = 1 << 21  # results that are computed at once
GREATEST = "greatest"


class Running(Released):
    """Expects partials of Panes over tumbling windows of SLIDE. Every group has a result in every window from its
    first row on, so there is one total per group, for ever; slices that are still open are kept apart.

    A finite stream ends with the window of the last row that was read.
    """

    chunk_by = PANE

    def __init__(
        self,
        window: Landmark,
        keys: Sequence[str],
        aggregates: Partials,
        dtype: pl.DataType,
        options: Options = PLAIN,
    ) -> None:
        super().__init__(keys, aggregates, dtype, options)
        self.window = window
        self.totals = Chunks(lambda f: self._combined(f, (PANE, *self.keys)))
        self.stores["total/"] = self.totals
        self.remember(**{GREATEST: START})

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        late = batch.filter(pl.col(PANE) < self.closed)
        kept, side = batch, []
        if late.height:
            kept = batch.filter(pl.col(PANE) >= self.closed)
            if self.options.generous:  # it counts from the first open window on
                kept = batch.with_columns(pl.max_horizontal(PANE, pl.lit(self.closed)).alias(PANE))
                kept = self._combined(kept, (PANE, *self.keys))
            if self.options.late != "side":
                first = late[PANE].to_numpy()
                side = self.late(late, None, self._ends(first), self.closed - first)
        if kept.height:
            self.marks[GREATEST] = max(self.marks[GREATEST], int(kept[PANE].max()))  # type: ignore[arg-type]
            self.chunks.append(kept.with_columns(pl.col(PANE).alias(CHUNK)))
        return side

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        before = self.closed
        if not self.advance(promise):
            return []
        # Slices are tumbling windows: how far the stream came is the number of the last one that has a row.
        reached = max(self.marks[GREATEST], START if promise.reached is None else promise.reached)
        last = self.closed if self.closed != END else max(before, reached + 1)
        items: list[Item] = [*self._windows(before, last)] if self.marks[GREATEST] != START else []
        if fresh := self.chunks.below(last):
            settled = pl.concat(fresh).with_columns(pl.lit(0, pl.Int64).alias(PANE))
            self.totals.append(self._combined(settled, (PANE, *self.keys)).with_columns(pl.col(PANE).alias(CHUNK)))
            self.chunks.free_below(last)
        end = END if self.closed == END else self.bounds.value(self.window.end(self.closed))
        return [*items, Punctuation(end)]

    def _windows(self, first: int, last: int) -> list[Batch]:
        fresh = self.chunks.below(last)
        settled = [f.with_columns(pl.lit(clipped(START)).alias(PANE)) for f in self.totals.below(1)]
        if not fresh and not settled:
            return []
        entries = numbered(pl.concat([*settled, *fresh]), self.keys)
        groups = entries.select("@group", *self.keys).unique("@group").sort("@group")
        entries = self._combined(entries, ("@group", PANE)).sort("@group", PANE)
        first = max(first, int(entries[PANE].min())) if not settled else first  # type: ignore[arg-type]
        check_amount((last - first) * groups.height, "a landmark window")
        most = max(1, CELLS // groups.height)
        return [
            self._block(entries, groups, low, min(low + most, last))
            for low in range(first, last, most)
            if (entries[PANE] < min(low + most, last)).any()
        ]

    def _block(self, entries: Batch, groups: Batch, first: int, last: int) -> Batch:
        entries = entries.filter(pl.col(PANE) < last)
        group = entries["@group"].to_numpy().astype(np.int64)
        begin = np.maximum(entries[PANE].to_numpy(), first)
        wid, low, high = windows_of(group, begin, np.full(len(begin), last))
        names = groups.select(self.keys)[group[low]] if self.keys else pl.DataFrame()
        with locating(lambda at: self.place({**at, **names.row(at["@row"], named=True)})):
            states = merged(self.aggregates, entries, low, high)
        return self.lowered(names.hstack(states) if self.keys else states, None, self._ends(wid))

    def _ends(self, wids: Ints) -> Ints:
        return self.window.origin + (wids + 1) * self.window.slide

    def wake_at(self) -> int | None:
        """The end of the next window, as soon as there is anything."""
        if self.totals.first() is None and self.chunks.first() is None:
            return None
        first = self.chunks.first()
        first = self.closed if self.totals.first() is not None or first is None else max(first, self.closed)
        return self.bounds.value(self.window.end(first))
