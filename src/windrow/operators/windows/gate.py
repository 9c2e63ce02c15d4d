"""Gate: late rows leave here, while they still are rows, each with its window and how late it is."""

from __future__ import annotations

import numpy as np
import polars as pl

from windrow.operators.operator import Item, Side
from windrow.operators.progress.promised import Promised
from windrow.operators.progress.sourced import promised
from windrow.operators.state.levels import NOBODY, Named
from windrow.operators.windows.released import (
    LATE_BY,
    LATE_ROWS,
    LIMIT,
    WINDOW_END,
    WINDOW_START,
    WINDOWS,
)
from windrow.operators.windows.row_windows import shifted
from windrow.progress import END, Punctuation
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS, ROW, SOURCE
from windrow.spec.options import Options
from windrow.spec.time import Bounds
from windrow.windows import Landmark, Partitioned, Session, SlideByTuple, Sliding
from windrow.windows.tuples import Ints

Shape = Sliding | Landmark | Partitioned | SlideByTuple | Session


class Gate(Promised):
    """Stands before the aggregation of a query with the policy "side", in the same place: it sees the same rows and
    promises, so that both agree on what is late. Under generous slack a late row that has open windows goes on, too.
    """

    def __init__(self, window: Shape, dtype: pl.DataType, options: Options, by: Named = NOBODY) -> None:
        super().__init__()
        self.window = window
        self.bounds = Bounds(dtype, options.zone)
        self.generous = options.generous
        self.by = dict(by.columns)  # the keys that promises about single groups name

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        told = self._promised(batch)
        suspects = batch[PROGRESS].to_numpy() < told  # only a row that breaks a promise can be late
        if not suspects.any():
            return [batch.drop(ROW)]
        at = batch[PROGRESS].to_numpy()
        first, last, missed = self._windows(at, told)
        late = suspects & (missed > 0)
        if not late.any():
            return [batch.drop(ROW)]
        rows = batch.filter(pl.Series(late))
        going_on = ~late | (missed < last - first) if self.generous else ~late
        records = self._records(rows, at[late], told[late], first[late], last[late], missed[late])
        return [batch.filter(pl.Series(going_on)).drop(ROW), Side("late", rows.height, records)]

    def _promised(self, batch: Batch) -> Ints:
        """What is promised for each row: about everyone, its group or its source partition."""
        by = self.by or ({SOURCE: batch.schema[SOURCE]} if SOURCE in batch.columns else {})
        return promised(batch, self.promises, by).to_numpy()

    def _windows(self, at: Ints, told: Ints) -> tuple[Ints, Ints, Ints]:
        """First and one-past-last window of each value, and how many of them are released."""
        ones = np.ones(len(at), np.int64)
        if isinstance(self.window, (Sliding, Landmark)):
            low = np.clip(told, -LIMIT, LIMIT)
            closed = np.where(told == END, LIMIT, (low - self.window.origin) // self.window.slide)
            first, last = self.window.wids_array(at)
            return first, last, np.clip(closed - first, 0, np.maximum(last - first, 0))
        if isinstance(self.window, SlideByTuple):  # its windows are not known; those before the promise are out
            return 0 * ones, np.where(at > shifted(told, -self.window.range), 2, 1), ones
        return 0 * ones, ones, ones

    def _records(self, rows: Batch, at: Ints, told: Ints, first: Ints, last: Ints, missed: Ints) -> Batch:
        starts, ends = self._bounds(at, first)
        start = self.bounds.column(WINDOW_START, ends if starts is None else starts)
        whole = isinstance(self.window, Sliding) and not self.generous  # then it misses its open windows, too
        return (
            rows.select(pl.col(ROW))
            .unnest(ROW)
            .with_columns(
                start if starts is not None else pl.lit(None, start.dtype).alias(WINDOW_START),
                self.bounds.column(WINDOW_END, ends),
                pl.Series(WINDOWS, last - first if whole else missed),
                pl.Series(LATE_BY, told - at),
                pl.lit(1, pl.Int64).alias(LATE_ROWS),
            )
        )

    def _bounds(self, at: Ints, first: Ints) -> tuple[Ints | None, Ints]:
        match self.window:
            case Sliding():
                ends = self.window.origin + (first + 1) * self.window.slide
                return ends - self.window.range, ends
            case Landmark():
                return None, self.window.origin + (first + 1) * self.window.slide
            case SlideByTuple():
                return at - self.window.range, at
            case Session():
                return at, at + self.window.gap
            case Partitioned():
                return at, at + 1

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        self.give(promise)
        return [promise]

    def state_bytes(self) -> int:
        return 64 * (1 + len(self.promises.groups))
