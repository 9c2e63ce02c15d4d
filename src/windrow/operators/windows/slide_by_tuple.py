"""Slide-by-tuple windows: RANGE back from every n-th row, in any order of arrival (Li 5.1.5 and 6.1.4), by blocks.

Time is cut into blocks as long as RANGE. A window (w - RANGE, w] then has exactly one block border in it, so it is a
suffix of the block before the border and a prefix of the block behind it: van Herk's and Gil and Werman's sliding
merges, in the domain of time. Results come out below a promise, and what is below a promise is final: it can be put
in order, whatever order it came in, and merged once forward and once, when its block is complete, backward.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from windrow.aggregates.user import locating
from windrow.operators.kernels.ranges import concatenated, windows_of
from windrow.operators.kernels.segments import (
    lasts,
    pairs,
    picked,
    scan_back,
)
from windrow.operators.state.chunks import CHUNKS_PER_WINDOW, Chunks
from windrow.operators.state.keyed import matched
from windrow.operators.windows.block_scan import LAST, BlockScan, Rows
from windrow.operators.windows.by_tuple import (
    BEYOND,
    GROUP,
    PART,
    ByTupleAggregate,
    counted,
    placed,
    shifted,
)
from windrow.operators.windows.windowing import Windowing
from windrow.progress import END, START
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS
from windrow.windows import SlideByTuple

KIND = "@kind"
SHELF = 256  # suffixes in a chunk at least: smaller ones cost more than they free


class SlidByTuple(ByTupleAggregate):
    """Three merges per entry and one per result, whatever RANGE is.

    Entries at or above the promise are in ``chunks``, in the order of time in each frame: those below the promise are
    dead, and go when half of all are. ``block`` are the released entries of the block in which the promise is,
    ``back`` the merge of them for each group. ``suffix`` are the entries of the block before, each with the merge of
    those behind it; ``front`` is the merge of those that no window has passed yet, for each group.
    """

    def __init__(self, windowing: Windowing[SlideByTuple]) -> None:
        super().__init__(windowing)
        self.scan = BlockScan(self.window.range, self.keys, self.aggregates, self.place)
        self.width = max(1, self.window.range // CHUNKS_PER_WINDOW)
        combine = self.chunks.combine
        live = lambda frame: combine(frame.filter(pl.col(PROGRESS) >= self.closed)).sort(PROGRESS)  # noqa: E731
        self.chunks = self.stores[""] = Chunks(live)
        self.block = self.stores["block/"] = Chunks(lambda frame: frame)
        self.suffix = self.stores["suffix/"] = Chunks(lambda frame: frame)
        self.back = self.stores["back/"] = Chunks(self.scan.newest)
        self.front = self.stores["front/"] = Chunks(self.scan.newest)

    def keep(self, batch: Batch) -> None:
        batch = batch.sort(PROGRESS)
        late = int(np.searchsorted(batch[PROGRESS].to_numpy(), self.closed))
        if late:
            self._enter(batch[:late])
        if late < batch.height:
            self.chunks.push(0, batch[late:])

    # -- a promise -----------------------------------------------------------------------------------------------
    def windows_between(self, before: int, limit: int) -> list[Batch]:
        now, then = before // self.window.range, limit // self.window.range
        fresh = self._due(before, limit)
        passed = self._passed(before, limit)
        rows = results = None
        if fresh is not None or then > now:
            rows = self._rows(fresh, passed, now, complete=then > now)
        if fresh is not None and rows is not None:
            results = self._windows(rows, fresh, before, now)
        if limit == END:
            for name, store in self.stores.items():
                if name != "counts/":
                    store.free_below(BEYOND)
        else:
            self._turn(rows, fresh, passed, before, limit)
        return results or []

    def _due(self, before: int, limit: int) -> Batch | None:
        """The entries in [before, limit), one per group and instant."""
        found, rest, total = [], [], 0
        for frame in self.chunks.stacks.get(0, ()):
            times = frame[PROGRESS].to_numpy()
            low = int(np.searchsorted(times, before))
            high = len(times) if limit == END else int(np.searchsorted(times, limit))
            found.append(frame[low:high])
            rest.append(frame[high:])
            total += len(times)
        found, rest = ([f for f in frames if f.height] for frames in (found, rest))
        if total and 2 * sum(f.height for f in rest) <= total:
            # A copy: a slice would hold the memory of all it was cut from.
            self.chunks.replace(0, self.chunks.combine(pl.concat(rest or [frame[:0]])))
        by = (PROGRESS, *self.keys)
        return None if not found else found[0] if len(found) == 1 else self._combined(pl.concat(found), by)

    def _passed(self, before: int, limit: int) -> Batch | None:
        """The entries of the block before that windows in [before, limit) leave behind."""
        found = []
        low, high = before - self.window.range, limit - self.window.range
        for frame in self.suffix.below(BEYOND):
            first, last = np.searchsorted(frame[PROGRESS].to_numpy(), [max(low, START), max(high, START)]).tolist()
            found += [frame[first:last]] if first < last else []
        return pl.concat(found) if found else None

    def _rows(self, fresh: Batch | None, passed: Batch | None, now: int, complete: bool) -> Rows | None:
        """``complete``: the block of the promise before ends, so its entries are needed and not only their merge."""
        entries = (self.block if complete else self.back).below(BEYOND)
        if complete and self.options.generous and entries:  # late ones may be at the instants of others
            entries = [self._combined(pl.concat(entries), (PROGRESS, *self.keys))]
        elif entries and not complete:
            entries = [self._near(self.scan.newest(pl.concat(entries)), fresh)]
        entries += [fresh] if fresh is not None else []
        frames = [pl.concat(entries).with_columns(pl.col(PROGRESS).alias(LAST))] if entries else []
        if front := self.front.below(BEYOND):
            frames.append(self._near(self.scan.newest(pl.concat(front)), fresh))
        frames += [passed] if passed is not None else []
        return self.scan.scanned(self.numbered(pl.concat(frames)), now, complete) if frames else None

    def _near(self, merges: Batch, fresh: Batch | None) -> Batch:
        """Those of the parts in which windows end."""
        if not self.parts or fresh is None:
            return merges
        return matched(merges, fresh, self.parts, "semi")

    # -- results -------------------------------------------------------------------------------------------------
    def _windows(self, rows: Rows, fresh: Batch, before: int, now: int) -> list[Batch] | None:
        ids = self.ids(rows.frame.filter(pl.col(PROGRESS) >= before))
        first = placed(ids, rows.part, rows.times)
        last = placed(ids, rows.part, shifted(rows.frame[LAST].to_numpy(), self.window.range))
        wid, low, high = windows_of(rows.group, first, last)
        if not len(wid):
            return None
        ends = ids[PROGRESS].to_numpy()[wid]
        block = ends // self.window.range
        # The prefix: up to the last entry at or before the end, if it is in the block of the end.
        right = np.where(rows.blocks[high - 1] == block, rows.at[high - 1], -1)
        # The suffix, of the block before: from the first entry of the window on, or what is left of an older block.
        left = np.where((block > now) & (rows.blocks[low] == block - 1), rows.at[low] + len(rows.group), -1)
        passed = counted(rows.group, rows.times, rows.group[low], shifted(ends, -self.window.range), "right") - 1
        known = (block == now) & (passed >= 0) & (rows.group[passed] == rows.group[low]) & rows.front[passed]
        left = np.where(known, passed, left)
        names = rows.frame.select(self.keys)[low] if self.keys else pl.DataFrame()
        columns: dict[str, pl.Series] = {}
        with locating(lambda at: self.place(names.row(at["@row"], named=True) if self.keys else {})):
            for part, raw, prefix, suffix in zip(self.scan.merged, rows.raw, rows.prefix, rows.suffix, strict=True):
                whole = [np.concatenate([a, b]) for a, b in zip(raw, suffix, strict=True)]
                merged = pairs(part, picked(part, whole, left), picked(part, prefix, right))
                columns |= {s.name: s for s in part.series(merged)}
        if self.scan.lists:
            columns |= self._listed(rows, fresh, ids)
        return self.results(names, pl.DataFrame([columns[c] for c in self.aggregates.columns]), ends)

    def _listed(self, rows: Rows, fresh: Batch, ids: Batch) -> dict[str, pl.Series]:
        """The lists of each window put together from all its entries: a window is as large as that anyway."""
        order = [PROGRESS, *self.keys, *(c for part in self.scan.lists for c in part.columns)]
        entries = pl.concat([f.select(order) for f in (*self.suffix.below(BEYOND), *self.block.below(BEYOND), fresh)])
        groups = rows.frame.select(*self.keys, GROUP, PART).unique()
        entries = matched(entries, groups, self.keys, "inner") if self.keys else entries.join(groups, how="cross")
        entries = entries.sort(GROUP, PROGRESS)
        group, part = (entries[c].to_numpy().astype(np.int64) for c in (GROUP, PART))
        times = entries[PROGRESS].to_numpy()
        last = placed(ids, part, shifted(times, self.window.range))
        _, low, high = windows_of(group, placed(ids, part, times), last)
        return {s.name: s for part_ in self.scan.lists for s in concatenated(part_, entries, low, high)}

    # -- what is kept --------------------------------------------------------------------------------------------
    def _turn(self, rows: Rows | None, fresh: Batch | None, passed: Batch | None, before: int, limit: int) -> None:
        """The state as it must be for windows from ``limit`` on."""
        block = limit // self.window.range
        needed = limit - self.window.range
        crossed = block > before // self.window.range
        if crossed:
            passed = None
            for store in (self.block, self.back, self.front, self.suffix):
                store.free_below(BEYOND)
        if crossed and rows is not None:
            entries, totals = self.scan.completed(rows, block - 1)
            self._put(self.front, totals, block)
            before_needed = int(np.searchsorted(entries[PROGRESS].to_numpy(), max(needed, START)))
            passed = entries[:before_needed]
            self._shelve(entries[before_needed:])
        if passed is not None and passed.height:
            self._put(self.front, self.scan.without_lists(self.scan.newest(passed)), block)
        self.suffix.free_below(needed // self.width)
        if fresh is None or rows is None:
            return
        if crossed:
            fresh = fresh.filter(pl.col(PROGRESS) // self.window.range == block)
        self._put(self.block, fresh, block)
        ends = lasts(rows.group)
        news = (rows.blocks[ends] == block) & (rows.times[ends] >= before)
        self._put(self.back, self.scan.states(rows, ends[news], rows.prefix), block)

    def _put(self, store: Chunks, frame: Batch, block: int) -> None:
        if frame.height:
            store.push(block, frame)

    def _shelve(self, entries: Batch) -> None:
        """Put suffixes, by time, into chunks of whole slices that go one after the other; small slices together."""
        slices = entries[PROGRESS].to_numpy() // self.width
        begin, size = 0, max(SHELF, entries.height // CHUNKS_PER_WINDOW)
        while begin < len(slices):
            last = slices[min(begin + size, len(slices)) - 1]
            end = int(np.searchsorted(slices, last, side="right"))
            # Copied: a slice would hold the memory of all until the last one goes.
            self.suffix.push(int(last), entries[np.arange(begin, end)])
            begin = end

    # -- late entries --------------------------------------------------------------------------------------------
    def _enter(self, late: Batch) -> None:
        """Add late entries to what is final: with generous slack they count in the windows that are still open."""
        block = self.closed // self.window.range
        current = late.filter(pl.col(PROGRESS) // self.window.range == block)
        if current.height:
            self._put(self.block, current, block)
            older = [self.scan.newest(pl.concat(held))] if (held := self.back.below(BEYOND)) else []
            frame = self.numbered(pl.concat([*older, self.scan.without_lists(current)]))
            rows = self.scan.scanned(frame.with_columns(pl.lit(START).alias(LAST)), block)
            self._put(self.back, self.scan.states(rows, lasts(rows.group), rows.prefix), block)
        older_late = late.filter(pl.col(PROGRESS) // self.window.range == block - 1)
        if older_late.height:
            self._enter_front(older_late, block)

    def _enter_front(self, late: Batch, block: int) -> None:
        """Each suffix of a group also has the late entries behind it; each late entry becomes a place of its own."""
        kept = pl.col(PROGRESS) >= self.closed - self.window.range
        order = [PROGRESS, *self.keys, *self.aggregates.columns, LAST, KIND]
        frames = [late.with_columns(pl.col(PROGRESS).alias(LAST), pl.lit(2).alias(KIND))]
        frames += [f.filter(kept).with_columns(pl.lit(1).alias(KIND)) for f in self.suffix.below(BEYOND)]
        if held := self.front.below(BEYOND):
            frames.append(self.scan.newest(pl.concat(held)).with_columns(pl.lit(0).alias(KIND)))
        frame = self.numbered(pl.concat([f.select(order) for f in frames]))
        known, late = frame.filter(pl.col(KIND) < 2), frame.filter(pl.col(KIND) == 2)
        unknown = matched(late.unique(GROUP, keep="first"), known, [GROUP], "anti")
        unknown = unknown.with_columns(pl.lit(START).alias(PROGRESS), pl.lit(0).alias(KIND), *self.scan.blank)
        rows = pl.concat([known, late, unknown])
        group, own, of = (f[GROUP].to_numpy().astype(np.int64) for f in (rows, known, late))
        times = rows[PROGRESS].to_numpy()
        base = counted(own, known[PROGRESS].to_numpy(), group, times, "right") - 1
        base = np.where((base >= 0) & (np.append(own, -1)[base] == group), base, -1)
        behind = counted(of, late[PROGRESS].to_numpy(), group, times, "right")
        behind = np.where(np.append(of, -1)[behind] == group, behind, -1)
        columns = []
        with locating(lambda at: self.place(rows.select(self.keys).row(at["@row"], named=True))):
            for part in self.scan.merged:
                suffix = scan_back(part, part.arrays(late), of)
                columns += part.series(
                    pairs(part, picked(part, part.arrays(known), base), picked(part, suffix, behind))
                )
        rows = rows.with_columns(*columns, pl.col(LAST).max().over(GROUP))
        self.suffix.free_below(BEYOND)
        self.front.free_below(BEYOND)
        self._shelve(rows.filter(pl.col(KIND) > 0).select(order[:-1]).sort(PROGRESS))
        self._put(self.front, rows.filter(pl.col(KIND) == 0).select(order[:-1]), block)

    def next_promise(self) -> int | None:
        """Just after the first row that no promise has covered, or where a block or a slice of one is past."""
        live = [frame[PROGRESS].filter(frame[PROGRESS] >= self.closed).min() for frame in self.chunks.below(BEYOND)]
        wakes = [int(at) + 1 for at in live if at is not None]  # type: ignore[arg-type]
        blocks = [store.first() for store in (self.block, self.back, self.front)]
        wakes += [(block + 1) * self.window.range for block in blocks if block is not None]
        if (slice_ := self.suffix.first()) is not None:
            wakes.append((slice_ + 1) * self.width + self.window.range)
        return min(*wakes, END) if wakes else None

    def held(self) -> int:
        return sum(s.height() for s in (self.chunks, self.block, self.suffix, self.back, self.front))
