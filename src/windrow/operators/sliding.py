"""What the two aggregates over sliding windows share: ids, ends, late partials."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import polars as pl

from windrow.aggregates import ROWS, Partials
from windrow.operators.operator import PANE, WID, Batch, Item
from windrow.operators.options import PLAIN, Options
from windrow.operators.released import Released
from windrow.progress import END, Punctuation
from windrow.windows import Sliding
from windrow.windows.tuples import Ints


class SlidingAggregate(Released, ABC):
    """``closed`` is a window id: all windows with a smaller one are released."""

    def __init__(
        self,
        window: Sliding,
        keys: Sequence[str],
        aggregates: Partials,
        dtype: pl.DataType,
        options: Options = PLAIN,
    ) -> None:
        super().__init__(keys, aggregates, dtype, options)
        self.window = window
        self.lay_out()

    @abstractmethod
    def lay_out(self) -> None:
        """Sizes and stores that follow from the window and the options."""

    def promise(self) -> Punctuation:
        """What follows for ``window_end``: windows below ``closed`` are all out, so the next end is that of it."""
        end = self.window.end(self.closed)
        return Punctuation(END if self.closed == END or end > END else self.bounds.value(end))

    def results(self, frame: Batch) -> Batch:
        """Results from states with a ``@wid`` each."""
        ends = self.ends(frame[WID].to_numpy())
        return self.lowered(frame, ends - self.window.range, ends)

    def ends(self, wids: Ints) -> Ints:
        return self.window.origin + (wids + 1) * self.window.slide

    def waits_until(self, wid: int) -> int:
        """The end of the first window from ``wid`` on that is still open."""
        return self.bounds.value(self.window.end(max(wid, self.closed)))

    def late_in(self, partials: Batch, first: Ints, last: Ints) -> list[Item]:
        """Late partials of the windows [first, last)."""
        ends = self.ends(first)
        return self.late(partials, ends - self.window.range, ends, np.maximum(last - first, 0))

    def whole(self, frame: Batch) -> Batch:
        """Without the windows that begin before the origin, if the query wants only those that can be full."""
        if self.options.partial:
            return frame
        return frame.filter((pl.col(WID) + 1) * self.window.slide >= self.window.range)

    def place(self, at: dict[str, object]) -> dict[str, object]:
        found = super().place(at)
        wid = at.get(WID)
        if wid is None and isinstance(pane := at.get(PANE), int):
            wid = pane * self.pane_length() // self.window.slide
        if isinstance(wid, int):
            end = self.ends(np.array([wid]))
            found["window_start"] = self.bounds.column("t", end - self.window.range)[0]
            found["window_end"] = self.bounds.column("t", end)[0]
        return found

    def pane_length(self) -> int:
        return self.window.pane


def rows_in(partials: Batch) -> int:
    """How many rows some partials stand for."""
    return int(partials[ROWS].sum())
