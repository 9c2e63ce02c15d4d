"""The rows of one side of a join in the order of arrival, scanned or under a hash table (Kang et al.)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl

from windrow.operators.kernels import asymmetric as kernels
from windrow.operators.kernels.probe import MOST, Hashes, Places
from windrow.operators.state.join_side import HASH, JoinSide, Run, hashes_of
from windrow.progress import START
from windrow.spec.batches import Batch, State
from windrow.spec.names import PROGRESS
from windrow.windows.tuples import Bools, Ints

Index = Literal["loops", "hash"]
LEAST = 1024  # places for rows, and buckets
FIRST = 1 << 16  # pairs that are found in the first call of a kernel: what a call costs shows if there are few


class IndexedSide(JoinSide):
    """A run is rows as they came, so that merging runs is putting one behind the other and no row changes its place.

    ``index``: how rows are found. "loops" compares each row with all that are held; "hash" with those in its bucket.
    Rows that have left go from the front of the list or of their bucket, when they are freed; ``lazy``: when a probe
    comes there. They are taken out when they are half of all: until then their places are needed. What is stored is
    what ``JoinSide`` stores, but for the order inside a run.

    >>> side = IndexedSide(["k"], "hash")
    >>> rows = with_hashes(pl.DataFrame({"k": [1, 2], "@t": [5, 9]}), ["k"])
    >>> side.push(rows, np.zeros(2, np.bool_))
    >>> [(number, mine.tolist(), places.tolist()) for number, mine, places in side.partners(
    ...     rows[1:], np.array([0]), np.array([9]))]
    [(0, [0], [1])]
    """

    def __init__(self, keys: Sequence[str], index: Index, lazy: bool = False) -> None:
        super().__init__(keys)
        self.index = index
        self.lazy = lazy
        self.touched = 0  # rows that probes have looked at
        self._clear()

    def _clear(self, room: int = LEAST) -> None:
        self._hashes, self._times = np.empty(room, np.uint32), np.empty(room, np.int64)
        self._first = self._last = 0
        self._table(room if self.index == "hash" else 0)

    def _table(self, buckets: int) -> None:
        self._heads, self._tails = (np.full(buckets, kernels.NONE) for _ in range(2))
        self._following = np.empty(len(self._times) if buckets else 0, np.int64)

    # -- rows --------------------------------------------------------------------------------------------------
    def push(self, rows: Batch, matched: Bools) -> None:
        """Keep rows that have hashes; in whatever order they come."""
        if not rows.height:
            return
        new = Run.of(rows, matched)
        self.count += rows.height
        self._index(new)
        while self.runs and self.runs[max(self.runs)].frame.height < 2 * new.frame.height:
            new = _behind(self.runs.pop(max(self.runs)), new)
        self._add(self._next, new)

    def _index(self, run: Run) -> None:
        """Give the rows of a run the places behind those of all others."""
        start, end = self._last, self._last + run.frame.height
        if end > len(self._times):
            self._grow(max(2 * len(self._times), _power(end)))
        self._hashes[start:end], self._times[start:end] = run.hashes, run.times
        self._last = end
        if self.index == "hash":
            self._chain(start, end)

    def _grow(self, room: int) -> None:
        hashes, times = np.empty(room, np.uint32), np.empty(room, np.int64)
        hashes[: self._last], times[: self._last] = self._hashes[: self._last], self._times[: self._last]
        self._hashes, self._times = hashes, times
        if self.index == "hash":  # as many buckets as places: a bucket then has the rows of about one key
            self._table(room)
            self._chain(self._first, self._last)

    def _chain(self, start: int, end: int) -> None:
        kernels.chained(self._hashes, np.arange(start, end), self._heads, self._tails, self._following)

    def partners(self, rows: Batch, least: Ints, greatest: Ints) -> Iterator[tuple[int, Places, Places]]:
        """As for any side; rows of the other side can be in any order."""
        if not self.runs:
            return
        given, at = rows[HASH].to_numpy(), kernels.beginning()
        numbers, bases = list(self.runs), self._bases()
        room = FIRST
        while at[kernels.ROW] < len(given):
            mine, places = np.empty(room, np.uint32), np.empty(room, np.uint32)
            found = self._probe(given, least, greatest, at, mine, places)
            room = min(4 * room, MOST)
            yield from self._by_run(rows, mine[:found], places[:found], numbers, bases)
        self.touched += int(at[kernels.TOUCHED])

    def _probe(self, given: Hashes, least: Ints, greatest: Ints, at: Ints, mine: Places, places: Places) -> int:
        wanted: Any = (given, least, greatest, at, mine, places)
        if self.index == "loops":
            if self.lazy:
                self._invalidate()
            return int(kernels.scanned(self._hashes, self._times, self._first, self._last, *wanted))
        limit = self.limit if self.lazy else START
        table = self._heads, self._tails, self._following
        return int(kernels.chased(self._hashes, self._times, limit, *table, *wanted))

    def _bases(self) -> Ints:
        """The first place of each run, and the one behind the last."""
        return np.cumsum([0, *(run.frame.height for run in self.runs.values())])

    def _by_run(
        self, rows: Batch, mine: Places, places: Places, numbers: Sequence[int], bases: Ints
    ) -> Iterator[tuple[int, Places, Places]]:
        if not len(mine):
            return
        of = np.searchsorted(bases, places, "right") - 1 if len(numbers) > 1 else np.zeros(len(places), np.int64)
        for i, number in enumerate(numbers):
            here = of == i
            if not here.any():
                continue
            both = (mine, places) if here.all() else (mine[here], places[here])
            inside = both[1] - np.uint32(bases[i])
            same = self._same(rows, both[0], self.runs[number], inside)
            yield (number, both[0], inside) if same.all() else (number, both[0][same], inside[same])

    # -- leaving -----------------------------------------------------------------------------------------------
    def free(self, limit: int) -> Batch | None:
        gone = super().free(limit)
        if not self.lazy:
            self._invalidate()
        return gone

    def _invalidate(self) -> None:
        """What has left goes from the front of the list, or of its bucket."""
        window = self._times, self.limit, self._first, self._last
        if self.index == "loops":
            self._first = int(kernels.past(*window))
        else:
            table = self._heads, self._tails, self._following
            self._first = int(kernels.unchained(self._hashes, *window, *table))

    def shrink(self) -> None:
        """Take out what has left when that is half of all, and number the rows anew."""
        if self._last and 2 * self.count <= self._last:
            self._compact()

    def _compact(self) -> None:
        for number, run in list(self.runs.items()):
            here = run.here(self.limit)
            if not here.any():
                del self.runs[number]
            elif not here.all():
                self._add(number, self._compacted(run))
        self._reindex()

    def _reindex(self) -> None:
        self._clear(_power(max(LEAST, self.count)))
        for run in self.runs.values():
            self._index(run)

    # -- state -------------------------------------------------------------------------------------------------
    def _settle(self) -> None:
        """Rows that were here for a short time are not written, if numbering the others anew is worth it."""
        new = [self.runs[n] for n in self._dirty if n in self.runs]
        gone = sum(run.frame.height - int(run.here(self.limit).sum()) for run in new)
        if 4 * gone >= self._last > 0:
            self._compact()

    def restore(self, state: State, limit: int) -> None:
        self._clear()
        super().restore(state, START)  # nothing leaves before all have places
        self._reindex()
        self.free(limit)

    def _arrange(self) -> None:
        """Rows stay in whatever order they were stored."""

    def state_bytes(self) -> int:
        own = (self._hashes, self._times, self._heads, self._tails, self._following) if self.runs else ()
        return super().state_bytes() + sum(each.nbytes for each in own)

    def _order(self, rows: Batch) -> Ints:
        return np.argsort(rows[PROGRESS].to_numpy(), kind="stable")


def _behind(old: Run, new: Run) -> Run:
    """Two runs as one, in which every row is where it was."""
    frame = pl.concat([old.frame, new.frame])
    return Run(frame, *(np.concatenate(both) for both in ((old.matched, new.matched), (old.gone, new.gone))))


def with_hashes(rows: Batch, keys: Sequence[str]) -> Batch:
    """Rows with the hashes that sides find them by, in their own order."""
    return rows.with_columns(pl.Series(HASH, hashes_of(rows, keys)))


def _power(count: int) -> int:
    """The power of two that has room for so many."""
    return 1 << max(0, count - 1).bit_length()
