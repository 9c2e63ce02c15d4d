"""Landmark windows (RANGE ALL): a running total per group, emitted whenever progress passes the end of a slide."""

from __future__ import annotations

import numpy as np
import polars as pl

from windrow.aggregates.user import locating
from windrow.operators.kernels.ranges import merged, windows_of
from windrow.operators.operator import Item
from windrow.operators.state.chunks import Chunks
from windrow.operators.state.keyed import matched, numbered
from windrow.operators.state.late import Spans
from windrow.operators.state.levels import CLOSED, FROM
from windrow.operators.state.limits import check_amount, clipped
from windrow.operators.windows.window_operator import WindowOperator
from windrow.operators.windows.windowing import Windowing
from windrow.progress import END, START, Punctuation
from windrow.spec.batches import Batch
from windrow.spec.names import CHUNK, PANE
from windrow.windows import Landmark
from windrow.windows.tuples import UNBOUNDED, Ints

CELLS = 1 << 21  # results that are computed at once
GREATEST = "greatest"


class Running(WindowOperator[Landmark]):
    """Expects partials of Panes over tumbling windows of SLIDE. Every group has a result in every window from its
    first row on, so there is one permanent total per group; slices that are still open are kept apart.

    A finite stream ends with the window of the last row that was read.
    """

    chunk_by = PANE

    def __init__(self, windowing: Windowing[Landmark]) -> None:
        super().__init__(windowing)
        self.totals = Chunks(lambda f: self._combined(f, (PANE, *self.keys)))
        self.stores["total/"] = self.totals
        self.remember(**{GREATEST: START})

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        closed, pane = self.closed_of(batch), batch[PANE].to_numpy()
        spans = Spans(pane, np.full(len(pane), UNBOUNDED), closed)
        kept, side = self.lateness.sift(batch, spans)
        if self.options.generous and spans.late().any():  # late rows count from the first open window on
            kept = self._combined(batch.with_columns(pl.Series(PANE, spans.first_open())), (PANE, *self.keys))
        if kept.height:
            self.marks[GREATEST] = max(self.marks[GREATEST], int(kept[PANE].max()))  # type: ignore[arg-type]
            self.chunks.append(kept.with_columns(pl.col(PANE).alias(CHUNK)))
        return side

    def release(self, before: int, promise: Punctuation) -> list[Item]:
        # Slices are tumbling windows: how far the stream came is the number of the last one that has a row.
        reached = max(self.marks[GREATEST], START if promise.reached is None else promise.reached)
        last = self.closed if self.closed != END else max(before, reached + 1)
        items: list[Item] = []
        if self.marks[GREATEST] != START:
            items += self._windows(self.totals.below(1), self.chunks.below(last), before, last)
        if fresh := self.chunks.below(last):
            self._settle(pl.concat(fresh))
            self.chunks.free_below(last)
        return items

    def release_groups(self, news: Batch) -> list[Item]:
        """Their slices up to the promise are settled, whatever the others do."""
        by, last = list(self.levels.by), int(news[CLOSED].max())  # type: ignore[arg-type]
        fresh = []
        for chunk in [c for c in sorted(self.chunks.stacks) if c < last]:
            slices = pl.concat(self.chunks.stacks[chunk])
            promised = matched(slices.select(by), news, by, "left")[CLOSED]
            due = promised.fill_null(START) > chunk
            if due.any():
                fresh.append(slices.filter(due))
                self.chunks.replace(chunk, self.chunks.combine(slices.filter(~due)))
        settled = [matched(f, news, by, "semi") for f in self.totals.below(1)]
        items: list[Item] = [*self._windows([f for f in settled if f.height], fresh, START, last, news)]
        if fresh:
            self._settle(pl.concat(fresh))
        return items

    def _settle(self, slices: Batch) -> None:
        settled = slices.with_columns(pl.lit(0, pl.Int64).alias(PANE))
        self.totals.append(self._combined(settled, (PANE, *self.keys)).with_columns(pl.col(PANE).alias(CHUNK)))

    def _windows(
        self, settled: list[Batch], fresh: list[Batch], first: int, last: int, news: Batch | None = None
    ) -> list[Batch]:
        """The windows [first, last) of all groups, except those released; of groups in ``news``, what is new."""
        if not fresh and not settled:
            return []
        settled = [f.with_columns(pl.lit(clipped(START)).alias(PANE)) for f in settled]
        entries = numbered(pl.concat([*settled, *fresh]), self.keys)
        groups = entries.select("@group", *self.keys).unique("@group").sort("@group")
        entries = self._combined(entries, ("@group", PANE)).sort("@group", PANE)
        low, high = self._spans(groups, first, last, news)
        begins = entries.group_by("@group").agg(pl.col(PANE).min()).sort("@group")[PANE].to_numpy()
        low = np.maximum(low, begins)
        check_amount(int(np.maximum(high.astype(object) - low, 0).sum()), "a landmark window")
        most = max(1, CELLS // groups.height)
        blocks = [
            self._block(entries, groups, np.maximum(low, at), np.minimum(high, at + most))
            for at in range(int(low.min()), int(high.max()), most)
        ]
        return [block for block in blocks if block.height]

    def _spans(self, groups: Batch, first: int, last: int, news: Batch | None) -> tuple[Ints, Ints]:
        """From which window to which each group has results."""
        if news is not None:
            own = matched(groups, news, list(self.levels.by), "left")
            return own[FROM].to_numpy(), own[CLOSED].to_numpy()
        return self.closed_of(groups, first), np.full(groups.height, last)

    def _block(self, entries: Batch, groups: Batch, first: Ints, last: Ints) -> Batch:
        """The windows of each group from ``first`` to ``last``."""
        group = entries["@group"].to_numpy().astype(np.int64)
        pane = entries[PANE].to_numpy()
        wid, low, high = windows_of(group, np.maximum(pane, first[group]), np.maximum(last[group], first[group]))
        names = groups.select(self.keys)[group[low]] if self.keys else pl.DataFrame()
        with locating(lambda at: self.place({**at, **names.row(at["@row"], named=True)})):
            states = merged(self.aggregates, entries, low, high)
        return self.lowered(names.hstack(states) if self.keys else states, *self.window.bounds_array(wid))

    def next_promise(self) -> int | None:
        """The end of the next window, once there are any rows."""
        if self.totals.first() is None and self.chunks.first() is None:
            return None
        first = self.chunks.first()
        first = self.closed if self.totals.first() is not None or first is None else max(first, self.closed)
        return self.bounds.value(self.window.end(first))

    def held(self) -> int:
        return super().held() + self.totals.height()
