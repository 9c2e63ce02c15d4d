"""RowBuffer: the rows of open windows, by time slice, and the windows computed from them when they close."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from windrow.aggregates import Partials
from windrow.operators.kernels.ranges import spread, windows_of
from windrow.operators.state.chunks import CHUNKS_PER_WINDOW, Chunks
from windrow.operators.state.keyed import matched
from windrow.operators.state.limits import clipped
from windrow.operators.windows.bucket import FIRST, LAST
from windrow.progress import END
from windrow.spec.batches import Batch
from windrow.spec.names import CHUNK, INPUT, PROGRESS, WID, N
from windrow.windows import Sliding
from windrow.windows.tuples import Ints

BLOCK = 4_000_000  # rows x windows that are processed at once
RECOUNT = 16  # rows are counted by group again when a 16th of them are new: counting costs each row a constant


class RowBuffer:
    """A row is kept once, with its progress value: its window ids follow from it, and would take twice the space."""

    def __init__(self, window: Sliding, keys: Sequence[str], aggregates: Partials) -> None:
        self.window = window
        self.keys = tuple(keys)
        self.aggregates = aggregates
        # Whole panes: no window begins inside a slice, so that what is past can be freed at once.
        self.width = window.pane * max(1, window.range // window.pane // CHUNKS_PER_WINDOW)
        self.chunks = Chunks(pl.DataFrame.rechunk, together=True)

    def add(self, rows: Batch) -> None:
        """Keep rows that have an open window."""
        if not rows.height:
            return
        slices = (rows[PROGRESS].to_numpy() - self.window.origin) // self.width
        rows = rows.drop(FIRST, LAST, INPUT, strict=False)
        if slices.min() == slices.max():
            self.chunks.push(int(slices[0]), rows)
        else:
            self.chunks.append(rows.with_columns(pl.Series(CHUNK, slices)))

    def rows(self) -> Batch | None:
        """All rows, in no order."""
        frames = [frame for stack in self.chunks.stacks.values() for frame in stack]
        return pl.concat(frames) if frames else None

    @property
    def height(self) -> int:
        return self.chunks.height()

    def row_bytes(self) -> float:
        """Bytes per row, measured."""
        return self.chunks.state_bytes() / max(1, self.height)

    def keep(self, wanted: pl.Series) -> None:
        """Keep only the wanted rows of ``rows()``."""
        mask = wanted.to_numpy()
        if mask.all():
            return
        at = 0
        for chunk, stack in list(self.chunks.stacks.items()):
            here = mask[at : (at := at + sum(frame.height for frame in stack))]
            if not here.all():
                self.chunks.replace(chunk, pl.concat(stack).filter(here))

    def states(self, first: int, last: int) -> Iterator[Batch]:
        """The state of each window with an id in [first, last) and each group, from its rows, some windows at a time.

        Each row is visited once for each of its windows (Li 6.3: lazy aggregation).
        """
        rows = self.between(
            (first + 1) * self.window.slide - self.window.range, END if last == END else last * self.window.slide
        )
        if rows is None or not rows.height:
            return
        if last == first + 1:  # all of them are in it
            yield self.aggregates.lift(rows.with_columns(pl.lit(first, pl.Int64).alias(WID)), [WID, *self.keys])
            return
        rows = rows.sort(PROGRESS)
        begin, end = self.window.wids_array(rows[PROGRESS].to_numpy())
        wid, low, high = windows_of(np.zeros(rows.height, np.int64), begin.clip(first, last), end.clip(first, last))
        upto = np.cumsum(high - low)
        start = 0
        while start < len(wid):
            done = int(upto[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(upto, done + BLOCK, side="right")))
            block = _copies(rows, wid[start:stop], low[start:stop], high[start:stop])
            yield self.aggregates.lift(block, [WID, *self.keys])
            start = stop

    def between(self, begin: int, end: int) -> Batch | None:
        """The rows with progress values in [begin, end), counted from the origin."""
        begin, end = clipped(begin), clipped(end)
        frames = self.chunks.below(-(-end // self.width))
        if not frames:
            return None
        at = pl.col(PROGRESS) - self.window.origin
        return pl.concat(frames).filter(at >= begin, at < end)

    def free(self, closed: int) -> None:
        """Forget the slices that no window from ``closed`` on needs."""
        needed = END if closed == END else self.window.start(closed)
        self.chunks.free_below(clipped(needed - self.window.origin) // self.width)

    def waiting(self, closed: int) -> list[int]:
        """The next windows whose release emits a row or frees a slice."""
        return [wid for wid in (self.freeing(), self.next(closed)) if wid is not None]

    def freeing(self) -> int | None:
        """The last window whose release frees the oldest slice."""
        first = self.chunks.first()
        if first is None:
            return None
        return -(-((first + 1) * self.width + self.window.range) // self.window.slide) - 2

    def next(self, closed: int) -> int | None:
        """The first window from ``closed`` on that has a row here."""
        needed = clipped(self.window.start(closed))
        for chunk in sorted(self.chunks.stacks):
            at = pl.concat([frame[PROGRESS] for frame in self.chunks.stacks[chunk]])
            live = at.filter(at >= needed).min()
            if live is not None:
                return max(closed, (int(live) - self.window.origin) // self.window.slide)  # type: ignore[arg-type]
        return None


def volumes(rows: Batch, by: Sequence[str]) -> Batch:
    """The number of rows (``@n``) of each group."""
    count = pl.len().cast(pl.Int64).alias(N)
    return rows.group_by(by).agg(count) if by else rows.select(count)


def split(frame: Batch, groups: Batch, by: Sequence[str]) -> tuple[Batch, Batch]:
    """The rows of some groups, and all others. Without keys all rows belong to one group."""
    if not by or not groups.height:
        return (frame, frame.clear()) if groups.height else (frame.clear(), frame)
    inside = matched(frame, groups, by, "semi")
    if inside.height in (0, frame.height):
        return (inside, frame) if not inside.height else (frame, frame.clear())
    return inside, matched(frame, groups, by, "anti")


def among(frame: Batch, groups: Batch, by: Sequence[str]) -> pl.Series:
    """Which rows of a frame belong to some groups."""
    if not by:
        return pl.repeat(groups.height > 0, frame.height, dtype=pl.Boolean, eager=True)
    rows = frame.select(by).with_row_index(N)
    mask = np.zeros(frame.height, bool)
    mask[matched(rows, groups, list(by), "semi")[N].to_numpy()] = True
    return pl.Series(mask)


def partial_bytes(chunks: Chunks, aggregates: Partials, groups: Batch) -> float:
    """Bytes per partial: measured, or before there are any, those of empty partials with the keys of a few groups."""
    if chunks.stacks:
        return chunks.state_bytes() / max(1, chunks.height())
    few = aggregates.empty(groups.head(64).with_columns(pl.lit(0, pl.Int64).alias(WID)))
    # Column by column: inside a frame a literal counts once, however many rows it stands for.
    return sum(column.estimated_size() for column in few.get_columns()) / max(1, few.height)


def _copies(rows: Batch, wid: Ints, low: Ints, high: Ints) -> Batch:
    """The rows of each window, tagged with its id."""
    if len(wid) == 1:
        return rows[int(low[0]) : int(high[0])].with_columns(pl.lit(int(wid[0]), pl.Int64).alias(WID))
    at, window = spread(low, high)
    return rows[at].with_columns(pl.Series(WID, wid[window]))
