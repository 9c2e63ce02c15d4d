"""Retract: HAVING over results with versions. A row that no longer qualifies is retracted, not left out."""

from __future__ import annotations

import polars as pl

from windrow.operators.operator import Item, Stateless
from windrow.spec.batches import Batch
from windrow.spec.names import STATUS, VERSION

RETRACTED = "retracted"


class Retract(Stateless):
    """A first version that fails the predicate is dropped. A later one may replace a row that passed: it goes out with
    the status "retracted", so that a consumer that keeps the highest version knows that the row no longer exists.

    >>> rows = pl.DataFrame({"n": [1, 1, 5], "version": [1, 2, 2], "status": ["early", "final", "final"]})
    >>> Retract(pl.col("n") > 3).on_batch(0, rows)[0].rows()
    [(1, 2, 'retracted'), (5, 2, 'final')]
    """

    def __init__(self, predicate: pl.Expr) -> None:
        self.predicate = predicate

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        passes = self.predicate.fill_null(False)
        status = pl.when(passes).then(pl.col(STATUS)).otherwise(pl.lit(RETRACTED)).alias(STATUS)
        return [batch.filter(passes | (pl.col(VERSION) > 1)).with_columns(status)]
