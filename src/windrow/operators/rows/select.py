"""Select: the rows for which a predicate is true (not NULL, not false)."""

from __future__ import annotations

import polars as pl

from windrow.operators.operator import Item, Stateless
from windrow.spec.batches import Batch


class Select(Stateless):
    """Promises pass: a subset of the rows keeps every promise.

    >>> Select(pl.col("x") > 1).on_batch(0, pl.DataFrame({"x": [1, 2, None]}))[0].rows()
    [(2,)]
    """

    def __init__(self, predicate: pl.Expr) -> None:
        self.predicate = predicate

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        kept = batch.select(self.predicate).to_series()
        if len(kept) != batch.height:  # a literal
            return [batch.filter(self.predicate)]
        return [batch if kept.all() and not kept.null_count() else batch.filter(kept)]
