"""Instants: rows to one partial per progress value and group, for windows whose edges lie at rows."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.aggregates import Partials
from windrow.aggregates.user import locating
from windrow.operators.operator import Item, Stateless
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS


class Instants(Stateless):
    """Like Panes, with panes of length one: nothing smaller is known before all rows are there.

    >>> import polars as pl
    >>> rows = pl.DataFrame({"@t": [3, 3, 4], "k": ["a", "a", "a"]})
    >>> Instants(["k"], Partials([])).on_batch(0, rows)[0].sort("@t").rows()
    [(3, 'a', 2), (4, 'a', 1)]
    """

    def __init__(self, keys: Sequence[str], aggregates: Partials) -> None:
        self.keys = tuple(keys)
        self.aggregates = aggregates

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        with locating(lambda at: {"progress value" if k == PROGRESS else k: v for k, v in at.items()}):
            return [self.aggregates.lift(batch, [PROGRESS, *self.keys])]
