"""Panes: the pane level of Paned-WID (Li 6.2, PLQ). Rows become one partial per pane and group, and are forgotten."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from windrow.aggregates import Partials
from windrow.operators.bucket import on_window_ids
from windrow.operators.operator import PANE, PROGRESS, Batch, Item, Stateless
from windrow.progress import Punctuation
from windrow.windows import Sliding


class Panes(Stateless):
    """Remembers nothing between batches, so it can run before an exchange: what crosses it is small."""

    def __init__(self, window: Sliding, keys: Sequence[str], aggregates: Partials) -> None:
        self.window = window
        self.keys = tuple(keys)
        self.aggregates = aggregates

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        values = batch[PROGRESS].to_numpy()
        tagged = batch.with_columns(pl.Series(PANE, self.window.panes_array(values)))
        if self.window.slide > self.window.range:  # rows in the gaps are in no window
            first, last = self.window.wids_array(values)
            tagged = tagged.filter(pl.Series(first < last))
        return [self.aggregates.lift(tagged, [PANE, *self.keys])]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        return [on_window_ids(self.window, promise)]
