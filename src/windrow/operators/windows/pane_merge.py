"""PaneMerge: windows from panes, by sliding over arrays of numbers or by merging the panes of each window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from windrow.aggregates import ROWS, Partials
from windrow.aggregates.parts import Array, NumberPart
from windrow.aggregates.user import locating
from windrow.operators.kernels.bag_tables import blocks
from windrow.operators.kernels.ranges import merged, windows_of
from windrow.operators.kernels.slide import slide
from windrow.operators.state.keyed import numbered
from windrow.operators.windows.grid import Grid, keyed
from windrow.spec.batches import Batch
from windrow.spec.names import PANE, WID
from windrow.windows.tuples import Ints

CELLS = 1 << 21  # panes x groups that are slid over at once: 16 MB per state column


def groups_of(panes: Batch, keys: Sequence[str]) -> Batch:
    """The groups of panes with a column ``@group``, by number; the first of each comes after those of smaller ones."""
    number = panes["@group"].to_numpy().astype(np.int64)
    before = np.maximum.accumulate(np.r_[-1, number[:-1]])
    return panes.select("@group", *keys)[np.flatnonzero(number > before)]


def between(panes: Batch, start: int, end: int) -> Batch:
    """Those from ``start`` on and before ``end``; mostly all of them, and then nothing is copied."""
    number = panes[PANE].to_numpy()
    inside = (number >= start) & (number < end)
    return panes if inside.all() else panes.filter(pl.Series(inside))


class PaneMerge:
    """``combine`` merges partials of the same pane and group; ``place`` says where a user's function failed."""

    def __init__(
        self,
        grid: Grid,
        keys: Sequence[str],
        aggregates: Partials,
        combine: Callable[[Batch], Batch],
        place: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> None:
        self.grid = grid
        self.keys = tuple(keys)
        self.aggregates = aggregates
        self.combine = combine
        self.place = place

    def windows(self, panes: Batch, first: int, last: int, groups: Batch | None = None) -> Iterator[Batch]:
        """The states of all windows with ids in [first, last) that hold any of some panes, with ``@wid`` and keys.

        ``groups``: those of the panes, if these have a column ``@group`` already.
        """
        numbers = self.aggregates.numbers
        if numbers and groups is None and self.grid.length == self.grid.step == 1:
            yield self._alone(panes, first, last)
            return
        if groups is None:
            panes = numbered(panes if numbers else self.combine(panes), self.keys)
            groups = groups_of(panes, self.keys)
        if not numbers:
            yield from self._ranges(panes, groups, first, last)
            return
        for low, high in self._runs(panes, first, last):
            start = self.grid.first_pane(low)
            count = self.grid.first_pane(high - 1) + self.grid.length - start
            run = between(panes, start, start + count)
            block = max(1, CELLS // count)
            for at in range(0, groups.height, block):
                part = run if groups.height <= block else run.filter(pl.col("@group").is_between(at, at + block - 1))
                yield self._slide(part, groups[at : at + block], low, start, count)

    def _alone(self, panes: Batch, first: int, last: int) -> Batch:
        """Windows that are panes: nothing slides."""
        whole = self.combine(between(panes, first, last)).rename({PANE: WID})
        return whole.select(WID, *self.aggregates.columns, *self.keys).sort(WID)

    # -- states that are not numbers -----------------------------------------------------------------------------
    def _ranges(self, panes: Batch, groups: Batch, first: int, last: int) -> Iterator[Batch]:
        """Each window is merged from the panes that are there."""
        panes = panes.sort("@group", PANE)
        begin, end = self.grid.windows(panes[PANE].to_numpy())
        group = panes["@group"].to_numpy().astype(np.int64)
        wid, low, high = windows_of(group, begin.clip(first, last), end.clip(first, last))
        lists = [c for c in self.aggregates.columns if isinstance(panes.schema[c], pl.List)]
        for start, stop in blocks(panes, lists, low, high):  # so that results are out before the next states are in
            base, here = low[start], slice(start, stop)
            found = keyed(wid[here], groups, group[low[here]], self.keys)
            yield self._merged(found, panes[base : high[stop - 1]], low[here] - base, high[here] - base)

    def _merged(self, found: Batch, panes: Batch, low: Ints, high: Ints) -> Batch:
        with locating(lambda at: self.place({**at, **found.row(at["@row"], named=True)})):
            return found.hstack(merged(self.aggregates, panes, low, high))

    # -- numbers -------------------------------------------------------------------------------------------------
    def _runs(self, panes: Batch, after: int, before: int) -> Iterator[tuple[int, int]]:
        """Ranges of window ids to compute: no windows over long gaps, and no range of more than CELLS panes."""
        first, last = self.grid.windows(np.unique(panes[PANE].to_numpy()))
        firsts, lasts = np.maximum(first, after), np.minimum(last, before)
        firsts, lasts = firsts[firsts < lasts], lasts[firsts < lasts]
        if not len(firsts):
            return
        breaks = np.flatnonzero(firsts[1:] > lasts[:-1]) + 1
        most = max(1, CELLS // self.grid.step, self.grid.length // self.grid.step)
        for low, high in zip(np.r_[0, breaks], np.r_[breaks, len(firsts)], strict=True):
            for begin in range(int(firsts[low]), int(lasts[high - 1]), most):
                yield begin, min(begin + most, int(lasts[high - 1]))

    def _slide(self, panes: Batch, groups: Batch, first: int, start: int, count: int) -> Batch:
        group = panes["@group"].to_numpy().astype(np.int64) - int(groups["@group"][0])
        panes, cell = self._once(panes, (panes[PANE].to_numpy() - start) * groups.height + group)
        states: dict[str, Array] = {}
        for part in self.aggregates.parts:
            assert isinstance(part, NumberPart)
            state = []
            for column, identity in zip(part.columns, part.identity, strict=True):
                values = panes[column].to_numpy()
                dense = np.full(count * groups.height, identity, values.dtype)
                dense[cell] = values
                state.append(dense.reshape(count, groups.height))
            states.update(zip(part.columns, slide(part, state, self.grid.length, self.grid.step), strict=True))
        there = np.flatnonzero(states[ROWS])
        columns = [pl.Series(c, values.ravel()[there]) for c, values in states.items()]
        found = pl.DataFrame([pl.Series(WID, there // groups.height + first), *columns])
        return found.hstack(groups.select(self.keys)[there % groups.height]) if self.keys else found

    def _once(self, panes: Batch, cell: Ints) -> tuple[Batch, Ints]:
        """Each cell once. Few come twice: batches overlap where one ends, and merging all would cost as much again."""
        twice = np.bincount(cell)[cell] > 1
        if not twice.any():
            return panes, cell
        panes, again = panes.with_columns(pl.Series("@cell", cell)), pl.Series(twice)
        once = self.aggregates.combine(panes.filter(again), ["@cell"])
        panes = pl.concat([panes.filter(~again).select(once.columns), once])
        return panes, panes["@cell"].to_numpy()
