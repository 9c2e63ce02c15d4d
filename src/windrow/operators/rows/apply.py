"""Apply: a new column by a Python function, for each row or for whole columns."""

from __future__ import annotations

import numpy as np
import polars as pl

from windrow.errors import ResultError
from windrow.operators.operator import Item, OnlyNews, Side, Stateless
from windrow.operators.progress.retime import transformed
from windrow.operators.rows.tried import bad_rows, tried
from windrow.progress import Punctuation
from windrow.spec.batches import Batch
from windrow.spec.functions import Function
from windrow.spec.names import PROGRESS, REASON
from windrow.spec.time import out_of_range, physical, within


class Apply(OnlyNews, Stateless):
    """A row for which the function fails is bad, with the reason; the others pass.

    ``progress``: the type of the input's progressing attribute where the new column takes its place; promises are
    then given to the function, too, which is monotone.

    >>> half = Function("half", lambda x: 1 // x, ("x",), pl.Int64())
    >>> good, bad = Apply("y", half).on_batch(0, pl.DataFrame({"x": [1, 0]}))
    >>> good.rows(), bad.rows["reason"].to_list()
    ([(1, 1)], ['half failed: ZeroDivisionError: integer division or modulo by zero'])
    """

    def __init__(self, column: str, function: Function, progress: pl.DataType | None = None) -> None:
        super().__init__()
        self.column = column
        self.function = function
        self.progress = progress

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        values, reasons = tried(self.function, batch)
        values = values.alias(self.column)
        if self.progress is not None:
            empty = values.is_null().arg_true().to_list()
            reasons |= {row: f"{self.function.name} returned no progress value" for row in empty if row not in reasons}
            returns = self.function.returns
            fits = values.to_frame("t").select(within(physical(pl.col("t"), returns), returns).fill_null(False))
            far = (~fits.to_series()).arg_true().to_list()
            reasons |= {row: out_of_range("progress value", returns) for row in far if row not in reasons}
        if not reasons:
            return [self._with(batch, values)]
        mask = np.ones(batch.height, bool)
        mask[list(reasons)] = False
        kept = pl.Series(mask)
        bad = bad_rows(batch, reasons, REASON)
        return [self._with(batch, values).filter(kept), Side("bad", len(reasons), bad)]

    def _with(self, batch: Batch, values: pl.Series) -> Batch:
        found = batch.with_columns(values)
        if self.progress is None:
            return found
        return found.with_columns(physical(pl.col(self.column), self.function.returns).alias(PROGRESS))

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if self.progress is None:
            return [promise]
        found = transformed(promise, self.function.columns[0], self.progress, self._promised)
        return [] if found is None else self.news(found)

    def _promised(self, at: Batch) -> int | None:
        try:
            value = self.function.of(at).alias("t").to_frame()
        except Exception as error:  # a promise cannot be set aside like a row
            raise ResultError(
                f"{self.function.name} failed for the promise {at.item()}: {type(error).__name__}: {error}. It is "
                "monotone, so it must have a value for every value of the progressing attribute"
            ) from error
        found: int | None = value.select(physical(pl.col("t"), self.function.returns)).item()
        return found
