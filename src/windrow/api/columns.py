"""The columns of a source as a user writes them: SQL text, or names with types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from windrow.errors import QueryError
from windrow.logical.expressions import sql_type
from windrow.sources.frames import normal_type

Columns = str | Mapping[str, Any]
COLUMN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\W\d]\w*))\s*:?\s+(\S.*)", re.DOTALL)
TYPE = re.compile(r"(\w+)\s*(?:\([\d\s,]*\)|<(.*)>)?", re.DOTALL)
EXAMPLE = "schema='ts TIMESTAMP, k STRING'"


def columns(given: Columns) -> dict[str, pl.DataType]:
    """Names and types as they are inside a query.

    >>> columns("t BIGINT, `a b` DECIMAL(10, 2), s STRUCT<x: INT, y: STRING>")["a b"]
    Decimal(precision=10, scale=2)
    >>> columns({"t": "BIGINT", "k": pl.String}) == columns("t BIGINT, k STRING")
    True
    """
    if isinstance(given, str):
        pairs = [_column(part, given) for part in _parts(given)]
    elif isinstance(given, Mapping):
        pairs = [(name, _type(name, dtype)) for name, dtype in given.items()]
    else:
        raise QueryError(f"schema= must be SQL text or a dict, as in {EXAMPLE}, not a {type(given).__name__}")
    found: dict[str, pl.DataType] = {}
    for name, dtype in pairs:
        if name in found:
            raise QueryError(f"schema= has two columns {name!r}")
        found[name] = normal_type(dtype)
    if not found:
        raise QueryError(f"schema= has no columns: write them as in {EXAMPLE}")
    return found


def _parts(text: str) -> Iterator[str]:
    """The parts between commas that are not inside brackets."""
    part, depth = "", 0
    for piece in re.findall(r"`[^`]*`|.", text, re.DOTALL):
        depth += (piece in "(<") - (piece in ")>") if len(piece) == 1 else 0
        if piece == "," and depth == 0:
            yield part
            part = ""
        else:
            part += piece
    if part.strip() or part != text:
        yield part


def _column(part: str, text: str) -> tuple[str, pl.DataType]:
    found = COLUMN.fullmatch(part)
    if found is None:
        raise QueryError(f"schema={text!r}: {part.strip()!r} is not a name and a type; write it as in {EXAMPLE}")
    quoted, bare, dtype = found.groups()
    return (quoted.replace("``", "`") if quoted else bare), _type(quoted or bare, dtype)


def _sql_type(text: str) -> pl.DataType:
    """A type, checked completely: the parser skips what it does not know inside brackets."""
    found = TYPE.fullmatch(text)
    if found is None:
        raise QueryError(f"schema=: {text!r} is not a type")
    kind, inside = found.groups()
    if kind.upper() == "STRUCT" and inside is not None:
        return pl.Struct(columns(inside))
    if kind.upper() == "ARRAY" and inside is not None:
        return pl.List(_sql_type(inside.strip()))
    return sql_type(text)


def _type(name: Any, dtype: Any) -> pl.DataType:
    if not isinstance(name, str):
        raise QueryError(f"schema= has a name that is not a string: {name!r}")
    if isinstance(dtype, str):
        return _sql_type(dtype.strip())
    if isinstance(dtype, pl.DataType):
        return dtype
    if isinstance(dtype, type) and issubclass(dtype, pl.DataType):
        return dtype()
    raise QueryError(f"schema= gives column {name!r} the type {dtype!r}: write a SQL type, or a Polars type")
