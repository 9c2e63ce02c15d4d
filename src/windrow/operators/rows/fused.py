"""Fused: neighbours without state as one operator, so that a batch takes one step and not one for each of them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from windrow.operators.operator import Item, Operator, Side, Stateless
from windrow.progress import Punctuation
from windrow.spec.batches import Batch


class Fused(Stateless):
    """A chain of operators without state, with one input each. What leaves one of them by the side leaves the chain.

    >>> from windrow.operators import Project, Select
    >>> chain = Fused([Select(pl.col("x") > 1), Project([(pl.col("x") * 2).alias("y")])])
    >>> chain.on_batch(0, pl.DataFrame({"x": [1, 2]}))[0].rows()
    [(4,)]
    """

    def __init__(self, chain: Sequence[Operator]) -> None:
        self.chain = tuple(chain)

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        return through(self.chain, batch)

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        return through(self.chain, promise)


def through(chain: Sequence[Operator], item: Item) -> list[Item]:
    """What comes out of a chain of operators."""
    items = [item]
    for operator in chain:
        items = [x for i in items for x in _given(operator, i)]
    return items


def _given(operator: Operator, item: Item) -> list[Item]:
    if isinstance(item, pl.DataFrame):
        return operator.on_batch(0, item)
    return [item] if isinstance(item, Side) else operator.on_punctuation(0, item)
