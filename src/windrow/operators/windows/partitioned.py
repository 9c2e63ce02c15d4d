"""Partitioned row windows (PA): the last RANGE rows of every partition, every SLIDE of its rows (Li 5.1.3)."""

from __future__ import annotations

import numpy as np
import polars as pl

from windrow.aggregates.user import locating
from windrow.operators.kernels.ranges import merged, windows_of
from windrow.operators.operator import Item, Wait
from windrow.operators.progress.meld import promises_frame, promises_of
from windrow.operators.progress.sourced import below, promised_by_source
from windrow.operators.state.chunks import Chunks
from windrow.operators.state.keyed import matched, numbered
from windrow.operators.state.late import Spans
from windrow.operators.windows.grid import Grid
from windrow.operators.windows.window_operator import WindowOperator
from windrow.operators.windows.windowing import Windowing
from windrow.progress import END, START, Promises, Punctuation
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import CHUNK, PANE, PROGRESS, WID, WINDOW_END
from windrow.windows import Partitioned

COUNT, BEFORE = "@count", "@before"


class PartitionedRows(WindowOperator[Partitioned]):
    """Expects rows with ``@t``, their row number. Rows wait for a promise on row numbers; then they get their rank in
    their partition for good, and a window is out as soon as its partition has enough rows.

    State: the count of every partition that ever was, and the panes of its last RANGE rows.
    """

    chunk_by = PANE

    def __init__(self, windowing: Windowing[Partitioned]) -> None:
        super().__init__(windowing)
        self.over_rank = self.window.over_rank
        self.parts = list(windowing.parts)
        self.grid = Grid.of(self.over_rank, self.over_rank.pane)
        self.promises = Promises()
        self.waiting = Chunks(lambda f: f)
        self.counts = Chunks(lambda f: f.group_by(self.parts).agg(pl.col(COUNT).max()))
        self.chunks = Chunks(self._compacted)
        self.stores = {"": self.chunks, "waiting/": self.waiting, "counts/": self.counts}
        self._changed = False

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        numbers = self.window.numbers_array(batch[PROGRESS].to_numpy())
        spans = Spans(*numbers, promised_by_source(batch, self.promises).to_numpy())
        kept, side = self.lateness.sift(batch, spans)
        if kept.height:
            self.waiting.append(kept.with_columns(pl.lit(0, pl.Int64).alias(CHUNK)))
        return side

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if not self.promises.give(promise):
            return []
        self._changed = True
        released = self.release(START, promise)
        return [*released, Punctuation(END)] if _ends(promise) else released

    def release(self, before: int, promise: Punctuation) -> list[Item]:
        """Windows whose partition has enough rows now; when the stream has ended, those that are not full, too."""
        ended = _ends(promise)
        fresh = self._numbered(ended)
        return self._released(fresh, ended) if fresh is not None or ended else []

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
            pane = (pl.col("@rank") // self.over_rank.pane).alias(PANE)
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
        slide, size = self.over_rank.slide, self.over_rank.range
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
        first = np.clip(pane // self.grid.step, low, high)
        wid, begin, end = windows_of(group, first, np.clip((pane + self.grid.length) // self.grid.step, low, high))
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
        next_wid = pl.col(COUNT) // self.over_rank.slide
        needed = ((next_wid + 1) * self.grid.step - self.grid.length).alias("@needed")
        live = matched(frame, known.select(*self.parts, needed), self.parts, "left")
        wanted = pl.col("@needed").is_null() | (pl.col(PANE) >= pl.col("@needed"))
        return self._combined(live.filter(wanted), (PANE, *self.keys))

    def place(self, at: dict[str, object]) -> dict[str, object]:
        found = super().place(at)
        if isinstance(wid := at.get(WID), int):
            found[WINDOW_END] = self.over_rank.end(wid)
        return found

    def waits_for(self) -> list[Wait]:
        """Just after the first row that waits for its number; windows that are not full wait for more rows."""
        promise = self.next_promise()
        if promise is None:
            return []
        return [Wait(0, promise, self.promises.low, "rows", self.waiting.height(), self.waiting.state_bytes())]

    def next_promise(self) -> int | None:
        frames = self.waiting.below(1)
        least = pl.concat([f[PROGRESS] for f in frames]).min() if frames else None
        return None if least is None else int(least) + 1  # type: ignore[arg-type]

    # -- state ---------------------------------------------------------------------------------------------------
    def snapshot(self) -> State:
        return {**super().snapshot(), "promises": promises_frame([(0, self.promises)])}

    def changes(self) -> Changes:
        found = super().changes()
        if self._changed:
            found["promises"] = promises_frame([(0, self.promises)])
            self._changed = False
        return found

    def restore(self, state: State) -> None:
        state = dict(state)
        saved = state.pop("promises", None)
        super().restore(state)
        self.promises = promises_of(saved).get(0, Promises()) if saved is not None else Promises()
        self._changed = False


def _ends(promise: Punctuation) -> bool:
    return promise.value == END and promise.group is None


def _sortable(rows: Batch) -> list[str]:
    """Columns that make the order of rows with equal numbers the same in every run."""
    return [c for c, t in rows.schema.items() if c != PROGRESS and not t.is_nested() and t != pl.Object]
