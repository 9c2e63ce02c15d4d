"""CAST of one value from one type to another, as in Spark (ANSI): a ResultError where there is none."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import polars as pl

from windrow.errors import ResultError
from windrow.testing.oracle.expressions import kinds, texts
from windrow.testing.oracle.values import plain

SECOND, DAY = texts.SECOND, texts.DAY
LEAST, MOST = -(2**63), 2**63 - 1


def cast(value: Any, source: pl.DataType, target: pl.DataType) -> Any:
    """A value of ``source`` as one of ``target``. NULL is NULL in every type."""
    if value is None or source == target:
        return value
    found = _cast(value, source, target)
    if found is None:
        raise ResultError(f"{value!r} of type {source} has no value of type {target}")
    return found


def _cast(value: Any, source: pl.DataType, target: pl.DataType) -> Any:
    if kinds.text(source):
        return _read(value, target)
    if kinds.text(target):
        return texts.write(value, source)
    if kinds.instant(source) and kinds.instant(target):
        return _instant(value, source, target)
    if kinds.stamp(source):
        return value / SECOND if target.is_float() else _number(value // SECOND, target)
    if target == pl.Boolean:
        return value != 0
    if kinds.stamp(target):
        return _seconds(value)
    return value if kinds.interval(target) else _number(value, target)


def _read(value: str, target: pl.DataType) -> Any:
    if kinds.text(target):
        return value
    found = texts.read(value, target)
    if found is None or not (target.is_integer() or kinds.instant(target)):
        return found
    return _number(found, plain(target))


def _instant(value: int, source: pl.DataType, target: pl.DataType) -> int | None:
    if kinds.stamp(source) and kinds.stamp(target):
        return value
    micros = value * DAY
    return (micros if LEAST <= micros <= MOST else None) if kinds.stamp(target) else value // DAY


def _seconds(value: Any) -> int | None:
    """The instant so many seconds after 1970. From integers time ends where 64 bits do; a double must fit."""
    if isinstance(value, int):
        return value * SECOND if abs(value) <= MOST // SECOND else LEAST if value < 0 else MOST
    return _within(value * SECOND, LEAST, MOST)


def _within(value: float, least: int, most: int) -> int | None:
    """Cut off towards zero. The double beside the greatest integer counts as that."""
    if not math.isfinite(value):
        return None
    if value == float(most) and most == MOST:
        return most
    return int(value) if least <= int(value) <= most else None


def _number(value: Any, target: pl.DataType) -> Any:
    if target == pl.Float64:
        return float(value)
    if target == pl.Float32:
        return texts.single(float(value) if isinstance(value, Decimal) else value)
    if isinstance(target, pl.Decimal):
        return _decimal(value, target)
    bits = int(str(target).lstrip("UInt"))
    low, high = (0, 2**bits - 1) if target.is_unsigned_integer() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if isinstance(value, float):
        return _within(value, low, high)
    return int(value) if low <= int(value) <= high else None


def _decimal(value: Any, target: pl.Decimal) -> Decimal | None:
    with localcontext(prec=400):
        found = Decimal(value).quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP)
        return found if abs(found) < Decimal(10) ** (target.precision - target.scale) else None
