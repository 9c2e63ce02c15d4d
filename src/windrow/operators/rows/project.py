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
        self.renames = _renames(self.expressions)

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        if self.renames is not None:
            return [pl.DataFrame([batch[column].alias(name) for name, column in self.renames.items()])]
        columns = batch.select(*self.expressions)
        # A list of literals alone has one row, whatever the height of its input.
        return [
            columns if columns.height == batch.height else columns.select(pl.all().repeat_by(batch.height).explode())
        ]


def _renames(expressions: Sequence[pl.Expr]) -> dict[str, str] | None:
    """What each column is called in the input, where there is nothing to compute."""
    if not expressions or not all(e.meta.undo_aliases().meta.is_column() for e in expressions):
        return None
    found = {e.meta.output_name(): e.meta.root_names()[0] for e in expressions}
    return found if len(found) == len(expressions) else None  # Polars refuses two columns of one name
