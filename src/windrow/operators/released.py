"""What the window aggregates share: which windows are out already, which rows are late, what results look like."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from windrow.aggregates import ROWS, Partials
from windrow.operators.chunks import Chunks
from windrow.operators.operator import WID, Batch, Changes, Item, Side, State
from windrow.progress import END, START, Punctuation
from windrow.windows import Sliding

WINDOW_START, WINDOW_END = "window_start", "window_end"
LIMIT = 1 << 62  # START and END times a window's step leave 64 bits; nothing real is beyond this


def clipped(value: int) -> int:
    """The value, or the nearest one that still leaves room for arithmetic in 64 bits."""
    return max(-LIMIT, min(LIMIT, value))


class Released:
    """State of a window aggregate: partials in chunks, and ``closed``: all windows below this id are released.

    A row is late when a window it belongs to is released; then it is dropped from all of its windows (the
    thesis's consistent slack) and counted.
    """

    def __init__(
        self, window: Sliding, keys: Sequence[str], aggregates: Partials, dtype: pl.DataType, chunk_by: str
    ) -> None:
        self.window = window
        self.keys = tuple(keys)
        self.aggregates = aggregates
        self.dtype = dtype
        self.closed = START
        self._saved = START
        by = (chunk_by, *keys)
        self.chunks = Chunks(lambda frame: aggregates.combine(frame, by))

    def split_late(self, batch: Batch, on_time: pl.Expr) -> tuple[Batch, list[Item]]:
        """Partials that still count, and the number of rows in the others."""
        kept = batch.filter(on_time)
        if kept.height == batch.height:
            return batch, []
        late = int(batch[ROWS].sum()) - int(kept[ROWS].sum())
        return kept, [Side("late", late)]

    def advance(self, promise: Punctuation) -> bool:
        """Note a promise on window ids; false if it closes nothing new."""
        if promise.group is not None or promise.value <= self.closed:
            return False
        self.closed = min(promise.value, END)
        return True

    def promise(self) -> Punctuation:
        """What follows for ``window_end``: windows below ``closed`` are all out, so the next end is that of it."""
        end = self.window.end(self.closed)
        return Punctuation(END if self.closed == END or end > END else end)

    def results(self, frame: Batch) -> Batch:
        """Keys, window bounds and aggregates from partials with a ``@wid`` each."""
        wids = frame[WID].to_numpy()
        ends = self.window.origin + (wids + 1) * self.window.slide
        bounds = {WINDOW_START: ends - self.window.range, WINDOW_END: ends}
        frame = frame.with_columns(*(self._bound(name, values) for name, values in bounds.items()))
        return self.aggregates.lower(frame, [*self.keys, WINDOW_START, WINDOW_END])

    def _bound(self, name: str, values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pl.Series:
        physical = pl.Series(name, values)
        return physical.cast(pl.Int32).cast(self.dtype) if self.dtype == pl.Date else physical.cast(self.dtype)

    def waits_until(self, wid: int) -> int:
        """The end of the first window from ``wid`` on that is still open."""
        return self.window.end(max(wid, self.closed))

    def snapshot(self) -> State:
        return {"closed": pl.DataFrame({"value": [self.closed]}), **self.chunks.snapshot()}

    def changes(self) -> Changes:
        found = self.chunks.changes()
        if self.closed != self._saved:
            found["closed"] = pl.DataFrame({"value": [self.closed]})
            self._saved = self.closed
        return found

    def restore(self, state: State) -> None:
        chunks = dict(state)
        closed = chunks.pop("closed", None)
        self.closed = self._saved = START if closed is None else int(closed["value"][0])
        self.chunks.restore(chunks)

    def state_bytes(self) -> int:
        return self.chunks.state_bytes()
