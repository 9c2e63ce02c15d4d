"""What several queries compute from the same rows, computed once."""

from __future__ import annotations

from windrow.operators.operator import Item, Operator, Stateless
from windrow.progress import Punctuation
from windrow.spec.batches import Batch


class Last:
    """The last batch, and what came of it. Rows in a graph are not changed, so the same object means the same rows."""

    def __init__(self) -> None:
        self.given: Batch | None = None
        self.found: list[Item] = []

    def clear(self) -> None:
        self.given, self.found = None, []


class Once(Stateless):
    """An operator without state, such as a filter, that shares its results with the same operator of other queries.

    Where promises are made by what a query itself has seen, its filter cannot be the node of another query's.
    """

    def __init__(self, operator: Operator, last: Last) -> None:
        self.operator, self.last = operator, last

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        if self.last.given is not batch:
            self.last.found = list(self.operator.on_batch(port, batch))
            self.last.given = batch
        return list(self.last.found)

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        return list(self.operator.on_punctuation(port, promise))
