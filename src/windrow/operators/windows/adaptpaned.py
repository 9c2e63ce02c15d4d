"""AdaptWID with panes (Li 6.3.3): each pane of a group as a partial or as rows, whichever takes less."""

from __future__ import annotations

import numpy as np
import polars as pl

from windrow.aggregates.user import locating
from windrow.operators.operator import Item
from windrow.operators.state.rowbuffer import (
    RECOUNT,
    RowBuffer,
    among,
    partial_bytes,
    split,
    volumes,
)
from windrow.operators.windows.paned import Paned
from windrow.operators.windows.windowing import Windowing
from windrow.progress import START
from windrow.spec.batches import Batch
from windrow.spec.names import CHUNK, PANE, PROGRESS, N
from windrow.windows import Sliding

UNCOUNTED = "uncounted"


class AdaptPaned(Paned):
    """Expects rows with ``@t``, and promises on window ids from Bucket. The window level is that of Paned.

    A pane only fills, so it goes from rows to a partial once and never back: no flag, no transition, no thresholds
    to estimate.
    """

    holds = "rows and partials"

    def __init__(self, windowing: Windowing[Sliding]) -> None:
        super().__init__(windowing)
        self.rows = RowBuffer(self.window, self.keys, self.aggregates)
        self.stores["rows/"] = self.rows.chunks
        self.remember(**{UNCOUNTED: START})

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        kept, side = self.on_time(batch)
        if kept.height:
            kept = self._tagged(kept)
            dense, sparse = split(kept, self._partials_near(kept), [PANE, *self.keys])
            self._at_once(dense)
            self.rows.add(sparse.drop(PANE))
            self.marks[UNCOUNTED] = max(0, self.marks[UNCOUNTED]) + sparse.height
            if self.marks[UNCOUNTED] * RECOUNT >= self.rows.height:
                self._merge_dense()
        return side

    def _tagged(self, rows: Batch) -> Batch:
        return rows.with_columns(((pl.col(PROGRESS) - self.window.origin) // self.pane_length()).alias(PANE))

    def _partials_near(self, kept: Batch) -> Batch:
        """The panes that are partials, of the time slices that some rows are in."""
        by = [PANE, *self.keys]
        slices = np.unique(kept[PANE].to_numpy() // self.width).tolist()
        frames = [frame for chunk in slices for frame in self.chunks.stacks.get(chunk, [])]
        return pl.concat(frames).select(by) if frames else pl.DataFrame()

    def _at_once(self, rows: Batch) -> None:
        if not rows.height:
            return
        with locating(self.place):
            partials = self.aggregates.lift(rows, [PANE, *self.keys])
        self.chunks.append(partials.with_columns((pl.col(PANE) // self.width).alias(CHUNK)))

    def _merge_dense(self) -> None:
        """The rows of a pane become a partial where they take more."""
        self.marks[UNCOUNTED] = 0
        rows = self.rows.rows()
        if rows is None:
            return
        rows, by = self._tagged(rows), [PANE, *self.keys]
        most = partial_bytes(self.chunks, self.aggregates, rows.select(self.keys)) / self.rows.row_bytes()
        chosen = among(rows, volumes(rows, by).filter(pl.col(N) > most), by)
        if chosen.any():
            self._at_once(rows.filter(chosen))
            self.rows.keep(~chosen)

    def _panes(self, first: int, end: int) -> list[Batch]:
        frames = super()._panes(first, end)
        held = self.rows.between(self.grid.first_pane(first) * self.pane_length(), end * self.pane_length())
        if held is not None and held.height:
            with locating(self.place):
                frames.append(self.aggregates.lift(self._tagged(held), [PANE, *self.keys]))
        return frames

    def _free(self) -> None:
        super()._free()
        self.rows.free(self.closed)

    def next_promise(self) -> int | None:
        ends = [self.end_of(wid) for wid in self.rows.waiting(self.closed)]
        panes = super().next_promise()
        return min(ends if panes is None else [*ends, panes], default=None)

    def held(self) -> int:
        return super().held() + self.rows.height
