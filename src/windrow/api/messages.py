"""What a user says of messages: the format of their values, their columns, and what is wanted besides."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from windrow.api import given
from windrow.api.columns import columns
from windrow.errors import QueryError, listing
from windrow.spec import avro
from windrow.spec.messages import ATTRIBUTES, FORMATS, OFFSET, PARTITION, Messages

NESTED = "schema=: column {} of type {} cannot be read from {}: read it as STRING"


def messages(
    format: str,
    schema: Any,
    attributes: str | Sequence[str] = (),
    prefix: str = "",
    partitions: int | None = None,
    progress: Sequence[str] = (),
) -> Messages:
    """How rows are read from messages. ``progress``: columns that may be attributes, though nobody asked for them."""
    kind: Any = given.one_of(format, "format", FORMATS)
    if schema is None:
        what = "the Avro schema of the values" if kind.startswith("avro") else "schema='ts TIMESTAMP, k STRING'"
        raise QueryError(f"the columns of messages are not known before they are read: give {what}")
    schemas = _avro(schema, kind) if kind.startswith("avro") else {}
    fields = avro.fields(schemas[max(schemas)]) if schemas else columns(schema)
    _check(fields, kind)
    found = {f"{given.text(prefix, 'prefix')}{name}": name for name in ATTRIBUTES}
    wanted = [f"{prefix}{name}" for name in (PARTITION, OFFSET, *_attributes(attributes))]
    wanted += [name for name in progress if name in found and name not in fields]
    if twice := [name for name in dict.fromkeys(wanted) if name in fields]:
        raise QueryError(
            f"the values have {listing(twice)}, and so have messages: prefix='kafka_' calls those of messages kafka_.."
        )
    named = tuple((name, found[name]) for name in dict.fromkeys(wanted))
    count = None if partitions is None else given.whole(partitions, "partitions")
    if count is not None and count < 0:
        raise QueryError(f"a topic has at least one partition, not {count}")
    return Messages(kind, tuple(fields.items()), named, tuple(sorted(schemas.items())), count)


def _attributes(wanted: str | Sequence[str]) -> tuple[str, ...]:
    found = given.texts(wanted, "attributes")
    if odd := [name for name in found if name not in ATTRIBUTES]:
        raise QueryError(f"attributes={odd[0]!r} is nothing that a message has; available: {listing(ATTRIBUTES)}")
    return found


def _avro(schema: Any, kind: str) -> dict[int, str]:
    """The schemas by their number in a registry; one without a number as 0."""
    if kind == "avro":
        if isinstance(schema, Mapping) and "type" not in schema:
            raise QueryError("schemas by number are for format='avro-confluent': here all values have the same one")
        return {0: _text(schema)}
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except ValueError as error:
            raise QueryError(f"schema= is not JSON: {error}") from None
    if not isinstance(schema, Mapping) or not schema or "type" in schema:
        raise QueryError(
            "format='avro-confluent' needs the schemas by their number in the registry: schema={7: '{..}'}"
        )
    if odd := [number for number in schema if not str(number).isdigit()]:
        raise QueryError(f"schema=: {odd[0]!r} is not the number of a schema")
    return {int(number): _text(each) for number, each in schema.items()}


def _text(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)


def _check(fields: Mapping[str, pl.DataType], kind: str) -> None:
    """Refuse types that a format has no values of."""
    for name, dtype in fields.items():
        if kind == "csv" and dtype.is_nested():
            raise QueryError(NESTED.format(name, dtype, kind))
        if kind in ("csv", "json") and _odd(dtype, inside=False):
            raise QueryError(NESTED.format(name, dtype, kind))


def _odd(dtype: Any, inside: bool) -> bool:
    """Whether there is no text for values of a type; inside of others it must be JSON's own."""
    if isinstance(dtype, pl.List):
        return _odd(dtype.inner, True)
    if isinstance(dtype, pl.Struct):
        return any(_odd(field.dtype, True) for field in dtype.fields)
    if inside and dtype in (pl.Date, pl.Binary):
        return True
    texts = dtype in (pl.String, pl.Binary, pl.Boolean, pl.Date)
    return not (texts or dtype.is_numeric() or isinstance(dtype, pl.Datetime))
