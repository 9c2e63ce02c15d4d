"""Keys: joins on them and numbers for them. NULL equals NULL, NaN equals NaN and -0.0 equals 0.0, always."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

import numpy as np
import polars as pl

from windrow.spec.batches import Batch

SAME = "@same"
Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)


def matched(left: Frame, right: Frame, on: Sequence[str], how: Literal["inner", "left", "semi", "anti"]) -> Frame:
    """Each row of ``left``, in order, with the rows of ``right`` that have the same keys.

    No operator joins on keys without this. Polars compares a single key of a frame with one row by value, and NaN is
    no value that equals itself; several keys it compares as groups. So a constant joins a single float key.

    >>> nan = pl.DataFrame({"k": [float("nan")]})
    >>> nan.join(nan.with_columns(n=1), on="k", how="left")["n"].to_list()
    [None]
    >>> matched(nan, nan.with_columns(n=1), ["k"], "left")["n"].to_list()
    [1]
    """
    if len(on) > 1 or not left.collect_schema()[on[0]].is_float():
        return left.join(right, on=list(on), how=how, nulls_equal=True, maintain_order="left")
    same = pl.lit(0, pl.Int8).alias(SAME)
    both = left.with_columns(same).join(
        right.with_columns(same), on=[*on, SAME], how=how, nulls_equal=True, maintain_order="left"
    )
    return both.drop(SAME)


def banded(left: pl.DataFrame, right: pl.DataFrame, time: str, other: str, low: int, high: int) -> pl.DataFrame:
    """Pairs of a left and a right row with ``low <= other - time <= high``, whatever else they are.

    >>> banded(pl.DataFrame({"t": [1, 9]}), pl.DataFrame({"u": [3, 4]}), "t", "u", 0, 2).rows()
    [(1, 3)]
    """
    lowest, highest = pl.col(time) + low, pl.col(time) + high
    bounds = left.with_columns(lowest.alias("@lowest"), highest.alias("@highest"))
    found = bounds.join_where(right, pl.col(other) >= pl.col("@lowest"), pl.col(other) <= pl.col("@highest"))
    return found.drop("@lowest", "@highest")


def numbered(frame: Batch, keys: Sequence[str], name: str = "@group") -> Batch:
    """A number per distinct value of some columns, NULL among them, in the order in which they first appear.

    >>> numbered(pl.DataFrame({"k": ["b", None, "b"]}), ["k"])["@group"].to_list()
    [0, 1, 0]
    """
    if not keys:
        return frame.with_columns(pl.lit(0, pl.UInt32).alias(name))
    # Not by a join: Polars finds no partner for NaN in a frame of one row.
    rows = frame.select(keys).with_row_index("@row")
    alike = rows.select(pl.col("@row").min().over(*keys)).to_series().to_numpy()  # the first row with the same values
    number = np.cumsum(alike == np.arange(len(alike))) - 1
    return frame.with_columns(pl.Series(name, number[alike], dtype=pl.UInt32))
