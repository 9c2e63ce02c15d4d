"""Bucket: tags each row with the range of its window ids, and turns promises on the attribute into promises on ids."""

from __future__ import annotations

import polars as pl

from windrow.operators.operator import Item, OnlyNews, Stateless
from windrow.progress import Punctuation
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS
from windrow.windows import Sliding

FIRST, LAST = "@first", "@last"  # window ids [first, last) of a row: a range, not copies (Li 6.1.1)


def on_window_ids(window: Sliding, promise: Punctuation) -> Punctuation:
    """The same promise about window ids: every later row lies only in windows with at least this id."""
    return promise.mapped(window.closed_below)


class Bucket(OnlyNews, Stateless):
    """All knowledge of the window's shape is here; the aggregation after it sees only ids.

    >>> Bucket(Sliding(10, 5)).on_batch(0, pl.DataFrame({"@t": [12]}))[0].select("@first", "@last").rows()
    [(2, 4)]
    """

    def __init__(self, window: Sliding) -> None:
        super().__init__()
        self.window = window

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        first, last = self.window.wids_array(batch[PROGRESS].to_numpy())
        return [batch.with_columns(pl.Series(FIRST, first), pl.Series(LAST, last))]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        return self.news(on_window_ids(self.window, promise))
