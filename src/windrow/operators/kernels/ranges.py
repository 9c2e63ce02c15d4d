"""Windows from partials for every window type: which partials each window holds, and their merge.

Partials of a group are put in order; each belongs to a range of window ids, and the ranges advance with the partials
(that is what wids() gives for every window type of the thesis). So a window holds neighbouring partials.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from windrow.aggregates import Failed, Partials
from windrow.aggregates.bags import Bag
from windrow.aggregates.objects import ObjectPart, objects
from windrow.aggregates.parts import Array, NumberPart, Part
from windrow.operators.kernels.bag_tables import blocks, slid
from windrow.windows.tuples import Ints


def windows_of(group: Ints, first: Ints, last: Ints) -> tuple[Ints, Ints, Ints]:
    """Every window that holds a partial: its id, and the range [low, high) of partials in it.

    Partials are sorted by group; inside a group ``first`` and ``last`` (half-open) do not decrease.

    >>> [list(map(int, a)) for a in windows_of(np.array([0, 0]), np.array([0, 2]), np.array([3, 5]))]
    [[0, 1, 2, 3, 4], [0, 0, 0, 1, 1], [1, 1, 2, 2, 2]]
    """
    if not len(group):
        return first, first, first
    begin = first.copy()
    same = group[1:] == group[:-1]
    begin[1:] = np.where(same, np.maximum(first[1:], last[:-1]), first[1:])  # ids that the one before has not
    count = np.maximum(last - begin, 0)
    low = np.repeat(np.arange(len(group)), count)
    wid = np.repeat(begin, count) + np.arange(len(low)) - np.repeat(np.cumsum(count) - count, count)
    # The first partial of the group that begins later. Ranks instead of ids, so that no product overflows.
    if group[0] == group[-1]:
        return wid, low, np.searchsorted(first, wid, side="right")
    ranks = np.sort(first)
    place = group * (len(ranks) + 1)
    high = np.searchsorted(
        place + np.searchsorted(ranks, first), place[low] + np.searchsorted(ranks, wid, side="right"), side="left"
    )
    return wid, low, high


def merged(aggregates: Partials, partials: pl.DataFrame, low: Ints, high: Ints) -> pl.DataFrame:
    """The state of each range [low, high) of partials. Ranges are not empty, and advance inside a group."""
    if (high == low + 1).all():
        return partials.select(aggregates.columns)[low]
    columns: list[pl.Series] = []
    for part in aggregates.parts:
        columns += _merged_part(part, partials, low, high)
    return pl.DataFrame(columns)


def _merged_part(part: Part, partials: pl.DataFrame, low: Ints, high: Ints) -> Sequence[pl.Series]:
    if isinstance(part, NumberPart):
        of_ranges = _difference if part.differential else _tree
        return part.series(of_ranges(part, part.arrays(partials), low, high))
    if isinstance(part, ObjectPart):
        merging = _by_inverse if part.inverse is not None else _two_stacks
        return part.series([objects(merging(part, list(part.arrays(partials)[0]), low.tolist(), high.tolist()))])
    if isinstance(part, Bag):
        return slid(part, partials, low, high)
    return concatenated(part, partials, low, high)


def _difference(part: NumberPart, state: list[Array], low: Ints, high: Ints) -> list[Array]:
    """Full-differential aggregates (Li 6.2.3): what is there up to the end of a range, without what is before it."""
    before = [np.concatenate([np.array([e], s.dtype), s]) for s, e in zip(state, part.identity, strict=True)]
    running = part.accumulate(before, axis=0)
    found = [r[high] for r in running]
    part.remove(found, [r[low] for r in running])
    return found


def _tree(part: NumberPart, state: list[Array], low: Ints, high: Ints) -> list[Array]:
    """All ranges at once over a tree of merged pairs: a range takes at most two nodes of each level."""
    low, high = low.copy(), high.copy()
    left = [np.full(len(low), e, s.dtype) for s, e in zip(state, part.identity, strict=True)]
    right = [c.copy() for c in left]
    while (low < high).any():
        odd = np.flatnonzero((low < high) & (low & 1 == 1))
        _put(left, odd, part.merge([c[odd] for c in left], [s[low[odd]] for s in state]))
        low[odd] += 1
        odd = np.flatnonzero((low < high) & (high & 1 == 1))
        high[odd] -= 1
        _put(right, odd, part.merge([s[high[odd]] for s in state], [c[odd] for c in right]))
        low >>= 1
        high >>= 1
        state = _paired(part, state)
    return part.merge(left, right)


def _put(columns: list[Array], at: Ints, values: list[Array]) -> None:
    for column, value in zip(columns, values, strict=True):
        column[at] = value


def _paired(part: NumberPart, state: list[Array]) -> list[Array]:
    if len(state[0]) % 2:
        state = [np.append(s, np.array([e], s.dtype)) for s, e in zip(state, part.identity, strict=True)]
    return part.merge([s[0::2] for s in state], [s[1::2] for s in state])


def _two_stacks(part: ObjectPart, values: list[Any], low: list[int], high: list[int]) -> list[Any]:
    """At most three merges per value, however many values a range has: suffixes in front, one running merge behind."""
    found = []
    suffixes: list[Any] = []  # suffixes[-1] is the merge of values[begin:middle]
    begin = middle = end = 0
    behind: Any = None
    for query, (lo, hi) in enumerate(zip(low, high, strict=True)):
        try:
            if lo >= end:
                suffixes, behind, begin, middle, end = [], None, lo, lo, lo
            while end < hi:
                behind, end = part.merge(behind, values[end]), end + 1
            if lo > begin and lo >= middle:  # all of the front is past: what is behind becomes the front
                suffixes, running = [], None
                for at in range(end - 1, lo - 1, -1):
                    running = part.merge(values[at], running)
                    suffixes.append(running)
                begin, middle, behind = lo, end, None
            while begin < lo:
                suffixes.pop()
                begin += 1
            found.append(part.merge(suffixes[-1] if suffixes else None, behind))
        except Failed as failure:
            failure.at = {"@row": query}
            raise
    return found


def _by_inverse(part: ObjectPart, values: list[Any], low: list[int], high: list[int]) -> list[Any]:
    """One merge and one inverse per value."""
    assert part.inverse is not None
    found = []
    begin = end = held = 0
    running: Any = None
    for query, (lo, hi) in enumerate(zip(low, high, strict=True)):
        try:
            if lo >= end:
                running, begin, end, held = None, lo, lo, 0
            for value in values[end:hi]:
                running, held = part.merge(running, value), held + (value is not None)
            for value in values[begin:lo]:
                if value is not None:
                    held -= 1
                    running = part.inverse(running, value) if held else None
            begin, end = lo, hi
            found.append(running)
        except Failed as failure:
            failure.at = {"@row": query}
            raise
    return found


def concatenated(part: Part, partials: pl.DataFrame, low: Ints, high: Ints) -> list[pl.Series]:
    """The lists of each range put together, some ranges at a time."""
    found = []
    for start, stop in blocks(partials, part.columns[:1], low, high):
        try:
            found.append(_block(part, partials, low[start:stop], high[start:stop]))
        except Failed as failure:
            failure.at = {"@row": start + failure.row}
            raise
    return pl.concat(found).select(part.columns).get_columns()


def _block(part: Part, partials: pl.DataFrame, low: Ints, high: Ints) -> pl.DataFrame:
    count = high - low
    query = np.repeat(np.arange(len(low)), count)
    at = np.repeat(low, count) + np.arange(len(query)) - np.repeat(np.cumsum(count) - count, count)
    gathered = partials.select(part.columns)[at].with_columns(pl.Series("@query", query))
    combined = gathered.group_by("@query").agg(part.combine()).sort("@query")
    return part.finish(combined, False)


def spread(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Every value of the ranges [first, last), and the number of the range that it is from.

    >>> [part.tolist() for part in spread(np.array([3, 9]), np.array([5, 10]))]
    [[3, 4, 9], [0, 0, 1]]
    """
    count = np.maximum(last - first, 0)
    source = np.repeat(np.arange(len(count)), count)
    return np.repeat(first, count) + np.arange(len(source)) - np.repeat(np.cumsum(count) - count, count), source
