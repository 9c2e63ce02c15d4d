"""Top: ORDER BY and LIMIT inside a window: the first rows of each window, once all of them are there."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from windrow.operators.operator import Item, Wait
from windrow.operators.state.chunks import Chunks
from windrow.operators.state.held import Held
from windrow.progress import END, Punctuation
from windrow.spec.batches import Batch
from windrow.spec.names import CHUNK, PROGRESS, WINDOW_END, WINDOW_START


class Top(Held):
    """Holds at most ``limit`` rows per open window. Rows that the order calls equal are ordered by their other columns,
    so that the order of arrival does not show.

    >>> rows = pl.DataFrame({"window_start": [0, 0], "window_end": [5, 5], "n": [1, 2], "@t": [5, 5]})
    >>> top = Top(["n"], [True], 1)
    >>> top.on_batch(0, rows), top.on_punctuation(0, Punctuation(6))[0]["n"].to_list()
    ([], [2])
    """

    def __init__(self, order: Sequence[str], descending: Sequence[bool], limit: int) -> None:
        super().__init__(chunks := Chunks(self._first))
        self.chunks = chunks
        self.order = tuple(order)
        self.descending = tuple(descending)
        self.limit = limit

    def _first(self, frame: Batch) -> Batch:
        rest = [c for c, t in frame.schema.items() if c not in self.order and not t.is_nested() and t != pl.Object]
        ordered = frame.sort(
            *self.order,
            *rest,
            descending=[*self.descending, *(False for _ in rest)],
            nulls_last=[*self.descending, *(False for _ in rest)],
        )
        return ordered.group_by(WINDOW_START, WINDOW_END, maintain_order=True).head(self.limit).select(frame.columns)

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        if batch.height:
            self.chunks.append(self._first(batch).with_columns(pl.col(PROGRESS).alias(CHUNK)))
        return []

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if promise.group is not None or promise.value <= self.promised:
            return []
        self.promised = promise.value
        limit = promise.value if promise.value != END else END + 1
        frames = self.chunks.below(limit)
        self.chunks.free_below(limit)
        return [self._first(pl.concat(frames)), promise] if frames else [promise]

    def waits_for(self) -> list[Wait]:
        first = self.chunks.first()
        return self.waiting(0, None if first is None else first + 1, self.promised, self.chunks.height())
