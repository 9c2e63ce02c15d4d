"""Project: new columns from expressions over the old ones."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from windrow.operators.operator import Item, Stateless
from windrow.spec.batches import Batch


class Project(Stateless):
    """Promises pass as long as the expressions keep the progress column; the planner ensures that.

    >>> Project([(pl.col("x") * 2).alias("y")]).on_batch(0, pl.DataFrame({"x": [1]}))[0].rows()
    [(2,)]
    """

    def __init__(self, expressions: Sequence[pl.Expr]) -> None:
        self.expressions = tuple(expressions)

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        columns = batch.select(*self.expressions)
        # A list of literals alone has one row, whatever the height of its input.
        return [
            columns if columns.height == batch.height else columns.select(pl.all().repeat_by(batch.height).explode())
        ]
