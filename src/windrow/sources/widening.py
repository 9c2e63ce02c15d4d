"""Which types can be cast to the type of a column without losing anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from polars._typing import PolarsDataType

SIGNED: dict[type[pl.DataType], int] = {pl.Int8: 8, pl.Int16: 16, pl.Int32: 32, pl.Int64: 64, pl.Int128: 128}
UNSIGNED: dict[type[pl.DataType], int] = {pl.UInt8: 8, pl.UInt16: 16, pl.UInt32: 32, pl.UInt64: 64, pl.UInt128: 128}
EXACT: dict[type[pl.DataType], int] = {pl.Float32: 24, pl.Float64: 53}  # bits up to which floats hold every integer


def widens(found: pl.DataType, wanted: pl.DataType) -> bool:
    """Whether every value of type ``found`` is one of type ``wanted``, so that a cast changes none.

    >>> widens(pl.Int32(), pl.Int64()), widens(pl.Int64(), pl.Int32()), widens(pl.UInt32(), pl.Int64())
    (True, False, True)
    >>> widens(pl.Int32(), pl.Float64()), widens(pl.Int64(), pl.Float64()), widens(pl.Float32(), pl.Float64())
    (True, False, True)
    >>> widens(pl.List(pl.Int8()), pl.List(pl.Int16())), widens(pl.Decimal(6, 2), pl.Decimal(7, 3))
    (True, True)
    """
    if found == wanted or found == pl.Null:
        return True
    if found.is_integer():
        return _holds_integers(found, wanted)
    match found, wanted:
        case pl.Float32(), pl.Float64():
            return True
        case pl.Date(), pl.Datetime(time_zone=None):
            return True
        case pl.Categorical() | pl.Enum(), pl.String():
            return True
        case pl.Decimal(), pl.Decimal():
            return _digits(found) <= _digits(wanted) and found.scale <= wanted.scale
        case pl.List(), pl.List():
            return widens(_inner(found), _inner(wanted))
        case pl.Struct(), pl.Struct():
            pairs = list(zip(found.fields, wanted.fields, strict=False))
            same = len(found.fields) == len(wanted.fields) and all(a.name == b.name for a, b in pairs)
            return same and all(widens(_type(a.dtype), _type(b.dtype)) for a, b in pairs)
    return False


def _holds_integers(found: pl.DataType, wanted: pl.DataType) -> bool:
    bits = SIGNED.get(type(found), UNSIGNED.get(type(found), 128))
    unsigned = type(found) in UNSIGNED
    if unsigned and type(wanted) in UNSIGNED:
        return bits <= UNSIGNED[type(wanted)]
    if isinstance(wanted, pl.Decimal):
        return len(str(2 ** (bits if unsigned else bits - 1))) <= _digits(wanted)
    room = {**SIGNED, **EXACT}.get(type(wanted), 0)
    return bits + unsigned <= room if type(wanted) in SIGNED else bits <= room


def _digits(decimal: pl.Decimal) -> int:
    """Digits before the point."""
    return (decimal.precision or 38) - decimal.scale


def _inner(nested: pl.List) -> pl.DataType:
    return _type(nested.inner)


def _type(given: PolarsDataType) -> pl.DataType:
    return given if isinstance(given, pl.DataType) else given()
