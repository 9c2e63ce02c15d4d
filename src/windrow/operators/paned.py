"""Paned: the window level of Paned-WID (Li 6.2, WLQ). Holds partials by pane; a window is merged when it closes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from windrow.aggregates import ROWS
from windrow.aggregates.parts import Array, NumberPart
from windrow.operators.chunks import CHUNK, CHUNKS_PER_WINDOW, Chunks
from windrow.operators.keyed import matched
from windrow.operators.operator import PANE, WID, Batch, Item, Side
from windrow.operators.panes import pane_length
from windrow.operators.ranges import merged, windows_of
from windrow.operators.released import STATUS, VERSION, check_amount, clipped, locating, numbered, spread
from windrow.operators.slide import slide
from windrow.operators.sliding import SlidingAggregate, rows_in
from windrow.operators.tables import blocks
from windrow.operators.versions import Versions
from windrow.progress import END, START, Punctuation
from windrow.windows.tuples import Ints

CELLS = 1 << 21  # panes x groups that are slid over at once: 16 MB per state column
FIRST = "@first"  # the first window of a group that has a result in every window


class Paned(SlidingAggregate):
    """Expects partials of Panes. A row is kept once, in its pane, however many windows it belongs to."""

    chunk_by = PANE

    def lay_out(self) -> None:
        window, options = self.window, self.options
        pane = self.pane_size()
        self.length = window.range // pane  # panes per window
        self.step = window.slide // pane  # panes from one window to the next
        self.width = max(1, self.length // CHUNKS_PER_WINDOW)  # panes per chunk
        self.kept = -(-(options.keep or 0) // window.slide)  # released windows that can still be revised
        self.seen = Chunks(lambda f: _first_of(f, self.keys))
        self.dirty = Chunks(lambda f: f.unique())
        self.versions = Versions(self.keys, max(1, self.length // self.step // CHUNKS_PER_WINDOW))
        if options.empty:
            self.stores["seen/"] = self.seen
        if options.late == "revise":
            self.stores["dirty/"] = self.dirty
        if options.versioned:
            self.stores["versions/"] = self.versions.chunks
        if options.empty or options.early is not None:
            self.remember(greatest=START, shown=START)

    def pane_size(self) -> int:
        """The length of a pane; queries that share panes have smaller ones than each alone."""
        return pane_length(self.window, self.options)

    def pane_length(self) -> int:
        return self.window.slide // self.step

    # -- rows ----------------------------------------------------------------------------------------------------
    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        # Every pane before the end of the last released window is in a released window, or in none (gaps).
        late = batch.filter(pl.col(PANE) < clipped(self.closed * self.step))
        kept, side = (batch, []) if not late.height else self._policy(batch, late)
        if kept.height:
            self.chunks.append(kept.with_columns((pl.col(PANE) // self.width).alias(CHUNK)))
            self._note(kept)
        return side

    def _policy(self, batch: Batch, late: Batch) -> tuple[Batch, list[Item]]:
        """What still counts of a batch with late partials, and how the others leave."""
        final = self._final()  # no window below this id can get another result
        wanted = self._first_pane(final) if self.options.generous else clipped(final * self.step)
        kept = batch.filter(pl.col(PANE) >= wanted)
        if self.options.late == "side":  # counted by Gate, where they still were rows
            return kept, []
        dropped = late.filter(pl.col(PANE) < wanted)
        if self.options.late != "revise":
            return kept, self._missed(late)
        accepted = late.filter(pl.col(PANE) >= wanted)
        self.dirty.append(accepted.select(PANE, *self.keys).with_columns(pl.lit(0, pl.Int64).alias(CHUNK)))
        items = self._missed(dropped) if dropped.height else []
        extra = rows_in(accepted)
        return kept, [*items, Side("late", extra), Side("revised", extra)] if extra else items

    def _missed(self, late: Batch) -> list[Item]:
        pane = late[PANE].to_numpy()
        last = (pane + self.length) // self.step
        return self.late_in(late, pane // self.step, last.clip(max=self.closed) if self.options.generous else last)

    def _note(self, kept: Batch) -> None:
        if "greatest" in self.marks:
            self.marks["greatest"] = max(self.marks["greatest"], int(kept[PANE].max()))  # type: ignore[arg-type]
        if self.options.empty:
            firsts = kept.select(*self.keys, (pl.col(PANE) // self.step).alias(FIRST))
            self.seen.append(_first_of(firsts, self.keys).with_columns(pl.lit(0, pl.Int64).alias(CHUNK)))

    # -- promises ------------------------------------------------------------------------------------------------
    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        before = self.closed
        if not self.advance(promise):
            return []
        items: list[Item] = []
        for states in self._states(before, self.closed):
            items += self._released(states)
        if self.options.empty:
            items += self._empty_windows(before, items)
        self._free()
        return [*items, self.promise()]

    def _released(self, states: Batch) -> list[Item]:
        states = self.whole(states)
        if self.options.versioned:
            states = self.versions.stamp(states, "final", 0, changed_only=False)
            if self.options.late == "revise":  # what is not recorded counts as version 1
                self.versions.record(states.filter(pl.col(VERSION) > 1))
        return [self.results(states)] if states.height else []

    def results(self, frame: Batch) -> Batch:
        lowered = super().results(frame)
        return lowered.hstack(frame.select(VERSION, STATUS)) if self.options.versioned else lowered

    def _final(self) -> int:
        return clipped(self.closed - self.kept) if self.options.late == "revise" else self.closed

    def _free(self) -> None:
        final = self._final() if self.closed != END else END
        self.chunks.free_below(self._first_pane(final) // self.width)
        self.versions.free_below(final)

    def on_flush(self) -> list[Item]:
        """Revisions of released windows, and early results of open ones."""
        items = self._revised() if self.options.late == "revise" else []
        return [*items, *self._early()] if self.options.early is not None else items

    def _revised(self) -> list[Item]:
        frames = self.dirty.below(1)
        if not frames:
            return []
        touched = pl.concat(frames).unique()
        pane = touched[PANE].to_numpy()
        first = np.maximum(pane // self.step, self._final())
        wids, source = spread(first, np.minimum((pane + self.length) // self.step, self.closed))
        pairs = self._keyed(touched, source, wids).unique()
        self.dirty.free_below(1)
        if not pairs.height:
            return []
        items: list[Item] = []
        for states in self._states(int(wids.min()), int(wids.max()) + 1):
            states = self.whole(matched(states, pairs, [WID, *self.keys], "semi"))
            stamped = self.versions.stamp(states, "revised", 1, changed_only=False)
            self.versions.record(stamped)
            items += [self.results(stamped)] if stamped.height else []
        return items

    def _early(self) -> list[Item]:
        """Open windows that have changed, once the stream has come past the next multiple of ``early``."""
        assert self.options.early is not None
        mark = self.marks["greatest"] * self.pane_length() // self.options.early
        if self.closed == END or self.marks["greatest"] == START or mark <= self.marks["shown"]:
            return []
        self.marks["shown"] = mark
        last = (self.marks["greatest"] + self.length) // self.step
        items: list[Item] = []
        for states in self._states(self.closed, last):
            stamped = self.versions.stamp(self.whole(states), "early", 0, changed_only=True)
            self.versions.record(stamped)
            items += [self.results(stamped)] if stamped.height else []
        return items

    def _empty_windows(self, before: int, items: list[Item]) -> list[Item]:
        """Results of nothing, for each group seen, from its first window on. The end of a stream adds none."""
        frames = self.seen.below(1)
        if not frames:
            return []
        groups = _first_of(pl.concat(frames), self.keys)
        upto = self.closed if self.closed != END else max(self.marks["greatest"] // self.step, before)
        first = np.maximum(groups[FIRST].to_numpy(), before)
        check_amount(int(np.maximum(upto - first.astype(object), 0).sum()), "WITH EMPTY")
        wids, source = spread(first, np.full(len(first), upto))
        every = self._keyed(groups, source, wids)
        there = [i.select(*self.keys, "window_end") for i in items if isinstance(i, pl.DataFrame)]
        if there:
            ends = self.bounds.column("window_end", self.ends(wids))
            known = pl.concat(there)
            every = matched(every.with_columns(ends), known, [*self.keys, "window_end"], "anti")
            every = every.drop("window_end")
        return self._released(self.aggregates.empty(every)) if every.height else []

    # -- when ----------------------------------------------------------------------------------------------------
    def wake_at(self) -> int | None:
        """The end of the next window that holds anything, or what frees the oldest chunk, whichever is first."""
        first = self.chunks.first()
        if first is None:
            return None
        freed = -(-((first + 1) * self.width + self.length) // self.step) - 1  # the first id that no longer needs it
        wakes = [self.waits_until(freed - 1 + self.kept)]
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

    # -- windows from panes --------------------------------------------------------------------------------------
    def _states(self, first: int, last: int) -> Iterator[Batch]:
        """The states of all windows with ids in [first, last) that hold any pane."""
        end = clipped((last - 1) * self.step + self.step) if last != END else clipped(END)
        frames = self._panes(first, end)
        if not frames:
            return
        panes = pl.concat(frames).filter(pl.col(PANE) < end, pl.col(PANE) >= self._first_pane(first))
        if panes.height:
            yield from self._windows(panes, first, last)

    def _panes(self, first: int, end: int) -> list[Batch]:
        """Partials, all those of the panes from window ``first`` on to ``end`` among them."""
        return self.chunks.below(-(-end // self.width))

    def _windows(self, panes: Batch, first: int, last: int) -> Iterator[Batch]:
        numbers = self.aggregates.numbers
        panes = numbered(panes if numbers else self.chunks.combine(panes), self.keys)
        groups = panes.select("@group", *self.keys).unique("@group").sort("@group")
        if not numbers:
            yield from self._ranges(panes, groups, first, last)
            return
        for low, high in self._runs(panes, first, last):
            start = self._first_pane(low)
            count = self._first_pane(high - 1) + self.length - start
            run = panes.filter(pl.col(PANE) >= start, pl.col(PANE) < start + count)
            block = max(1, CELLS // count)
            for at in range(0, groups.height, block):
                part = run if groups.height <= block else run.filter(pl.col("@group").is_between(at, at + block - 1))
                yield self._slide(part, groups[at : at + block], low, start, count)

    def _ranges(self, panes: Batch, groups: Batch, first: int, last: int) -> Iterator[Batch]:
        """Windows of states that are not numbers: each is merged from the panes that are there."""
        panes = panes.sort("@group", PANE)
        pane = panes[PANE].to_numpy()
        begin = (pane // self.step).clip(first, last)
        group = panes["@group"].to_numpy().astype(np.int64)
        wid, low, high = windows_of(group, begin, ((pane + self.length) // self.step).clip(first, last))
        lists = [c for c in self.aggregates.columns if isinstance(panes.schema[c], pl.List)]
        for start, stop in blocks(panes, lists, low, high):  # so that results are out before the next states are in
            base, here = low[start], slice(start, stop)
            found = self._keyed(groups, group[low[here]], wid[here])
            yield self._merged(found, panes[base : high[stop - 1]], low[here] - base, high[here] - base)

    def _merged(self, found: Batch, panes: Batch, low: Ints, high: Ints) -> Batch:
        with locating(lambda at: self.place({**at, **found.row(at["@row"], named=True)})):
            return found.hstack(merged(self.aggregates, panes, low, high))

    def _keyed(self, groups: Batch, which: Ints, wids: Ints) -> Batch:
        """Window ids with the keys of the groups that they are of."""
        found = pl.DataFrame({WID: wids}, schema={WID: pl.Int64})
        return found.hstack(groups.select(self.keys)[which]) if self.keys else found

    def _runs(self, panes: Batch, after: int, before: int) -> Iterator[tuple[int, int]]:
        """Ranges of window ids to compute: no windows over long gaps, and no range of more than CELLS panes."""
        present = panes[PANE].unique().sort().to_numpy()
        firsts = np.maximum(present // self.step, after)
        lasts = np.minimum((present + self.length) // self.step, before)
        firsts, lasts = firsts[firsts < lasts], lasts[firsts < lasts]
        if not len(firsts):
            return
        breaks = np.flatnonzero(firsts[1:] > lasts[:-1]) + 1
        most = max(1, CELLS // self.step, self.length // self.step)
        for low, high in zip(np.r_[0, breaks], np.r_[breaks, len(firsts)], strict=True):
            for first in range(int(firsts[low]), int(lasts[high - 1]), most):
                yield first, min(first + most, int(lasts[high - 1]))

    def _slide(self, panes: Batch, groups: Batch, first: int, start: int, count: int) -> Batch:
        cells = (pl.col(PANE) - start) * groups.height + pl.col("@group").cast(pl.Int64) - groups["@group"][0]
        panes = self._once(panes.with_columns(cells.alias("@cell")))
        cell = panes["@cell"].to_numpy()
        merged: dict[str, Array] = {}
        for part in self.aggregates.parts:
            assert isinstance(part, NumberPart)
            state = []
            for column, identity in zip(part.columns, part.identity, strict=True):
                values = panes[column].to_numpy()
                dense = np.full(count * groups.height, identity, values.dtype)
                dense[cell] = values
                state.append(dense.reshape(count, groups.height))
            merged.update(zip(part.columns, slide(part, state, self.length, self.step), strict=True))
        there = np.flatnonzero(merged[ROWS])
        columns = [pl.Series(c, values.ravel()[there]) for c, values in merged.items()]
        found = pl.DataFrame([pl.Series(WID, there // groups.height + first), *columns])
        return found.hstack(groups.select(self.keys)[there % groups.height]) if self.keys else found

    def _once(self, panes: Batch) -> Batch:
        """Each cell once. Few come twice: batches overlap where one ends, and merging all would cost as much again."""
        cell = panes["@cell"].to_numpy()
        twice = pl.Series(np.bincount(cell)[cell] > 1)
        if not twice.any():
            return panes
        merged = self.aggregates.combine(panes.filter(twice), ["@cell"])
        return pl.concat([panes.filter(~twice).select(merged.columns), merged])


def _first_of(frame: Batch, keys: Sequence[str]) -> Batch:
    """Each group once, with its first window."""
    least = pl.col(FIRST).min()
    return frame.group_by(keys).agg(least) if keys else frame.select(least)
