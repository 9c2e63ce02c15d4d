"""Top: ORDER BY and LIMIT inside a window: the first rows of each window, once all of them are there."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from windrow.operators.operator import Item
from windrow.operators.state.chunks import Chunks
from windrow.operators.windows.released import WINDOW_END, WINDOW_START
from windrow.progress import END, START, Punctuation
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import CHUNK, PROGRESS


class Top:
    """Holds at most ``limit`` rows per open window. Rows that the order calls equal are ordered by their other columns,
    so that the order of arrival does not show.

    >>> rows = pl.DataFrame({"window_start": [0, 0], "window_end": [5, 5], "n": [1, 2], "@t": [5, 5]})
    >>> top = Top(["n"], [True], 1)
    >>> top.on_batch(0, rows), top.on_punctuation(0, Punctuation(6))[0]["n"].to_list()
    ([], [2])
    """

    def __init__(self, order: Sequence[str], descending: Sequence[bool], limit: int) -> None:
        self.order = tuple(order)
        self.descending = tuple(descending)
        self.limit = limit
        self.promised = START
        self._saved = START
        self.chunks = Chunks(self._first)

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

    def on_flush(self) -> list[Item]:
        return []

    def wake_at(self) -> int | None:
        first = self.chunks.first()
        return None if first is None else first + 1

    def snapshot(self) -> State:
        return {"promised": pl.DataFrame({"value": [self.promised]}), **self.chunks.snapshot()}

    def changes(self) -> Changes:
        found = self.chunks.changes()
        if self.promised != self._saved:
            found["promised"] = pl.DataFrame({"value": [self.promised]})
            self._saved = self.promised
        return found

    def restore(self, state: State) -> None:
        chunks = dict(state)
        promised = chunks.pop("promised", None)
        self.promised = self._saved = START if promised is None else int(promised["value"][0])
        self.chunks.restore(chunks)

    def state_bytes(self) -> int:
        return self.chunks.state_bytes()
