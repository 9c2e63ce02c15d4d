"""Retime: another progressing attribute, a monotone expression of the old one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from windrow.errors import ResultError
from windrow.operators.operator import Item, OnlyNews, Side, Stateless
from windrow.operators.progress.admit import NULL_PROGRESS
from windrow.progress import END, START, Punctuation
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS, REASON
from windrow.spec.time import (
    Bounds,
    out_of_range,
    physical,
    reach,
    within,
)


class Retime(OnlyNews, Stateless):
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
        self.becomes = becomes
        self.expression = expression
        self.at = physical(expression.alias(PROGRESS), becomes)

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        found = batch.with_columns(self.at)
        good = found.select(within(pl.col(PROGRESS), self.becomes).fill_null(False)).to_series()
        if good.all():
            return [found]
        far = pl.lit(out_of_range("progress value", self.becomes))
        why = pl.when(self.expression.is_null()).then(pl.lit(NULL_PROGRESS)).otherwise(far)
        bad = batch.with_columns(why.alias(REASON)).filter(~good).select(pl.exclude("^@.*$"))
        return [found.filter(good), Side("bad", bad.height, bad)]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        found = transformed(promise, self.attribute, self.dtype, self._value)
        return [] if found is None else self.news(found)

    def _value(self, at: Batch) -> int | None:
        try:
            value: int | None = at.select(self.at).item()
        except ResultError:  # a promise is not a row: where the expression has no value it promises nothing
            return None
        return value


def transformed(
    promise: Punctuation, name: str, dtype: pl.DataType, of: Callable[[Batch], int | None]
) -> Punctuation | None:
    """What a promise about an attribute says about a function of it; None if the function has no value there.

    A promise below the least value of the type says the same as one of that value.
    """
    least, greatest = _limits(dtype)

    def found(value: int) -> int | None:
        return of(Bounds(dtype).column(name, np.array([min(max(value, least), greatest)])).to_frame())

    reached = None if promise.reached is None else found(promise.reached)
    if promise.value == START:
        return None
    value = END if promise.value > greatest else found(promise.value)
    return None if value is None else Punctuation(value, promise.group, reached=reached)


def _limits(dtype: pl.DataType) -> tuple[int, int]:
    """The least and the greatest value that a progressing attribute of a type can have."""
    most = reach(dtype)[0] - 1
    if not dtype.is_integer():
        return -most, most
    least, greatest = (int(pl.select(end).item()) for end in (dtype.min(), dtype.max()))  # type: ignore[attr-defined]
    return max(least, -most), min(greatest, most)
