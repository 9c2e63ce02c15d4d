"""Retime: another progressing attribute, an expression of the old one that never gives less for more."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from windrow.errors import ResultError
from windrow.operators.admit import NULL_PROGRESS, REASON, physical
from windrow.operators.clock import Bounds
from windrow.operators.operator import PROGRESS, Batch, Item, Rolling, Side
from windrow.progress import END, Punctuation


class Retime(Rolling):
    """``@t`` becomes the value of ``expression``, of type ``becomes``; a promise becomes what that is for it, the
    strongest one that is true: a row with the promised value may still come.

    >>> hourly = Retime("t", pl.Int64(), pl.col("t") // 10 * 10, pl.Int64())
    >>> hourly.on_punctuation(0, Punctuation(17)), hourly.on_punctuation(0, Punctuation(19))
    ([Punctuation(value=10, group=None)], [])
    """

    def __init__(self, attribute: str, dtype: pl.DataType, expression: pl.Expr, becomes: pl.DataType) -> None:
        super().__init__()
        self.attribute = attribute
        self.dtype = dtype
        self.at = physical(expression.alias(PROGRESS), becomes)

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        found = batch.with_columns(self.at)
        missing = found[PROGRESS].is_null()
        if not missing.any():
            return [found]
        bad = batch.filter(missing).select(pl.exclude("^@.*$")).with_columns(pl.lit(NULL_PROGRESS).alias(REASON))
        return [found.filter(~missing), Side("bad", bad.height, bad)]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        found = transformed(promise, self.attribute, self.dtype, self._value)
        return [] if found is None else self.news(found)

    def _value(self, at: Batch) -> int | None:
        try:
            value: int | None = at.select(self.at).item()
        except ResultError:  # a promise is no row: where the expression has no value it says nothing
            return None
        return value


def transformed(
    promise: Punctuation, name: str, dtype: pl.DataType, of: Callable[[Batch], int | None]
) -> Punctuation | None:
    """What a promise about an attribute says about a function of it; None if the function has no value there."""
    if promise.value == END:
        return promise
    value = of(Bounds(dtype).column(name, np.array([promise.value])).to_frame())
    return None if value is None else Punctuation(value, promise.group)
