"""Rows that are too large to be passed from node to node: they are set aside, and the query goes on."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from windrow.operators.operator import Side
from windrow.spec.batches import Batch
from windrow.spec.names import REASON


def without_large(rows: Batch, most: int) -> tuple[Batch, list[Side]]:
    """The rows of at most so many bytes, and the others with the reason. Of these the values that are too much are left
    out: what reads the bad rows could not take them either.

    >>> rows, [side] = without_large(pl.DataFrame({"n": [1, 2], "img": [b"x", b"y" * 100]}), 60)
    >>> rows.rows(), side.rows.rows()
    ([(1, b'x')], [(2, None, 'the row has 108 bytes, and a ring takes rows of 60 bytes at the most: img is left out')])
    """
    found = list(_large(rows, most, 0))
    if not found:
        return rows, []
    good = pl.int_range(rows.height, eager=True).is_in(found)
    records = [_record(rows.slice(at, 1), most) for at in found]
    return rows.filter(~good), [Side("bad", len(found), pl.concat(records))]


def _large(rows: Batch, most: int, first: int) -> Iterator[int]:
    """Where they are: nobody looks into rows that are small enough together."""
    if not rows.height or rows.estimated_size() <= most:
        return
    if rows.height == 1:
        yield first
        return
    middle = rows.height // 2
    yield from _large(rows.slice(0, middle), most, first)
    yield from _large(rows.slice(middle), most, first + middle)


def _record(row: Batch, most: int) -> Batch:
    """The row as far as it fits, without the columns that are Windrow's own."""
    size = left = row.estimated_size()
    row, gone = row.select(pl.exclude("^@.*$")), list[str]()
    for column in sorted(row.get_columns(), key=lambda c: -c.estimated_size()):
        if left <= most:
            break
        left -= column.estimated_size()
        row = row.with_columns(pl.lit(None, column.dtype).alias(column.name))
        gone.append(column.name)
    reason = (
        f"the row has {size:,} bytes, and a ring takes rows of {most:,} bytes at the most: {' and '.join(gone)} "
        f"{'is' if len(gone) == 1 else 'are'} left out"
    )
    return row.with_columns(pl.lit(reason).alias(REASON))
