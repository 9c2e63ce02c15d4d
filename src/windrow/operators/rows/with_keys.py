"""WithKeys: the rows whose keys are not NULL, before a join to which the others cannot contribute."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from windrow.operators.operator import Item, Side, Stateless
from windrow.spec.batches import Batch


class WithKeys(Stateless):
    """A row with a NULL key has no partner: it need not be sent or kept, and is counted as freed.

    >>> rows, side = WithKeys(["k"]).on_batch(0, pl.DataFrame({"k": [1, None]}))
    >>> rows.rows(), side.kind, side.count
    ([(1,)], 'freed', 1)
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = list(keys)
        self.there = pl.all_horizontal([pl.col(key).is_not_null() for key in keys])

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        if not any(batch[key].null_count() for key in self.keys):
            return [batch]
        rows = batch.filter(self.there)
        without = batch.height - rows.height
        return [rows, *([Side("freed", without)] if without else [])]
