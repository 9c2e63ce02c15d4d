"""What the aggregates over sliding windows share: window ids and their ends, and which rows still have a window."""

from __future__ import annotations

import numpy as np
import polars as pl

from windrow.operators.operator import Item
from windrow.operators.state.chunks import Chunks
from windrow.operators.state.late import Spans
from windrow.operators.windows.bucket import FIRST, LAST
from windrow.operators.windows.window_operator import LOOKED_AT, WindowOperator
from windrow.spec.batches import Batch
from windrow.spec.names import PANE, PROGRESS, WID, WINDOW_END, WINDOW_START
from windrow.windows import Sliding
from windrow.windows.tuples import Ints


class SlidingAggregate(WindowOperator[Sliding]):
    """``closed`` is a window id: all windows with a smaller one are released."""

    def results(self, frame: Batch) -> Batch:
        """Results from states with a ``@wid`` each."""
        starts, ends = self.window.bounds_array(frame[WID].to_numpy())
        return self.lowered(frame, starts, ends)

    def ends(self, wids: Ints) -> Ints:
        return self.window.bounds_array(wids)[1]

    def end_of(self, wid: int) -> int:
        """The end of the first window from ``wid`` on that is still open: the promise that releases it."""
        return self.bounds.value(self.window.end(max(wid, self.closed)))

    def first_end(self, store: Chunks, width: int) -> int | None:
        """The end of the first open window in a store of ``width`` windows per chunk, or what frees its first chunk."""
        first = store.first()
        if first is None:
            return None
        ids = pl.concat([frame[WID] for frame in store.stacks[first]])
        live = ids.filter(ids >= self.closed).min()
        last = (first + 1) * width - 1
        return self.end_of(last if live is None else int(live))  # type: ignore[arg-type]

    def open_ends(self, most: int) -> list[tuple[int, int]]:
        if self.levels or not 0 < self.chunks.height() <= LOOKED_AT:
            return []
        held = [f[self.chunk_by] for stack in self.chunks.stacks.values() for f in stack if self.chunk_by in f.columns]
        if not held:
            return []
        first, last = self.ids_of(pl.concat(held).unique().sort().to_numpy())
        first, last = np.maximum(first, self.closed), last - 1
        first, last = first[first <= last], last[first <= last]
        if not len(first):
            return []
        reached = np.maximum.accumulate(last)
        begins = np.flatnonzero(np.append(True, first[1:] > reached[:-1] + 1))
        ends = np.append(begins[1:], len(first)) - 1
        runs = [(int(first[b]), int(reached[e])) for b, e in zip(begins, ends, strict=True)]
        runs = [*runs[: most - 1], (runs[most - 1][0], runs[-1][1])] if len(runs) > most else runs
        return [(self.end_of(low), self.end_of(high)) for low, high in runs]

    def ids_of(self, values: Ints) -> tuple[Ints, Ints]:
        """First and one-past-last window id of what partials are kept by."""
        return values, values + 1

    def on_time(self, batch: Batch) -> tuple[Batch, list[Item]]:
        """The rows that still count, with their window ids, and the items for late ones. Rows in gaps are neither."""
        if FIRST not in batch.columns:  # they are not from Bucket
            first, last = self.window.wids_array(batch[PROGRESS].to_numpy())
            batch = batch.with_columns(pl.Series(FIRST, first), pl.Series(LAST, last))
        if self.window.slide > self.window.range:
            batch = batch.filter(pl.col(FIRST) < pl.col(LAST))
        spans = Spans(batch[FIRST].to_numpy(), batch[LAST].to_numpy(), np.int64(self.closed))
        return self.lateness.sift(batch, spans)

    def whole(self, frame: Batch) -> Batch:
        """Without the windows that begin before the origin, if the query wants only those that can be full."""
        if self.options.partial:
            return frame
        return frame.filter((pl.col(WID) + 1) * self.window.slide >= self.window.range)

    def place(self, at: dict[str, object]) -> dict[str, object]:
        found = super().place(at)
        wid = at.get(WID)
        if wid is None and isinstance(pane := at.get(PANE), int):
            wid = pane * self.pane_length() // self.window.slide
        if isinstance(wid, int):
            bounds = self.bounds.columns(*self.window.bounds_array(np.array([wid])))
            found |= {name: column[0] for name, column in zip((WINDOW_START, WINDOW_END), bounds, strict=True)}
        return found

    def pane_length(self) -> int:
        return self.window.pane
