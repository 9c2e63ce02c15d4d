"""What the aggregates over slide-by-tuple windows share: which windows there are, and when they are released."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

import numpy as np
import polars as pl

from windrow.aggregates import ROWS
from windrow.aggregates.parts import Fold
from windrow.operators.operator import Item
from windrow.operators.state.chunks import Chunks
from windrow.operators.state.keyed import matched, numbered
from windrow.operators.state.late import Spans
from windrow.operators.windows.window_operator import WindowOperator
from windrow.operators.windows.windowing import Windowing
from windrow.progress import END, START, Punctuation
from windrow.spec.batches import Batch
from windrow.spec.names import CHUNK, NTH, PROGRESS, ROW_NUM, TOTAL
from windrow.windows import SlideByTuple
from windrow.windows.tuples import Ints

GROUP, PART = "@group", "@part"
BEYOND = 1 << 64  # behind every chunk


def nth(window: SlideByTuple) -> Fold:
    """An extra state column: whether one of the rows is an n-th one by arrival."""
    return Fold(NTH, (pl.col(ROW_NUM) % window.slide == 0).any().cast(pl.Int64), "max")


class ByTupleAggregate(WindowOperator[SlideByTuple]):
    """Expects partials of Instants. ``closed`` is the promise itself: windows that end before it are released.

    ``parts`` are the columns (among the keys) that have windows of their own; without them the windows are those of
    the whole stream, and the groups are inside them.
    """

    chunk_by = PROGRESS

    def __init__(self, windowing: Windowing[SlideByTuple]) -> None:
        super().__init__(windowing)
        window = self.window
        self.parts = windowing.parts
        self.ranked = window.by == "rank" and window.slide > 1
        of, total = list(self.parts), pl.col(TOTAL).sum()
        self.counts = Chunks(lambda f: f.group_by(of).agg(total) if of else f.select(total))
        if self.ranked:
            self.stores["counts/"] = self.counts

    @abstractmethod
    def keep(self, batch: Batch) -> None:
        """Take partials of open windows. With generous slack some are before the promise."""

    @abstractmethod
    def windows_between(self, before: int, limit: int) -> list[Batch]:
        """The results of the windows that end in [before, limit); what only they needed is freed."""

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        numbers = self.window.numbers_array(batch[PROGRESS].to_numpy())
        kept, side = self.lateness.sift(batch, Spans(*numbers, self.closed_of(batch)))
        if kept.height:
            self.keep(kept.select(PROGRESS, *self.keys, *self.aggregates.columns))
        return side

    def release(self, before: int, promise: Punctuation) -> list[Item]:
        return [*self.windows_between(before, self.closed)]

    # -- windows -------------------------------------------------------------------------------------------------
    def numbered(self, rows: Batch) -> Batch:
        """Rows with the numbers of their group and of their part, sorted by group and progress value."""
        if not self.keys:
            zero = pl.lit(0, pl.UInt32)
            return rows.sort(PROGRESS).with_columns(zero.alias(GROUP), zero.alias(PART))
        rows = numbered(rows, self.keys, GROUP)
        own = self.parts == self.keys
        rows = rows.with_columns(pl.col(GROUP).alias(PART)) if own else numbered(rows, self.parts, PART)
        return rows.sort(GROUP, PROGRESS)

    def ids(self, fresh: Batch) -> Batch:
        """The windows that end at these rows, numbered and in order: ``@part`` and the end, in this order."""
        own = self.parts == self.keys  # then there is one row per part and instant already
        if own and self.window.slide == 1:
            return fresh.select(PART, PROGRESS)
        instants = fresh if own else self._instants(fresh)
        if self.ranked:
            instants = self._by_rank(instants)
        elif self.window.slide > 1:
            instants = instants.filter(pl.col(NTH) > 0)
        return instants.select(PART, PROGRESS)

    def _instants(self, fresh: Batch) -> Batch:
        found = fresh.group_by(PART, PROGRESS).agg(
            pl.col(ROWS).sum(),
            *(pl.col(p).first() for p in self.parts),
            *([pl.col(NTH).max()] if NTH in fresh.columns else []),
        )
        return found.sort(PART, PROGRESS)

    def _by_rank(self, instants: Batch) -> Batch:
        """Those that hold a row whose rank is a multiple of the slide."""
        known = self.counts.below(1)
        total = self.counts.combine(pl.concat(known)) if known else None
        if total is None:
            instants = instants.with_columns(pl.lit(0, pl.Int64).alias(TOTAL))
        elif self.parts:
            instants = matched(instants, total, self.parts, "left")
        else:
            instants = instants.with_columns(pl.lit(total[TOTAL][0]).alias(TOTAL))
        upto = pl.col(ROWS).cum_sum()
        upto = (upto.over(PART) if self.parts else upto) + pl.col(TOTAL).fill_null(0)
        ranked = instants.with_columns(upto.alias("@upto"))
        seen = ranked.group_by(*self.parts or [PART]).agg(pl.col(ROWS).sum().alias(TOTAL)).drop(PART, strict=False)
        self.counts.append(seen.with_columns(pl.lit(0, pl.Int64).alias(CHUNK)))
        below = pl.col("@upto") - pl.col(ROWS)  # ranks [below, upto) are at this instant
        return ranked.filter((pl.col("@upto") - 1) // self.window.slide > (below - 1) // self.window.slide)

    def results(self, names: Batch, states: Batch, ends: Ints) -> list[Batch]:
        """Results from the keys, the states and the ends of windows."""
        return [self.lowered(names.hstack(states) if self.keys else states, shifted(ends, -self.window.range), ends)]


def shifted(values: Ints, by: int) -> Ints:
    """``values + by``, or the nearest number that 64 bits hold."""
    kept = np.minimum(values, END - by) if by > 0 else np.maximum(values, START - by)
    return np.asarray(kept + by)


def placed(ids: Batch, part: Ints, at: Ints) -> Ints:
    """How many windows, parts before this one included, end before ``at``."""
    ends = ids[PROGRESS].to_numpy()
    return counted(ids[PART].to_numpy().astype(np.int64), ends, part, at, "left")


def counted(group: Ints, times: Ints, of: Ints, at: Ints, side: Literal["left", "right"]) -> Ints:
    """How many of the pairs (group, time), which are sorted, are before (``of``, ``at``)."""
    if not len(group) or (group[0] == group[-1] == 0 and not of.any()):
        return np.searchsorted(times, at, side=side).astype(np.int64)
    ranks = np.sort(times)  # ranks instead of times, so that no product overflows
    width = len(ranks) + 1
    places = group * width + np.searchsorted(ranks, times)
    wanted = of * width + np.searchsorted(ranks, at, side=side)
    return np.searchsorted(places, wanted, side="left").astype(np.int64)
