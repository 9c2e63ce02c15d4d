"""WID: window aggregation by window id, eager and order-agnostic (Li 6.1): the window id is one more group key."""

from __future__ import annotations

import numpy as np
import polars as pl

from windrow.aggregates.user import locating
from windrow.operators.kernels.ranges import merged, windows_of
from windrow.operators.operator import Item
from windrow.operators.state.chunks import CHUNKS_PER_WINDOW
from windrow.operators.state.keyed import numbered
from windrow.operators.windows.bucket import FIRST, LAST
from windrow.operators.windows.sliding import SlidingAggregate
from windrow.operators.windows.windowing import Windowing
from windrow.progress import Punctuation
from windrow.spec.batches import Batch
from windrow.spec.names import CHUNK, WID
from windrow.windows import Sliding


class Wid(SlidingAggregate):
    """Expects rows tagged by Bucket. Each row updates an accumulator in each of its windows, at once.

    Rows of a batch with the same ids and keys are first reduced to one partial, then spread over the ids: the
    thesis's hash table update, a batch at a time. Chunk: some consecutive windows.
    """

    chunk_by = WID

    def __init__(self, windowing: Windowing[Sliding]) -> None:
        super().__init__(windowing)
        self.width = max(1, self.window.range // self.window.slide // CHUNKS_PER_WINDOW)  # windows per chunk

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        if self.window.slide > self.window.range:  # rows in the gaps are in no window
            batch = batch.filter(pl.col(FIRST) < pl.col(LAST))
        kept, side = self.on_time(self.lifted(batch))
        self.put(self._open(kept) if self.options.generous else kept)
        return side

    def _open(self, kept: Batch) -> Batch:
        """Without the windows that are released."""
        return kept.with_columns(pl.max_horizontal(FIRST, pl.lit(self.closed)).alias(FIRST))

    def lifted(self, rows: Batch) -> Batch:
        """One partial for all rows of a group that are in the same windows."""
        each, rest = divmod(self.window.range, self.window.slide)
        with locating(self.place):
            if rest or self.options.generous:  # the first window does not tell the last
                return self.aggregates.lift(rows, [FIRST, LAST, *self.keys])
            return self.aggregates.lift(rows, [FIRST, *self.keys]).with_columns((pl.col(FIRST) + each).alias(LAST))

    def put(self, tagged: Batch) -> None:
        """Merge partials into each of their windows."""
        if not tagged.height:
            return
        tagged = numbered(tagged, self.keys).sort("@group", FIRST, LAST)
        group, first, last = (tagged[c].to_numpy() for c in ("@group", FIRST, LAST))
        wid, low, high = windows_of(group.astype(np.int64), first, last)
        found = pl.DataFrame({WID: wid, CHUNK: wid // self.width})
        found = found.hstack(tagged.select(self.keys)[low]) if self.keys else found
        with locating(lambda at: self.place({**at, **found.row(at["@row"], named=True)})):
            self.chunks.append(found.hstack(merged(self.aggregates, tagged, low, high)))

    def release(self, before: int, promise: Punctuation) -> list[Item]:
        end = -(-self.closed // self.width)
        frames, chunks = self.chunks.below(end), sum(chunk < end for chunk in self.chunks.stacks)
        self.chunks.free_below(self.closed // self.width)
        if not frames:
            return []
        complete = self.whole(pl.concat(frames).filter(pl.col(WID) >= before, pl.col(WID) < self.closed))
        if len(frames) > chunks:
            complete = self.chunks.combine(complete)
        windows = complete.sort(WID, maintain_order=True)
        return [self.results(windows)] if windows.height else []

    def next_promise(self) -> int | None:
        return self.first_end(self.chunks, self.width)
