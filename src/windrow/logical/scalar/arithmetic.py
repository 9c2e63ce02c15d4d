"""Arithmetic as Spark (ANSI) has it: integers of 64 bits that never wrap, division, instants and intervals."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from windrow.logical.scalar.casts import cast
from windrow.logical.scalar.strict import Formula, applied, even, says
from windrow.logical.scalar.types import BIGINT, DATE, DOUBLE, INTERVAL, TIMESTAMP, TIMESTAMP_NTZ, Typed

LEAST, MOST = -(2**63), 2**63 - 1
X, Y = pl.col("0"), pl.col("1")
TIES = 2.0**-48  # how near to a half a scaled double must be to ask for its decimal digits
EXACT = 2.0**52
HIGHEST_EXACT_POWER = 22  # of ten, in a double
MOST_PLACES = 300
MICROS_OF_DAY = 86_400_000_000


def _absolute(value: Any) -> Any:
    return value.abs() if isinstance(value, pl.Series) else abs(value)


OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "abs": _absolute,
}
LENIENT = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}


def overflow(text: str, symbol: str) -> str:
    """The error for a result that does not fit."""
    instead = f"{LENIENT[symbol]} gives NULL there; " if symbol in LENIENT else ""
    return says(f"{text} does not fit into 64 bits", f"{instead}CAST to DOUBLE goes further")


def by_zero(text: str, symbol: str) -> str:
    """The error for a divisor of zero."""
    lenient = f"{LENIENT[symbol]}, or " if symbol in LENIENT else ""
    return says(f"{text} divides by zero", f"{lenient}nullif(divisor, 0), gives NULL there")


def integers(symbol: str, *given: pl.Series) -> pl.Series:
    """An operation on integers; NULL where the result does not fit into 64 bits.

    The extremes of a batch nearly always show that nothing can overflow, and are cheap to find.

    >>> integers("+", pl.Series([1, 2**63 - 1]), pl.Series([1])).to_list()
    [2, None]
    """
    compute = OPERATORS[symbol]
    bounds = [(s.min(), s.max()) for s in given]
    if any(low is None for low, _ in bounds):
        return compute(*given)  # type: ignore[no-any-return]
    corners = [compute(*corner) for corner in product(*bounds)]
    if min(corners) >= LEAST and max(corners) <= MOST:
        return compute(*given)  # type: ignore[no-any-return]
    wide: pl.Series = compute(*(s.cast(pl.Int128) for s in given))
    return wide.cast(BIGINT, strict=False)


def calculated(symbol: str, operands: list[Typed], text: str, lenient: bool = False) -> Typed:
    """``+ - *`` and the absolute value of numbers, all of one type."""
    dtype = operands[0].dtype
    fallible = any(o.fallible for o in operands)
    if dtype.is_float():
        return Typed(OPERATORS[symbol](*(o.expr for o in operands)), dtype, fallible)
    fails = None if lenient else overflow(text, symbol)
    if isinstance(dtype, pl.Decimal):
        return _decimals(symbol, operands, fails)
    return applied(partial(integers, symbol), operands, BIGINT, fails)


def _decimals(symbol: str, operands: list[Typed], fails: str | None) -> Typed:
    """Exact: a product has the digits of both behind the point."""
    scales = [o.dtype.scale for o in operands if isinstance(o.dtype, pl.Decimal)]
    dtype = pl.Decimal(38, min(38, sum(scales) if symbol == "*" else max(scales)))
    fails = None if fails is None else fails.replace("64 bits", "38 digits")
    return applied(partial(_decimal, symbol, dtype), operands, dtype, fails)


def _decimal(symbol: str, dtype: pl.Decimal, *given: pl.Series) -> pl.Series:
    compute = OPERATORS[symbol]
    try:
        return compute(*(s.cast(dtype) for s in even(given))).cast(dtype)  # type: ignore[no-any-return]
    except PolarsError:  # one of them does not fit, which one it does not say
        with localcontext(prec=2 * dtype.precision):
            rows = zip(*even(given), strict=True)
            found = [None if None in row else _digits(compute(*row), dtype) for row in rows]
        return pl.Series(found, dtype=dtype)


def _digits(value: Decimal, dtype: pl.Decimal) -> Decimal | None:
    return value if abs(value) < Decimal(10) ** (dtype.precision - dtype.scale) else None


# -- division --------------------------------------------------------------------------------------------------------
def _is_safe(divisor: Typed) -> bool:
    return divisor.value not in (None, 0, -1)


def divided(left: Typed, right: Typed, text: str, lenient: bool = False) -> Typed:
    """``/`` of doubles."""
    fails = None if lenient or right.value else by_zero(text, "/")
    return applied(_divided, [left, right], DOUBLE, fails)


def _divided(left: pl.Series, right: pl.Series) -> pl.Series:
    """The nearest double: where the divisor is one value Polars multiplies by its reciprocal, and is off by a bit."""
    return _by_numpy(np.divide, left, right)


def _by_numpy(compute: Callable[[Any, Any], Any], left: pl.Series, right: pl.Series) -> pl.Series:
    """A quotient or remainder; NULL where an operand is or the divisor is zero."""
    if not (left.null_count() or right.null_count() or (right.to_numpy() == 0).any()):
        with np.errstate(invalid="ignore", over="ignore"):
            return pl.Series(compute(left.to_numpy(), right.to_numpy()), dtype=left.dtype)
    left, right = even([left, right])
    known = left.is_not_null() & (right != 0).fill_null(False)
    return _by_numpy(compute, left.set(~known, 1), right.set(~known, 1)).set(~known, None)


def remainder(left: Typed, right: Typed, text: str, lenient: bool = False) -> Typed:
    """``%``, with the sign of its left side."""
    fails = None if lenient or right.value else by_zero(text, "%")
    return applied(_remainder, [left, right], left.dtype, fails)


def quotient(left: Typed, right: Typed, text: str) -> Typed:
    """``DIV``: cut off towards zero."""
    fails = says(f"{text} divides by zero or does not fit into 64 bits", "nullif(divisor, 0) gives NULL for zero")
    if _is_safe(right):
        return applied(Formula(_cut_off(X, pl.lit(right.value, BIGINT))), [left], BIGINT)
    known = pl.when((Y != 0) & ~((X == LEAST) & (Y == -1)))
    return applied(Formula(known.then(_cut_off(X, Y))), [left, right], BIGINT, fails)


def _cut_off(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    floored = left // right
    up = (left % right != 0) & ((left < 0) != (right < 0))
    return floored + up.cast(BIGINT)


def _remainder(left: pl.Series, right: pl.Series) -> pl.Series:
    return _by_numpy(np.fmod, left, right)


# -- floor, ceil, round, ln ------------------------------------------------------------------------------------------
def whole(given: Typed, up: bool, text: str) -> Typed:
    """floor and ceil of a double. NaN gives 0, as in Spark."""
    value = X.ceil() if up else X.floor()
    found = Formula(value.fill_nan(0.0).cast(BIGINT, strict=False))
    fails = says(f"{text} does not fit into 64 bits", "WHERE or CASE can leave such rows out")
    return applied(found, [given], BIGINT, fails)


def logarithm(given: Typed) -> Typed:
    """ln, with NULL from zero down."""
    return applied(Formula(pl.when(X <= 0).then(None).otherwise(X.log())), [given], DOUBLE)


def power(base: Typed, exponent: Typed) -> Typed:
    """As Java has it: one and minus one to a power that is no number, or infinite, are NaN."""
    unknown = (X.abs() == 1) & (Y.is_nan() | Y.is_infinite())
    return applied(Formula(pl.when(unknown).then(float("nan")).otherwise(X**Y)), [base, exponent], DOUBLE)


def rounded(given: Typed, places: int, text: str) -> Typed:
    """A number with so many decimal places, or of whole tens and so on; a half away from zero."""
    if given.dtype.is_float():
        return applied(partial(_rounded_float, places=places), [given], given.dtype)
    if isinstance(given.dtype, pl.Decimal):
        dtype = pl.Decimal(38, given.dtype.scale)
        value = given.expr.cast(dtype).round(max(places, 0), mode="half_away_from_zero")
        return Typed(value.cast(dtype), dtype, given.fallible)
    if places >= 0:
        return given
    if places < -19:
        return Typed(given.expr * 0, given.dtype, given.fallible)
    return applied(_integers_rounded(10**-places, given.dtype), [given], given.dtype, overflow(text, "round"))


def _integers_rounded(scale: int, dtype: pl.DataType) -> Formula:
    wide = X.cast(pl.Int128)
    unit = pl.lit(scale, pl.Int128)
    size = (wide.abs() + unit // 2) // unit * unit
    return Formula(pl.when(wide < 0).then(size * -1).otherwise(size).cast(dtype, strict=False))


def _rounded_float(value: pl.Series, places: int) -> pl.Series:
    """By the digits that the number is written with: 2.675 is rounded to 2.68, though the double is a little less."""
    given = value.to_numpy().astype(np.float64)
    scale = 10.0 ** min(abs(places), MOST_PLACES)  # beyond it by digits alone
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = np.abs(given) * scale if places >= 0 else np.abs(given) / scale
        part = scaled - np.floor(scaled)
        nearest = np.floor(scaled) + (part >= 0.5)
        found = np.copysign(nearest / scale if places >= 0 else nearest * scale, given) + 0.0
        unclear = (np.abs(part - 0.5) <= np.maximum(scaled, 1.0) * TIES) | (scaled >= EXACT)
    if value.dtype != DOUBLE or abs(places) > HIGHEST_EXACT_POWER:
        unclear[:] = True
    unclear &= np.isfinite(given)
    found = np.where(np.isfinite(given), found, given)
    if unclear.any():
        digits = value.filter(pl.Series(unclear)).cast(pl.String)
        found[unclear] = [float(_half_up(text, places)) for text in digits]
    return pl.Series(found, dtype=value.dtype).set(value.is_null(), None)


def _half_up(text: str, places: int) -> Decimal:
    value = Decimal(text)
    if -value.as_tuple().exponent <= places:  # type: ignore[operator]
        return value
    unit = Decimal(1).scaleb(-places)
    return (value / unit).to_integral_value(ROUND_HALF_UP) * unit


# -- instants and intervals ------------------------------------------------------------------------------------------
def _micros(given: Typed) -> Typed:
    """An instant or interval as a number of microseconds, a date of days."""
    if isinstance(given.dtype, (pl.Datetime, pl.Duration)):
        physical = given.expr.dt.cast_time_unit("us").to_physical()
    else:
        physical = given.expr.to_physical()
    return Typed(physical.cast(BIGINT), BIGINT, given.fallible)


def _back(found: Typed, dtype: pl.DataType, days: bool = False) -> Typed:
    return Typed(found.expr.cast(dtype), dtype, found.fallible, days)


def moved(symbol: str, at: Typed, by: Typed, text: str, lenient: bool = False) -> Typed:
    """A timestamp or date plus or minus an interval or a number of days. Whole days after a date are a date."""
    fails = None if lenient else overflow(text, symbol)
    if isinstance(at.dtype, pl.Datetime):
        found = applied(partial(integers, symbol), [_micros(at), _micros(by)], BIGINT, fails)
        return _back(found, TIMESTAMP if at.dtype.time_zone else TIMESTAMP_NTZ)
    if by.dtype.is_integer():
        return applied(partial(_days, symbol), [_micros(at), cast(by, BIGINT, text)], DATE, fails)
    if not by.days:
        return moved(symbol, cast(at, TIMESTAMP, text), by, text, lenient)
    days = Typed(_micros(by).expr // MICROS_OF_DAY, BIGINT, by.fallible)
    return applied(partial(_days, symbol), [_micros(at), days], DATE, fails)


def _days(symbol: str, at: pl.Series, by: pl.Series) -> pl.Series:
    return integers(symbol, at, by).cast(pl.Int32, strict=False).cast(DATE)


def distance(left: Typed, right: Typed, text: str, lenient: bool = False) -> Typed:
    """From one instant to another."""
    days = left.dtype == right.dtype == DATE
    sides = [_micros(cast(side, TIMESTAMP_NTZ, text)) for side in (left, right)]
    fails = None if lenient else overflow(text, "-")
    return _back(applied(partial(integers, "-"), sides, BIGINT, fails), INTERVAL, days)


def spans(symbol: str, operands: list[Typed], text: str, lenient: bool = False) -> Typed:
    """Intervals added, subtracted, negated, or taken so many times."""
    numbers = [_micros(o) if isinstance(o.dtype, pl.Duration) else cast(o, BIGINT, text) for o in operands]
    fails = None if lenient else overflow(text, symbol)
    days = all(o.days or o.dtype.is_integer() for o in operands)
    return _back(applied(partial(integers, symbol), numbers, BIGINT, fails), INTERVAL, days)
