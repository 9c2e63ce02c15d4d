"""Which handler a node of the parser has: all operators and functions of the SQL reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
from sqlglot import exp

from windrow.errors import listing
from windrow.logical.reading import named
from windrow.logical.scalar import arithmetic, functions, logic, numeric, values
from windrow.logical.scalar.translator import Handler, Translator, operands
from windrow.logical.scalar.types import (
    BIGINT,
    BOOLEAN,
    NOTHING,
    TEXT,
    Refused,
    Typed,
)


def _bound(handler: Callable[..., Typed], *given: Any, **named: Any) -> Handler:
    """A handler with its first arguments."""
    return lambda translator, node: handler(translator, *given, node, **named)


def _alone(handler: Handler) -> Handler:
    """A function of one argument; the parser hangs others beside it."""

    def of(translator: Translator, node: exp.Expr) -> Typed | None:
        if more := [n for n, v in node.args.items() if v and n != "this"]:
            raise Refused(node, f"{named(node)}() with {listing(more)} is not supported")
        return handler(translator, node)

    return of


def _named(translator: Translator, node: exp.Expr) -> Typed | None:
    """Functions that the parser does not know."""
    if node.name.lower() == "try_mod" and len(node.expressions) == 2:
        return numeric.calculation(translator, "%", node, node.expressions[0], node.expressions[1], lenient=True)
    return None


def _calculation(symbol: str, lenient: bool = False) -> Handler:
    return _bound(numeric.binary, symbol, lenient=lenient)


BINARY: dict[type[exp.Expr], Handler] = {
    exp.Add: _calculation("+"),
    exp.Sub: _calculation("-"),
    exp.Mul: _calculation("*"),
    exp.Div: _calculation("/"),
    exp.IntDiv: _calculation("DIV"),
    exp.Mod: _calculation("%"),
    exp.SafeAdd: _calculation("+", lenient=True),
    exp.SafeSubtract: _calculation("-", lenient=True),
    exp.SafeMultiply: _calculation("*", lenient=True),
    exp.SafeDivide: _calculation("/", lenient=True),
    exp.EQ: _bound(logic.compared, functions.eq),
    exp.NullSafeEQ: _bound(logic.compared, pl.Expr.eq_missing),
    exp.NullSafeNEQ: _bound(logic.compared, pl.Expr.ne_missing),
    exp.NEQ: _bound(logic.compared, functions.ne),
    exp.GT: _bound(logic.compared, functions.gt),
    exp.GTE: _bound(logic.compared, functions.ge),
    exp.LT: _bound(logic.compared, functions.lt),
    exp.LTE: _bound(logic.compared, functions.le),
    exp.And: _bound(logic.connected, False),
    exp.Or: _bound(logic.connected, True),
    exp.Pow: numeric.power,
    exp.DPipe: lambda t, n: values.joined(t, n.this, n.args["expression"]),
}
UNARY: dict[type[exp.Expr], Handler] = {
    exp.Paren: lambda t, n: t.of(n.this),
    exp.Not: logic.negated,
    exp.Abs: numeric.absolute,
    exp.Floor: _bound(numeric.whole, False),
    exp.Ceil: _bound(numeric.whole, True),
    exp.Sqrt: _bound(numeric.of_double, pl.Expr.sqrt),
    exp.Exp: _bound(numeric.of_double, pl.Expr.exp),
    exp.Ln: lambda t, n: arithmetic.logarithm(t.double(n.this)),
    exp.Upper: _bound(values.of_text, lambda s: s.str.to_uppercase(), TEXT),
    exp.Lower: _bound(values.of_text, lambda s: s.str.to_lowercase(), TEXT),
    exp.Length: _bound(values.of_text, lambda s: s.str.len_chars().cast(BIGINT), BIGINT),
    exp.Year: lambda t, n: values.field(t, "year", n.this),
    exp.Month: lambda t, n: values.field(t, "month", n.this),
    exp.Day: lambda t, n: values.field(t, "day", n.this),
    exp.DayOfMonth: lambda t, n: values.field(t, "day", n.this),
    exp.Hour: lambda t, n: values.field(t, "hour", n.this),
    exp.Minute: lambda t, n: values.field(t, "minute", n.this),
    exp.Second: lambda t, n: values.field(t, "second", n.this),
}
OTHERS: dict[type[exp.Expr], Handler] = {
    exp.Anonymous: _named,
    exp.Column: numeric.column,
    exp.Literal: numeric.literal,
    exp.Neg: numeric.negative,
    exp.Boolean: lambda _t, n: Typed(pl.lit(bool(n.this)), BOOLEAN),
    exp.Null: lambda _t, _n: Typed(pl.lit(None), NOTHING),
    exp.Interval: numeric.interval,
    exp.Cast: values.converted,
    exp.TryCast: values.converted,
    exp.Case: logic.case,
    exp.If: logic.if_,
    exp.In: logic.in_,
    exp.Between: logic.between,
    exp.Is: logic.is_,
    exp.Like: values.like,
    exp.ILike: values.like,
    exp.Coalesce: logic.coalesce,
    exp.Concat: lambda t, n: values.joined(t, *operands(n)),
    exp.Greatest: _bound(logic.extreme, True),
    exp.Least: _bound(logic.extreme, False),
    exp.Nullif: logic.nullif,
    exp.Substring: values.substring,
    exp.Round: numeric.rounded,
    exp.Trim: values.trim,
    exp.TimestampTrunc: values.truncated,
    exp.Extract: values.extract,
    exp.TsOrDsToDate: values.as_date,
}
HANDLERS = BINARY | {node: _alone(handler) for node, handler in UNARY.items()} | OTHERS
