"""Expressions row by row, in plain Python: what Spark SQL (ANSI) gives, by a way of its own.

It shares nothing with the translation that queries run with, and takes only what that accepts: an expression whose
types do not fit is refused there, when the query is built.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from sqlglot import exp

from windrow.errors import QueryError
from windrow.testing.oracle.expressions import arithmetic, choice, functions, kinds
from windrow.testing.oracle.expressions.cells import Cell, computed, constant, converted
from windrow.testing.oracle.expressions.kinds import BIGINT, BOOLEAN, DATE, DOUBLE, INT, INTERVAL, STRING, VOID
from windrow.testing.oracle.values import Schema

CALCULATIONS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "DIV",
    exp.Mod: "%",
}
LENIENT: dict[type[exp.Expr], str] = {
    exp.SafeAdd: "+",
    exp.SafeSubtract: "-",
    exp.SafeMultiply: "*",
    exp.SafeDivide: "/",
}
COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
OF_DOUBLES: dict[type[exp.Expr], Callable[[float], Any]] = {
    exp.Sqrt: arithmetic.square_root,
    exp.Exp: arithmetic.exponential,
    exp.Ln: arithmetic.logarithm,
}
FIELDS: dict[type[exp.Expr], str] = {
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}


def evaluate(tree: exp.Expr, schema: Schema) -> Cell:
    """The type of an expression over these columns, and the function that gives its value for a row.

    >>> import polars as pl
    >>> from windrow.logical.expressions import parse
    >>> half = evaluate(parse("x DIV 2 > 1"), {"x": pl.Int64()})
    >>> half.dtype, [half.of({"x": x}) for x in (3, 4, None)]
    (Boolean, [False, True, None])
    """
    return _Evaluation(schema).of(tree)


class _Evaluation:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def of(self, node: exp.Expr) -> Cell:
        for table, make in (
            (CALCULATIONS, lambda s: arithmetic.calculated(s, *self._sides(node))),
            (LENIENT, lambda s: arithmetic.calculated(s, *self._sides(node), lenient=True)),
            (COMPARISONS, lambda s: choice.compared(s, *self._sides(node))),
            (OF_DOUBLES, lambda f: computed(DOUBLE, f, self._double(node.this))),
            (FIELDS, lambda name: functions.field(self.of(node.this), name)),
        ):
            if type(node) in table:
                return make(table[type(node)])  # type: ignore[no-untyped-call]
        made = self._leaf(node) or self._conditional(node) or self._function(node)
        if made is None:
            raise QueryError(f"the oracle does not know {type(node).__name__}")
        return made

    def _sides(self, node: exp.Expr) -> tuple[Cell, Cell]:
        return self.of(node.this), self.of(node.args["expression"])

    def _all(self, node: exp.Expr) -> list[Cell]:
        this = [node.this] if isinstance(node.args.get("this"), exp.Expr) else []
        return [self.of(n) for n in (*this, *node.expressions)]

    def _double(self, node: exp.Expr) -> Cell:
        return converted(arithmetic.numeric(self.of(node)), DOUBLE)

    def _condition(self, node: exp.Expr) -> Cell:
        return choice.condition(self.of(node))

    # -- values ------------------------------------------------------------------------------------------------------
    def _leaf(self, node: exp.Expr) -> Cell | None:
        match node:
            case exp.Column():
                name = node.name
                return Cell(self.schema[name], lambda row: row[name])
            case exp.Literal():
                return _literal(node)
            case exp.Boolean():
                return constant(BOOLEAN, bool(node.this))
            case exp.Null():
                return constant(VOID, None)
            case exp.Interval():
                return _interval(node)
            case exp.Paren():
                return self.of(node.this)
            case exp.Neg() if isinstance(node.this, exp.Literal) and node.this.is_int:
                return _integer(-int(node.this.name))
            case exp.Neg():
                return arithmetic.negative(self.of(node.this))
            case exp.Cast():  # and TryCast
                lenient = isinstance(node, exp.TryCast) and bool(node.args.get("safe"))
                return converted(self.of(node.this), kinds.WRITTEN[node.to.this], lenient)
        return None

    # -- conditions --------------------------------------------------------------------------------------------------
    def _conditional(self, node: exp.Expr) -> Cell | None:
        match node:
            case exp.And():
                return choice.both(self._condition(node.this), self._condition(node.expression))
            case exp.Or():
                return choice.either(self._condition(node.this), self._condition(node.expression))
            case exp.Not():
                return choice.negated(self._condition(node.this))
            case exp.NullSafeEQ():
                return choice.same(*self._sides(node))
            case exp.NullSafeNEQ():
                return choice.same(*self._sides(node), negated=True)
            case exp.Is() if isinstance(node.expression, exp.Null):
                return choice.is_null(self.of(node.this))
            case exp.Is():
                return choice.is_truth(self._condition(node.this), bool(node.expression.this))
            case exp.In():
                return choice.one_of(self.of(node.this), [self.of(n) for n in node.expressions])
            case exp.Between():
                value = self.of(node.this)
                low, high = (self.of(node.args[n]) for n in ("low", "high"))
                return choice.both(choice.compared(">=", value, low), choice.compared("<=", value, high))
            case exp.Case():
                return self._case(node)
            case exp.If():
                other = node.args.get("false")
                return choice.chosen(
                    [self._condition(node.this)], [self.of(node.args["true"])], self.of(other) if other else None
                )
            case exp.Coalesce():
                return choice.first(self._all(node))
            case exp.Nullif():
                return choice.unless_equal(*self._sides(node))
            case exp.Greatest() | exp.Least():
                return choice.extreme(self._all(node), isinstance(node, exp.Greatest))
        return None

    def _case(self, node: exp.Case) -> Cell:
        branches, other = node.args["ifs"], node.args.get("default")
        if node.this is None:
            tests = [self._condition(b.this) for b in branches]
        else:
            subject = self.of(node.this)
            tests = [choice.compared("=", subject, self.of(b.this)) for b in branches]
        values = [self.of(b.args["true"]) for b in branches]
        return choice.chosen(tests, values, self.of(other) if other is not None else None)

    # -- functions ---------------------------------------------------------------------------------------------------
    def _function(self, node: exp.Expr) -> Cell | None:
        match node:
            case exp.Anonymous() if node.name.lower() == "try_mod":
                left, right = (self.of(n) for n in node.expressions)
                return arithmetic.calculated("%", left, right, lenient=True)
            case exp.Abs():
                return arithmetic.absolute(self.of(node.this))
            case exp.Floor() | exp.Ceil():
                return arithmetic.whole(self.of(node.this), isinstance(node, exp.Ceil))
            case exp.Round():
                places = node.args.get("decimals")
                return arithmetic.rounded(self.of(node.this), self.of(places).of({}) if places is not None else 0)
            case exp.Pow():
                return computed(DOUBLE, arithmetic.power, self._double(node.this), self._double(node.expression))
            case exp.DPipe() | exp.Concat():
                return functions.joined(*(self._sides(node) if isinstance(node, exp.DPipe) else self._all(node)))
            case exp.Upper():
                return computed(STRING, str.upper, functions.as_text(self.of(node.this)))
            case exp.Lower():
                return computed(STRING, str.lower, functions.as_text(self.of(node.this)))
            case exp.Length():
                return computed(BIGINT, len, functions.as_text(self.of(node.this)))
            case exp.Substring():
                length = node.args.get("length")
                start = self.of(node.args["start"])
                return functions.substring(self.of(node.this), start, self.of(length) if length is not None else None)
            case exp.Trim():
                what = node.args.get("expression")
                characters = self.of(what) if what is not None else constant(STRING, " ")
                return functions.trimmed(self.of(node.this), characters, str(node.args.get("position") or "").upper())
            case exp.Like() | exp.ILike():
                found = functions.like(self.of(node.this), node.expression.name, isinstance(node, exp.ILike))
                return choice.negated(found) if node.args.get("negate") else found
            case exp.TimestampTrunc():
                return functions.truncated(self.of(node.this), functions.unit(node.args["unit"].name))
            case exp.Extract():
                name, given = node.this.name.lower(), self.of(node.expression)
                return functions.seconds(given) if name == "second" else functions.field(given, name)
            case exp.TsOrDsToDate():
                return converted(self.of(node.this), DATE)
        return None


def _literal(node: exp.Literal) -> Cell:
    if node.is_string:
        return constant(STRING, node.name)
    if any(c in node.name for c in ".eE"):
        return constant(DOUBLE, float(node.name))
    return _integer(int(node.name))


def _integer(value: int) -> Cell:
    return constant(INT if -(2**31) <= value < 2**31 else BIGINT, value)


def _interval(node: exp.Interval) -> Cell:
    size = functions.unit(str(node.args.get("unit")))
    micros = Fraction(node.this.name) * size
    days = size >= functions.UNITS["day"] and micros % functions.UNITS["day"] == 0
    return constant(INTERVAL, round(micros), days)
