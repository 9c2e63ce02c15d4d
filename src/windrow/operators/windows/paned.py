"""Paned: the window level of Paned-WID (Li 6.2, WLQ). Holds partials by pane; a window is merged when it closes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from windrow.operators.operator import Item
from windrow.operators.state.chunks import CHUNKS_PER_WINDOW
from windrow.operators.state.keyed import matched
from windrow.operators.state.late import Spans
from windrow.operators.state.levels import CLOSED, FROM
from windrow.operators.state.limits import clipped
from windrow.operators.windows.early import Early
from windrow.operators.windows.empty_windows import EmptyWindows
from windrow.operators.windows.grid import Grid
from windrow.operators.windows.pane_merge import PaneMerge, between
from windrow.operators.windows.panes import pane_length
from windrow.operators.windows.revisions import Revisions
from windrow.operators.windows.sliding import SlidingAggregate
from windrow.operators.windows.versions import Versions
from windrow.operators.windows.windowing import Windowing
from windrow.progress import END, START, Punctuation
from windrow.spec.batches import Batch
from windrow.spec.names import CHUNK, PANE, STATUS, VERSION, WID
from windrow.windows import Sliding
from windrow.windows.tuples import Bools, Ints

DEAD = "dead"  # the mark that counts partials only of windows that can have no further result


class Paned(SlidingAggregate):
    """Expects partials of Panes. A row is kept once, in its pane, however many windows it belongs to.

    ``pane``: the length of a pane, where it is not the window's own: queries that share panes have smaller ones.
    """

    chunk_by = PANE

    def __init__(self, windowing: Windowing[Sliding], pane: int | None = None) -> None:
        super().__init__(windowing)
        window, options = self.window, self.options
        pane = pane_length(window, options) if pane is None else pane
        self.grid = Grid.of(window, pane)
        self.width = max(1, self.grid.length // CHUNKS_PER_WINDOW)  # panes per chunk
        self.merge = PaneMerge(self.grid, self.keys, self.aggregates, self.chunks.combine, self.place)
        self.lateness = windowing.lateness(kept=-(-(options.keep or 0) // window.slide))
        self.empty = EmptyWindows(self.grid, self.keys) if options.empty else None
        self.revisions = Revisions(self.grid, self.keys, self.lateness.kept) if options.late == "revise" else None
        self.early = None if options.early is None else Early(options.early, pane, self.grid, self.marks)
        self.versions = Versions(self.keys, max(1, self.grid.length // self.grid.step // CHUNKS_PER_WINDOW))
        if self.empty is not None:
            self.stores["seen/"] = self.empty.store
        if self.revisions is not None:
            self.stores["dirty/"] = self.revisions.store
        if options.versioned:
            self.stores["versions/"] = self.versions.chunks
        if self.early is not None:
            self.remember(**Early.FIRST)
        if self.levels.by:
            self.remember(**{DEAD: 0})

    def pane_length(self) -> int:
        return self.window.slide // self.grid.step

    # -- rows ----------------------------------------------------------------------------------------------------
    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        kept, side = self.lateness.sift(batch, self.spans(batch))
        if kept.height:
            if self.revisions is not None:
                self.revisions.note(kept.filter(pl.Series(self.spans(kept).late())))
            if self.early is not None:
                self.early.note(kept)
            if self.empty is not None:
                self.empty.note(kept)
            self.chunks.append(kept.with_columns((pl.col(PANE) // self.width).alias(CHUNK)))
        return side

    def spans(self, panes: Batch) -> Spans:
        """The windows of partials, and how far their groups are released."""
        return Spans(*self.grid.windows(panes[PANE].to_numpy()), self.released_of(panes))

    def released_of(self, frame: Batch, low: int | None = None) -> Ints:
        """How far the group of each row is released, within what leaves room for arithmetic in 64 bits."""
        return self.closed_of(frame, low).clip(-self.grid.farthest, self.grid.farthest)

    # -- promises ------------------------------------------------------------------------------------------------
    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        # What late rows revise comes out first: the promise may free the panes that it is made of.
        revised = self._revised() if self.closes_more(promise) else []
        return [*revised, *super().on_punctuation(port, promise)]

    def release(self, before: int, promise: Punctuation) -> list[Item]:
        items: list[Item] = []
        there: list[Batch] = []
        for states in self._states(before, self.closed):
            own = self._beyond(states)
            items += self._final(own)
            there.append(own.select(WID, *self.keys))
        if self.empty is not None and (groups := self.empty.groups()) is not None:
            # At the end of a stream: those that a promise of the greatest progress value would close.
            end = before if promise.reached is None else max(before, promise.reached)
            last = np.full(groups.height, self.closed if self.closed != END else end)
            first = np.maximum(before, self.released_of(groups, START)) if self.levels else np.full(len(last), before)
            items += self._nothing(self.empty.between(groups, first, last, there))
        self._free()
        return items

    def _beyond(self, states: Batch) -> Batch:
        """Without what promises about single groups have released already."""
        if not self.levels:
            return states
        return states.filter(pl.Series(states[WID].to_numpy() >= self.released_of(states, START)))

    def _final(self, states: Batch) -> list[Item]:
        """The results of windows as they close."""
        states = self.whole(states)
        if self.options.versioned:
            states = self.versions.stamp(states, "final", 0, changed_only=False)
            if self.revisions is not None:  # what is not recorded counts as version 1
                self.versions.record(states.filter(pl.col(VERSION) > 1))
        return [self.results(states)] if states.height else []

    def _nothing(self, windows: Batch) -> list[Item]:
        """The results of windows without rows."""
        return self._final(self.aggregates.empty(windows)) if windows.height else []

    def results(self, frame: Batch) -> Batch:
        lowered = super().results(frame)
        return lowered.hstack(frame.select(VERSION, STATUS)) if self.options.versioned else lowered

    def _free(self) -> None:
        """Forget what no window can need: those below are released, and too old to be revised."""
        final = END if self.closed == END else clipped(self.closed - self.lateness.kept)
        self.chunks.free_below(self.grid.first_pane(final) // self.width)
        self.versions.free_below(final)

    # -- results between promises --------------------------------------------------------------------------------
    def on_flush(self) -> list[Item]:
        """Revisions of released windows, results of groups with promises of their own, early ones of open windows."""
        items = [*self._revised(), *super().on_flush()]
        if self.early is not None and (last := self.early.due(self.closed)) is not None:
            for states in self._states(self.closed, last):
                items += self._shown(self._beyond(states), "early", 0, changed_only=True)
        return items

    def _revised(self) -> list[Item]:
        """New results of the released windows that late rows have changed."""
        if self.revisions is None or (touched := self.revisions.touched()) is None:
            return []
        windows = self.revisions.windows(touched, self.released_of(touched))
        items: list[Item] = []
        if windows.height:
            first, last = int(windows[WID].min()), int(windows[WID].max())  # type: ignore[arg-type]
            for states in self._states(first, last + 1):
                changed = matched(states, windows, [WID, *self.keys], "semi")
                items += self._shown(changed, "revised", 1, changed_only=False)
        return items

    def _shown(self, states: Batch, status: str, before: int, changed_only: bool) -> list[Item]:
        stamped = self.versions.stamp(self.whole(states), status, before, changed_only)
        self.versions.record(stamped)
        return [self.results(stamped)] if stamped.height else []

    # -- single groups -------------------------------------------------------------------------------------------
    def release_groups(self, news: Batch) -> list[Item]:
        first, last = int(news[FROM].min()), int(news[CLOSED].max())  # type: ignore[arg-type]
        end = self.grid.end_pane(last)
        frames, by = self._panes(first, end), list(self.levels.by)
        items: list[Item] = []
        there: list[Batch] = []
        if frames:
            panes = matched(pl.concat(frames), news.select(by), by, "semi")
            needed = panes.filter(pl.col(PANE) < end, pl.col(PANE) >= self.grid.first_pane(first))
            for states in self.merge.windows(needed, first, last) if needed.height else ():
                own = matched(states, news, by, "left")
                own = own.filter(pl.col(WID) >= pl.col(FROM), pl.col(WID) < pl.col(CLOSED)).drop(FROM, CLOSED)
                items += self._final(own)
                there.append(own.select(WID, *self.keys))
            self.marks[DEAD] += int(self._dead(panes).sum())
        if self.empty is not None and (groups := self.empty.groups()) is not None:
            groups = matched(groups, news, by, "inner")
            upto = groups[CLOSED].to_numpy().clip(max=self.grid.farthest)
            items += self._nothing(self.empty.between(groups, groups[FROM].to_numpy(), upto, there))
        self._drop_dead()
        return items

    def _dead(self, panes: Batch) -> Bools:
        """Which partials are only in windows of their group that can have no further result."""
        _, last = self.grid.windows(panes[PANE].to_numpy())
        return np.asarray(last <= self.released_of(panes, START) - self.lateness.kept)

    def _drop_dead(self) -> None:
        """When they are most of the state: groups that end one by one need no promise about everyone to stay small."""
        if 2 * self.marks[DEAD] <= self.chunks.height():
            return
        for chunk in list(self.chunks.stacks):
            whole = self.chunks.combine(pl.concat(self.chunks.stacks[chunk]))
            self.chunks.replace(chunk, whole.filter(pl.Series(~self._dead(whole))))
        for chunk, stack in list(self.versions.chunks.stacks.items()):
            known = pl.concat(stack)
            past = known[WID].to_numpy() < self.released_of(known, START) - self.lateness.kept
            self.versions.chunks.replace(chunk, self.versions.chunks.combine(known.filter(pl.Series(~past))))
        self.marks[DEAD] = 0

    def ids_of(self, values: Ints) -> tuple[Ints, Ints]:
        return self.grid.windows(values)

    def live(self, frame: Batch) -> Batch:
        return frame.filter(pl.Series(~self._dead(frame)))

    # -- waiting -------------------------------------------------------------------------------------------------
    def next_promise(self) -> int | None:
        """The end of the next window that holds anything, or what frees the oldest chunk, whichever is first."""
        first = self.chunks.first()
        if first is None:
            return None
        grid = self.grid
        freed = -(-((first + 1) * self.width + grid.length) // grid.step) - 1  # the first id that no longer needs it
        ends = [self.end_of(freed - 1 + self.lateness.kept)]
        needed = grid.first_pane(self.closed)
        for chunk in sorted(self.chunks.stacks):
            panes = pl.concat([frame[PANE] for frame in self.chunks.stacks[chunk]])
            live = panes.filter(panes >= needed).min()
            if live is not None:
                ends.append(self.end_of(int(live) // grid.step))  # type: ignore[arg-type]
                break
        return min(ends)

    # -- windows from panes --------------------------------------------------------------------------------------
    def _states(self, first: int, last: int) -> Iterator[Batch]:
        """The states of all windows with ids in [first, last) that hold any pane."""
        end = self.grid.end_pane(last)
        frames = self._panes(first, end)
        if not frames:
            return
        panes = between(pl.concat(frames), self.grid.first_pane(first), end)
        if panes.height:
            yield from self.merge.windows(panes, first, last)

    def _panes(self, first: int, end: int) -> list[Batch]:
        """Partials, all those of the panes from window ``first`` on to ``end`` among them."""
        return self.chunks.below(-(-end // self.width))
