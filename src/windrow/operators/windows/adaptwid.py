"""AdaptWID: each group in the cheaper of two forms, rows in a buffer or partials of open windows (Li 6.3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from windrow.aggregates import ROWS, Partials
from windrow.aggregates.parts import Fold
from windrow.aggregates.user import locating
from windrow.operators.kernels.ranges import windows_of
from windrow.operators.operator import Item
from windrow.operators.state.chunks import Chunks
from windrow.operators.state.keyed import matched
from windrow.operators.state.rowbuffer import RowBuffer, among, partial_bytes
from windrow.operators.windows.bucket import FIRST, LAST
from windrow.operators.windows.watch import Watch
from windrow.operators.windows.wid import Wid
from windrow.operators.windows.windowing import Windowing
from windrow.progress import END, START, Punctuation
from windrow.spec.batches import Batch
from windrow.spec.names import CHUNK, INPUT, PROGRESS, WID, N
from windrow.windows import Sliding

EAGER = "@eager"  # of a partial: whether new rows of its group are aggregated at once; if not, it is in transition
LOW = "@low"  # the low watermark when the first row of a window came
BACK = 0.8  # a group is lazy again only this far below the volume at which it became eager, so that none oscillates
WAIT = 3  # rows wait to be examined until they take this fraction (1/WAIT) of all that is held
MANY = 1 << 32  # rows that a partial counts as where groups are counted, so that a group that is eager is dense
LOOKS = 4  # how many times per RANGE eager groups are examined: partials that stay too long are gone after RANGE
WED, UNCOUNTED, LOOKED, ROW_BYTES = "wed", "uncounted", "looked", "row_bytes"


class AdaptWid(Wid):
    """Expects rows with ``@t``, promises on window ids from Bucket, and from a union of ``inputs`` also ``@input``.

    A group is lazy unless it has a partial that says otherwise, so that a group of one row costs this row and
    nothing else. A dense one becomes eager: its rows turn into partials. When it thins out, its partials are marked
    and stay until they are released, merged with what its rows give for the same window (a group in transition).
    """

    holds = "rows and partials"

    def __init__(self, windowing: Windowing[Sliding], inputs: int = 1) -> None:
        flags = [Fold(EAGER, pl.len() > 0, "max", False, pl.Boolean())]
        super().__init__(replace(windowing, aggregates=Partials(windowing.aggregates.aggregates, flags)))
        self.watch = Watch(inputs, self.window.range)
        self.rows = RowBuffer(self.window, self.keys, self.aggregates)
        self.starts = Chunks(lambda frame: frame.group_by(WID).agg(pl.col(LOW).min()))
        self.stores |= {"rows/": self.rows.chunks, "starts/": self.starts}
        self.remember(**self.watch.marks(), **dict.fromkeys((WED, UNCOUNTED, LOOKED, ROW_BYTES), START))

    # -- rows ----------------------------------------------------------------------------------------------------
    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        """Rows wait in the buffer, whatever their groups, and are examined many at a time: that costs least per row."""
        kept, side = self.on_time(batch)
        if kept.height:
            self.watch.note(self.marks, kept)
            self._begin(kept)
            kept = kept.drop(FIRST, LAST, INPUT, strict=False)
            self.marks[UNCOUNTED] = max(0, self.marks[UNCOUNTED]) + kept.height
            if self._due(kept):
                self._look(kept)
            else:
                self.rows.add(kept)
        return side

    def _due(self, fresh: Batch) -> bool:
        """Whether the rows that wait, these among them, take more than their share of all that is held."""
        if not self.rows.height:
            return True
        taken = self.rows.chunks.state_bytes() + self.chunks.state_bytes() + self.rows.row_bytes() * fresh.height
        return self.marks[UNCOUNTED] * self.rows.row_bytes() * WAIT >= taken

    def _look(self, fresh: Batch) -> None:
        """Rows of groups that are eager, or are to be now, turn into partials; all others stay in the buffer, or go
        there."""
        self.marks[UNCOUNTED] = 0
        if not self.rows.height:  # what a row takes is measured there
            self.rows.add(fresh)
            fresh = fresh.clear()
        held = self.rows.rows()
        rows = fresh if held is None else pl.concat([held, fresh.select(held.columns)])
        dense = self._dense(rows)
        before = rows.height - fresh.height
        self.rows.keep(~dense[:before])
        self.rows.add(fresh.filter(~dense[before:]))
        self._at_once(rows.filter(dense))

    def _begin(self, kept: Batch) -> None:
        """Note the low watermark for the windows whose first row this is."""
        first, last = kept[FIRST].to_numpy().clip(min=self.closed), kept[LAST].to_numpy()
        begun = {wid for stack in self.starts.stacks.values() for frame in stack for wid in frame[WID].to_list()}
        low, high = int(first.min()), int(last.max())
        if high - low <= len(begun) and begun.issuperset(range(low, high)):
            return
        wids, _, _ = windows_of(np.zeros(len(first), np.int64), np.sort(first), np.sort(last))
        fresh = np.array([wid for wid in wids.tolist() if wid not in begun], np.int64)
        if len(fresh):
            # Before the first promise nothing is known but that no extent is open for less than RANGE.
            known = self.closed != START
            lows = (
                np.full(len(fresh), self.window.end(self.closed - 1)) if known else self.ends(fresh) - self.window.range
            )
            self.starts.append(pl.DataFrame({WID: fresh, LOW: lows, CHUNK: fresh // self.width}))

    def eager(self) -> pl.LazyFrame | None:
        """The partials of open windows whose groups are eager."""
        frames = [frame for stack in self.chunks.stacks.values() for frame in stack]
        return pl.concat(frames).lazy().filter(pl.col(EAGER), pl.col(WID) >= self.closed) if frames else None

    def _at_once(self, rows: Batch) -> None:
        if not rows.height:
            return
        first, last = self.window.wids_array(rows[PROGRESS].to_numpy())
        past = first.min() < self.closed  # rows from the buffer have lost the windows that are released
        tagged = rows.with_columns(pl.Series(FIRST, first.clip(min=self.closed)), pl.Series(LAST, last))
        tagged = tagged.filter(pl.col(FIRST) < pl.col(LAST)) if past else tagged
        with locating(self.place):
            self.put(self.aggregates.lift(tagged, [FIRST, LAST, *self.keys]) if past else self.lifted(tagged))

    # -- the choice ----------------------------------------------------------------------------------------------
    @property
    def duration(self) -> int:
        """How long a window extent is open (wed), and no less than RANGE: a row opens all of its windows at once."""
        return max(self.window.range, self.marks[WED])

    def threshold(self, groups: Batch) -> float:
        """The number of rows that take as much as the partials of a group (Eqs. 6.5 and 6.6)."""
        if self.rows.height:
            self.marks[ROW_BYTES] = round(1000 * self.rows.row_bytes())
        partial = partial_bytes(self.chunks, self.aggregates, groups.select(self.keys))
        open_windows = max(1.0, self.duration / self.window.slide)
        return partial * open_windows / (max(1, self.marks[ROW_BYTES]) / 1000)

    def _dense(self, rows: Batch) -> pl.Series:
        """Which rows are of groups that are eager, or are to be now. With the buffer these are exactly the rows that
        lazy aggregation would hold (Eq. 6.7): what a lagging source has not brought is not among them, and need not be
        subtracted."""
        counts = [rows.lazy().with_columns(pl.lit(1, pl.Int64).alias(N))]
        eager = self.eager()
        if eager is not None:
            counts.append(eager.with_columns(pl.lit(MANY, pl.Int64).alias(N)))
        volume = pl.col(N).sum()
        dense = (volume.over(self.keys) if self.keys else volume) > self.threshold(rows)
        counted = pl.concat([each.select(*self.keys, N) for each in counts])
        return counted.with_columns(dense.alias(N)).collect()[N].head(rows.height)

    def _to_lazy(self, released: Batch) -> None:
        """Mark the partials of eager groups that are no longer dense.

        The volume of an eager group is that of its fullest window, released ones included, scaled from RANGE to the
        duration of an extent (so no counter per partial is needed), less what lagging sources would not have brought.
        """
        if self.closed - self.marks[LOOKED] < self.window.range // self.window.slide // LOOKS:
            return
        self.marks[LOOKED] = self.closed
        groups = self.eager()
        if groups is None:
            return
        by, columns = [*self.keys], [WID, *self.keys, ROWS]
        here = released.lazy().select(columns)
        if by:
            here = matched(here, groups.select(by), by, "semi")
        full = pl.concat([groups.select(columns), here]).group_by(WID, *by).agg(pl.col(ROWS).sum())
        most = pl.col(ROWS).max()
        eager = (full.group_by(by).agg(most) if by else full.select(most)).collect()
        arrived = self.watch.arrived(self.marks, self.duration) * self.duration / self.window.range
        thin = eager.filter(pl.col(ROWS) * arrived < BACK * self.threshold(eager))
        if thin.height:
            self._mark(thin)

    def _mark(self, thin: Batch) -> None:
        stacks = list(self.chunks.stacks.items())
        marked = among(pl.concat([frame for _, stack in stacks for frame in stack]), thin, self.keys)
        at = 0
        for chunk, stack in stacks:
            frame = pl.concat(stack)
            here = marked[at : at + frame.height] & frame[EAGER]
            at += frame.height
            if here.any():
                frame = frame.with_columns(frame[EAGER] & ~here)
                self.chunks.replace(chunk, frame if len(stack) == 1 else self.chunks.combine(frame))

    # -- promises ------------------------------------------------------------------------------------------------
    def release(self, before: int, promise: Punctuation) -> list[Item]:
        released = self._released(before)
        if self.closed != END:
            self._completed(before)
        self.starts.free_below(self.closed // self.width)
        self.chunks.free_below(self.closed // self.width)
        self.rows.free(self.closed)
        if not released.height:
            return []
        if self.closed != END:
            self._to_lazy(released)
        windows = self.whole(released).sort(WID)
        return [self.results(windows)] if windows.height else []

    def _released(self, before: int) -> Batch:
        """The windows that are complete, from partials and from rows, merged where a group has both."""
        frames = self.chunks.below(-(-self.closed // self.width))
        complete = pl.col(WID) >= before, pl.col(WID) < self.closed
        partials = [pl.concat(frames).filter(*complete)] if frames else []
        with locating(self.place):
            partials += self.rows.states(before, self.closed)
        if len(partials) < 2 and len(frames) < 2:
            return partials[0] if partials else pl.DataFrame()
        return self._combined(pl.concat(partials), [WID, *self.keys])

    def _completed(self, before: int) -> None:
        """What the last complete window shows about the stream."""
        self.watch.turn(self.marks, self.window.end(self.closed - 1))
        frames = self.starts.below(-(-self.closed // self.width))
        if frames:
            complete = pl.concat(frames).filter(pl.col(WID) >= before, pl.col(WID) < self.closed).sort(WID)
            if complete.height:
                self.marks[WED] = self.watch.high(self.marks) - int(complete[LOW][-1])

    def next_promise(self) -> int | None:
        """By the windows that have begun; and a slice of rows can be freed when no window is released."""
        freeing = self.rows.freeing()
        ends = [self.first_end(self.starts, self.width), None if freeing is None else self.end_of(freeing)]
        return min((end for end in ends if end is not None), default=None)

    def held(self) -> int:
        return super().held() + self.rows.height
