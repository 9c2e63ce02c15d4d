"""Lookup: rows of a stream beside the rows of a static table that have their keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import polars as pl

from windrow.operators.joins.condition import Condition
from windrow.operators.operator import Item, Stateless
from windrow.operators.state.keyed import matched
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS
from windrow.spec.tables import Table
from windrow.windows.tuples import Bools

NUMBER = "@number"  # the place of a row in its batch
PLACE = "@place"  # the place of a row in the table: rows of which no column is used still count
PIECE = 1 << 20  # without keys every row meets every row of the table: so many pairs at a time
Keys = Sequence[tuple[pl.Expr, pl.Expr]]


class Lookup(Stateless):
    """A row and a row of the table are a pair if their keys are equal, and the condition is true.

    NULL equals nothing, NaN equals itself. Rows keep their order and their progress value, so promises pass.
    ``columns``: the name of each column of a pair, 0 for the row or 1 for the table, and its name there. ``how``:
    "inner"; "left", where a row without a partner has NULL for what is from the table; "semi" or "anti", the rows that
    have a partner, or none.

    >>> given = pl.DataFrame({"k": [1], "name": ["a"]})
    >>> names = Table("names", tuple(given.schema.items()), lambda: given)
    >>> lookup = Lookup(names, [(pl.col("k"), pl.col("k"))], [("k", 0, "k"), ("name", 1, "name")], "left")
    >>> lookup.on_batch(0, pl.DataFrame({"k": [2, 1], "@t": [10, 11]}))[0].rows()
    [(2, None, 10), (1, 'a', 11)]
    """

    def __init__(
        self,
        table: Table,
        keys: Keys,
        columns: Sequence[tuple[str, int, str]],
        how: str = "inner",
        condition: Condition | None = None,
    ) -> None:
        self.table = table
        self.keys = [(mine.alias(f"@key{i}"), other.alias(f"@key{i}")) for i, (mine, other) in enumerate(keys)]
        self.names = [f"@key{i}" for i in range(len(keys))]
        self.own, self.others = ([pl.col(c).alias(n) for n, side, c in columns if side == of] for of in (0, 1))
        self.kept = [n for n, side, _ in columns if side == 0 or how in ("inner", "left")]
        self.how = how
        self.condition = condition

    @cached_property
    def rows(self) -> Batch:
        """The rows of the table that can be a partner: where only that counts, one of each key is enough."""
        if not self.names:
            return self.table.frame.select(*self.others, pl.int_range(pl.len()).alias(PLACE))
        found = self.table.frame.select(*self.others, *(other for _, other in self.keys)).drop_nulls(self.names)
        once = self.how in ("semi", "anti") and self.condition is None
        return found.select(self.names).unique() if once else found

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        return [item for piece in self._pieces(batch) for item in self._of(piece)]

    def _pieces(self, batch: Batch) -> Iterator[Batch]:
        """A batch, or, where all its rows meet all of the table, parts of it."""
        size = batch.height if self.keys else PIECE // max(self.rows.height, 1) + 1
        yield from (batch[at : at + size] for at in range(0, batch.height, max(size, 1)))

    def _of(self, batch: Batch) -> list[Item]:
        kept = [pl.col(PROGRESS)] if PROGRESS in batch.columns else []
        number = pl.int_range(pl.len()).alias(NUMBER)
        left = batch.select(*self.own, *kept, number, *(mine for mine, _ in self.keys))
        pairs = self._pairs(left)
        bad: list[Item] = []
        if self.condition is not None:
            holds, failed = self.condition.holds(pairs)
            pairs = pairs.filter(pl.Series(holds))
            bad += failed
        return [self._results(left, pairs).select(*self.kept, *kept), *bad]

    def _pairs(self, left: Batch) -> Batch:
        if not self.names:
            return left.join(self.rows, how="cross", maintain_order="left_right")
        return matched(left, self.rows, self.names, "inner")

    def _results(self, left: Batch, pairs: Batch) -> Batch:
        if self.how == "inner":
            return pairs
        found = _places(pairs, left.height)
        if self.how != "left":
            return left.filter(pl.Series(found if self.how == "semi" else ~found))
        if found.all():
            return pairs
        return pl.concat([pairs, left.filter(pl.Series(~found))], how="diagonal").sort(NUMBER, maintain_order=True)


def _places(pairs: Batch, height: int) -> Bools:
    """Which rows of a batch are in a pair."""
    found = np.zeros(height, np.bool_)
    found[pairs[NUMBER].to_numpy()] = True
    return found
