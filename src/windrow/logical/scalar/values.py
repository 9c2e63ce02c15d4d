"""Casts, and functions of texts and of time."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
from sqlglot import exp

from windrow.errors import listing
from windrow.logical.reading import written
from windrow.logical.scalar import functions
from windrow.logical.scalar.casts import cast, castable
from windrow.logical.scalar.strict import applied
from windrow.logical.scalar.translator import Translator
from windrow.logical.scalar.types import (
    BIGINT,
    BOOLEAN,
    CAST_TYPES,
    DATE,
    INT,
    TEXT,
    TIMESTAMP,
    Refused,
    Typed,
    type_name,
)
from windrow.spec.units import UNITS, unit

FIELDS = ("year", "month", "day", "hour", "minute", "second")


def of_text(t: Translator, compute: Callable[[pl.Expr], pl.Expr], dtype: pl.DataType, node: exp.Expr) -> Typed:
    given = t.text(node.this)
    return Typed(compute(given.expr), dtype, given.fallible)


def joined(t: Translator, *nodes: exp.Expr) -> Typed:
    parts = [t.text(n) for n in nodes]
    return Typed(pl.concat_str([p.expr for p in parts]), TEXT, any(p.fallible for p in parts))


def like(t: Translator, node: exp.Expr) -> Typed:
    pattern = node.args["expression"]
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise Refused(node, "LIKE takes a literal pattern")
    lower = isinstance(node, exp.ILike)  # both sides in lower case, which is not the same as without regard to case
    regex = functions.like_regex(pattern.name.lower() if lower else pattern.name)
    if regex is None:
        raise Refused(pattern, "in a pattern of LIKE a backslash stands before %, _ or another backslash")
    given = t.text(node.this)
    text = given.expr.str.to_lowercase() if lower else given.expr
    found = text.str.contains(f"(?s)^{regex}$")
    return Typed(~found if node.args.get("negate") else found, BOOLEAN, given.fallible)


def substring(t: Translator, node: exp.Expr) -> Typed:
    length = node.args.get("length")
    numbers = [t.cast(n, BIGINT) for n in (node.args["start"], length) if n is not None]
    return applied(functions.substring, [t.text(node.this), *numbers], TEXT)


def trim(t: Translator, node: exp.Expr) -> Typed:
    what = node.args.get("expression")
    characters = Typed(pl.lit(" "), TEXT) if what is None else t.text(what)
    where = str(node.args.get("position") or "BOTH").upper()
    text = t.text(node.this)
    strip = {"LEADING": text.expr.str.strip_chars_start, "TRAILING": text.expr.str.strip_chars_end}
    found = strip.get(where, text.expr.str.strip_chars)(characters.expr)
    return Typed(found, TEXT, text.fallible or characters.fallible)


def converted(t: Translator, node: exp.Expr) -> Typed:
    """CAST, which raises where a row has no value, and TRY_CAST, which does not."""
    to = node.args["to"]
    if to.this not in CAST_TYPES:
        raise Refused(node, f"cannot cast to {to.sql('spark')}")
    given, target = t.of(node.this), CAST_TYPES[to.this]
    if not castable(given.dtype, target):
        raise Refused(node, f"cannot cast {type_name(given.dtype)} to {type_name(target)}")
    return cast(given, target, written(node), lenient=bool(node.args.get("safe")))


def truncated(t: Translator, node: exp.Expr) -> Typed:
    span = unit(str(node.args["unit"].name))
    if span is None:
        raise Refused(node, f"date_trunc takes one of the units {listing(UNITS)}")
    every = {"minute": "m", "microsecond": "us", "millisecond": "ms"}.get(span, span[0])
    given = t.cast(node.this, TIMESTAMP)
    return Typed(given.expr.dt.truncate(f"1{every}"), TIMESTAMP, given.fallible)


def as_date(t: Translator, node: exp.Expr) -> Typed:
    """to_date(), and sqlglot's wrapper around the argument of year(), month() and day()."""
    if node.args.get("format") is not None:
        raise Refused(node, "to_date with a format is not supported")
    given = t.of(node.this)
    if not castable(given.dtype, DATE):
        raise Refused(node, f"a date is needed here, and this is of type {type_name(given.dtype)}")
    return cast(given, DATE, written(node.this))


def field(t: Translator, name: str, node: exp.Expr) -> Typed:
    """A part of a date, or of the time of day."""
    dtype = t.of(node).dtype
    target = DATE if name in FIELDS[:3] else TIMESTAMP
    given = t.of(node) if isinstance(dtype, pl.Datetime) else t.cast(node, target)
    found: pl.Expr = getattr(given.expr.dt, name)()
    return Typed(found.cast(INT), INT, given.fallible)


def extract(t: Translator, node: exp.Expr) -> Typed:
    name = node.this.name.lower()
    if name not in FIELDS:
        raise Refused(node, f"cannot extract {name!r}")
    inner = node.args["expression"]
    if name != "second":
        return field(t, name, inner)
    given = t.cast(inner, TIMESTAMP)
    return applied(functions.seconds, [given], functions.SECONDS)
