"""EmptyWindows: results of windows that have no rows (WITH EMPTY), for each group from its first window on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from windrow.operators.kernels.ranges import spread
from windrow.operators.state.chunks import Chunks
from windrow.operators.state.keyed import matched
from windrow.operators.state.limits import check_amount
from windrow.operators.windows.grid import Grid, keyed
from windrow.spec.batches import Batch
from windrow.spec.names import CHUNK, PANE
from windrow.windows.tuples import Ints

FIRST = "@first"  # the first window of a group


class EmptyWindows:
    """Remembers every group that was ever seen, with its first window."""

    def __init__(self, grid: Grid, keys: Sequence[str]) -> None:
        self.grid = grid
        self.keys = tuple(keys)
        self.store = Chunks(self._first_of)

    def _first_of(self, frame: Batch) -> Batch:
        """Each group once."""
        least = pl.col(FIRST).min()
        return frame.group_by(self.keys).agg(least) if self.keys else frame.select(least)

    def note(self, kept: Batch) -> None:
        """Note the groups of some partials."""
        firsts = kept.select(*self.keys, (pl.col(PANE) // self.grid.step).alias(FIRST))
        self.store.append(self._first_of(firsts).with_columns(pl.lit(0, pl.Int64).alias(CHUNK)))

    def groups(self) -> Batch | None:
        """The groups seen so far, each with its first window as ``@first``."""
        frames = self.store.below(1)
        return self._first_of(pl.concat(frames)) if frames else None

    def between(self, groups: Batch, first: Ints, last: Ints, there: Sequence[Batch]) -> Batch:
        """Window ids and keys of each group in [first, last), at the soonest its first window, but for those there."""
        first = np.maximum(groups[FIRST].to_numpy(), first)
        check_amount(int(np.maximum(last.astype(object) - first, 0).sum()), "WITH EMPTY")
        wids, source = spread(first, last)
        every = keyed(wids, groups, source, self.keys)
        if not there:
            return every
        return matched(every, pl.concat([states.select(every.columns) for states in there]), every.columns, "anti")
