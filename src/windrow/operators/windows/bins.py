"""Slide-by-tuple windows by start and end bins: every row updates the bins it belongs to, at once (Li 6.1.4)."""

from __future__ import annotations

import numpy as np
import polars as pl

from windrow.aggregates import ROWS
from windrow.aggregates.objects import ObjectPart
from windrow.aggregates.parts import NumberPart, Part
from windrow.aggregates.user import locating
from windrow.operators.kernels.ranges import merged, spread
from windrow.operators.kernels.segments import pairs, picked
from windrow.operators.windows.by_tuple import (
    BEYOND,
    GROUP,
    PART,
    ByTupleAggregate,
    counted,
    placed,
    shifted,
)
from windrow.progress import END
from windrow.spec.batches import Batch
from windrow.spec.names import CHUNK, NTH, PROGRESS
from windrow.windows.tuples import Ints

OWN, OWN_NTH = "@own", "@own_nth"  # of the rows at the bin's own instant; none: it is an end bin only
NEW = "@new"


class Bins(ByTupleAggregate):
    """Figure 6-7, a batch at a time: a bin b holds the merge of the entries in (b - RANGE, b] that have come so far.

    An entry at t opens the start bin t, in which a window may end, and the end bin t + RANGE, the first that is
    without it. A new bin begins as a copy of the bin before it: what that one holds holds up to the next bin. So the
    last bin below a promise must stay, which the figure removes and the text keeps.
    """

    def keep(self, batch: Batch) -> None:
        size = self.window.range
        batch = batch.with_columns(_own(batch))
        known = pl.concat([batch.clear(), *self.chunks.below(BEYOND)])
        opened = pl.concat([known, batch])
        rows = self.numbered(opened.with_columns(pl.Series(NEW, np.arange(opened.height) >= known.height)))
        bins, batch = rows.filter(~pl.col(NEW)), rows.filter(pl.col(NEW))
        group, times = _places(bins)
        of, at = _places(batch)
        wanted = [(of, np.maximum(at, self.closed)), (of, shifted(at, size)), (group, times)]
        every = pl.DataFrame(
            {GROUP: np.concatenate([g for g, _ in wanted]), "@bin": np.concatenate([b for _, b in wanted])}
        )
        every = every.unique().sort(GROUP, "@bin")
        groups, ids = every[GROUP].to_numpy(), every["@bin"].to_numpy()
        before = counted(group, times, groups, ids, "right") - 1  # itself, if it is not new
        before = np.where((before >= 0) & (np.append(group, -1)[before] == groups), before, -1)
        low = counted(of, at, groups, shifted(ids, -size), "right")
        high = counted(of, at, groups, ids, "right")
        self._write(self._updated(bins, batch, before, low, high, groups, ids))

    def _updated(self, bins: Batch, batch: Batch, before: Ints, low: Ints, high: Ints, group: Ints, ids: Ints) -> Batch:
        """Every bin: what was in it or in the one before it, and the entries of the batch that belong to it."""
        touched = low < high
        keys = pl.concat([bins, batch]).unique(GROUP, keep="any").sort(GROUP).select(self.keys)
        found = keys[group] if self.keys else pl.DataFrame()
        update = np.where(touched, np.cumsum(touched) - 1, -1)
        names = found.filter(touched) if self.keys else found
        with locating(lambda at: self.place(names.row(at["@row"], named=True) if self.keys else {})):
            news = merged(self.aggregates, batch, low[touched], high[touched])
        with locating(lambda at: self.place(found.row(at["@row"], named=True) if self.keys else {})):
            columns = [s for p in self.aggregates.parts for s in _joined(p, bins, before, news, update)]
        old = np.where(_at(bins, before) == ids, before, -1)
        now = np.where(touched & (_at(batch, high - 1) == ids) & (ids >= self.closed), high - 1, -1)
        own = [_picked(bins[c], old) + _picked(batch[c], now) for c in (OWN, OWN_NTH)]
        counts = [pl.Series(c, values) for c, values in zip((OWN, OWN_NTH), own, strict=True)]
        return pl.DataFrame([pl.Series(PROGRESS, ids), *found.get_columns(), *columns, *counts])

    def _write(self, bins: Batch) -> None:
        slices = bins.with_columns((pl.max_horizontal(PROGRESS, pl.lit(self.closed)) // self.window.range).alias(CHUNK))
        for each in slices.partition_by(CHUNK):
            kept = self.chunks.stacks.get(number := int(each[CHUNK][0]))
            frame = each.drop(CHUNK)
            if kept is None or not kept[0].equals(frame):
                self.chunks.replace(number, frame)

    def windows_between(self, before: int, limit: int) -> list[Batch]:
        last = limit // self.window.range
        frames = self.chunks.below(last + 1)
        if not frames:
            return []
        bins = self.numbered(pl.concat(frames))
        results = self._windows(bins, before, limit)
        if limit == END:
            self.chunks.free_below(BEYOND)
            return results
        group, times = _places(bins)
        followed = np.append((group[1:] == group[:-1]) & (times[1:] <= limit), False)  # not the last one below
        needed = (times >= limit) | (~followed & (bins[ROWS].to_numpy() > 0))
        kept = bins.filter(needed).with_columns(
            pl.when(pl.col(PROGRESS) < limit).then(0).otherwise(pl.col(c)).alias(c) for c in (OWN, OWN_NTH)
        )
        self.chunks.free_below(last)
        self.chunks.replace(last, kept.drop(GROUP, PART))
        return results

    def _windows(self, bins: Batch, before: int, limit: int) -> list[Batch]:
        ended = bins.filter(
            pl.col(OWN) > 0, pl.col(PROGRESS) >= before, pl.col(PROGRESS) < limit if limit != END else pl.lit(True)
        )
        ids = self.ids(ended.with_columns(pl.col(OWN).alias(ROWS), pl.col(OWN_NTH).alias(NTH)))
        if not ids.height:
            return []
        group, times = _places(bins)
        part = bins[PART].to_numpy().astype(np.int64)
        first = placed(ids, part, times)
        final = np.append(group[1:] != group[:-1], True)
        last = np.where(final, np.searchsorted(ids[PART].to_numpy(), part, side="right"), np.append(first[1:], 0))
        wid, source = spread(first, np.where(bins[ROWS].to_numpy() > 0, last, first))
        if not len(wid):
            return []
        states = bins.select(*self.keys, *self.aggregates.columns)[source]
        names = states.select(self.keys)
        return self.results(names, states.drop(self.keys), ids[PROGRESS].to_numpy()[wid])

    def next_promise(self) -> int | None:
        """Just after the first bin that no promise has covered: there the bin before it goes, if not a result out."""
        ids = [frame[PROGRESS].filter(frame[PROGRESS] >= self.closed).min() for frame in self.chunks.below(BEYOND)]
        found = [int(each) + 1 for each in ids if each is not None]  # type: ignore[arg-type]
        return min(*found, END) if found else None


def _own(batch: Batch) -> list[pl.Expr]:
    nth = pl.col(NTH) if NTH in batch.columns else pl.lit(1, pl.Int64)
    return [pl.col(ROWS).alias(OWN), nth.alias(OWN_NTH)]


def _places(rows: Batch) -> tuple[Ints, Ints]:
    return rows[GROUP].to_numpy().astype(np.int64), rows[PROGRESS].to_numpy()


def _at(rows: Batch, places: Ints) -> Ints:
    """The progress values at some places; the end of time where there is none."""
    return np.append(rows[PROGRESS].to_numpy(), END)[np.where(places < 0, rows.height, places)]


def _picked(column: pl.Series, at: Ints) -> Ints:
    return np.append(column.to_numpy(), 0)[np.where(at < 0, len(column), at)]


def _joined(part: Part, bins: Batch, before: Ints, news: Batch, update: Ints) -> list[pl.Series]:
    """For every bin, the merge of one old state and one new one; negative places are of nothing."""
    if isinstance(part, (NumberPart, ObjectPart)):
        old, new = picked(part, part.arrays(bins), before), picked(part, part.arrays(news), update)
        return part.series(pairs(part, old, new))
    empty = pl.DataFrame([pl.Series(c, [[]], dtype=t) for c, t in zip(part.columns, part.dtypes, strict=True)])
    frames = []
    for rows, at in ((bins, before), (news, update)):
        chosen = pl.concat([rows.select(part.columns), empty])[np.where(at < 0, rows.height, at)]
        frames.append(chosen.with_row_index("@bin"))
    found = pl.concat(frames).group_by("@bin").agg(part.combine()).sort("@bin")
    return part.finish(found, False).select(part.columns).get_columns()
