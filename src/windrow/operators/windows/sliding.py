"""What the aggregates over sliding windows share: ids, ends, late rows and partials."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import polars as pl

from windrow.aggregates import ROWS, Partials
from windrow.operators.operator import Item
from windrow.operators.state.chunks import Chunks
from windrow.operators.state.levels import NOBODY, Named
from windrow.operators.windows.bucket import FIRST, LAST
from windrow.operators.windows.released import Released
from windrow.progress import END, Punctuation
from windrow.spec.batches import Batch
from windrow.spec.names import PANE, PROGRESS, WID
from windrow.spec.options import PLAIN, Options
from windrow.windows import Sliding
from windrow.windows.tuples import Ints


class SlidingAggregate(Released, ABC):
    """``closed`` is a window id: all windows with a smaller one are released."""

    def __init__(
        self,
        window: Sliding,
        keys: Sequence[str],
        aggregates: Partials,
        dtype: pl.DataType,
        options: Options = PLAIN,
        by: Named = NOBODY,
    ) -> None:
        super().__init__(keys, aggregates, dtype, options, by)
        self.window = window
        self.lay_out()

    @abstractmethod
    def lay_out(self) -> None:
        """Sizes and stores that follow from the window and the options."""

    def promise(self) -> Punctuation:
        """What follows for ``window_end``: windows below ``closed`` are all out, so the next end is that of it."""
        return Punctuation(END if self.closed == END else self.promised_end(self.closed))

    def promised_end(self, closed: int) -> int:
        return self.bounds.value(min(END, self.window.end(closed)))

    def results(self, frame: Batch) -> Batch:
        """Results from states with a ``@wid`` each."""
        ends = self.ends(frame[WID].to_numpy())
        return self.lowered(frame, ends - self.window.range, ends)

    def ends(self, wids: Ints) -> Ints:
        return self.window.origin + (wids + 1) * self.window.slide

    def waits_until(self, wid: int) -> int:
        """The end of the first window from ``wid`` on that is still open."""
        return self.bounds.value(self.window.end(max(wid, self.closed)))

    def waits_for(self, store: Chunks, width: int) -> int | None:
        """The end of the first open window in a store of ``width`` windows per chunk, or what frees its first chunk."""
        first = store.first()
        if first is None:
            return None
        ids = pl.concat([frame[WID] for frame in store.stacks[first]])
        live = ids.filter(ids >= self.closed).min()
        last = (first + 1) * width - 1
        return self.waits_until(last if live is None else int(live))  # type: ignore[arg-type]

    def late_in(self, partials: Batch, first: Ints, last: Ints) -> list[Item]:
        """Late partials of the windows [first, last)."""
        ends = self.ends(first)
        return self.late(partials, ends - self.window.range, ends, np.maximum(last - first, 0))

    def rows_on_time(self, batch: Batch) -> tuple[Batch, list[Item]]:
        """The rows that still count, with their window ids, and the items for late ones. Rows in gaps are neither."""
        if FIRST in batch.columns:  # they are from Bucket
            tagged, first, last = batch, batch[FIRST].to_numpy(), batch[LAST].to_numpy()
        else:
            first, last = self.window.wids_array(batch[PROGRESS].to_numpy())
            tagged = batch.with_columns(pl.Series(FIRST, first), pl.Series(LAST, last))
        tagged = tagged if self.window.slide <= self.window.range else tagged.filter(pl.Series(first < last))
        if not ((first < self.closed) & (first < last)).any():
            return tagged, []
        late = tagged.filter(pl.col(FIRST) < self.closed)
        kept = tagged.filter((pl.col(LAST) > self.closed) if self.options.generous else (pl.col(FIRST) >= self.closed))
        if self.options.late == "side":  # counted by Gate, where they still were rows
            return kept, []
        late = late.group_by(FIRST, LAST, *self.keys).agg(pl.len().cast(pl.Int64).alias(ROWS))
        first, last = late[FIRST].to_numpy(), late[LAST].to_numpy()
        return kept, self.late_in(late, first, last.clip(max=self.closed) if self.options.generous else last)

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
            end = self.ends(np.array([wid]))
            found["window_start"] = self.bounds.column("t", end - self.window.range)[0]
            found["window_end"] = self.bounds.column("t", end)[0]
        return found

    def pane_length(self) -> int:
        return self.window.pane


def rows_in(partials: Batch) -> int:
    """How many rows some partials stand for."""
    return int(partials[ROWS].sum())
