"""Panes: the pane level of Paned-WID (Li 6.2, PLQ). Rows become one partial per pane and group, and are forgotten."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from windrow.aggregates import Partials
from windrow.aggregates.user import locating
from windrow.operators.operator import Item, OnlyNews, Stateless
from windrow.operators.windows.bucket import on_window_ids
from windrow.progress import Punctuation
from windrow.spec.batches import Batch
from windrow.spec.names import PANE, PROGRESS
from windrow.spec.options import PLAIN, Options
from windrow.windows import Sliding


def pane_length(window: Sliding, options: Options = PLAIN) -> int:
    """Windows are whole numbers of panes; with early results so are the steps between them.

    >>> from windrow.spec.options import Options
    >>> pane_length(Sliding(60, 30)), pane_length(Sliding(60, 30), Options(early=20))
    (30, 10)
    """
    return math.gcd(window.pane, options.early or 0)


class Panes(OnlyNews, Stateless):
    """Remembers no rows between batches, so it can run before an exchange: what crosses it is small.

    ``few``: batches of fewer rows pass as they are, to a window level that lifts them (PanedRows).
    """

    def __init__(
        self, window: Sliding, keys: Sequence[str], aggregates: Partials, options: Options = PLAIN, few: int = 0
    ) -> None:
        super().__init__()
        self.few = few
        self.window = window
        self.keys = tuple(keys)
        self.aggregates = aggregates
        self.pane = pane_length(window, options)

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        return [batch if batch.height < self.few else self.lifted(batch)]

    def lifted(self, batch: Batch) -> Batch:
        """The partials of rows."""
        values = batch[PROGRESS].to_numpy()
        tagged = batch.with_columns(pl.Series(PANE, (values - self.window.origin) // self.pane))
        if self.window.slide > self.window.range:  # rows in the gaps are in no window
            first, last = self.window.wids_array(values)
            tagged = tagged.filter(pl.Series(first < last))
        with locating(self._place):
            return self.aggregates.lift(tagged, [PANE, *self.keys])

    def _place(self, at: dict[str, object]) -> dict[str, object]:
        pane = at[PANE]
        assert isinstance(pane, int)
        wid = pane * self.pane // self.window.slide
        group = {k: at[k] for k in self.keys}
        return {**group, "window": (self.window.start(wid), self.window.end(wid))}

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        return self.news(on_window_ids(self.window, promise))
