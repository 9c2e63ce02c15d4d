"""The types of expressions: their names, and what a mixture of them becomes (as in Spark, ANSI)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from sqlglot import exp

Schema = Mapping[str, pl.DataType]

BOOLEAN, TEXT, DATE, NOTHING = pl.Boolean(), pl.String(), pl.Date(), pl.Null()
INT, BIGINT, FLOAT, DOUBLE = pl.Int32(), pl.Int64(), pl.Float32(), pl.Float64()
TIMESTAMP, TIMESTAMP_NTZ, INTERVAL = pl.Datetime("us", "UTC"), pl.Datetime("us"), pl.Duration("us")

CAST_TYPES: dict[exp.DType, pl.DataType] = {
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.TINYINT: pl.Int8(),
    exp.DType.SMALLINT: pl.Int16(),
    exp.DType.INT: INT,
    exp.DType.BIGINT: BIGINT,
    exp.DType.FLOAT: FLOAT,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.TEXT: TEXT,
    exp.DType.VARCHAR: TEXT,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMP: TIMESTAMP_NTZ,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP_NTZ,
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
}
TYPE_NAMES: dict[pl.DataType, str] = {
    BOOLEAN: "boolean",
    pl.Int8(): "tinyint",
    pl.Int16(): "smallint",
    INT: "int",
    BIGINT: "bigint",
    FLOAT: "float",
    DOUBLE: "double",
    TEXT: "string",
    pl.Binary(): "binary",
    DATE: "date",
}
SIGNED: tuple[pl.DataType, ...] = (pl.Int8(), pl.Int16(), INT, BIGINT)
AS_SIGNED: dict[pl.DataType, pl.DataType] = {pl.UInt8(): pl.Int16(), pl.UInt16(): INT}


class Refused(Exception):  # noqa: N818  it is no error yet: see fail()
    """An expression without a meaning; the caller, which has the text of the query, underlines ``node`` in it."""

    def __init__(self, node: exp.Expr, message: str) -> None:
        super().__init__(message)
        self.node = node


@dataclass(frozen=True)
class Typed:
    """An expression with its type, and whether a row can make it raise."""

    expr: pl.Expr
    dtype: pl.DataType
    fallible: bool = False
    days: bool = False  # an interval of whole days: a date plus it is a date
    value: Any = None  # of a literal


def type_name(dtype: pl.DataType) -> str:
    """A type as Spark SQL calls it.

    >>> type_name(pl.Datetime("us", "UTC")), type_name(pl.Int64()), type_name(pl.List(pl.Int64()))
    ('timestamp', 'bigint', 'List(Int64)')
    """
    if isinstance(dtype, pl.Datetime):
        return "timestamp" if dtype.time_zone else "timestamp_ntz"
    if isinstance(dtype, pl.Duration):
        return "interval"
    return TYPE_NAMES.get(dtype, str(dtype))


def is_text(dtype: pl.DataType) -> bool:
    """Texts, however they are stored."""
    return dtype == pl.String or isinstance(dtype, (pl.Categorical, pl.Enum))


def is_number(dtype: pl.DataType) -> bool:
    """Integers, floats and decimals."""
    return dtype.is_numeric()


def is_instant(dtype: pl.DataType) -> bool:
    """Timestamps and dates."""
    return dtype == pl.Date or isinstance(dtype, pl.Datetime)


def common(types: Sequence[pl.DataType], promote: bool = True) -> pl.DataType | None:
    """The type that values of all these types have beside each other; None if there is none.

    A text beside something else becomes that, unless not to ``promote``.

    >>> common([pl.Int32(), pl.Float32()]), common([pl.String(), pl.Int32()]), common([pl.Boolean(), pl.Int8()])
    (Float64, Int64, None)
    """
    found: pl.DataType | None = NOTHING
    for dtype in types:
        found = None if found is None else _pair(found, dtype, promote)
    return found


def _pair(a: pl.DataType, b: pl.DataType, promote: bool) -> pl.DataType | None:
    if a == b or b == pl.Null:
        return a
    if a == pl.Null:
        return b
    if is_number(a) and is_number(b):
        return _number(a, b)
    if is_instant(a) and is_instant(b):
        zoned = any(isinstance(t, pl.Datetime) and t.time_zone for t in (a, b))
        return TIMESTAMP if zoned else TIMESTAMP_NTZ
    if isinstance(a, pl.Duration) and isinstance(b, pl.Duration):
        return INTERVAL
    if is_text(a) and is_text(b):
        return TEXT
    if is_text(b):
        a, b = b, a
    return _promoted(b) if is_text(a) and promote else None


def _number(a: pl.DataType, b: pl.DataType) -> pl.DataType:
    if a.is_integer() and b.is_integer():
        return max(signed(a), signed(b), key=SIGNED.index)
    if a.is_float() or b.is_float():
        return DOUBLE
    scales = [t.scale for t in (a, b) if isinstance(t, pl.Decimal)]
    return pl.Decimal(38, max(scales))


def signed(dtype: pl.DataType) -> pl.DataType:
    """An integer type of SQL, which knows none without a sign."""
    return dtype if dtype in SIGNED else AS_SIGNED.get(dtype, BIGINT)


def _promoted(dtype: pl.DataType) -> pl.DataType | None:
    """What a text becomes beside a value of this type."""
    if is_number(dtype):
        return BIGINT if dtype.is_integer() else DOUBLE
    return dtype if dtype == pl.Boolean or is_instant(dtype) else None
