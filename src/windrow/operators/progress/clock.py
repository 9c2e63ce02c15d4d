"""Between progress values and what a result shows of them: column types, and the wall clock of a time zone."""

from __future__ import annotations

import polars as pl

from windrow.operators.operator import Item, OnlyNews, Stateless
from windrow.progress import START, Punctuation
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS
from windrow.spec.time import shown, wall_clock, wall_promise


class WallClock(OnlyNews, Stateless):
    """Replaces the progress value by what the clock of a time zone shows.

    >>> rows = pl.DataFrame({"@t": [0]})
    >>> WallClock("Asia/Tokyo").on_batch(0, rows)[0]["@t"].item() // 3_600_000_000
    9
    """

    def __init__(self, zone: str) -> None:
        super().__init__()
        self.zone = zone

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        return [batch.with_columns(wall_clock(pl.col(PROGRESS), self.zone))]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if promise.value == START:  # says nothing, anywhere
            return [promise]
        reached = None if promise.reached is None else shown(promise.reached, self.zone)
        return self.news(Punctuation(wall_promise(promise.value, self.zone), promise.group, reached=reached))
