"""Scalar expressions: sqlglot trees, resolved against a schema, typed, and translated to Polars.

One translation serves every host, so an expression means the same in process and on Spark: what Spark SQL gives in its
default (ANSI) mode. A row for which an expression has no value (an integer beyond 64 bits, a division by zero, a text
that is no number) stops the query with a ResultError. What expressions mean is in ``scalar``.
"""

from __future__ import annotations

import polars as pl
import sqlglot
from sqlglot import exp

from windrow.errors import QueryError, listing, underline
from windrow.logical.consumed import check
from windrow.logical.reading import SparkSql, place, read, written
from windrow.logical.scalar.tables import HANDLERS
from windrow.logical.scalar.translator import Translator
from windrow.logical.scalar.types import CAST_TYPES, Refused, Schema, Typed

__all__ = [
    "Schema",
    "column_or",
    "dotted",
    "dtype_of",
    "fail",
    "parse",
    "resolve",
    "sql_type",
    "translate",
    "visible",
]


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
            raise fail(column, f"{what} column {name!r}; available: {listing(alike or visible(schema))}", sql)
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
        f"the type {text!r} is not supported here; available: ARRAY, BINARY, DECIMAL, STRUCT, and those of CAST"
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
        message = str(refused).replace(written(refused.node), written(refused.node, sql))  # as it stands in the text
        raise fail(refused.node, message, sql) from None
