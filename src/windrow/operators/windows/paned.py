"""Paned: the window level of Paned-WID (Li 6.2, WLQ). Holds partials by pane; a window is merged when it closes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from windrow.aggregates import ROWS
from windrow.aggregates.parts import Array, NumberPart
from windrow.operators.kernels.bag_tables import blocks
from windrow.operators.kernels.ranges import merged, windows_of
from windrow.operators.kernels.slide import slide
from windrow.operators.operator import Item, Side
from windrow.operators.state.chunks import CHUNKS_PER_WINDOW, Chunks
from windrow.operators.state.keyed import matched
from windrow.operators.state.levels import CLOSED, FROM
from windrow.operators.windows.panes import pane_length
from windrow.operators.windows.released import (
    LIMIT,
    check_amount,
    clipped,
    locating,
    numbered,
    spread,
)
from windrow.operators.windows.sliding import SlidingAggregate, rows_in
from windrow.operators.windows.versions import Versions
from windrow.progress import END, START, Punctuation
from windrow.spec.batches import Batch
from windrow.spec.names import CHUNK, PANE, STATUS, VERSION, WID
from windrow.windows.tuples import Bools, Ints

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
        if options.early is not None:
            self.remember(greatest=START, shown=START)
        if self.levels.by:
            self.remember(dead=0)

    def pane_size(self) -> int:
        """The length of a pane; queries that share panes have smaller ones than each alone."""
        return pane_length(self.window, self.options)

    def pane_length(self) -> int:
        return self.window.slide // self.step

    # -- rows ----------------------------------------------------------------------------------------------------
    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        # Every pane before the end of the last released window is in a released window, or in none (gaps).
        closed = self._closed_of(batch)
        late = batch[PANE].to_numpy() < closed * self.step
        kept, side = (batch, []) if not late.any() else self._policy(batch, late, closed)
        if kept.height:
            self.chunks.append(kept.with_columns((pl.col(PANE) // self.width).alias(CHUNK)))
            self._note(kept)
        return side

    def _closed_of(self, frame: Batch, low: int | None = None) -> Ints:
        """How far the group of each row is released, within what leaves room for arithmetic in 64 bits."""
        limit = LIMIT // self.step
        return self.closed_of(frame, low).clip(-limit, limit)

    def _policy(self, batch: Batch, late: Bools, closed: Ints) -> tuple[Batch, list[Item]]:
        """What still counts of a batch with late partials, and how the others leave."""
        final = self._final(closed)  # no window below this id can get another result
        least = (final + 1) * self.step - self.length if self.options.generous else final * self.step
        wanted = batch[PANE].to_numpy() >= least
        kept = batch.filter(pl.Series(wanted))
        if self.options.late == "side":  # counted by Gate, where they still were rows
            return kept, []
        if self.options.late != "revise":
            return kept, self._missed(batch, late, closed)
        accepted = batch.filter(pl.Series(late & wanted))
        self.dirty.append(accepted.select(PANE, *self.keys).with_columns(pl.lit(0, pl.Int64).alias(CHUNK)))
        items = self._missed(batch, late & ~wanted, closed) if (late & ~wanted).any() else []
        extra = rows_in(accepted)
        return kept, [*items, Side("late", extra), Side("revised", extra)] if extra else items

    def _missed(self, batch: Batch, late: Bools, closed: Ints) -> list[Item]:
        missed = batch.filter(pl.Series(late))
        pane = missed[PANE].to_numpy()
        last = (pane + self.length) // self.step
        last = np.minimum(last, closed[late]) if self.options.generous else last
        return self.late_in(missed, pane // self.step, last)

    def _note(self, kept: Batch) -> None:
        if "greatest" in self.marks:
            self.marks["greatest"] = max(self.marks["greatest"], int(kept[PANE].max()))  # type: ignore[arg-type]
        if self.options.empty:
            firsts = kept.select(*self.keys, (pl.col(PANE) // self.step).alias(FIRST))
            self.seen.append(_first_of(firsts, self.keys).with_columns(pl.lit(0, pl.Int64).alias(CHUNK)))

    # -- promises ------------------------------------------------------------------------------------------------
    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if promise.group is not None:
            self.levels.note(promise)
            return []
        before = self.closed
        # What late rows revise comes out first: the promise may free the panes that it is made of.
        items = self._revised() if self.options.late == "revise" and self.news_in(promise) else []
        if not self.advance(promise):
            return []
        released: list[Item] = []
        for states in self._states(before, self.closed):
            released += self._released(self._beyond(states))
        if self.options.empty:
            end = before if promise.reached is None else max(before, promise.reached)
            released += self._everyones_empty(before, self.closed if self.closed != END else end, released)
        self._free()
        self.levels.forget(self.closed)
        return [*items, *released, self.promise()]

    def _beyond(self, states: Batch) -> Batch:
        """Without what promises about single groups have released already."""
        if not self.levels:
            return states
        return states.filter(pl.Series(states[WID].to_numpy() >= self._closed_of(states, START)))

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

    def _final(self, closed: Ints) -> Ints:
        """Of groups that are released so far: below this id no window can get another result."""
        return closed - self.kept if self.options.late == "revise" else closed

    def _free(self) -> None:
        kept = self.kept if self.options.late == "revise" else 0
        final = END if self.closed == END else clipped(self.closed - kept)
        self.chunks.free_below(self._first_pane(final) // self.width)
        self.versions.free_below(final)

    def on_flush(self) -> list[Item]:
        """Revisions of released windows, results of groups with promises of their own, early ones of open windows."""
        items = self._revised() if self.options.late == "revise" else []
        items += super().on_flush()
        return [*items, *self._early()] if self.options.early is not None else items

    def _revised(self) -> list[Item]:
        frames = self.dirty.below(1)
        if not frames:
            return []
        touched = pl.concat(frames).unique()
        pane, closed = touched[PANE].to_numpy(), self._closed_of(touched)
        first = np.maximum(pane // self.step, self._final(closed))
        wids, source = spread(first, np.minimum((pane + self.length) // self.step, closed))
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
            stamped = self.versions.stamp(self.whole(self._beyond(states)), "early", 0, changed_only=True)
            self.versions.record(stamped)
            items += [self.results(stamped)] if stamped.height else []
        return items

    # -- empty windows -------------------------------------------------------------------------------------------
    def _everyones_empty(self, before: int, upto: int, there: list[Item]) -> list[Item]:
        """Results of nothing, for each group seen, from its first window on. At the end of a stream, they are those
        that a promise of the greatest progress value would close.
        """
        groups = self._seen()
        if groups is None:
            return []
        first = np.maximum(groups[FIRST].to_numpy(), before)
        first = np.maximum(first, self._closed_of(groups, START)) if self.levels else first
        return self._empty(groups, first, np.full(len(first), upto), there)

    def _groups_empty(self, news: Batch, there: list[Item]) -> list[Item]:
        """The same for groups that have promises of their own."""
        groups = self._seen()
        if groups is None:
            return []
        groups = matched(groups, news, list(self.levels.by), "inner")
        limit = LIMIT // self.step
        first = np.maximum(groups[FIRST].to_numpy(), groups[FROM].to_numpy())
        return self._empty(groups, first, groups[CLOSED].to_numpy().clip(max=limit), there)

    def _seen(self) -> Batch | None:
        frames = self.seen.below(1)
        return _first_of(pl.concat(frames), self.keys) if frames else None

    def _empty(self, groups: Batch, first: Ints, last: Ints, there: list[Item]) -> list[Item]:
        check_amount(int(np.maximum(last.astype(object) - first, 0).sum()), "WITH EMPTY")
        wids, source = spread(first, last)
        every = self._keyed(groups, source, wids)
        known = [i.select(*self.keys, "window_end") for i in there if isinstance(i, pl.DataFrame)]
        if known:
            ends = self.bounds.column("window_end", self.ends(wids))
            by = [*self.keys, "window_end"]
            every = matched(every.with_columns(ends), pl.concat(known), by, "anti")
            every = every.drop("window_end")
        return self._released(self.aggregates.empty(every)) if every.height else []

    # -- single groups -------------------------------------------------------------------------------------------
    def release_groups(self, news: Batch) -> list[Item]:
        first, last = int(news[FROM].min()), int(news[CLOSED].max())  # type: ignore[arg-type]
        end = clipped(END) if last == END else clipped(last * self.step)
        frames = self._panes(first, end)
        items: list[Item] = []
        if frames:
            by = list(self.levels.by)
            panes = matched(pl.concat(frames), news.select(by), by, "semi")
            needed = panes.filter(pl.col(PANE) < end, pl.col(PANE) >= self._first_pane(first))
            for states in self._windows(needed, first, last) if needed.height else ():
                own = matched(states, news, by, "left")
                own = own.filter(pl.col(WID) >= pl.col(FROM), pl.col(WID) < pl.col(CLOSED)).drop(FROM, CLOSED)
                items += self._released(own)
            self.marks["dead"] += int(self._dead(panes).sum())
        if self.options.empty:
            items += self._groups_empty(news, items)
        self._drop_dead()
        return items

    def _dead(self, panes: Batch) -> Bools:
        """Which partials are only in windows of their group that can have no further result."""
        final = self._final(self._closed_of(panes, START))
        return np.asarray(panes[PANE].to_numpy() < (final + 1) * self.step - self.length)

    def _drop_dead(self) -> None:
        """When they are most of the state: groups that end one by one need no promise about everyone to stay small."""
        if 2 * self.marks["dead"] <= self.chunks.height():
            return
        for chunk in list(self.chunks.stacks):
            whole = self.chunks.combine(pl.concat(self.chunks.stacks[chunk]))
            self.chunks.replace(chunk, whole.filter(pl.Series(~self._dead(whole))))
        for chunk, stack in list(self.versions.chunks.stacks.items()):
            known = pl.concat(stack)
            past = known[WID].to_numpy() < self._final(self._closed_of(known, START))
            self.versions.chunks.replace(chunk, self.versions.chunks.combine(known.filter(pl.Series(~past))))
        self.marks["dead"] = 0

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
