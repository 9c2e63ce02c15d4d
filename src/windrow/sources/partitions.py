"""Columns in the names of folders, as Hive and Spark write them: ``.../day=2024-01-01/part.parquet``.

Types are found as Spark finds them, so that both see the same columns in the same folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation

import polars as pl

from windrow.spec.time import iso_timestamp

NULL = "__HIVE_DEFAULT_PARTITION__"
WHOLE = re.compile(r"[+-]?[0-9]+")
DOUBLE = re.compile(r"\s*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?|NaN|Infinity)\s*")
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?")
INSTANT = pl.Datetime("us", "UTC")
DIGITS: dict[pl.DataType, int] = {pl.Int32(): 10, pl.Int64(): 20}  # of integers among decimals, as Spark counts them
MOST_DIGITS = 38


def values(path: str, root: str) -> dict[str, str]:
    """The columns that the folders between a root and a file name, each with its value as it is written there.

    >>> values("/in/day=2024-01-01/host%20name=a%2Fb/1.parquet", "/in")
    {'day': '2024-01-01', 'host name': 'a%2Fb'}
    """
    found = {}
    for folder in path[len(root) :].strip("/").split("/")[:-1]:
        name, equals, value = folder.partition("=")
        if name and equals:
            found[unescaped(name)] = value
    return found


def unescaped(text: str) -> str:
    """``%2F`` and the like as the characters they stand for; what is no escape stays as it is.

    >>> unescaped("a%2Fb %ZZ")
    'a/b %ZZ'
    """
    return re.sub(r"%([0-9A-Fa-f]{2})", lambda m: chr(int(m[1], 16)), text)


def types(found: Iterable[Mapping[str, str]]) -> dict[str, pl.DataType]:
    """The type of each column that has a value somewhere.

    >>> types([{"n": "1", "day": "2024-01-01"}, {"n": "3000000000", "day": "__HIVE_DEFAULT_PARTITION__"}])
    {'n': Int64, 'day': Date}
    """
    by_name: dict[str, set[str]] = {}
    for each in found:
        for name, value in each.items():
            by_name.setdefault(name, set()).add(value)
    return {name: _common([t for v in sorted(given) if (t := _of(v)) is not None]) for name, given in by_name.items()}


def _of(raw: str) -> pl.DataType | None:
    """The type of one value; None if it is NULL."""
    if raw == NULL:
        return None
    if DOUBLE.fullmatch(raw):
        return _integer(raw) or _decimal(raw) or pl.Float64()
    text = unescaped(raw)
    if TIMESTAMP.fullmatch(text) and _read(text, INSTANT)[0] is not None:
        return INSTANT
    return pl.Date() if DATE.fullmatch(raw) and _read(raw, pl.Date())[0] is not None else pl.String()


def _integer(raw: str) -> pl.DataType | None:
    if not WHOLE.fullmatch(raw):
        return None
    return next((t for t, bits in ((pl.Int32(), 31), (pl.Int64(), 63)) if -(2**bits) <= int(raw) < 2**bits), None)


def _decimal(raw: str) -> pl.Decimal | None:
    """The type of a whole number that is none of the integers: too large, or with an exponent."""
    if raw != raw.strip():
        return None
    try:
        _, digits, exponent = Decimal(raw).as_tuple()
    except InvalidOperation:
        return None
    count = len(digits) + exponent if isinstance(exponent, int) and exponent >= 0 else MOST_DIGITS + 1
    return pl.Decimal(count, 0) if count <= MOST_DIGITS else None


def _common(found: list[pl.DataType]) -> pl.DataType:
    kinds = set(found)
    decimals = [t.precision or MOST_DIGITS for t in kinds if isinstance(t, pl.Decimal)]
    if len(kinds) == 1:
        return found[0]
    if decimals and all(isinstance(t, pl.Decimal) or t in DIGITS for t in kinds):
        return pl.Decimal(max(*decimals, *(DIGITS.get(t, 0) for t in kinds)), 0)
    for pair, wider in (
        ({pl.Int32(), pl.Int64()}, pl.Int64()),
        ({pl.Int32(), pl.Float64()}, pl.Float64()),
        ({pl.Date(), INSTANT}, INSTANT),
    ):
        if kinds == pair:
            return wider
    return pl.String()


def literal(raw: str, dtype: pl.DataType) -> pl.Series:
    """A value as one of this type; raises ValueError if it is none."""
    if raw == NULL:
        return pl.Series([None], dtype=dtype)
    found = _read(unescaped(raw), dtype)
    if raw == "" or found[0] is None:
        raise ValueError(f"{unescaped(raw)!r} is not a value of type {dtype}")
    return found


def _read(text: str, dtype: pl.DataType) -> pl.Series:
    """A text as a value, NULL if it is none."""
    column = pl.Series([text])
    if isinstance(dtype, pl.Datetime):
        instant = pl.select(iso_timestamp(pl.lit(text))).to_series()
        return instant if dtype.time_zone else instant.dt.replace_time_zone(None)
    if dtype == pl.Date:
        return column.str.to_date("%Y-%m-%d", strict=False)
    if dtype == pl.Boolean:
        return pl.Series([{"true": True, "false": False}.get(text.lower())], dtype=pl.Boolean)
    if dtype.is_float():
        column = column.str.strip_chars().str.replace(r"[dDfF]$", "")
    elif dtype.is_integer() or isinstance(dtype, pl.Decimal):
        column = column.str.strip_prefix("+")
    return column.cast(dtype, strict=False)
