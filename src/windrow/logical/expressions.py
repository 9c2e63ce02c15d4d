"""Scalar expressions: sqlglot trees, resolved against a schema, typed, and translated to Polars.

One translation serves every host, so an expression means the same in process and on Spark. Where engines differ:
division and modulo by zero give NULL, ``/`` of integers is a double, ``%`` has the sign of its left side, integer
arithmetic is in 64 bits, NULL follows three-valued logic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import time, timedelta
from fractions import Fraction
from typing import Any

import polars as pl
import sqlglot
from polars.exceptions import PolarsError
from sqlglot import exp

from windrow.errors import QueryError, listing, underline
from windrow.logical.consumed import check
from windrow.logical.reading import SparkSql, named, place, read, written
from windrow.operators.admit import iso_timestamp

Schema = Mapping[str, pl.DataType]

CAST_TYPES: dict[exp.DType, pl.DataType] = {
    exp.DType.BOOLEAN: pl.Boolean(),
    exp.DType.TINYINT: pl.Int8(),
    exp.DType.SMALLINT: pl.Int16(),
    exp.DType.INT: pl.Int32(),
    exp.DType.BIGINT: pl.Int64(),
    exp.DType.FLOAT: pl.Float32(),
    exp.DType.DOUBLE: pl.Float64(),
    exp.DType.TEXT: pl.String(),
    exp.DType.VARCHAR: pl.String(),
    exp.DType.DATE: pl.Date(),
    exp.DType.TIMESTAMP: pl.Datetime("us"),
    exp.DType.TIMESTAMPNTZ: pl.Datetime("us"),
    exp.DType.TIMESTAMPTZ: pl.Datetime("us", "UTC"),
    exp.DType.TIMESTAMPLTZ: pl.Datetime("us", "UTC"),
}

ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.IntDiv)
REGEX_SPECIAL = "\\.+*?()|[]{}^$#&-~"
TRUE, FALSE = ["true", "t", "yes", "y", "1"], ["false", "f", "no", "n", "0"]  # as Spark reads text

UNITS = {  # microseconds; months and years have no fixed length and are refused
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
ABBREVIATIONS = {"us": "microsecond", "ms": "millisecond", "s": "second", "sec": "second", "m": "minute"}
ABBREVIATIONS |= {"min": "minute", "h": "hour", "hr": "hour", "d": "day", "w": "week"}


def unit(name: str) -> str | None:
    """The unit of time by any of its names.

    >>> unit("Minutes"), unit("s"), unit("month")
    ('minute', 'second', None)
    """
    lower = name.lower()
    lower = ABBREVIATIONS.get(lower, lower)
    singular = lower if lower in UNITS else lower.removesuffix("s")
    singular = ABBREVIATIONS.get(singular, singular)
    return singular if singular in UNITS else None


def fail(node: exp.Expr, message: str, sql: str | None = None) -> QueryError:
    """A query error that underlines the node, if its place in the text is known."""
    found = place(node)
    return QueryError(message if sql is None or found is None else f"{message}\n{underline(sql, *found)}")


def parse(text: str) -> exp.Expr:
    """A scalar expression from SQL text."""
    if not isinstance(text, str):
        raise QueryError(f"{text!r} is not an expression: write SQL in quotes, as in 'len + 1'")
    found = read(lambda: SparkSql().parse_into(exp.Condition, text), text, f"cannot read {text!r}: ")
    if len(found) != 1 or found[0] is None:
        raise QueryError(f"cannot read {text!r}: expected one expression")
    tree: exp.Expr = found[0]
    check(tree, text)
    return tree


def column_or(text: str, schema: Schema) -> exp.Expr:
    """The column that a text names exactly, keyword or not, with dots or not; else an expression."""
    return exp.column(text) if isinstance(text, str) and text in schema else parse(text)


def resolve(node: exp.Expr, schema: Schema, sql: str | None = None) -> exp.Expr:
    """A copy with every column spelled as in the schema (names match exactly, or else without regard to case)."""
    node = node.copy()
    for column in list(node.find_all(exp.Column)):
        if column.table:
            parts = [p.name for p in column.parts]
            alone = f"unknown table {'.'.join(parts[:-1])!r} in {'.'.join(parts)}: name the column alone"
            raise dotted(column, schema, sql) or fail(column, alone, sql)
        name = column.name
        if name in schema:
            continue
        alike = [c for c in schema if c.lower() == name.lower()]
        if len(alike) != 1:
            what = "ambiguous" if alike else "unknown"
            raise fail(column, f"{what} column {name!r}; there are: {listing(alike or visible(schema))}", sql)
        column.this.set("this", alike[0])
    return node


def dotted(column: exp.Column, schema: Schema, sql: str | None) -> QueryError | None:
    """What is wrong with a name with dots that is not about a table."""
    parts = [p.name for p in column.parts]
    whole = ".".join(parts)
    if whole in schema:
        return fail(column, f"a column whose name has dots is written in backquotes: `{whole}`", sql)
    if any(c.lower() == parts[0].lower() for c in schema):
        return fail(column, f"{whole}: fields of a column are not supported", sql)
    return None


def sql_type(text: str) -> pl.DataType:
    """A type as SQL writes it.

    >>> sql_type("ARRAY<DOUBLE>"), sql_type("STRUCT<n: BIGINT>"), sql_type("DECIMAL(10, 2)")
    (List(Float64), Struct({'n': Int64}), Decimal(precision=10, scale=2))
    """
    if not isinstance(text, str):
        raise QueryError(f"{text!r} is not a type: write it as SQL does, as in 'BIGINT'")
    try:
        return _plain_type(sqlglot.exp.DataType.build(text, dialect="spark"), text)
    except sqlglot.errors.SqlglotError as error:
        raise QueryError(f"cannot read the type {text!r}: {error}") from None


def _plain_type(found: exp.DataType, text: str) -> pl.DataType:
    match found.this:
        case exp.DType.ARRAY | exp.DType.LIST:
            return pl.List(_plain_type(found.expressions[0], text))
        case exp.DType.STRUCT:
            return pl.Struct({c.name: _plain_type(c.kind or c.args["kind"], text) for c in found.expressions})
        case exp.DType.DECIMAL:
            digits = [int(e.this.name) for e in found.expressions]
            return pl.Decimal(*(digits or [10, 0]))
        case exp.DType.BINARY:
            return pl.Binary()
        case kind if kind in CAST_TYPES:
            return CAST_TYPES[kind]
    raise QueryError(
        f"the type {text!r} is not supported here; there are: ARRAY, BINARY, DECIMAL, STRUCT, and those of CAST"
    )


def visible(schema: Schema) -> list[str]:
    """The columns a user may name."""
    return [c for c in schema if not c.startswith("@")]


def dtype_of(node: exp.Expr, schema: Schema, sql: str | None = None) -> pl.DataType:
    """The type of a resolved expression; raises QueryError where its parts do not fit together."""
    if isinstance(node, exp.Column) and isinstance(found := schema.get(node.name), pl.DataType):
        return found  # most expressions are a column, and to ask Polars takes a millisecond
    return _Translator(schema, sql).dtype(node)


def translate(node: exp.Expr, schema: Schema, sql: str | None = None) -> pl.Expr:
    """The Polars expression of a resolved tree."""
    return _Translator(schema, sql).of(node)


class _Translator:
    def __init__(self, schema: Schema, sql: str | None) -> None:
        self.schema = schema
        self.sql = sql
        # Types are asked for again and again on the way up; without these a long chain would take for ever.
        self._exprs: dict[int, pl.Expr] = {}
        self._dtypes: dict[int, pl.DataType] = {}

    def of(self, node: exp.Expr) -> pl.Expr:
        if id(node) not in self._exprs:
            self._exprs[id(node)] = self._translated(node)
        return self._exprs[id(node)]

    def dtype(self, node: exp.Expr) -> pl.DataType:
        if id(node) not in self._dtypes:
            try:
                found = pl.DataFrame(schema=self.schema).select(self.of(node)).to_series().dtype
            except PolarsError as error:
                reason = str(error).split("\n")[0]
                raise fail(node, f"the types in {written(node, self.sql)} do not fit: {reason}", self.sql) from None
            self._dtypes[id(node)] = found
        return self._dtypes[id(node)]

    def _translated(self, node: exp.Expr) -> pl.Expr:
        if (handler := _HANDLERS.get(type(node))) is not None:
            return handler(self, node)
        if (unary := _UNARY.get(type(node))) is not None:
            if more := [n for n, v in node.args.items() if v and n != "this"]:
                raise fail(node, f"{node.key}() with {listing(more)} is not supported", self.sql)
            if isinstance(node, exp.Not):
                self._booleans(node.this)
            return unary(self._wide(node.this) if isinstance(node, exp.Abs) else self.of(node.this))
        if isinstance(node, exp.Binary) and (binary := _BINARY.get(type(node))) is not None:
            if isinstance(node, exp.Connector):
                self._booleans(node.left, node.right)
            if isinstance(node, ARITHMETIC):
                return binary(self._wide(node.left), self._wide(node.right))
            left, right = self._aligned(node.left, node.right)
            return binary(left, right)
        raise fail(node, f"{named(node, self.sql)!r} is not supported in expressions", self.sql)

    def _aligned(self, left: exp.Expr, right: exp.Expr) -> tuple[pl.Expr, pl.Expr]:
        """Both sides of a comparison; a text literal beside a timestamp or date is read as one."""
        sides = [left, right]
        found = [self.of(side) for side in sides]
        for i, side in enumerate(sides):
            other = self.dtype(sides[1 - i])
            if not other.is_temporal() or isinstance(other, pl.Duration):
                continue
            if isinstance(side, exp.Literal) and side.is_string:
                found[i] = self._temporal(side, other)
            elif self.dtype(side).is_numeric():
                raise fail(side, f"a {other} cannot be compared with a number", self.sql)
        return found[0], found[1]

    def _booleans(self, *nodes: exp.Expr) -> None:
        for node in nodes:
            if (dtype := self.dtype(node)) not in (pl.Boolean, pl.Null):
                raise fail(node, f"AND, OR and NOT take conditions, and this is of type {dtype}", self.sql)

    def _wide(self, node: exp.Expr) -> pl.Expr:
        """Small integers in 64 bits, so that arithmetic does not wrap around unseen."""
        return self.of(node).cast(pl.Int64) if self.dtype(node).is_integer() else self.of(node)

    def _temporal(self, literal: exp.Expr, dtype: pl.DataType) -> pl.Expr:
        value = pl.select(iso_timestamp(pl.lit(literal.name))).to_series()
        if value[0] is None:
            raise fail(literal, f"{literal.name!r} is not a timestamp or date", self.sql)
        if dtype == pl.Date and value.dt.time()[0] != time():
            raise fail(literal, f"{literal.name!r} has a time of day, and is compared with a date", self.sql)
        zoned = isinstance(dtype, pl.Datetime) and dtype.time_zone is not None
        found = value if zoned else value.dt.replace_time_zone(None)
        return pl.lit(found.cast(dtype)).first()

    def column(self, node: exp.Expr) -> pl.Expr:
        return pl.col(node.name)

    def literal(self, node: exp.Expr) -> pl.Expr:
        if node.args["is_string"]:
            return pl.lit(node.name)
        return pl.lit(float(node.name)) if any(c in node.name for c in ".eE") else pl.lit(int(node.name))

    def negative(self, node: exp.Expr) -> pl.Expr:
        if isinstance(node.this, exp.Literal) and node.this.is_int:
            return pl.lit(-int(node.this.name))  # -2**63 is a number of 64 bits, 2**63 is not
        return -self._wide(node.this)

    def interval(self, node: exp.Expr) -> pl.Expr:
        span = unit(str(node.args.get("unit") or ""))
        if span is None:
            raise fail(node, f"an interval needs one of the units {listing(UNITS)}", self.sql)
        try:
            amount = Fraction(node.this.name) if isinstance(node.this, exp.Literal) else None
        except ValueError:
            amount = None
        if amount is None:
            raise fail(node, "an interval needs a number, as in INTERVAL '10' SECOND", self.sql)
        return pl.lit(timedelta(microseconds=round(amount * UNITS[span])))

    def cast(self, node: exp.Expr) -> pl.Expr:
        to = node.args["to"].this
        if to not in CAST_TYPES:
            raise fail(node, f"cannot cast to {node.args['to'].sql('spark')}", self.sql)
        inner = self.of(node.this)
        target = CAST_TYPES[to]
        if target == pl.Boolean and self.dtype(node.this) == pl.String:
            word = inner.str.strip_chars().str.to_lowercase()
            return pl.when(word.is_in(TRUE)).then(True).when(word.is_in(FALSE)).then(False)
        if target.is_temporal() and self.dtype(node.this) == pl.String:
            if target == pl.Date:
                return iso_timestamp(inner).dt.date()
            zoned = isinstance(target, pl.Datetime) and target.time_zone is not None
            return iso_timestamp(inner) if zoned else iso_timestamp(inner).dt.replace_time_zone(None)
        return inner.cast(target, strict=False)

    def case(self, node: exp.Expr) -> pl.Expr:
        subject = node.args.get("this")
        chain: Any = pl
        for branch in node.args["ifs"]:
            test = self.of(branch.this) if subject is None else self.of(subject) == self.of(branch.this)
            chain = chain.when(test).then(self.of(branch.args["true"]))
        default = node.args.get("default")
        result: pl.Expr = chain.otherwise(self.of(default) if default is not None else None)
        return result

    def in_(self, node: exp.Expr) -> pl.Expr:
        items = node.args.get("expressions") or []
        if not items or any(not isinstance(i, (exp.Literal, exp.Neg, exp.Null)) for i in items):
            raise fail(node, "IN takes a list of literals", self.sql)
        tests = [_eq(*self._aligned(node.this, item)) for item in items]
        found = tests[0]
        for test in tests[1:]:
            found = found | test
        return found

    def between(self, node: exp.Expr) -> pl.Expr:
        if node.args.get("symmetric"):
            raise fail(node, "BETWEEN SYMMETRIC is not supported", self.sql)
        this, low = self._aligned(node.this, node.args["low"])
        _, high = self._aligned(node.this, node.args["high"])
        return (this >= low) & (this <= high)

    def is_(self, node: exp.Expr) -> pl.Expr:
        this = self.of(node.this)
        other = node.args["expression"]
        if isinstance(other, exp.Null):
            return this.is_null()
        return this.eq_missing(self.of(other))

    def like(self, node: exp.Expr) -> pl.Expr:
        pattern = node.args["expression"]
        if not (isinstance(pattern, exp.Literal) and pattern.is_string):
            raise fail(node, "LIKE takes a literal pattern", self.sql)
        flags = "(?is)" if isinstance(node, exp.ILike) else "(?s)"
        found = self.of(node.this).str.contains(f"{flags}^{_like_regex(pattern.name)}$")
        return ~found if node.args.get("negate") else found

    def many(self, node: exp.Expr) -> list[pl.Expr]:
        return [self.of(n) for n in _operands(node)]

    def substring(self, node: exp.Expr) -> pl.Expr:
        length = node.args.get("length")
        start = self.of(node.args["start"])
        offset = pl.when(start > 0).then(start - 1).otherwise(start)
        return self.of(node.this).str.slice(offset, None if length is None else self.of(length))

    def round(self, node: exp.Expr) -> pl.Expr:
        places = self._places(node)
        value = self.of(node.this)
        if places >= 0:
            return value.round(places, mode="half_away_from_zero")
        scale = 10.0**-places
        return (value / scale).round(0, mode="half_away_from_zero") * scale

    def _places(self, node: exp.Expr) -> int:
        given = node.args.get("decimals")
        sign = -1 if isinstance(given, exp.Neg) else 1
        literal = given.this if isinstance(given, exp.Neg) else given
        if given is None:
            return 0
        if not (isinstance(literal, exp.Literal) and literal.is_int):
            raise fail(node, "round() takes a literal number of places", self.sql)
        return sign * int(literal.name)

    def trim(self, node: exp.Expr) -> pl.Expr:
        what = node.args.get("expression")
        characters = " " if what is None else self.of(what)
        where = str(node.args.get("position") or "BOTH").upper()
        text = self.of(node.this).str
        strip = {"LEADING": text.strip_chars_start, "TRAILING": text.strip_chars_end}.get(where, text.strip_chars)
        return strip(characters)

    def greatest(self, node: exp.Expr) -> pl.Expr:
        """NaN is the greatest value, as in the aggregates."""
        values = self.many(node)
        found = pl.max_horizontal(values)
        nan = [v.is_nan() for v, n in zip(values, _operands(node), strict=True) if self.dtype(n).is_float()]
        return pl.when(pl.any_horizontal(nan).fill_null(False)).then(float("nan")).otherwise(found) if nan else found

    def truncated(self, node: exp.Expr) -> pl.Expr:
        span = unit(str(node.args["unit"].name))
        if span is None:
            raise fail(node, f"date_trunc takes one of the units {listing(UNITS)}", self.sql)
        every = {"minute": "m", "microsecond": "us", "millisecond": "ms"}.get(span, span[0])
        return self.of(node.this).dt.truncate(f"1{every}")

    def as_date(self, node: exp.Expr) -> pl.Expr:
        """to_date(), and sqlglot's wrapper around the argument of year(), month() and day()."""
        if node.args.get("format") is not None:
            raise fail(node, "to_date with a format has no operator", self.sql)
        inner, dtype = self.of(node.this), self.dtype(node.this)
        if dtype == pl.String:
            inner = iso_timestamp(inner)
        return inner if dtype == pl.Date else inner.dt.date()

    def extract(self, node: exp.Expr) -> pl.Expr:
        field = node.this.name.lower()
        if field not in ("year", "month", "day", "hour", "minute", "second"):
            raise fail(node, f"cannot extract {field!r}", self.sql)
        found: pl.Expr = getattr(self.of(node.args["expression"]).dt, field)()
        return found


def _eq(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    return left == right


def _no_zero(divisor: pl.Expr) -> pl.Expr:
    return pl.when(divisor != 0).then(divisor)


def _mod(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """The remainder with the sign of the left side; the floored one has that of the right."""
    right = _no_zero(right)
    floored = left % right
    return pl.when((floored != 0) & ((left < 0) != (right < 0))).then(floored - right).otherwise(floored)


def _div(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """The quotient cut off towards zero."""
    right = _no_zero(right)
    floored = left // right
    found = pl.when((left % right != 0) & ((left < 0) != (right < 0))).then(floored + 1).otherwise(floored)
    return found.cast(pl.Int64, strict=False)


def _nullif(value: pl.Expr, other: pl.Expr) -> pl.Expr:
    return pl.when((value == other).fill_null(False)).then(None).otherwise(value)


def _operands(node: exp.Expr) -> list[exp.Expr]:
    this = [node.this] if isinstance(node.args.get("this"), exp.Expr) else []
    return [*this, *(node.args.get("expressions") or [])]


def _like_regex(pattern: str) -> str:
    """``%`` and ``_`` as regular expressions; a backslash makes the next character an ordinary one."""
    found, escaped = [], False
    for c in pattern:
        if not escaped and c == "\\":
            escaped = True
            continue
        wild = {"%": ".*", "_": "."}.get(c) if not escaped else None
        found.append(wild or ("\\" + c if c in REGEX_SPECIAL else c))
        escaped = False
    return "".join(found)


_BINARY: dict[type[exp.Expr], Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    exp.Add: lambda a, b: a + b,
    exp.Sub: lambda a, b: a - b,
    exp.Mul: lambda a, b: a * b,
    exp.Div: lambda a, b: a / _no_zero(b),
    exp.IntDiv: _div,
    exp.Mod: _mod,
    exp.EQ: _eq,
    exp.NullSafeEQ: lambda a, b: a.eq_missing(b),
    exp.NullSafeNEQ: lambda a, b: a.ne_missing(b),
    exp.NEQ: lambda a, b: a != b,
    exp.GT: lambda a, b: a > b,
    exp.GTE: lambda a, b: a >= b,
    exp.LT: lambda a, b: a < b,
    exp.LTE: lambda a, b: a <= b,
    exp.And: lambda a, b: a & b,
    exp.Or: lambda a, b: a | b,
    exp.Pow: lambda a, b: a.cast(pl.Float64) ** b,
    exp.DPipe: lambda a, b: a.cast(pl.String) + b.cast(pl.String),
}
_UNARY: dict[type[exp.Expr], Callable[[pl.Expr], pl.Expr]] = {
    exp.Paren: lambda a: a,
    exp.Not: lambda a: ~a,
    exp.Abs: lambda a: a.abs(),
    exp.Floor: lambda a: a.floor().cast(pl.Int64, strict=False),  # NULL for what no integer can hold
    exp.Ceil: lambda a: a.ceil().cast(pl.Int64, strict=False),
    exp.Sqrt: lambda a: a.cast(pl.Float64).sqrt(),
    exp.Exp: lambda a: a.cast(pl.Float64).exp(),
    exp.Ln: lambda a: a.cast(pl.Float64).log(),
    exp.Upper: lambda a: a.str.to_uppercase(),
    exp.Lower: lambda a: a.str.to_lowercase(),
    exp.Length: lambda a: a.str.len_chars().cast(pl.Int64),
    exp.Year: lambda a: a.dt.year(),
    exp.Month: lambda a: a.dt.month(),
    exp.Day: lambda a: a.dt.day(),
    exp.Hour: lambda a: a.dt.hour(),
    exp.Minute: lambda a: a.dt.minute(),
    exp.Second: lambda a: a.dt.second(),
}
_HANDLERS: dict[type[exp.Expr], Callable[[_Translator, exp.Expr], pl.Expr]] = {
    exp.Column: _Translator.column,
    exp.Literal: _Translator.literal,
    exp.Neg: _Translator.negative,
    exp.Boolean: lambda _t, n: pl.lit(bool(n.this)),
    exp.Null: lambda _t, _n: pl.lit(None),
    exp.Interval: _Translator.interval,
    exp.Cast: _Translator.cast,
    exp.TryCast: _Translator.cast,
    exp.Case: _Translator.case,
    exp.If: lambda t, n: (
        pl.when(t.of(n.this))
        .then(t.of(n.args["true"]))
        .otherwise(t.of(n.args["false"]) if n.args.get("false") is not None else None)
    ),
    exp.In: _Translator.in_,
    exp.Between: _Translator.between,
    exp.Is: _Translator.is_,
    exp.Like: _Translator.like,
    exp.ILike: _Translator.like,
    exp.Coalesce: lambda t, n: pl.coalesce(t.many(n)),
    exp.Concat: lambda t, n: pl.concat_str(t.many(n)),
    exp.Greatest: _Translator.greatest,
    exp.Least: lambda t, n: pl.min_horizontal(t.many(n)),
    exp.Nullif: lambda t, n: _nullif(*t._aligned(n.this, n.args["expression"])),
    exp.Substring: _Translator.substring,
    exp.Round: _Translator.round,
    exp.Trim: _Translator.trim,
    exp.TimestampTrunc: _Translator.truncated,
    exp.Extract: _Translator.extract,
    exp.TsOrDsToDate: _Translator.as_date,
}
