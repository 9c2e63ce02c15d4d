"""From sqlglot trees to Polars expressions: what each operator and function of the SQL reference means."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction
from functools import partial
from typing import Any

import polars as pl
from sqlglot import exp

from windrow.errors import listing
from windrow.logical.scalar import arithmetic, functions
from windrow.logical.scalar.casts import cast, castable, implicit
from windrow.logical.scalar.strict import Both, Choice, First, applied, sheltered
from windrow.logical.scalar.types import (
    BIGINT,
    BOOLEAN,
    CAST_TYPES,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    NOTHING,
    TEXT,
    TIMESTAMP,
    Refused,
    Schema,
    Typed,
    common,
    is_instant,
    is_number,
    is_text,
    type_name,
)
from windrow.logical.scalar.units import UNITS, unit

FIELDS = ("year", "month", "day", "hour", "minute", "second")


def written(node: exp.Expr) -> str:
    """An expression for a message."""
    return node.sql("spark")


class Translator:
    """The expressions of a tree over a schema. Each node is translated once, however often its type is asked for."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._found: dict[int, tuple[exp.Expr, Typed]] = {}  # with the node, so that no other gets its id

    def of(self, node: exp.Expr) -> Typed:
        """The Polars expression of a node, and its type."""
        if id(node) not in self._found:
            self._found[id(node)] = node, self._translated(node)
        return self._found[id(node)][1]

    def _translated(self, node: exp.Expr) -> Typed:
        if (handler := HANDLERS.get(type(node))) is not None:
            return handler(self, node)
        if (unary := UNARY.get(type(node))) is not None:
            if more := [n for n, v in node.args.items() if v and n != "this"]:
                raise Refused(node, f"{node.key}() with {listing(more)} is not supported")
            return unary(self, node)
        if isinstance(node, exp.Binary | exp.Func) and (binary := BINARY.get(type(node))) is not None:
            return binary(self, node)
        if isinstance(node, exp.Anonymous) and node.name.lower() == "try_mod" and len(node.expressions) == 2:
            return self.arithmetic("%", node, node.expressions[0], node.expressions[1], lenient=True)
        name = node.name if isinstance(node, exp.Anonymous) else node.key
        raise Refused(node, f"{name!r} is not supported in expressions")

    # -- types ---------------------------------------------------------------------------------------------------------
    def cast(self, node: exp.Expr, target: pl.DataType) -> Typed:
        """A node in a type that it is needed in; a text literal that cannot be read as one is an error of the query."""
        given = self.of(node)
        if not implicit(given.dtype, target):
            needed = f"a value of type {type_name(target)} is needed here"
            raise Refused(node, f"{needed}, and this is of type {type_name(given.dtype)}")
        if isinstance(node, exp.Literal) and node.is_string and target != TEXT:
            return self._read(node, target)
        return cast(given, target, written(node))

    def _read(self, literal: exp.Expr, target: pl.DataType) -> Typed:
        text = Typed(pl.lit(literal.name), TEXT)
        value = pl.select(cast(text, target, "", lenient=True).expr).to_series()
        if value[0] is None:
            kind = "timestamp or date" if is_instant(target) else type_name(target)
            raise Refused(literal, f"{literal.name!r} is not a {kind}")
        if target == DATE:
            stamp = pl.select(cast(text, TIMESTAMP, "", lenient=True).expr.dt.time()).to_series()[0]
            if stamp is None or stamp.isoformat() != "00:00:00":
                raise Refused(literal, f"{literal.name!r} has a time of day, and a date is needed here")
        return Typed(pl.lit(value).first(), target)

    def alike(self, node: exp.Expr, *nodes: exp.Expr, promote: bool = True) -> list[Typed]:
        """All of these in the type that they have beside each other."""
        types = [self.of(n).dtype for n in nodes]
        target = common(types, promote)
        if target is None:
            names = " and ".join(dict.fromkeys(type_name(t) for t in types))
            raise Refused(node, f"the types in {written(node)} do not fit: {names} have no common type")
        return [self.cast(n, target) for n in nodes]

    def condition(self, node: exp.Expr, said: str) -> Typed:
        """A boolean, or NULL."""
        found = self.of(node)
        if found.dtype not in (pl.Boolean, pl.Null):
            raise Refused(node, f"{said}, and this is of type {type_name(found.dtype)}")
        return cast(found, BOOLEAN, written(node))

    def text(self, node: exp.Expr) -> Typed:
        """Any value as a text."""
        return self.cast(node, TEXT)

    def number(self, node: exp.Expr) -> Typed:
        """A number as arithmetic takes it: integers in 64 bits; a text that is read as one is a double."""
        found = self.of(node)
        if is_text(found.dtype) or found.dtype == pl.Null:
            return self.cast(node, DOUBLE)
        if found.dtype.is_integer():
            return self.cast(node, BIGINT)
        if not is_number(found.dtype):
            raise Refused(node, f"a number is needed here, and this is of type {type_name(found.dtype)}")
        return found

    def double(self, node: exp.Expr) -> Typed:
        """A number as a double."""
        return cast(self.number(node), DOUBLE, written(node))

    # -- columns and literals ------------------------------------------------------------------------------------------
    def column(self, node: exp.Expr) -> Typed:
        dtype = self.schema[node.name]
        return Typed(pl.col(node.name), dtype if isinstance(dtype, pl.DataType) else dtype())

    def literal(self, node: exp.Expr) -> Typed:
        if node.args["is_string"]:
            return Typed(pl.lit(node.name), TEXT)
        if any(c in node.name for c in ".eE"):
            return Typed(pl.lit(float(node.name)), DOUBLE, value=float(node.name))
        return self._integer(node, int(node.name))

    def _integer(self, node: exp.Expr, value: int) -> Typed:
        if not -(2**63) <= value < 2**63:
            raise Refused(node, f"{value} does not fit into 64 bits")
        dtype = INT if -(2**31) <= value < 2**31 else BIGINT
        return Typed(pl.lit(value, dtype), dtype, value=value)

    def negative(self, node: exp.Expr) -> Typed:
        inner = node.this
        if isinstance(inner, exp.Literal) and inner.is_int and not inner.is_string:
            return self._integer(node, -int(inner.name))  # -2**63 is a number of 64 bits, 2**63 is not
        if isinstance(self.of(inner).dtype, pl.Duration):
            return arithmetic.spans("*", [self.of(inner), Typed(pl.lit(-1, BIGINT), BIGINT)], written(node))
        given = self.number(inner)
        if given.dtype.is_float():
            return Typed(-given.expr, given.dtype, given.fallible)
        return arithmetic.calculated("*", [given, cast(self._integer(node, -1), given.dtype, "")], written(node))

    def absolute(self, node: exp.Expr) -> Typed:
        if isinstance(self.of(node.this).dtype, pl.Duration):
            return arithmetic.spans("abs", [self.of(node.this)], written(node))
        return arithmetic.calculated("abs", [self.number(node.this)], written(node))

    def interval(self, node: exp.Expr) -> Typed:
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

    # -- arithmetic ----------------------------------------------------------------------------------------------------
    def binary(self, symbol: str, node: exp.Expr, lenient: bool = False) -> Typed:
        return self.arithmetic(symbol, node, node.this, node.args["expression"], lenient=lenient)

    def arithmetic(self, symbol: str, node: exp.Expr, left: exp.Expr, right: exp.Expr, lenient: bool = False) -> Typed:
        """``+ - * / % DIV`` of numbers, instants and intervals."""
        types = [self.of(n).dtype for n in (left, right)]
        if any(t.is_temporal() for t in types):
            return self._in_time(symbol, node, left, right, lenient)
        if all(is_text(t) for t in types):
            raise Refused(node, f"the types in {written(node)} do not fit: both sides are texts")
        if symbol == "/":
            return arithmetic.divided(self.double(left), self.double(right), written(node), lenient)
        a, b = self._numbers(node, left, right)
        if symbol in ("%", "DIV") and isinstance(a.dtype, pl.Decimal):
            raise Refused(node, f"{symbol} of decimals is not supported; CAST them to DOUBLE or BIGINT")
        if symbol == "%":
            return arithmetic.remainder(a, b, written(node), lenient)
        if symbol == "DIV":
            if not a.dtype.is_integer():
                raise Refused(node, "DIV divides integers; the whole part of x / y is CAST(x / y AS BIGINT)")
            return arithmetic.quotient(a, b, written(node))
        return arithmetic.calculated(symbol, [a, b], written(node), lenient)

    def _numbers(self, node: exp.Expr, left: exp.Expr, right: exp.Expr) -> list[Typed]:
        """Both in one type; integers in 64 bits, so that arithmetic on small ones does not overflow."""
        target = common([self.of(n).dtype for n in (left, right)])
        if target == pl.Null:
            target = BIGINT
        if target is None or not is_number(target):
            for n in (left, right):
                self.number(n)
            raise Refused(node, f"the types in {written(node)} do not fit")
        decimals = isinstance(target, pl.Decimal)
        if decimals:  # each keeps its own digits behind the point
            return [self._decimal(n) for n in (left, right)]
        return [self.cast(n, BIGINT if target.is_integer() else target) for n in (left, right)]

    def _decimal(self, node: exp.Expr) -> Typed:
        found = self.of(node)
        scale = found.dtype.scale if isinstance(found.dtype, pl.Decimal) else 0
        return self.cast(node, pl.Decimal(38, scale))

    def _in_time(self, symbol: str, node: exp.Expr, left: exp.Expr, right: exp.Expr, lenient: bool) -> Typed:
        a, b = self.of(left), self.of(right)
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

    def whole(self, up: bool, node: exp.Expr) -> Typed:
        """floor and ceil."""
        given = self.number(node.this)
        if isinstance(given.dtype, pl.Decimal):
            return Typed(given.expr.ceil() if up else given.expr.floor(), given.dtype, given.fallible)
        if given.dtype.is_integer():
            return given
        return arithmetic.whole(given, up, written(node))

    def of_double(self, compute: Callable[[pl.Expr], pl.Expr], node: exp.Expr) -> Typed:
        given = self.double(node.this)
        return Typed(compute(given.expr), DOUBLE, given.fallible)

    def power(self, node: exp.Expr) -> Typed:
        base, exponent = self.double(node.this), self.double(node.args["expression"])
        return Typed(base.expr**exponent.expr, DOUBLE, base.fallible or exponent.fallible)

    def round(self, node: exp.Expr) -> Typed:
        given = self.of(node.this)
        given = given if is_number(given.dtype) else self.number(node.this)
        return arithmetic.rounded(given, self._places(node), written(node))

    def _places(self, node: exp.Expr) -> int:
        given = node.args.get("decimals")
        if given is None:
            return 0
        value = self.of(given).value
        if not isinstance(value, int):
            raise Refused(node, "round() takes a literal number of places")
        return value

    # -- comparison and logic ------------------------------------------------------------------------------------------
    def compared(self, compute: Callable[[pl.Expr, pl.Expr], pl.Expr], node: exp.Expr) -> Typed:
        return self.comparison(compute, node, node.this, node.args["expression"])

    def comparison(
        self, compute: Callable[[pl.Expr, pl.Expr], pl.Expr], node: exp.Expr, left: exp.Expr, right: exp.Expr
    ) -> Typed:
        """Two values of one type."""
        a, b = self.alike(node, left, right)
        return Typed(compute(a.expr, b.expr), BOOLEAN, a.fallible or b.fallible)

    def in_(self, node: exp.Expr) -> Typed:
        items = node.args.get("expressions") or []
        if not items or any(not isinstance(i, (exp.Literal, exp.Neg, exp.Null)) for i in items):
            raise Refused(node, "IN takes a list of literals")
        value, *found = self.alike(node, node.this, *items)
        tests = [value.expr == item.expr for item in found]
        return Typed(functions.any_of(tests), BOOLEAN, value.fallible)

    def between(self, node: exp.Expr) -> Typed:
        if node.args.get("symmetric"):
            raise Refused(node, "BETWEEN SYMMETRIC is not supported")
        low = self.comparison(functions.ge, node, node.this, node.args["low"])
        high = self.comparison(functions.le, node, node.this, node.args["high"])
        return self._both(low, high, False, node)

    def is_(self, node: exp.Expr) -> Typed:
        this, other = self.of(node.this), node.args["expression"]
        if isinstance(other, exp.Null):
            return Typed(this.expr.is_null(), BOOLEAN, this.fallible)
        truth = self.condition(node.this, "IS TRUE and IS FALSE take conditions")
        return Typed(truth.expr.eq_missing(self.of(other).expr), BOOLEAN, truth.fallible)

    def connected(self, decided: bool, node: exp.Expr) -> Typed:
        """AND, and OR: what the left side has decided the right side is not asked for."""
        sides = [self.condition(n, "AND, OR and NOT take conditions") for n in (node.this, node.args["expression"])]
        return self._both(sides[0], sides[1], decided, node)

    def _both(self, left: Typed, right: Typed, decided: bool, node: exp.Expr) -> Typed:
        if right.fallible:
            return sheltered(Both(left.expr, right.expr, decided), self._columns(node), BOOLEAN)
        both = left.expr | right.expr if decided else left.expr & right.expr
        return Typed(both, BOOLEAN, left.fallible)

    def _columns(self, node: exp.Expr) -> list[str]:
        return list(dict.fromkeys(c.name for c in node.find_all(exp.Column)))

    def negated(self, node: exp.Expr) -> Typed:
        given = self.condition(node.this, "AND, OR and NOT take conditions")
        return Typed(~given.expr, BOOLEAN, given.fallible)

    # -- choice --------------------------------------------------------------------------------------------------------
    def case(self, node: exp.Expr) -> Typed:
        subject = node.args.get("this")
        tests, values = [], [branch.args["true"] for branch in node.args["ifs"]]
        for branch in node.args["ifs"]:
            test = branch.this
            if subject is None:
                tests.append(self.condition(test, "WHEN takes a condition"))
            else:
                tests.append(self.comparison(functions.eq, branch, subject, test))
        return self._chosen(node, tests, values, node.args.get("default"))

    def if_(self, node: exp.Expr) -> Typed:
        test = self.condition(node.this, "if() takes a condition")
        return self._chosen(node, [test], [node.args["true"]], node.args.get("false"))

    def _chosen(self, node: exp.Expr, tests: list[Typed], nodes: list[exp.Expr], other: exp.Expr | None) -> Typed:
        values = self.alike(node, *nodes, other if other is not None else exp.Null())
        dtype = values[0].dtype
        branches = [(t.expr, v.expr) for t, v in zip(tests, values, strict=False)]
        if any(v.fallible for v in (*tests[1:], *values)):
            return sheltered(Choice(tuple(branches), values[-1].expr, dtype), self._columns(node), dtype)
        chain: Any = pl
        for test, value in branches:
            chain = chain.when(test).then(value)
        return Typed(chain.otherwise(values[-1].expr), dtype, tests[0].fallible)

    def coalesce(self, node: exp.Expr) -> Typed:
        values = self.alike(node, *_operands(node))
        dtype = values[0].dtype
        if any(v.fallible for v in values[1:]):
            return sheltered(First(tuple(v.expr for v in values), dtype), self._columns(node), dtype)
        return Typed(pl.coalesce([v.expr for v in values]), dtype, values[0].fallible)

    def nullif(self, node: exp.Expr) -> Typed:
        value, other = self.of(node.this), node.args["expression"]
        equal = self.comparison(functions.eq, node, node.this, other)
        return applied(functions.null_where, [value, equal], value.dtype)

    def extreme(self, greatest: bool, node: exp.Expr) -> Typed:
        """greatest and least."""
        values = self.alike(node, *_operands(node), promote=False)
        return applied(partial(functions.extreme, greatest), values, values[0].dtype)

    # -- texts ---------------------------------------------------------------------------------------------------------
    def of_text(self, compute: Callable[[pl.Expr], pl.Expr], dtype: pl.DataType, node: exp.Expr) -> Typed:
        given = self.text(node.this)
        return Typed(compute(given.expr), dtype, given.fallible)

    def joined(self, *nodes: exp.Expr) -> Typed:
        parts = [self.text(n) for n in nodes]
        return Typed(pl.concat_str([p.expr for p in parts]), TEXT, any(p.fallible for p in parts))

    def like(self, node: exp.Expr) -> Typed:
        pattern = node.args["expression"]
        if not (isinstance(pattern, exp.Literal) and pattern.is_string):
            raise Refused(node, "LIKE takes a literal pattern")
        regex = functions.like_regex(pattern.name)
        if regex is None:
            raise Refused(pattern, "in a pattern of LIKE a backslash stands before %, _ or another backslash")
        flags = "(?is)" if isinstance(node, exp.ILike) else "(?s)"
        given = self.text(node.this)
        found = given.expr.str.contains(f"{flags}^{regex}$")
        return Typed(~found if node.args.get("negate") else found, BOOLEAN, given.fallible)

    def substring(self, node: exp.Expr) -> Typed:
        length = node.args.get("length")
        numbers = [self.cast(n, BIGINT) for n in (node.args["start"], length) if n is not None]
        return applied(functions.substring, [self.text(node.this), *numbers], TEXT)

    def trim(self, node: exp.Expr) -> Typed:
        what = node.args.get("expression")
        characters = Typed(pl.lit(" "), TEXT) if what is None else self.text(what)
        where = str(node.args.get("position") or "BOTH").upper()
        text = self.text(node.this)
        strip = {"LEADING": text.expr.str.strip_chars_start, "TRAILING": text.expr.str.strip_chars_end}
        found = strip.get(where, text.expr.str.strip_chars)(characters.expr)
        return Typed(found, TEXT, text.fallible or characters.fallible)

    # -- time ----------------------------------------------------------------------------------------------------------
    def converted(self, node: exp.Expr) -> Typed:
        """CAST, which raises where a row has no value, and TRY_CAST, which does not."""
        to = node.args["to"]
        if to.this not in CAST_TYPES:
            raise Refused(node, f"cannot cast to {to.sql('spark')}")
        given, target = self.of(node.this), CAST_TYPES[to.this]
        if not castable(given.dtype, target):
            raise Refused(node, f"cannot cast {type_name(given.dtype)} to {type_name(target)}")
        return cast(given, target, written(node), lenient=bool(node.args.get("safe")))

    def truncated(self, node: exp.Expr) -> Typed:
        span = unit(str(node.args["unit"].name))
        if span is None:
            raise Refused(node, f"date_trunc takes one of the units {listing(UNITS)}")
        every = {"minute": "m", "microsecond": "us", "millisecond": "ms"}.get(span, span[0])
        given = self.cast(node.this, TIMESTAMP)
        return Typed(given.expr.dt.truncate(f"1{every}"), TIMESTAMP, given.fallible)

    def as_date(self, node: exp.Expr) -> Typed:
        """to_date(), and sqlglot's wrapper around the argument of year(), month() and day()."""
        if node.args.get("format") is not None:
            raise Refused(node, "to_date with a format has no operator")
        given = self.of(node.this)
        if not castable(given.dtype, DATE):
            raise Refused(node, f"a date is needed here, and this is of type {type_name(given.dtype)}")
        return cast(given, DATE, written(node.this))

    def field(self, name: str, node: exp.Expr) -> Typed:
        """A part of a date, or of the time of day."""
        dtype = self.of(node).dtype
        target = DATE if name in FIELDS[:3] else TIMESTAMP
        given = self.of(node) if isinstance(dtype, pl.Datetime) else self.cast(node, target)
        found: pl.Expr = getattr(given.expr.dt, name)()
        return Typed(found.cast(INT), INT, given.fallible)

    def extract(self, node: exp.Expr) -> Typed:
        name = node.this.name.lower()
        if name not in FIELDS:
            raise Refused(node, f"cannot extract {name!r}")
        inner = node.args["expression"]
        if name != "second":
            return self.field(name, inner)
        given = self.cast(inner, TIMESTAMP)
        return applied(functions.seconds, [given], functions.SECONDS)


def _operands(node: exp.Expr) -> list[exp.Expr]:
    this = [node.this] if isinstance(node.args.get("this"), exp.Expr) else []
    return [*this, *(node.args.get("expressions") or [])]


Handler = Callable[[Translator, Any], Typed]


def _bound(method: Callable[..., Typed], *given: Any, **named: Any) -> Handler:
    """A method of the translator with its first arguments: what tables hold."""
    return lambda translator, node: method(translator, *given, node, **named)


def _calculation(symbol: str, lenient: bool = False) -> Handler:
    return _bound(Translator.binary, symbol, lenient=lenient)


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
    exp.EQ: _bound(Translator.compared, functions.eq),
    exp.NullSafeEQ: _bound(Translator.compared, pl.Expr.eq_missing),
    exp.NullSafeNEQ: _bound(Translator.compared, pl.Expr.ne_missing),
    exp.NEQ: _bound(Translator.compared, functions.ne),
    exp.GT: _bound(Translator.compared, functions.gt),
    exp.GTE: _bound(Translator.compared, functions.ge),
    exp.LT: _bound(Translator.compared, functions.lt),
    exp.LTE: _bound(Translator.compared, functions.le),
    exp.And: _bound(Translator.connected, False),
    exp.Or: _bound(Translator.connected, True),
    exp.Pow: Translator.power,
    exp.DPipe: lambda t, n: t.joined(n.this, n.args["expression"]),
}
UNARY: dict[type[exp.Expr], Handler] = {
    exp.Paren: lambda t, n: t.of(n.this),
    exp.Not: Translator.negated,
    exp.Abs: Translator.absolute,
    exp.Floor: _bound(Translator.whole, False),
    exp.Ceil: _bound(Translator.whole, True),
    exp.Sqrt: _bound(Translator.of_double, pl.Expr.sqrt),
    exp.Exp: _bound(Translator.of_double, pl.Expr.exp),
    exp.Ln: lambda t, n: arithmetic.logarithm(t.double(n.this)),
    exp.Upper: _bound(Translator.of_text, lambda s: s.str.to_uppercase(), TEXT),
    exp.Lower: _bound(Translator.of_text, lambda s: s.str.to_lowercase(), TEXT),
    exp.Length: _bound(Translator.of_text, lambda s: s.str.len_chars().cast(BIGINT), BIGINT),
    exp.Year: lambda t, n: t.field("year", n.this),
    exp.Month: lambda t, n: t.field("month", n.this),
    exp.Day: lambda t, n: t.field("day", n.this),
    exp.DayOfMonth: lambda t, n: t.field("day", n.this),
    exp.Hour: lambda t, n: t.field("hour", n.this),
    exp.Minute: lambda t, n: t.field("minute", n.this),
    exp.Second: lambda t, n: t.field("second", n.this),
}
HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.Column: Translator.column,
    exp.Literal: Translator.literal,
    exp.Neg: Translator.negative,
    exp.Boolean: lambda _t, n: Typed(pl.lit(bool(n.this)), BOOLEAN),
    exp.Null: lambda _t, _n: Typed(pl.lit(None), NOTHING),
    exp.Interval: Translator.interval,
    exp.Cast: Translator.converted,
    exp.TryCast: Translator.converted,
    exp.Case: Translator.case,
    exp.If: Translator.if_,
    exp.In: Translator.in_,
    exp.Between: Translator.between,
    exp.Is: Translator.is_,
    exp.Like: Translator.like,
    exp.ILike: Translator.like,
    exp.Coalesce: Translator.coalesce,
    exp.Concat: lambda t, n: t.joined(*_operands(n)),
    exp.Greatest: _bound(Translator.extreme, True),
    exp.Least: _bound(Translator.extreme, False),
    exp.Nullif: Translator.nullif,
    exp.Substring: Translator.substring,
    exp.Round: Translator.round,
    exp.Trim: Translator.trim,
    exp.TimestampTrunc: Translator.truncated,
    exp.Extract: Translator.extract,
    exp.TsOrDsToDate: Translator.as_date,
}
