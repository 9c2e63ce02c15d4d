"""Buffering: the baseline of the thesis, lazy aggregation (Li 6.1.3.3, 6.3). Keeps rows; a window is computed from
its rows when it closes."""

from __future__ import annotations

from windrow.aggregates.user import locating
from windrow.operators.operator import Item
from windrow.operators.state.rowbuffer import RowBuffer
from windrow.operators.windows.sliding import SlidingAggregate
from windrow.operators.windows.windowing import Windowing
from windrow.progress import Punctuation
from windrow.spec.batches import Batch
from windrow.spec.names import WID
from windrow.windows import Sliding


class Buffering(SlidingAggregate):
    """Expects rows with ``@t``, and promises on window ids from Bucket. Closes windows by promises, not by arrival,
    so that rows need not come in order, as they must in the implementations that the thesis compares with.
    """

    chunk_by = WID
    holds = "rows"

    def __init__(self, windowing: Windowing[Sliding]) -> None:
        super().__init__(windowing)
        self.rows = RowBuffer(self.window, self.keys, self.aggregates)
        self.chunks = self.rows.chunks
        self.stores[""] = self.chunks

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        kept, side = self.on_time(batch)
        self.rows.add(kept)
        return side

    def release(self, before: int, promise: Punctuation) -> list[Item]:
        items: list[Item] = []
        with locating(self.place):
            for states in self.rows.states(before, self.closed):
                windows = self.whole(states).sort(WID)
                items += [self.results(windows)] if windows.height else []
        self.rows.free(self.closed)
        return items

    def next_promise(self) -> int | None:
        return min((self.end_of(wid) for wid in self.rows.waiting(self.closed)), default=None)
