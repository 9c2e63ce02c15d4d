"""Rows as the oracle sees them: dicts of plain Python values.

An instant is its number of microseconds since 1970, a date its number of days, an interval its microseconds: Python's
own calendar ends in the year 9999. A category is its text. Everything else is what Polars makes of it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

Row = dict[str, Any]
Schema = Mapping[str, pl.DataType]


def plain(dtype: pl.DataType) -> pl.DataType:
    """The type that the oracle's values of a type have in Polars."""
    if isinstance(dtype, (pl.Datetime, pl.Duration)):
        return pl.Int64()
    if dtype == pl.Date:
        return pl.Int32()
    if isinstance(dtype, (pl.Categorical, pl.Enum)):
        return pl.String()
    if isinstance(dtype, pl.List):
        return pl.List(plain(_instance(dtype.inner)))
    if isinstance(dtype, pl.Struct):
        return pl.Struct({f.name: plain(_instance(f.dtype)) for f in dtype.fields})
    return dtype


def _instance(dtype: Any) -> pl.DataType:
    return dtype if isinstance(dtype, pl.DataType) else dtype()


def values_of(series: pl.Series) -> list[Any]:
    """A column as the oracle's values.

    >>> values_of(pl.Series([1_500]).cast(pl.Datetime("ns"))), values_of(pl.Series([3]).cast(pl.Date))
    ([1], [3])
    """
    if isinstance(series.dtype, (pl.Datetime, pl.Duration)):
        series = series.dt.cast_time_unit("us")
    return series.cast(plain(series.dtype)).to_list()


def column(name: str, values: Iterable[Any], dtype: pl.DataType) -> pl.Series:
    """The oracle's values as a column; raises where one does not fit."""
    return pl.Series(name, list(values), dtype=plain(dtype)).cast(dtype)


def rows_of_frame(frame: pl.DataFrame) -> list[Row]:
    """The rows of a frame."""
    columns = [values_of(frame[name]) for name in frame.columns]
    if not columns:
        return [{} for _ in range(frame.height)]
    return [dict(zip(frame.columns, row, strict=True)) for row in zip(*columns, strict=True)]


def frame_of(rows: Sequence[Row], schema: Schema) -> pl.DataFrame:
    """Rows as a frame of these columns."""
    return pl.DataFrame([column(name, (row[name] for row in rows), dtype) for name, dtype in schema.items()])


def in_python(values: Iterable[Any], dtype: pl.DataType) -> list[Any]:
    """The oracle's values as a user's function gets them: dates, timestamps."""
    return column("", values, dtype).to_list()


def order(value: Any) -> tuple[bool, Any]:
    """A key to compare values of one type with: NaN is equal to itself and greater than every number.

    >>> sorted([float("nan"), 2.0, -1.0], key=order)
    [-1.0, 2.0, nan]
    """
    return (True, 0) if isinstance(value, float) and math.isnan(value) else (False, value)


def key(value: Any) -> Hashable:
    """Equal for values that are in one group: NULL is with NULL, NaN with NaN, 0.0 with -0.0."""
    if isinstance(value, list):
        return tuple(key(v) for v in value)
    if isinstance(value, dict):
        return tuple((n, key(v)) for n, v in value.items())
    if value is None or isinstance(value, bool):
        return (type(value), value)
    return order(value)
