"""Split: each row goes through one of two branches, by a predicate, and both meet again (Li 8.3, Figure 8-3)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from windrow.operators.operator import Item, Operator, Stateless
from windrow.operators.rows.fused import through
from windrow.progress import Combined, Punctuation
from windrow.spec.batches import Batch


class Split(Stateless):
    """``yes`` and ``no`` are chains of operators without state. Only rows for which the predicate is not true go to the
    second, so that the others are spared what is expensive there. Rows may leave in another order than they came.

    >>> from windrow.operators import Select
    >>> either = Split(pl.col("x") > 9, [], [Select(pl.col("x") == 1)])
    >>> [batch["x"].to_list() for batch in either.on_batch(0, pl.DataFrame({"x": [1, 10, 2]}))]
    [[10], [1]]
    """

    def __init__(self, predicate: pl.Expr, yes: Sequence[Operator], no: Sequence[Operator]) -> None:
        self.predicate = predicate
        self.branches = tuple(yes), tuple(no)
        self.combined = Combined(2)

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        true = batch.select(self.predicate.fill_null(False).alias("@true"))["@true"]
        if true.len() != batch.height:  # a constant
            true = pl.repeat(bool(true[0]), batch.height, eager=True)
        parts = batch.filter(true), batch.filter(~true)
        return [
            x for branch, part in zip(self.branches, parts, strict=True) if part.height for x in through(branch, part)
        ]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        found: list[Item] = []
        for number, branch in enumerate(self.branches):
            for item in through(branch, promise):
                found += self.combined.give(number, item) if isinstance(item, Punctuation) else [item]
        return found
