"""Dicts, and Arrow, pandas or Polars tables, as frames with the types that queries work on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import polars as pl

from windrow.errors import DataError

ACCEPTED = "rows (dicts), or an Arrow, pandas or Polars table, or a Spark DataFrame"


def to_frame(data: Any, progress: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A frame, and the rows that did not fit because their progress value is of another type than the rest."""
    found = table(data)
    if found is not None:
        return found, pl.DataFrame()
    with _readable(data):
        return _from_rows(dicts(data), progress)


@contextmanager
def _readable(data: Any) -> Iterator[None]:
    """Turns the errors of libraries about data that they cannot read into a DataError."""
    try:
        yield
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"the {type(data).__name__} cannot be read as a table: {error}") from None


def table(data: Any) -> pl.DataFrame | None:
    """A table of any library as a frame; None if the data is not a table."""
    with _readable(data):
        return _table(data)


def _table(data: Any) -> pl.DataFrame | None:
    if isinstance(data, pl.DataFrame):
        return normal(data)
    if isinstance(data, pl.LazyFrame):
        return normal(data.collect())
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return normal(pl.DataFrame(data))
    if type(data).__module__.startswith("pandas.") and hasattr(data, "columns"):
        return normal(pl.from_pandas(data))
    return None


def dicts(data: Any) -> list[Mapping[str, Any]]:
    """The rows of an iterable of dicts."""
    if not isinstance(data, Iterable) or isinstance(data, (str, bytes, Mapping)):
        raise DataError(f"cannot read a {type(data).__name__} as a stream; supported: {ACCEPTED}")
    rows = list(data)
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError(f"rows must be dicts, and row {number}, counted from 0, is a {type(row).__name__}: {row!r}")
    return rows


def _from_rows(rows: list[Mapping[str, Any]], progress: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    kinds = [type(r.get(progress)) for r in rows if r.get(progress) is not None]
    main = max(kinds, key=kinds.count, default=type(None))
    good = [r for r in rows if r.get(progress) is None or type(r.get(progress)) is main]
    bad = [
        {**r, progress: str(r[progress])} for r in rows if r.get(progress) is not None and type(r[progress]) is not main
    ]
    frame = pl.DataFrame(good, infer_schema_length=None)
    _check_structs(frame, good)
    return normal(frame), pl.DataFrame(bad, infer_schema_length=None)


def _check_structs(frame: pl.DataFrame, rows: list[Mapping[str, Any]]) -> None:
    """Refuse numbers among dicts: Polars would read them as NULL."""
    for column, dtype in frame.schema.items():
        for row in frame[column].is_null().arg_true() if isinstance(dtype, pl.Struct) else ():
            if (value := rows[row].get(column)) is not None:
                kind = type(value).__name__
                raise DataError(f"column {column!r} has dicts, and in another row a value of type {kind}: {value!r}")


def normal(frame: pl.DataFrame) -> pl.DataFrame:
    """Timestamps in microseconds, zoned ones in UTC: the same instants."""
    casts = {c: normal_type(t) for c, t in frame.schema.items() if normal_type(t) != t}
    return frame.with_columns(_recast(c, t) for c, t in casts.items()) if casts else frame


def normal_type(dtype: pl.DataType) -> pl.DataType:
    """The type a column has inside a query."""
    if not isinstance(dtype, pl.Datetime):
        return dtype
    return pl.Datetime("us", "UTC" if dtype.time_zone else None)


def _recast(column: str, dtype: pl.DataType) -> pl.Expr:
    micros = pl.col(column).dt.cast_time_unit("us")
    return micros.dt.convert_time_zone("UTC") if isinstance(dtype, pl.Datetime) and dtype.time_zone else micros
