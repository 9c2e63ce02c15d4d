"""DupElim: each distinct row once, when it first comes (SELECT DISTINCT). Promises free what has been seen."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from windrow.operators.operator import Item, Stateless, Wait
from windrow.operators.state.held import Held
from windrow.operators.state.late import TIMES, on_time
from windrow.operators.state.runs import Runs
from windrow.progress import END, Punctuation
from windrow.spec.batches import Batch, State
from windrow.spec.names import PROGRESS

SEEN = "@seen"


class Unique(Stateless):
    """Each distinct row of a batch once, with its count: what can be done before an exchange.

    >>> Unique(["x"]).on_batch(0, pl.DataFrame({"x": [1, 1, 2]}))[0].rows()
    [(1, 2), (2, 1)]
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        times = pl.len().cast(pl.Int64).alias(TIMES)
        rest = pl.exclude(self.columns).first()
        return [batch.group_by(*self.columns, maintain_order=True).agg(rest, times).select(*batch.columns, TIMES)]


class DupElim(Held):
    """Order-agnostic (Li 8.2): rows pass at once. A row that equals another has the same progress value, so what a
    promise has passed can be forgotten; a row below it is late, as nothing shows any more whether it was there. Rows
    that Unique has put together are counted one by one when they are late.

    >>> once = DupElim(["@t", "x"])
    >>> [once.on_batch(0, pl.DataFrame({"@t": [1, 1], "x": x}))[0].height for x in ([7, 7], [7, 8])]
    [1, 1]
    """

    def __init__(self, columns: Sequence[str], late: str = "drop") -> None:
        super().__init__(runs := Runs())
        self.runs = runs
        self.columns = tuple(columns)
        self.late = late

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        rows, sides = on_time(batch, self.promised, self.late)
        rows = rows.drop(TIMES, strict=False)
        if not rows.height:
            return [rows, *sides]
        at = rows[PROGRESS]
        seen = self.runs.between(int(at.min()), int(at.max()))  # type: ignore[arg-type]
        marked = [frame.with_columns(pl.lit(True).alias(SEEN)) for frame in seen]
        both = pl.concat([*marked, rows.with_columns(pl.lit(False).alias(SEEN))])
        news = both.unique(self.columns, keep="first", maintain_order=True).filter(~pl.col(SEEN)).drop(SEEN)
        self.runs.push(news)
        return [news, *sides]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if promise.group is not None or promise.value <= self.promised:
            return []
        self.promised = promise.value
        self.runs.take(promise.value)
        return [promise]

    def waits_for(self) -> list[Wait]:
        first = self.runs.first()
        return self.waiting(0, None if first is None else min(END, first + 1), self.promised, self.runs.height)

    def restore(self, state: State) -> None:
        super().restore(state)
        self.runs.take(self.promised)
