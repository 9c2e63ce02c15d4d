"""Columns, literals and arithmetic: numbers, instants and intervals."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction

import polars as pl
from sqlglot import exp

from windrow.errors import listing
from windrow.logical.reading import written
from windrow.logical.scalar import arithmetic
from windrow.logical.scalar.casts import cast
from windrow.logical.scalar.translator import Translator
from windrow.logical.scalar.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    TEXT,
    Refused,
    Typed,
    common,
    is_instant,
    is_number,
    is_text,
    type_name,
)
from windrow.spec.units import UNITS, unit


def column(t: Translator, node: exp.Expr) -> Typed:
    dtype = t.schema[node.name]
    return Typed(pl.col(node.name), dtype if isinstance(dtype, pl.DataType) else dtype())


def literal(_t: Translator, node: exp.Expr) -> Typed:
    if node.args["is_string"]:
        return Typed(pl.lit(node.name), TEXT)
    if any(c in node.name for c in ".eE"):
        return Typed(pl.lit(float(node.name)), DOUBLE, value=float(node.name))
    return _integer(node, int(node.name))


def _integer(node: exp.Expr, value: int) -> Typed:
    if not -(2**63) <= value < 2**63:
        raise Refused(node, f"{value} does not fit into 64 bits")
    dtype = INT if -(2**31) <= value < 2**31 else BIGINT
    return Typed(pl.lit(value, dtype), dtype, value=value)


def negative(t: Translator, node: exp.Expr) -> Typed:
    inner = node.this
    if isinstance(inner, exp.Literal) and inner.is_int and not inner.is_string:
        return _integer(node, -int(inner.name))  # -2**63 is a number of 64 bits, 2**63 is not
    if isinstance(t.of(inner).dtype, pl.Duration):
        return arithmetic.spans("*", [t.of(inner), Typed(pl.lit(-1, BIGINT), BIGINT)], written(node))
    given = t.number(inner)
    if given.dtype.is_float():
        return Typed(-given.expr, given.dtype, given.fallible)
    dtype = BIGINT if given.dtype.is_integer() else pl.Decimal(38, 0)
    return arithmetic.calculated("*", [given, cast(_integer(node, -1), dtype, "")], written(node))


def absolute(t: Translator, node: exp.Expr) -> Typed:
    if isinstance(t.of(node.this).dtype, pl.Duration):
        return arithmetic.spans("abs", [t.of(node.this)], written(node))
    return arithmetic.calculated("abs", [t.number(node.this)], written(node))


def interval(_t: Translator, node: exp.Expr) -> Typed:
    span = unit(str(node.args.get("unit") or ""))
    if span is None:
        raise Refused(node, f"an interval needs one of the units {listing(UNITS)}")
    try:
        amount = Fraction(node.this.name) if isinstance(node.this, exp.Literal) else None
    except ValueError:
        amount = None
    if amount is None:
        raise Refused(node, "an interval needs a number, as in INTERVAL '10' SECOND")
    days = span in ("day", "week") and (amount * UNITS[span]) % UNITS["day"] == 0
    return Typed(pl.lit(timedelta(microseconds=round(amount * UNITS[span]))), INTERVAL, days=days)


def binary(t: Translator, symbol: str, node: exp.Expr, lenient: bool = False) -> Typed:
    return calculation(t, symbol, node, node.this, node.args["expression"], lenient=lenient)


def calculation(
    t: Translator, symbol: str, node: exp.Expr, left: exp.Expr, right: exp.Expr, lenient: bool = False
) -> Typed:
    """``+ - * / % DIV`` of numbers, instants and intervals."""
    types = [t.of(n).dtype for n in (left, right)]
    if any(t.is_temporal() for t in types):
        return _in_time(t, symbol, node, left, right, lenient)
    if all(is_text(t) for t in types):
        raise Refused(node, f"the types in {written(node)} do not fit: both sides are texts")
    a, b = _numbers(t, node, left, right)
    if symbol == "/":
        text = written(node)
        return arithmetic.divided(cast(a, DOUBLE, text), cast(b, DOUBLE, text), text, lenient)
    if symbol in ("%", "DIV") and isinstance(a.dtype, pl.Decimal):
        raise Refused(node, f"{symbol} of decimals is not supported; CAST them to DOUBLE or BIGINT")
    if symbol == "%":
        return arithmetic.remainder(a, b, written(node), lenient)
    if symbol == "DIV":
        if not a.dtype.is_integer():
            raise Refused(node, "DIV divides integers; the whole part of x / y is CAST(x / y AS BIGINT)")
        return arithmetic.quotient(a, b, written(node))
    return arithmetic.calculated(symbol, [a, b], written(node), lenient)


def _numbers(t: Translator, node: exp.Expr, left: exp.Expr, right: exp.Expr) -> list[Typed]:
    """Both in one type; integers in 64 bits, so that arithmetic on small ones does not overflow."""
    target = common([t.of(n).dtype for n in (left, right)])
    if target == pl.Null:
        target = BIGINT
    if target is None or not is_number(target):
        for n in (left, right):
            t.number(n)
        raise Refused(node, f"the types in {written(node)} do not fit")
    decimals = isinstance(target, pl.Decimal)
    if decimals:  # each keeps its own digits behind the point
        return [_decimal(t, n) for n in (left, right)]
    return [t.cast(n, BIGINT if target.is_integer() else target) for n in (left, right)]


def _decimal(t: Translator, node: exp.Expr) -> Typed:
    found = t.of(node)
    scale = found.dtype.scale if isinstance(found.dtype, pl.Decimal) else 0
    return t.cast(node, pl.Decimal(38, scale))


def _in_time(t: Translator, symbol: str, node: exp.Expr, left: exp.Expr, right: exp.Expr, lenient: bool) -> Typed:
    a, b = t.of(left), t.of(right)
    text = written(node)
    if symbol == "+" and is_instant(b.dtype) and not is_instant(a.dtype):
        a, b = b, a
    spanned = [isinstance(side.dtype, pl.Duration) for side in (a, b)]
    dated = a.dtype == DATE and b.dtype.is_integer()
    if symbol in ("+", "-") and is_instant(a.dtype) and (spanned[1] or dated):
        return arithmetic.moved(symbol, a, b, text, lenient)
    if symbol == "-" and is_instant(a.dtype) and is_instant(b.dtype):
        return arithmetic.distance(a, b, text, lenient)
    times = symbol == "*" and any(spanned) and any(t.dtype.is_integer() for t in (a, b))
    if (symbol in ("+", "-") and all(spanned)) or times:
        return arithmetic.spans(symbol, [a, b], text, lenient)
    names = f"{type_name(a.dtype)} {symbol} {type_name(b.dtype)}"
    raise Refused(node, f"the types in {text} do not fit: there is no {names}")


def whole(t: Translator, up: bool, node: exp.Expr) -> Typed:
    """floor and ceil."""
    given = t.number(node.this)
    if isinstance(given.dtype, pl.Decimal):
        dtype = pl.Decimal(38, given.dtype.scale)
        found = given.expr.cast(dtype)
        return Typed((found.ceil() if up else found.floor()).cast(dtype), dtype, given.fallible)
    if given.dtype.is_integer():
        return given
    return arithmetic.whole(given, up, written(node))


def of_double(t: Translator, compute: Callable[[pl.Expr], pl.Expr], node: exp.Expr) -> Typed:
    given = t.double(node.this)
    return Typed(compute(given.expr), DOUBLE, given.fallible)


def power(t: Translator, node: exp.Expr) -> Typed:
    base, exponent = t.double(node.this), t.double(node.args["expression"])
    return arithmetic.power(base, exponent)


def rounded(t: Translator, node: exp.Expr) -> Typed:
    given = t.of(node.this)
    given = given if is_number(given.dtype) else t.number(node.this)
    return arithmetic.rounded(given, _places(t, node), written(node))


def _places(t: Translator, node: exp.Expr) -> int:
    given = node.args.get("decimals")
    if given is None:
        return 0
    value = t.of(given).value
    if not isinstance(value, int):
        raise Refused(node, "round() takes a literal number of places")
    return value
