"""Grid: windows as whole numbers of panes, and which panes are in which windows (Li 6.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from windrow.operators.state.limits import LIMIT, clipped
from windrow.progress import END
from windrow.spec.batches import Batch
from windrow.spec.names import WID
from windrow.windows import Sliding
from windrow.windows.tuples import Ints


@dataclass(frozen=True)
class Grid:
    """``length``: panes per window. ``step``: panes from the start of one window to the start of the next.

    >>> import numpy as np
    >>> grid = Grid.of(Sliding(10, 5), 5)
    >>> [edge.tolist() for edge in grid.windows(np.array([0, 3]))], grid.first_pane(3)
    ([[0, 3], [2, 5]], 2)
    """

    length: int
    step: int

    @classmethod
    def of(cls, window: Sliding, pane: int) -> Grid:
        """The grid of a window over panes of a length that divides RANGE and SLIDE."""
        return cls(window.range // pane, window.slide // pane)

    @property
    def farthest(self) -> int:
        """Window ids up to this one leave room for arithmetic in 64 bits."""
        return LIMIT // self.step

    def windows(self, pane: Ints) -> tuple[Ints, Ints]:
        """First and one-past-last id of the windows that panes are in."""
        return pane // self.step, (pane + self.length) // self.step

    def first_pane(self, wid: int) -> int:
        """The first pane of a window."""
        return clipped((wid + 1) * self.step - self.length)

    def end_pane(self, wid: int) -> int:
        """The first pane after all windows below ``wid``."""
        return clipped(END) if wid == END else clipped(wid * self.step)


def keyed(wids: Ints, groups: Batch, which: Ints, keys: Sequence[str]) -> Batch:
    """Window ids with the keys of the groups that they are of: ``which`` rows of ``groups``."""
    found = pl.DataFrame({WID: wids}, schema={WID: pl.Int64})
    return found.hstack(groups.select(keys)[which]) if keys else found
