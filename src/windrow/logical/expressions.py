"""Scalar expressions: sqlglot trees, resolved against a schema, typed, and translated to Polars.

One translation serves every host, so an expression means the same in process and on Spark: what Spark SQL gives in its
default (ANSI) mode. A row for which an expression has no value (an integer beyond 64 bits, a division by zero, a text
that is no number) stops the query with a ResultError. What expressions mean is in ``scalar``.
"""

from __future__ import annotations

from typing import Any

import polars as pl
import sqlglot
from sqlglot import exp

from windrow.errors import QueryError, listing, underline
from windrow.logical.scalar.tables import HANDLERS
from windrow.logical.scalar.translator import Translator
from windrow.logical.scalar.types import CAST_TYPES, Refused, Schema, Typed
from windrow.logical.scalar.units import UNITS, unit

__all__ = ["UNITS", "Schema", "dtype_of", "fail", "parse", "resolve", "sql_type", "translate", "unit", "visible"]


def fail(node: exp.Expr, message: str, sql: str | None = None) -> QueryError:
    """A query error that underlines the node, if its place in the text is known."""
    places = [n.meta for n in node.walk() if "start" in n.meta]
    if sql is None or not places:
        return QueryError(message)
    start, end = min(p["start"] for p in places), max(p["end"] for p in places)
    return QueryError(f"{message}\n{underline(sql, start, end)}")


def parse(text: str) -> exp.Expr:
    """A scalar expression from SQL text."""
    try:
        return sqlglot.parse_one(text, into=exp.Condition, dialect="spark")
    except sqlglot.errors.SqlglotError as error:
        found: dict[str, Any] = next(iter(getattr(error, "errors", [])), {})
        message = found.get("description") or str(error)
        if "<class" in message:  # sqlglot names its own classes where an operand is missing
            message = "the expression is not complete"
        raise QueryError(f"cannot read {text!r}: {message}") from None


def resolve(node: exp.Expr, schema: Schema, sql: str | None = None) -> exp.Expr:
    """A copy with every column spelled as in the schema (names match exactly, or else without regard to case)."""
    node = node.copy()
    for column in list(node.find_all(exp.Column)):
        name = column.name
        if name in schema:
            continue
        alike = [c for c in schema if c.lower() == name.lower()]
        if len(alike) != 1:
            what = "ambiguous" if alike else "unknown"
            raise fail(column, f"{what} column {name!r}; there are: {listing(alike or visible(schema))}", sql)
        column.this.set("this", alike[0])
    return node


def sql_type(text: str) -> pl.DataType:
    """A type as SQL writes it.

    >>> sql_type("ARRAY<DOUBLE>"), sql_type("STRUCT<n: BIGINT>"), sql_type("DECIMAL(10, 2)")
    (List(Float64), Struct({'n': Int64}), Decimal(precision=10, scale=2))
    """
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
    return _typed(node, schema, sql).dtype


def translate(node: exp.Expr, schema: Schema, sql: str | None = None) -> pl.Expr:
    """The Polars expression of a resolved tree. It raises a ResultError for a row that has no value, as Spark does."""
    return _typed(node, schema, sql).expr


def _typed(node: exp.Expr, schema: Schema, sql: str | None) -> Typed:
    try:
        return Translator(schema, HANDLERS).of(node)
    except Refused as refused:
        raise fail(refused.node, str(refused), sql) from None
