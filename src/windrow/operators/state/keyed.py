"""Joins on keys: NULL equals NULL, NaN equals NaN and -0.0 equals 0.0, however few rows there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

import polars as pl

SAME = "@same"
Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)


def matched(left: Frame, right: Frame, on: Sequence[str], how: Literal["inner", "left", "semi", "anti"]) -> Frame:
    """Each row of ``left``, in order, with the rows of ``right`` that have the same keys.

    No operator joins on keys without this. Polars compares a single key of a frame with one row by value, and NaN is
    no value that equals itself; several keys it compares as groups. So a single float gets company.

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
