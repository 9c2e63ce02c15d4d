"""The types of expressions, and what values of different types become beside each other, as in Spark (ANSI)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from sqlglot import exp

from windrow.errors import QueryError

BOOLEAN, STRING, DATE, VOID = pl.Boolean(), pl.String(), pl.Date(), pl.Null()
TINYINT, SMALLINT, INT, BIGINT = pl.Int8(), pl.Int16(), pl.Int32(), pl.Int64()
FLOAT, DOUBLE = pl.Float32(), pl.Float64()
TIMESTAMP, TIMESTAMP_NTZ, INTERVAL = pl.Datetime("us", "UTC"), pl.Datetime("us"), pl.Duration("us")
DIGITS = 38  # of a decimal
WIDTHS: dict[pl.DataType, pl.DataType] = {  # SQL has no integers without a sign
    pl.UInt8(): SMALLINT,
    pl.UInt16(): INT,
    pl.UInt32(): BIGINT,
    pl.UInt64(): BIGINT,
}
WRITTEN: dict[exp.DType, pl.DataType] = {
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.TINYINT: TINYINT,
    exp.DType.SMALLINT: SMALLINT,
    exp.DType.INT: INT,
    exp.DType.BIGINT: BIGINT,
    exp.DType.FLOAT: FLOAT,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.TEXT: STRING,
    exp.DType.VARCHAR: STRING,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMP: TIMESTAMP_NTZ,  # what the parser calls TIMESTAMP_NTZ; a TIMESTAMP has a zone in Spark
    exp.DType.TIMESTAMPNTZ: TIMESTAMP_NTZ,
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
}


def text(dtype: pl.DataType) -> bool:
    return dtype == pl.String or isinstance(dtype, (pl.Categorical, pl.Enum))


def decimal(dtype: pl.DataType) -> bool:
    return isinstance(dtype, pl.Decimal)


def number(dtype: pl.DataType) -> bool:
    return dtype.is_integer() or dtype.is_float() or decimal(dtype)


def stamp(dtype: pl.DataType) -> bool:
    return isinstance(dtype, pl.Datetime)


def instant(dtype: pl.DataType) -> bool:
    return stamp(dtype) or dtype == pl.Date


def interval(dtype: pl.DataType) -> bool:
    return isinstance(dtype, pl.Duration)


def together(types: Sequence[pl.DataType], promote: bool = True) -> pl.DataType:
    """The type that values of these types have beside each other. A text becomes what it stands beside, if it may."""
    known = [t for t in types if t != pl.Null]
    if not known:
        return VOID
    if all(t == known[0] for t in known):
        return known[0]
    others = [t for t in known if not text(t)]
    if len(others) < len(known):
        return _beside_a_text(others, promote)
    if all(number(t) for t in known):
        return _numbers(known)
    if all(instant(t) for t in known):
        return TIMESTAMP if any(isinstance(t, pl.Datetime) and t.time_zone for t in known) else TIMESTAMP_NTZ
    raise QueryError(f"no common type of {', '.join(map(str, types))}")


def _beside_a_text(others: list[pl.DataType], promote: bool) -> pl.DataType:
    if not others:
        return STRING
    beside = together(others)
    if not promote or interval(beside):
        raise QueryError(f"no common type of a text and {beside}")
    if number(beside):
        return BIGINT if beside.is_integer() else DOUBLE
    return beside


def _numbers(types: list[pl.DataType]) -> pl.DataType:
    if all(t.is_integer() for t in types):
        widths = [WIDTHS.get(t, t) for t in types]
        return next(w for w in (BIGINT, INT, SMALLINT, TINYINT) if w in widths)
    if any(t.is_float() for t in types):
        return DOUBLE
    return pl.Decimal(DIGITS, max(t.scale for t in types if isinstance(t, pl.Decimal)))
