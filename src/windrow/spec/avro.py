"""The columns of a record in Avro, by its schema."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from windrow.errors import QueryError

PLAIN: dict[str, pl.DataType] = {
    "boolean": pl.Boolean(),
    "int": pl.Int32(),
    "long": pl.Int64(),
    "float": pl.Float32(),
    "double": pl.Float64(),
    "bytes": pl.Binary(),
    "string": pl.String(),
    "enum": pl.String(),
    "fixed": pl.Binary(),
}
LOGICAL: dict[str, pl.DataType] = {
    "date": pl.Date(),
    "timestamp-millis": pl.Datetime("us", "UTC"),
    "timestamp-micros": pl.Datetime("us", "UTC"),
    "local-timestamp-millis": pl.Datetime("us"),
    "local-timestamp-micros": pl.Datetime("us"),
    "uuid": pl.String(),
}
REFUSED = ("time-millis", "time-micros", "duration", "timestamp-nanos", "local-timestamp-nanos")


def fields(text: str) -> dict[str, pl.DataType]:
    """The columns of a record.

    >>> fields('{"type": "record", "name": "r", "fields": [{"name": "x", "type": ["null", "int"]}]}')
    {'x': Int32}
    """
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise QueryError(f"schema= is not an Avro schema in JSON: {error}") from None
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise QueryError("schema= must be an Avro schema of a record: {'type': 'record', 'name': .., 'fields': [..]}")
    named: dict[str, Any] = {}
    return {each["name"]: _type(each["type"], each["name"], named) for each in _record(schema, named)}


def _record(schema: dict[str, Any], named: dict[str, Any]) -> list[dict[str, Any]]:
    if "name" in schema:
        named[schema["name"]] = schema
    return list(schema["fields"])


def _type(schema: Any, path: str, named: dict[str, Any]) -> pl.DataType:
    if isinstance(schema, list):
        others = [each for each in schema if each != "null"]
        if len(others) != 1:
            raise QueryError(f"schema=: field {path} has values of several types, and a column has one")
        return _type(others[0], path, named)
    if isinstance(schema, str) and schema in named:
        return _type(named[schema], path, {name: each for name, each in named.items() if name != schema})
    kind = schema if isinstance(schema, str) else schema.get("type")
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    if logical == "decimal":
        return pl.Decimal(schema["precision"], schema.get("scale", 0))
    if isinstance(schema, dict) and "name" in schema:
        named[schema["name"]] = schema
    if logical in LOGICAL:
        return LOGICAL[logical]
    if kind == "record":
        inside = {each["name"]: _type(each["type"], f"{path}.{each['name']}", named) for each in schema["fields"]}
        return pl.Struct(inside)
    if kind == "array":
        return pl.List(_type(schema["items"], f"{path}[]", named))
    if isinstance(kind, dict):
        return _type(kind, path, named)
    if kind not in PLAIN or logical in REFUSED:
        raise QueryError(f"schema=: field {path} is of type {logical or kind}, for which there is no type of a column")
    return PLAIN[kind]
