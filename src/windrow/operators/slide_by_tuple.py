"""Slide-by-tuple windows: RANGE back from every n-th row, in any order of arrival (Li 5.1.5 and 6.1.4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from windrow.aggregates import ROWS, Partials
from windrow.aggregates.parts import Fold
from windrow.operators.chunks import CHUNK, CHUNKS_PER_WINDOW, Chunks
from windrow.operators.operator import PROGRESS, Batch, Item
from windrow.operators.options import PLAIN, Options
from windrow.operators.ranges import merged, windows_of
from windrow.operators.released import LIMIT, Released, locating, numbered
from windrow.progress import END, Punctuation
from windrow.windows import SlideByTuple
from windrow.windows.tuples import Ints

ROW_NUM, NTH = "@row_num", "@nth"
TOTAL = "@total"


def nth(window: SlideByTuple) -> Fold:
    """A state column beside the aggregates': whether one of the rows is an n-th one by arrival."""
    return Fold(NTH, (pl.col(ROW_NUM) % window.slide == 0).any().cast(pl.Int64), "max")


class SlidByTuple(Released):
    """Expects partials of Instants. ``closed`` is the promise itself: windows that end before it are released.

    ``parts`` are the columns (among the keys) that have windows of their own; without them the windows are those of
    the whole stream, and the groups are inside them.
    """

    chunk_by = PROGRESS

    def __init__(
        self,
        window: SlideByTuple,
        keys: Sequence[str],
        aggregates: Partials,
        dtype: pl.DataType,
        options: Options = PLAIN,
        parts: Sequence[str] = (),
    ) -> None:
        super().__init__(keys, aggregates, dtype, options)
        self.window = window
        self.parts = tuple(parts)
        self.width = max(1, window.range // CHUNKS_PER_WINDOW)
        self.ranked = window.by == "rank" and window.slide > 1
        by = list(self.parts)
        self.counts = Chunks(lambda f: f.group_by(by).agg(pl.col(TOTAL).sum()) if by else f.select(pl.col(TOTAL).sum()))
        if self.ranked:
            self.stores["counts/"] = self.counts

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        late = batch.filter(pl.col(PROGRESS) < self.closed)
        side: list[Item] = []
        if late.height:
            wanted = self.closed - self.window.range if self.options.generous else self.closed - 1
            batch = batch.filter(pl.col(PROGRESS) > wanted)
            at = late[PROGRESS].to_numpy()
            if self.options.late != "side":
                side = self.late(late, at - self.window.range, at, np.ones(len(at), np.int64))
        if batch.height:
            self.chunks.append(batch.with_columns((pl.col(PROGRESS) // self.width).alias(CHUNK)))
        return side

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        before = self.closed
        if not self.advance(promise):
            return []
        limit = self.closed
        frames = self.chunks.below(-(-limit // self.width) if limit != END else LIMIT)
        items: list[Item] = []
        if frames:
            entries = self.chunks.combine(pl.concat(frames)).filter(
                pl.col(PROGRESS) > before - self.window.range,
                pl.col(PROGRESS) < limit if limit != END else pl.lit(True),
            )
            if entries.height:
                items = [*self._windows(entries, before)]
        needed = limit - self.window.range + 1  # the first row that a later window can hold
        self.chunks.free_below(needed // self.width if limit != END else LIMIT)
        return [*items, Punctuation(limit if limit == END else self.bounds.value(limit))]

    def _windows(self, entries: Batch, before: int) -> list[Batch]:
        entries = numbered(numbered(entries, self.keys), self.parts, "@part")
        entries = entries.sort("@group", PROGRESS)
        ids = self._ids(entries.filter(pl.col(PROGRESS) >= before))
        if not ids.height:
            return []
        part, at = entries["@part"].to_numpy().astype(np.int64), entries[PROGRESS].to_numpy()
        first = _place(ids, part, at)
        last = _place(ids, part, at + self.window.range)
        group = entries["@group"].to_numpy().astype(np.int64)
        wid, low, high = windows_of(group, first, last)
        if not len(wid):
            return []
        names = entries.select(self.keys)[low] if self.keys else pl.DataFrame()
        ends = ids[PROGRESS].to_numpy()[wid]
        with locating(lambda at: self.place({**at, **names.row(at["@row"], named=True)})):
            states = merged(self.aggregates, entries, low, high)
        states = names.hstack(states) if self.keys else states
        return [self.lowered(states, ends - self.window.range, ends)]

    def _ids(self, fresh: Batch) -> Batch:
        """The windows that end at these rows: ``@part`` and the end, in this order."""
        instants = fresh.group_by("@part", PROGRESS).agg(
            pl.col(ROWS).sum(),
            *(pl.col(p).first() for p in self.parts),
            pl.col(NTH).max() if NTH in fresh.columns else pl.lit(1).alias(NTH),
        )
        instants = instants.sort("@part", PROGRESS)
        if self.ranked:
            instants = self._by_rank(instants)
        elif self.window.slide > 1:
            instants = instants.filter(pl.col(NTH) > 0)
        return instants.select("@part", PROGRESS)

    def _by_rank(self, instants: Batch) -> Batch:
        """Those that hold a row whose rank is a multiple of the slide."""
        known = self.counts.below(1)
        total = self.counts.combine(pl.concat(known)) if known else None
        if total is None:
            instants = instants.with_columns(pl.lit(0, pl.Int64).alias(TOTAL))
        elif self.parts:
            instants = instants.join(total, on=list(self.parts), how="left", nulls_equal=True, maintain_order="left")
        else:
            instants = instants.with_columns(pl.lit(total[TOTAL][0]).alias(TOTAL))
        upto = pl.col(ROWS).cum_sum().over("@part") + pl.col(TOTAL).fill_null(0)
        ranked = instants.with_columns(upto.alias("@upto"))
        seen = (
            ranked.group_by(*self.parts or ["@part"]).agg(pl.col(ROWS).sum().alias(TOTAL)).drop("@part", strict=False)
        )
        self.counts.append(seen.with_columns(pl.lit(0, pl.Int64).alias(CHUNK)))
        below = pl.col("@upto") - pl.col(ROWS)  # ranks [below, upto) are at this instant
        return ranked.filter((pl.col("@upto") - 1) // self.window.slide > (below - 1) // self.window.slide)

    def wake_at(self) -> int | None:
        """Just after the first row that no promise has covered, or what frees the oldest chunk."""
        first = self.chunks.first()
        if first is None:
            return None
        wakes = [(first + 1) * self.width + self.window.range - 1]
        for chunk in sorted(self.chunks.stacks):
            at = pl.concat([frame[PROGRESS] for frame in self.chunks.stacks[chunk]])
            live = at.filter(at >= self.closed).min()
            if live is not None:
                wakes.append(int(live) + 1)  # type: ignore[arg-type]
                break
        return min(wakes)


def _place(ids: Batch, part: Ints, at: Ints) -> Ints:
    """How many windows, parts before this one included, end before ``at``."""
    ends = ids[PROGRESS].to_numpy()
    ranks = np.unique(ends)
    width = len(ranks) + 1
    places = ids["@part"].to_numpy().astype(np.int64) * width + np.searchsorted(ranks, ends)
    return np.searchsorted(places, part * width + np.searchsorted(ranks, at), side="left").astype(np.int64)
