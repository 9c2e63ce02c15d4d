"""Revisions: which released windows late rows have changed (LATE REVISE), until their new results are out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from windrow.operators.kernels.ranges import spread
from windrow.operators.state.chunks import Chunks
from windrow.operators.windows.grid import Grid, keyed
from windrow.spec.batches import Batch
from windrow.spec.names import CHUNK, PANE
from windrow.windows.tuples import Ints


class Revisions:
    """The panes and groups of late rows that were taken. ``kept``: how many released windows can be revised."""

    def __init__(self, grid: Grid, keys: Sequence[str], kept: int) -> None:
        self.grid = grid
        self.keys = tuple(keys)
        self.kept = kept
        self.store = Chunks(lambda frame: frame.unique())

    def note(self, late: Batch) -> None:
        """Late partials that were taken."""
        if late.height:
            self.store.append(late.select(PANE, *self.keys).with_columns(pl.lit(0, pl.Int64).alias(CHUNK)))

    def touched(self) -> Batch | None:
        """The panes and groups noted since the last call."""
        frames = self.store.below(1)
        self.store.free_below(1)
        return pl.concat(frames).unique() if frames else None

    def windows(self, touched: Batch, closed: Ints) -> Batch:
        """Window ids and keys of the released windows that hold some panes and can still be revised."""
        first, last = self.grid.windows(touched[PANE].to_numpy())
        wids, source = spread(np.maximum(first, closed - self.kept), np.minimum(last, closed))
        return keyed(wids, touched, source, self.keys).unique()
