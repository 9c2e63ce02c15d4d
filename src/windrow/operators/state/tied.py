"""An order among rows with equal times that does not depend on how they arrived: that of their columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windrow.spec.batches import Batch

GROUP, AT = "@tied", "@at"


def tied_order(rows: Batch, by: Sequence[str], ties: Sequence[str]) -> NDArray[np.int64] | None:
    """Of rows that are sorted ``by`` some numbers, the order in which equal ones are sorted by ``ties``.

    None if no rows are equal. NULL comes first and NaN last, as Spark sorts.

    >>> rows = pl.DataFrame({"t": [1, 2, 2], "x": ["c", "b", "a"]})
    >>> tied_order(rows, ["t"], ["x"]).tolist(), tied_order(rows[:2], ["t"], ["x"])
    ([0, 2, 1], None)
    """
    same = np.ones(max(rows.height - 1, 0), np.bool_)
    for column in by:
        values = rows[column].to_numpy()
        same &= values[1:] == values[:-1]
    if not same.any() or not ties:
        return None
    tied = np.zeros(rows.height, np.bool_)
    tied[1:] |= same
    tied[:-1] |= same
    at = np.flatnonzero(tied)
    groups = np.concatenate([[0], np.cumsum(~same)])
    few = rows.select(ties)[at].with_columns(pl.Series(GROUP, groups[at]), pl.Series(AT, at))
    found = np.arange(rows.height)
    found[at] = few.sort(GROUP, *ties, maintain_order=True)[AT].to_numpy()
    return found


def last_of_two(first: Batch, second: Batch, ties: Sequence[str]) -> NDArray[np.bool_]:
    """For each place of two frames of the same length, whether the row of the second comes after that of the first.

    >>> last_of_two(pl.DataFrame({"x": [1, 2]}), pl.DataFrame({"x": [2, 1]}), ["x"]).tolist()
    [True, False]
    """
    number = pl.int_range(first.height, dtype=pl.Int64).alias(GROUP)
    both = [f.select(ties).with_columns(number, pl.lit(which).alias(AT)) for which, f in enumerate((first, second))]
    last = pl.concat(both).sort(GROUP, *ties, maintain_order=True).unique(GROUP, keep="last", maintain_order=True)
    return np.asarray(last[AT].to_numpy() == 1)
