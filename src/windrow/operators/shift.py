"""Shift: progress values moved by a fixed amount, and promises with them."""

from __future__ import annotations

import polars as pl

from windrow.operators.operator import PROGRESS, Batch, Item, Rolling
from windrow.progress import END, START, Punctuation


class Shift(Rolling):
    """``@t`` becomes ``at + by``; a promise about ``at`` becomes one about that.

    The results of a window progress on its last instant: ``at`` is the end, which windows promise, and ``by`` is -1.

    >>> rows, = Shift(-1, pl.col("end")).on_batch(0, pl.DataFrame({"end": [10]}))
    >>> rows["@t"].to_list(), Shift(-1).on_punctuation(0, Punctuation(20))
    ([9], [Punctuation(value=19, group=None)])
    """

    def __init__(self, by: int, at: pl.Expr | None = None) -> None:
        super().__init__()
        self.by = by
        self.at = (pl.col(PROGRESS) if at is None else at) + by

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        return [batch.with_columns(self.at.alias(PROGRESS))]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if promise.value in (START, END):
            return self.news(promise)
        return self.news(Punctuation(promise.value + self.by, promise.group))
