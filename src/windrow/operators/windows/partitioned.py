"""Partitioned row windows (PA): the last RANGE rows of every partition, every SLIDE of its rows (Li 5.1.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from windrow.aggregates import ROWS, Partials
from windrow.operators.kernels.ranges import merged, windows_of
from windrow.operators.operator import Item
from windrow.operators.progress.meld import promises_frame, promises_of
from windrow.operators.progress.sourced import below
from windrow.operators.state.chunks import Chunks
from windrow.operators.state.keyed import matched
from windrow.operators.windows.released import (
    WINDOW_END,
    Released,
    locating,
    numbered,
)
from windrow.progress import END, Promises, Punctuation
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import CHUNK, PANE, PROGRESS, WID
from windrow.spec.options import PLAIN, Options
from windrow.windows import Partitioned

COUNT, BEFORE = "@count", "@before"


class PartitionedRows(Released):
    """Expects rows with ``@t``, their row number. Rows wait for a promise on row numbers; then they get their rank in
    their partition for good, and a window is out as soon as its partition has enough rows.

    State: the count of every partition that ever was, and the panes of its last RANGE rows.
    """

    chunk_by = PANE

    def __init__(
        self,
        window: Partitioned,
        keys: Sequence[str],
        aggregates: Partials,
        options: Options = PLAIN,
        parts: Sequence[str] = (),
    ) -> None:
        super().__init__(keys, aggregates, pl.Int64(), options)
        self.window = window.over_rank
        self.parts = list(parts)
        self.length = self.window.range // self.window.pane
        self.step = self.window.slide // self.window.pane
        self.promises = Promises()
        self.waiting = Chunks(lambda f: f)
        self.counts = Chunks(lambda f: f.group_by(self.parts).agg(pl.col(COUNT).max()))
        self.chunks = Chunks(self._compacted)
        self.stores = {"": self.chunks, "waiting/": self.waiting, "counts/": self.counts}
        self._told = False

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        late = batch.filter(below(batch, self.promises))
        side: list[Item] = []
        if late.height:
            batch = batch.filter(~below(batch, self.promises))
            if self.options.late != "side":
                late = late.with_columns(pl.lit(1, pl.Int64).alias(ROWS))
                at = late[PROGRESS].to_numpy()
                side = self.late(late, at, at + 1, np.zeros(len(at), np.int64))
        if batch.height:
            self.waiting.append(batch.with_columns(pl.lit(0, pl.Int64).alias(CHUNK)))
        return side

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if not self.promises.give(promise):
            return []
        self._told = True
        ended = promise.value == END and promise.group is None
        fresh = self._numbered(ended)
        items: list[Item] = []
        if fresh is not None or ended:
            items = self._released(fresh, ended)
        return [*items, Punctuation(END)] if ended else items

    def _numbered(self, ended: bool) -> Batch | None:
        """The rows below the promise with their ranks, out of the waiting ones."""
        frames = self.waiting.below(1)
        if not frames:
            return None
        rows = pl.concat(frames)
        ready = pl.repeat(True, rows.height, eager=True) if ended else below(rows, self.promises)
        if not ready.any():
            return None
        self.waiting.replace(0, rows.filter(~ready))
        rows = rows.filter(ready)
        if self.counts.stacks:
            rows = matched(rows, self._known(), self.parts, "left")
        else:
            rows = rows.with_columns(pl.lit(None, pl.Int64).alias(COUNT))
        rows = rows.with_columns(pl.col(COUNT).fill_null(0).alias(BEFORE)).sort(PROGRESS, *_sortable(rows))
        return rows.with_columns((pl.col(BEFORE) + pl.int_range(pl.len()).over(self.parts)).alias("@rank"))

    def _known(self) -> Batch:
        frames = self.counts.below(1)
        return self.counts.combine(pl.concat(frames))

    def _released(self, fresh: Batch | None, ended: bool) -> list[Item]:
        if fresh is not None:
            pane = (pl.col("@rank") // self.window.pane).alias(PANE)
            with locating(self.place):
                panes = self.aggregates.lift(fresh.with_columns(pane), [PANE, *self.keys])
            counts = fresh.group_by(self.parts).agg(
                (pl.col("@rank").max() + 1).alias(COUNT), pl.col(BEFORE).first().alias(BEFORE)
            )
            # In this order: what merging drops is measured by the counts, and the windows of now are not out yet.
            self.chunks.append(panes.with_columns(pl.lit(0, pl.Int64).alias(CHUNK)))
            self.counts.append(counts.select(*self.parts, COUNT).with_columns(pl.lit(0, pl.Int64).alias(CHUNK)))
        elif not self.counts.stacks:
            return []
        if ended:  # windows that are not full are released as well, of every partition
            every = self._known()
            before = pl.col(COUNT) if fresh is None else pl.col(BEFORE).fill_null(pl.col(COUNT))
            if fresh is not None:
                every = matched(every, counts.drop(COUNT), self.parts, "left")
            counts = every.with_columns(before.alias(BEFORE))
        return self._windows(counts, ended)

    def _windows(self, counts: Batch, ended: bool) -> list[Item]:
        slide, size = self.window.slide, self.window.range
        last = pl.col(COUNT) // slide if not ended else (pl.col(COUNT) - 1 + size) // slide
        spans = counts.select(*self.parts, (pl.col(BEFORE) // slide).alias("@from"), last.alias("@to"))
        spans = spans.filter(pl.col("@from") < pl.col("@to"))
        frames = self.chunks.below(1)
        if not spans.height or not frames:
            return []
        panes = pl.concat([matched(f, spans, self.parts, "inner") for f in frames])
        bounds = panes.group_by(PANE, *self.keys).agg(pl.col("@from", "@to").first())
        panes = matched(self._combined(panes, (PANE, *self.keys)), bounds, [PANE, *self.keys], "inner")
        panes = numbered(panes, self.keys).sort("@group", PANE)
        pane, group = panes[PANE].to_numpy(), panes["@group"].to_numpy().astype(np.int64)
        low, high = panes["@from"].to_numpy(), panes["@to"].to_numpy()
        first = np.clip(pane // self.step, low, high)
        wid, begin, end = windows_of(group, first, np.clip((pane + self.length) // self.step, low, high))
        if not len(wid):
            return []
        names = panes.select(self.keys)[begin].with_columns(pl.Series(WID, wid))
        with locating(lambda at: self.place({**at, **names.row(at["@row"], named=True)})):
            states = names.hstack(merged(self.aggregates, panes, begin, end))
        if not self.options.partial:
            states = states.filter((pl.col(WID) + 1) * slide >= size)
        ends = (states[WID].to_numpy() + 1) * slide
        return [self.lowered(states, ends - size, ends)] if states.height else []

    def _compacted(self, frame: Batch) -> Batch:
        """Merged, and without what no window of its partition needs any more."""
        if not self.counts.stacks:
            return self._combined(frame, (PANE, *self.keys))
        known = self._known()
        next_wid = pl.col(COUNT) // self.window.slide
        needed = ((next_wid + 1) * self.step - self.length).alias("@needed")
        live = matched(frame, known.select(*self.parts, needed), self.parts, "left")
        wanted = pl.col("@needed").is_null() | (pl.col(PANE) >= pl.col("@needed"))
        return self._combined(live.filter(wanted), (PANE, *self.keys))

    def place(self, at: dict[str, object]) -> dict[str, object]:
        found = super().place(at)
        if isinstance(wid := at.get(WID), int):
            found[WINDOW_END] = self.window.end(wid)
        return found

    def wake_at(self) -> int | None:
        """Just after the first row that waits for its number; windows that are not full wait for more rows."""
        frames = self.waiting.below(1)
        least = pl.concat([f[PROGRESS] for f in frames]).min() if frames else None
        return None if least is None else int(least) + 1  # type: ignore[arg-type]

    # -- state ---------------------------------------------------------------------------------------------------
    def snapshot(self) -> State:
        return {**super().snapshot(), "promises": promises_frame([(0, self.promises)])}

    def changes(self) -> Changes:
        found = super().changes()
        if self._told:
            found["promises"] = promises_frame([(0, self.promises)])
            self._told = False
        return found

    def restore(self, state: State) -> None:
        state = dict(state)
        told = state.pop("promises", None)
        super().restore(state)
        self.promises = promises_of(told).get(0, Promises()) if told is not None else Promises()
        self._told = False


def _sortable(rows: Batch) -> list[str]:
    """Columns that make the order of rows with equal numbers the same in every run."""
    return [c for c, t in rows.schema.items() if c != PROGRESS and not t.is_nested() and t != pl.Object]
