"""Paned: the window level of Paned-WID (Li 6.2, WLQ). Holds partials by pane; a window is merged when it closes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from windrow.aggregates import ROWS, Partials
from windrow.aggregates.parts import Array
from windrow.operators.chunks import CHUNK, CHUNKS_PER_WINDOW
from windrow.operators.operator import PANE, WID, Batch, Item
from windrow.operators.released import Released, clipped
from windrow.operators.slide import slide
from windrow.progress import Punctuation
from windrow.windows import Sliding

CELLS = 1 << 21  # panes x groups that are slid over at once: 16 MB per state column


class Paned(Released):
    """Expects partials of Panes. A row is kept once, in its pane, however many windows it belongs to."""

    def __init__(self, window: Sliding, keys: Sequence[str], aggregates: Partials, dtype: pl.DataType) -> None:
        super().__init__(window, keys, aggregates, dtype, chunk_by=PANE)
        self.length = window.range // window.pane  # panes per window
        self.step = window.slide // window.pane  # panes from one window to the next
        self.width = max(1, self.length // CHUNKS_PER_WINDOW)  # panes per chunk

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        # Every pane before the end of the last released window is in a released window, or in none (gaps).
        kept, side = self.split_late(batch, pl.col(PANE) >= clipped(self.closed * self.step))
        if kept.height:
            self.chunks.append(kept.with_columns((pl.col(PANE) // self.width).alias(CHUNK)))
        return side

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        before = self.closed
        if not self.advance(promise):
            return []
        end = clipped(self.closed * self.step)  # all panes before this are complete
        frames = self.chunks.below(-(-end // self.width))
        items: list[Item] = []
        if frames:
            panes = self.chunks.combine(pl.concat(frames))
            panes = panes.filter(pl.col(PANE) < end, pl.col(PANE) >= self._first_pane(before))
            items = [self.results(w) for w in self._windows(panes, before)]
        self.chunks.free_below(self._first_pane(self.closed) // self.width)
        return [*items, self.promise()]

    def wake_at(self) -> int | None:
        """The end of the next window that holds anything, or what frees the oldest chunk, whichever is first."""
        first = self.chunks.first()
        if first is None:
            return None
        freed = -(-((first + 1) * self.width + self.length) // self.step) - 1  # the first id that no longer needs it
        wakes = [self.waits_until(freed - 1)]
        needed = self._first_pane(self.closed)
        for chunk in sorted(self.chunks.stacks):
            panes = pl.concat([frame[PANE] for frame in self.chunks.stacks[chunk]])
            live = panes.filter(panes >= needed).min()
            if live is not None:
                wakes.append(self.waits_until(int(live) // self.step))  # type: ignore[arg-type]
                break
        return min(wakes)

    def _first_pane(self, wid: int) -> int:
        return clipped((wid + 1) * self.step - self.length)

    def _windows(self, panes: Batch, after: int) -> Iterator[Batch]:
        """The windows with ids in [after, closed) that hold any of the panes, a block of groups at a time."""
        if not panes.height:
            return
        if self.keys:
            groups = panes.select(self.keys).unique(maintain_order=True).with_row_index("@group")
            panes = panes.join(groups, on=list(self.keys), how="left", nulls_equal=True)
        else:
            groups = pl.DataFrame({"@group": [0]}, schema={"@group": pl.UInt32})
            panes = panes.with_columns(pl.lit(0, pl.UInt32).alias("@group"))
        for first, last in self._runs(panes, after):
            start = self._first_pane(first)
            count = self._first_pane(last - 1) + self.length - start
            run = panes.filter(pl.col(PANE) >= start, pl.col(PANE) < start + count)
            block = max(1, CELLS // count)
            for low in range(0, groups.height, block):
                part = run if groups.height <= block else run.filter(pl.col("@group").is_between(low, low + block - 1))
                yield self._slide(part, groups[low : low + block], first, start, count)

    def _runs(self, panes: Batch, after: int) -> Iterator[tuple[int, int]]:
        """Ranges of window ids to compute: no windows over long gaps, and no range of more than CELLS panes."""
        present = np.unique(panes[PANE].to_numpy())
        firsts = np.maximum(present // self.step, after)
        lasts = np.minimum((present + self.length) // self.step, self.closed)
        firsts, lasts = firsts[firsts < lasts], lasts[firsts < lasts]
        if not len(firsts):
            return
        breaks = np.flatnonzero(firsts[1:] > lasts[:-1]) + 1
        most = max(1, CELLS // self.step, self.length // self.step)
        for low, high in zip(np.r_[0, breaks], np.r_[breaks, len(firsts)], strict=True):
            for first in range(int(firsts[low]), int(lasts[high - 1]), most):
                yield first, min(first + most, int(lasts[high - 1]))

    def _slide(self, panes: Batch, groups: Batch, first: int, start: int, count: int) -> Batch:
        at = (panes[PANE] - start).to_numpy()
        group = (panes["@group"].to_numpy() - groups["@group"][0]).astype(np.int64)
        merged: dict[str, Array] = {}
        for part in self.aggregates.parts:
            state = []
            for column, identity in zip(part.columns, part.identity, strict=True):
                values = panes[column].to_numpy()
                dense = np.full((count, groups.height), identity, values.dtype)
                dense[at, group] = values
                state.append(dense)
            merged.update(zip(part.columns, slide(part, state, self.length, self.step), strict=True))
        window, which = np.nonzero(merged[ROWS])
        columns = [pl.Series(c, values[window, which]) for c, values in merged.items()]
        found = pl.DataFrame([pl.Series(WID, window + first), *columns])
        return found.hstack(groups.select(self.keys)[which]) if self.keys else found
