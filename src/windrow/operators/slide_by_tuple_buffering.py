"""Slide-by-tuple windows by buffering: entries are kept, and each window is computed from all of its entries."""

from __future__ import annotations

import numpy as np
import polars as pl

from windrow.aggregates.parts import Fold, Part
from windrow.operators.chunks import CHUNK
from windrow.operators.operator import PROGRESS, Batch
from windrow.operators.ranges import concatenated, windows_of
from windrow.operators.released import locating
from windrow.operators.row_windows import BEYOND, GROUP, PART, RowWindows, placed, shifted
from windrow.progress import END, START
from windrow.windows.tuples import Ints


class BufferedByTuple(RowWindows):
    """The baseline of Li 6.1.5: the standard implementation, which materialises each window extent."""

    def keep(self, batch: Batch) -> None:
        self.chunks.append(batch.with_columns((pl.col(PROGRESS) // self.window.range).alias(CHUNK)))

    def release(self, before: int, limit: int) -> list[Batch]:
        frames = self.chunks.below(-(-limit // self.window.range) if limit != END else BEYOND)
        results: list[Batch] = []
        if frames:
            entries = self.chunks.combine(pl.concat(frames)).filter(
                pl.col(PROGRESS) > max(before - self.window.range, START),
                pl.col(PROGRESS) < limit if limit != END else pl.lit(True),
            )
            results = self._windows(entries, before)
        needed = limit - self.window.range + 1  # the first row that a later window can hold
        self.chunks.free_below(needed // self.window.range if limit != END else BEYOND)
        return results

    def _windows(self, entries: Batch, before: int) -> list[Batch]:
        entries = self.numbered(entries)
        ids = self.ids(entries.filter(pl.col(PROGRESS) >= before))
        if not ids.height:
            return []
        group, part = (entries[c].to_numpy().astype(np.int64) for c in (GROUP, PART))
        at = entries[PROGRESS].to_numpy()
        last = placed(ids, part, shifted(at, self.window.range))
        wid, low, high = windows_of(group, placed(ids, part, at), last)
        names = entries.select(self.keys)[low] if self.keys else pl.DataFrame()
        with locating(lambda at: self.place(names.row(at["@row"], named=True) if self.keys else {})):
            states = [s for p in self.aggregates.parts for s in _computed(p, entries, low, high)]
        return self.results(names, pl.DataFrame(states), ids[PROGRESS].to_numpy()[wid])

    def wake_at(self) -> int | None:
        """Just after the first row that no promise has covered, or what frees the oldest chunk."""
        first = self.chunks.first()
        if first is None:
            return None
        wakes = [(first + 1) * self.window.range + self.window.range - 1]
        for chunk in sorted(self.chunks.stacks):
            at = pl.concat([frame[PROGRESS] for frame in self.chunks.stacks[chunk]])
            live = at.filter(at >= self.closed).min()
            if live is not None:
                wakes.append(int(live) + 1)  # type: ignore[arg-type]
                break
        return min(*wakes, END)


def _computed(part: Part, entries: Batch, low: Ints, high: Ints) -> list[pl.Series]:
    """The state of each range [low, high), from every entry in it."""
    if not isinstance(part, Fold):
        return concatenated(part, entries, low, high)
    (values,) = part.arrays(entries)
    padded = np.append(values, np.array([part.empty], values.dtype))  # a range may end behind the last entry
    borders = np.stack([low, high], axis=1).reshape(-1)
    return part.series([part.ufunc.reduceat(padded, borders)[::2]])
