"""PanedRows: the window level where rows come a few at a time. They wait together for their pane level."""

from __future__ import annotations

import polars as pl

from windrow.operators.operator import Item, Wait
from windrow.operators.windows.paned import Paned
from windrow.operators.windows.panes import Panes
from windrow.operators.windows.windowing import Windowing
from windrow.progress import Punctuation
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import PANE, PROGRESS
from windrow.windows import Sliding

FEW = 9  # batches of fewer rows wait; lifting more of them at once costs less for each
MANY = 128  # batches that wait


def takes_rows(windowing: Windowing[Sliding]) -> bool:
    """Whether nothing needs the partials of a row before a promise does.

    A user's aggregate can fail, which must not come later than the row; other results than final ones come between
    promises, and so do those of single groups; rows in gaps between windows must not wait for anything.
    """
    window, options = windowing.window, windowing.options
    plain = not (options.versioned or options.empty or windowing.named)
    return windowing.aggregates.numbers and plain and window.slide <= window.range


class PanedRows(Paned):
    """Takes partials as Paned does, and batches of a few rows that Panes has not lifted. Whether these are late is
    seen at once. Those that are not wait until there are many, or a promise closes a window, or the state is asked
    for: it is always that of Paned.
    """

    def __init__(self, windowing: Windowing[Sliding]) -> None:
        super().__init__(windowing)
        self.panes = Panes(self.window, self.keys, self.aggregates, self.options)
        self._loose: list[Batch] = []

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        if PANE in batch.columns:
            return super().on_batch(port, batch)
        if not batch.height:
            return []
        oldest = int(batch[PROGRESS].min())  # type: ignore[arg-type]
        if (oldest - self.window.origin) // self.window.slide < self.closed:  # its first window is released
            return super().on_batch(port, self.panes.lifted(batch))
        self._loose.append(batch)
        if len(self._loose) >= MANY:
            self._settle()
        return []

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if self.closes_more(promise):
            self._settle()
        return super().on_punctuation(port, promise)

    def _settle(self) -> None:
        """Lift the rows that wait."""
        if self._loose:
            rows, self._loose = pl.concat(self._loose), []
            super().on_batch(0, self.panes.lifted(rows))

    # -- whoever asks for the state ------------------------------------------------------------------------------
    def waits_for(self) -> list[Wait]:
        self._settle()
        return super().waits_for()

    def snapshot(self) -> State:
        self._settle()
        return super().snapshot()

    def changes(self) -> Changes:
        self._settle()
        return super().changes()

    def restore(self, state: State) -> None:
        self._loose.clear()
        super().restore(state)

    def state_bytes(self) -> int:
        self._settle()
        return super().state_bytes()
