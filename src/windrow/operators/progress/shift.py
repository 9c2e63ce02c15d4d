"""Shift: progress values moved by a fixed amount, and promises with them."""

from __future__ import annotations

import polars as pl

from windrow.operators.operator import Item, OnlyNews, Stateless
from windrow.progress import Punctuation
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS


class Shift(OnlyNews, Stateless):
    """For a query that names a column which is ahead of the progress value, as the end of a window is.

    >>> rows, = Shift(1).on_batch(0, pl.DataFrame({"@t": [9]}))
    >>> rows["@t"].to_list(), Shift(1).on_punctuation(0, Punctuation(19))
    ([10], [Punctuation(value=20, group=None)])
    """

    def __init__(self, by: int) -> None:
        super().__init__()
        self.by = by

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        return [batch.with_columns(pl.col(PROGRESS) + self.by)]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        return self.news(promise.mapped(lambda value: value + self.by))
