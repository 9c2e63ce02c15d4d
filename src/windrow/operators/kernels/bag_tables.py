"""Windows of bags: the pane hash tables of Li 6.2.4, added as a pane enters a window and subtracted as it leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from windrow.aggregates.bags import Bag
from windrow.windows.tuples import Ints

VALUES = 1 << 22  # values of lists that are put together at once
WINDOWS = 1 << 16  # windows at once: numbers of 16 bits are sorted by radix


def slid(part: Bag, partials: pl.DataFrame, low: Ints, high: Ints) -> list[pl.Series]:
    """The bag of each range [low, high) of partials; neither bound decreases from one range to the next.

    Pseudo-differential (Li 6.2.2.2): a value is a group of its own, which enters and leaves windows with the panes
    that have it. So the cost is that of the tables and of the results, however many panes a window has.
    """
    values, counts = part.columns
    entries = partials.select(values, counts).with_row_index("@at").explode(values, counts)
    entries = entries.filter(pl.col(counts).is_not_null()).with_row_index("@entry")
    alike = pl.col("@entry").min().over(values)  # a value's number: the first entry that has it
    at, code, count = (c.to_numpy() for c in entries.select("@at", alike, counts).cast(pl.Int64).get_columns())
    frames = []
    for start, stop in blocks(partials, [values], low, high):
        here = slice(*np.searchsorted(at, [low[start], high[stop - 1]]))
        codes, amounts, edges = _tables(at[here], code[here], count[here], low[start:stop], high[start:stop])
        lists = [_lists(edges, entries[values][codes]), _lists(edges, pl.Series(amounts))]
        named = zip(part.columns, lists, part.dtypes, strict=True)
        frames.append(pl.DataFrame([column.cast(dtype).alias(name) for name, column, dtype in named]))
    return pl.concat(frames).get_columns()


def _tables(at: Ints, code: Ints, count: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
    """The values of all ranges one after the other, their counts, and where each range begins."""
    order = np.argsort(code, kind="stable")
    at, code, count = at[order], code[order], count[order]
    first = np.searchsorted(high, at, side="right")  # the ranges that hold an entry are [first, last)
    last = np.searchsorted(low, at, side="right")
    fresh = first.copy()
    same = code[1:] == code[:-1]
    fresh[1:] = np.where(same, np.maximum(first[1:], last[:-1]), first[1:])  # those that the one before has not
    more = last - fresh
    until = np.cumsum(more)  # one place for each range and value in it
    total = int(until[-1]) if len(until) else 0
    change = np.zeros(total + 1, np.int64)
    np.add.at(change, until - (last - first), count)
    np.subtract.at(change, until, count)
    query = np.repeat(fresh - until + more, more) + np.arange(total)
    by_query = np.argsort(query.astype(np.uint16), kind="stable")
    edges = np.concatenate([[0], np.cumsum(np.bincount(query, minlength=len(low)))])
    return np.repeat(code, more)[by_query], np.cumsum(change[:-1])[by_query], edges


def _lists(edges: Ints, values: pl.Series) -> pl.Series:
    return pl.Series(pa.LargeListArray.from_arrays(pa.array(edges), values.to_arrow()))


def blocks(partials: pl.DataFrame, columns: Sequence[str], low: Ints, high: Ints) -> Iterator[tuple[int, int]]:
    """The ranges in runs [start, stop) that hold about VALUES values of some list columns together."""
    lengths = np.ones(partials.height, np.int64)
    for column in columns:
        if partials.schema[column] == pl.List:
            lengths += partials[column].list.len().fill_null(0).to_numpy()
    before = np.concatenate([[0], np.cumsum(lengths)])
    upto = np.cumsum(before[high] - before[low])
    start = 0
    while start < len(low):
        done = int(upto[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(upto, done + VALUES, side="right")))
        stop = min(stop, start + WINDOWS)
        yield start, stop
        start = stop
