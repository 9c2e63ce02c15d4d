"""Arithmetic of one row's values: integers of 64 bits, doubles, decimals, instants and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import polars as pl

from windrow.errors import QueryError, ResultError
from windrow.testing.oracle.expressions import kinds, texts
from windrow.testing.oracle.expressions.casts import cast
from windrow.testing.oracle.expressions.cells import Cell, computed, converted
from windrow.testing.oracle.expressions.kinds import BIGINT, DATE, DOUBLE, INTERVAL, TIMESTAMP, TIMESTAMP_NTZ

PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


def fitting(value: int, bits: int = 64) -> int:
    """An integer, if it has room."""
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise ResultError(f"{value} does not fit into {bits} bits")
    return value


def calculated(symbol: str, left: Cell, right: Cell, lenient: bool = False) -> Cell:
    """Two operands of ``+ - * / % DIV``; ``lenient``: of try_add and its like."""
    if any(kinds.instant(c.dtype) or kinds.interval(c.dtype) for c in (left, right)):
        return _in_time(symbol, left, right, lenient)
    dtype = kinds.together([left.dtype, right.dtype])
    if isinstance(dtype, pl.Decimal) and symbol in PLAIN:
        return _decimals(symbol, left, right, lenient)
    dtype = BIGINT if dtype.is_integer() or dtype == pl.Null else dtype
    a, b = converted(left, dtype), converted(right, dtype)
    if symbol == "/":
        return computed(DOUBLE, _divided, converted(a, DOUBLE), converted(b, DOUBLE), lenient=lenient)
    if symbol == "%":
        return computed(dtype, _remainder, a, b, lenient=lenient)
    if symbol == "DIV":
        return computed(BIGINT, _quotient, a, b)
    return computed(dtype, lambda x, y: _fitted(PLAIN[symbol](x, y), dtype), a, b, lenient=lenient)


def _fitted(value: Any, dtype: pl.DataType) -> Any:
    if dtype.is_integer():
        return fitting(value)
    return texts.single(value) if dtype == pl.Float32 else value


def _nonzero(divisor: Any) -> None:
    if divisor == 0:
        raise ResultError("a division by zero")


def _divided(a: float, b: float) -> float:
    _nonzero(b)
    return a / b


def _remainder(a: Any, b: Any) -> Any:
    """With the sign of the left side."""
    _nonzero(b)
    if isinstance(a, float):
        return math.nan if math.isinf(a) or math.isnan(a) or math.isnan(b) else math.fmod(a, b)
    return (abs(a) % abs(b)) * (-1 if a < 0 else 1)


def _quotient(a: int, b: int) -> int:
    """Cut off towards zero."""
    _nonzero(b)
    return fitting(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))


# -- decimals --------------------------------------------------------------------------------------------------------
def _scale(cell: Cell) -> int:
    return cell.dtype.scale if isinstance(cell.dtype, pl.Decimal) else 0


def _decimals(symbol: str, left: Cell, right: Cell, lenient: bool) -> Cell:
    scales = _scale(left), _scale(right)
    dtype = pl.Decimal(kinds.DIGITS, min(kinds.DIGITS, sum(scales) if symbol == "*" else max(scales)))
    a, b = (converted(c, pl.Decimal(kinds.DIGITS, s)) for c, s in zip((left, right), scales, strict=True))

    def compute(x: Decimal, y: Decimal) -> Any:
        with localcontext(prec=100):
            exact = PLAIN[symbol](x, y)
        return cast(exact, pl.Decimal(kinds.DIGITS, 0), dtype)

    return computed(dtype, compute, a, b, lenient=lenient)


# -- one number ------------------------------------------------------------------------------------------------------
def numeric(cell: Cell) -> Cell:
    """A number as functions take it: integers of 64 bits; a text is a double."""
    if kinds.text(cell.dtype) or cell.dtype == pl.Null:
        return converted(cell, DOUBLE)
    if cell.dtype.is_integer():
        return converted(cell, BIGINT)
    if not kinds.number(cell.dtype):
        raise QueryError(f"{cell.dtype} is not a number")
    return cell


def negative(cell: Cell) -> Cell:
    if kinds.interval(cell.dtype):
        return computed(cell.dtype, lambda v: fitting(-v), cell, days=cell.days)
    return _of_number(cell, lambda v: -v)


def absolute(cell: Cell) -> Cell:
    if kinds.interval(cell.dtype):
        return computed(cell.dtype, lambda v: fitting(abs(v)), cell, days=cell.days)
    return _of_number(cell, abs)


def _of_number(cell: Cell, compute: Callable[[Any], Any]) -> Cell:
    given = numeric(cell)
    dtype = pl.Decimal(kinds.DIGITS, given.dtype.scale) if isinstance(given.dtype, pl.Decimal) else given.dtype

    def of(value: Any) -> Any:
        with localcontext(prec=100):
            return _fitted(compute(value), dtype)

    return computed(dtype, of, converted(given, dtype))


def whole(cell: Cell, up: bool) -> Cell:
    """floor and ceil: integers; NaN gives 0, as in Spark."""
    given = numeric(cell)
    if given.dtype.is_integer():
        return given
    if isinstance(given.dtype, pl.Decimal):
        dtype = pl.Decimal(kinds.DIGITS, given.dtype.scale)
        how = ROUND_CEILING if up else ROUND_FLOOR
        return computed(dtype, lambda v: v.to_integral_value(how), converted(given, dtype))

    def of(value: float) -> int:
        if math.isnan(value):
            return 0
        if math.isinf(value):
            raise ResultError(f"{value} is no integer")
        return fitting(math.ceil(value) if up else math.floor(value))

    return computed(BIGINT, of, given)


def rounded(cell: Cell, places: int) -> Cell:
    """A half goes away from zero, by the digits that a number is written with."""
    given = cell if kinds.number(cell.dtype) else numeric(cell)
    dtype = given.dtype
    if dtype.is_integer():
        if places >= 0:
            return given
        return computed(dtype, lambda v: cast(_half_up(Decimal(v), places), pl.Decimal(kinds.DIGITS, 0), dtype), given)
    if isinstance(dtype, pl.Decimal):
        target = pl.Decimal(kinds.DIGITS, dtype.scale)
        return computed(target, lambda v: _half_up(v, max(places, 0)), converted(given, target))

    def of(value: float) -> float:
        if not math.isfinite(value):
            return value
        return float(_half_up(Decimal(texts.shortest(value, dtype)), places)) + 0.0

    return computed(dtype, lambda v: _fitted(of(v), dtype), given)


def _half_up(value: Decimal, places: int) -> Decimal:
    unit = Decimal(1).scaleb(-places)
    with localcontext(prec=1000):
        return (value / unit).to_integral_value(ROUND_HALF_UP) * unit


def square_root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def logarithm(value: float) -> float | None:
    """NULL from zero down."""
    return None if value <= 0 else math.log(value)


def power(base: float, exponent: float) -> float:
    """As Java does it."""
    if exponent == 0:
        return 1.0
    if math.isnan(base) or math.isnan(exponent) or (abs(base) == 1 and math.isinf(exponent)):
        return math.nan
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    except ValueError:  # a zero to a negative power, or a root of a negative number
        odd = math.copysign(1, base) < 0 and exponent % 2 == 1
        return (-math.inf if odd else math.inf) if base == 0 else math.nan


# -- instants and intervals ------------------------------------------------------------------------------------------
def _in_time(symbol: str, left: Cell, right: Cell, lenient: bool) -> Cell:
    a, b = left, right
    if symbol == "+" and kinds.instant(b.dtype):
        a, b = b, a
    if kinds.instant(a.dtype) and symbol in "+-":
        return _distance(a, b, lenient) if kinds.instant(b.dtype) else _moved(symbol, a, b, lenient)
    numbers = [converted(c, BIGINT) if c.dtype.is_integer() else c for c in (a, b)]
    days = all(c.days or c.dtype.is_integer() for c in (a, b))
    fits = symbol == "*" and any(c.dtype.is_integer() for c in (a, b))
    if not fits and not (symbol in "+-" and kinds.interval(a.dtype) and kinds.interval(b.dtype)):
        raise QueryError(f"there is no {a.dtype} {symbol} {b.dtype}")
    return computed(INTERVAL, lambda x, y: fitting(PLAIN[symbol](x, y)), *numbers, days=days, lenient=lenient)


def _moved(symbol: str, at: Cell, by: Cell, lenient: bool) -> Cell:
    if at.dtype == pl.Date and (by.days or by.dtype.is_integer()):
        unit = 1 if by.dtype.is_integer() else texts.DAY
        return computed(DATE, lambda d, n: fitting(PLAIN[symbol](d, n // unit), 32), at, by, lenient=lenient)
    zoned = not isinstance(at.dtype, pl.Datetime) or at.dtype.time_zone is not None
    target = TIMESTAMP if zoned else TIMESTAMP_NTZ
    return computed(target, lambda t, n: fitting(PLAIN[symbol](t, n)), converted(at, target), by, lenient=lenient)


def _distance(left: Cell, right: Cell, lenient: bool) -> Cell:
    days = left.dtype == right.dtype == pl.Date
    a, b = (converted(c, TIMESTAMP_NTZ) for c in (left, right))
    return computed(INTERVAL, lambda x, y: fitting(x - y), a, b, days=days, lenient=lenient)
