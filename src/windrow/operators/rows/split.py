"""Split: each row takes one of two ways, by a predicate, and both meet again (Li 8.3, Figure 8-3)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from windrow.operators.operator import (
    Item,
    Operator,
    Side,
    Stateless,
)
from windrow.progress import Combined, Punctuation
from windrow.spec.batches import Batch


class Split(Stateless):
    """``yes`` and ``no`` are chains of operators without state; only rows for which the predicate is not true take the
    second, so that what is dear there is spared for the others. The two ways put rows out of order; nobody minds.

    >>> from windrow.operators import Select
    >>> either = Split(pl.col("x") > 9, [], [Select(pl.col("x") == 1)])
    >>> [batch["x"].to_list() for batch in either.on_batch(0, pl.DataFrame({"x": [1, 10, 2]}))]
    [[10], [1]]
    """

    def __init__(self, predicate: pl.Expr, yes: Sequence[Operator], no: Sequence[Operator]) -> None:
        self.predicate = predicate
        self.ways = tuple(yes), tuple(no)
        self.combined = Combined(2)

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        true = batch.select(self.predicate.fill_null(False).alias("@true"))["@true"]
        if true.len() != batch.height:  # a constant
            true = pl.repeat(bool(true[0]), batch.height, eager=True)
        parts = batch.filter(true), batch.filter(~true)
        return [x for way, part in zip(self.ways, parts, strict=True) if part.height for x in _through(way, part)]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        found: list[Item] = []
        for number, way in enumerate(self.ways):
            for item in _through(way, promise):
                found += self.combined.give(number, item) if isinstance(item, Punctuation) else [item]
        return found


def _through(way: Sequence[Operator], item: Item) -> list[Item]:
    """What comes out of a chain of operators."""
    items = [item]
    for operator in way:
        items = [x for i in items for x in _given(operator, i)]
    return items


def _given(operator: Operator, item: Item) -> list[Item]:
    if isinstance(item, Side):
        return [item]
    return operator.on_punctuation(0, item) if isinstance(item, Punctuation) else operator.on_batch(0, item)
