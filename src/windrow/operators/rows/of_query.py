"""The rows of one of several queries that share a stage."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.operators.operator import Item, Stateless
from windrow.spec.batches import Batch


class OfQuery(Stateless):
    """The stage puts out a struct column for each query. Most of its batches have rows of one query, and the others see
    at once that there is nothing for them.
    """

    def __init__(self, name: str, columns: Sequence[str]) -> None:
        self.name, self.columns = name, list(columns)

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        own = batch[self.name]
        missing = own.null_count()
        if missing == batch.height:
            return []
        return [(own.drop_nulls() if missing else own).struct.unnest().select(self.columns)]
