"""Some rows of some columns. With a few rows an expression takes longer than all else, and mostly none is needed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from windrow.spec.batches import Batch
from windrow.windows.tuples import Ints


def picked(frame: Batch, names: Iterable[str], at: Ints) -> list[pl.Series]:
    """The columns at some places: a view where these follow each other, as the partners of one row do.

    >>> frame = pl.DataFrame({"x": [5, 6, 7]})
    >>> [picked(frame, ["x"], np.array(at))[0].to_list() for at in ([1, 2], [1, 1], [2, 0], [])]
    [[6, 7], [6, 6], [7, 5], []]
    """
    columns = [frame.get_column(name) for name in names]
    count = len(at)
    if not count or not columns:
        return [column.clear() for column in columns]
    first, last = int(at[0]), int(at[-1])
    if last - first == count - 1 and (count < 3 or bool((np.diff(at) == 1).all())):
        return [column.slice(first, count) for column in columns]
    if first == last and bool((at == first).all()):
        return [column.new_from_index(first, count) for column in columns]
    # In one piece, and that only of what is needed: rows of several pieces take ten times as long to find.
    low, high = int(at.min()), int(at.max())
    return pl.DataFrame([column.slice(low, high - low + 1).rechunk() for column in columns])[at - low].get_columns()


def renamed(columns: Iterable[pl.Series], names: dict[str, str]) -> list[pl.Series]:
    """Columns, some of them with other names."""
    return [column.alias(names[column.name]) if column.name in names else column for column in columns]
