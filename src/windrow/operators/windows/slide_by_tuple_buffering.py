"""Slide-by-tuple windows by buffering: entries are kept, and each window is computed from all of its entries."""

from __future__ import annotations

import numpy as np
import polars as pl

from windrow.aggregates.parts import Fold, Part
from windrow.aggregates.user import locating
from windrow.operators.kernels.ranges import concatenated, windows_of
from windrow.operators.operator import Item
from windrow.operators.state.keyed import matched
from windrow.operators.state.levels import CLOSED, FROM
from windrow.operators.windows.by_tuple import (
    BEYOND,
    GROUP,
    PART,
    ByTupleAggregate,
    placed,
    shifted,
)
from windrow.progress import END, START
from windrow.spec.batches import Batch
from windrow.spec.names import CHUNK, PROGRESS
from windrow.windows.tuples import Ints


class BufferedByTuple(ByTupleAggregate):
    """The baseline of Li 6.1.5: the standard implementation, which materialises each window extent. It is also what
    closes the windows of single groups: entries are there for the group that is promised next.
    """

    def keep(self, batch: Batch) -> None:
        self.chunks.append(batch.with_columns((pl.col(PROGRESS) // self.window.range).alias(CHUNK)))

    def windows_between(self, before: int, limit: int) -> list[Batch]:
        frames = self.chunks.below(-(-limit // self.window.range) if limit != END else BEYOND)
        results: list[Batch] = []
        if frames:
            entries = self.chunks.combine(pl.concat(frames)).filter(
                pl.col(PROGRESS) > max(before - self.window.range, START),
                pl.col(PROGRESS) < limit if limit != END else pl.lit(True),
            )
            results = self._windows(entries, self.closed_of(entries, before))
        needed = limit - self.window.range + 1  # the first row that a later window can hold
        self.chunks.free_below(needed // self.window.range if limit != END else BEYOND)
        return results

    def release_groups(self, news: Batch) -> list[Item]:
        """What a group no longer needs goes at once: its windows read everything that is kept."""
        by, results = list(self.levels.by), []
        for chunk in list(self.chunks.stacks):
            whole = self.chunks.combine(pl.concat(self.chunks.stacks[chunk]))
            known = matched(whole, news, by, "left")
            own = known.filter(pl.col(CLOSED).is_not_null())
            if own.height:
                results.append(own)
                past = shifted(known[CLOSED].fill_null(START).to_numpy(), -self.window.range)
                needed = pl.Series(known[PROGRESS].to_numpy() > past) | known[CLOSED].is_null()
                self.chunks.replace(chunk, known.filter(needed).drop(FROM, CLOSED))
        if not results:
            return []
        entries = pl.concat(results).filter(pl.col(PROGRESS) < pl.col(CLOSED)).sort(PROGRESS)
        return [*self._windows(entries.drop(FROM, CLOSED), entries[FROM].to_numpy())] if entries.height else []

    def _windows(self, entries: Batch, before: Ints) -> list[Batch]:
        """The windows that end at entries from ``before`` on."""
        entries = self.numbered(entries.with_columns(pl.Series(FROM, before)))
        ids = self.ids(entries.filter(pl.col(PROGRESS) >= pl.col(FROM)))
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

    def next_promise(self) -> int | None:
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
