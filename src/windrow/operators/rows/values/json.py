"""Values in JSON: many messages in one call, strictly. A text in a column of numbers is not NULL, but a bad row."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cached_property

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.json as pj

from windrow.operators.rows.values.value import Reasons, first, from_text, misfits

OPTIONS = {"unexpected_field_behavior": "ignore", "newlines_in_values": True}
CHANGED = re.compile(r"Column\(/v/([^)]*)\) changed from (\w+) to (\w+)")
PARSED = re.compile(r"Failed to convert JSON to (.*), couldn't parse:(.*)")
SPECIFIED = re.compile(r"Column\(/v/([^)]*)\) was specified twice")


class JsonValues:
    """Each value is an object with the columns as its fields; a field that it does not have is NULL.

    Timestamps are texts as ISO 8601 has them, dates are texts, and bytes are in base64.

    >>> rows, bad = JsonValues({"x": pl.Int64()}).rows([b'{"x": 1}', b'{"x": 1.5}', b'{', b'{"y": 2}'])
    >>> rows["x"].to_list(), sorted(bad)
    ([1, None, None, None], [1, 2])
    """

    def __init__(self, fields: Mapping[str, pl.DataType]) -> None:
        self.fields = dict(fields)

    def rows(self, values: list[bytes]) -> tuple[pl.DataFrame, Reasons]:
        """Each message is wrapped with its number: whatever it holds, it cannot be taken for a part of another."""
        if not values:
            return self._nothing.clear(), {}
        wrapped = [b'{"i":%d,"v":%b}\n' % (i, value) for i, value in enumerate(values)]
        found, bad = self._found(wrapped, values, 0)
        return pl.concat(found), bad

    def _found(self, wrapped: list[bytes], values: list[bytes], start: int) -> tuple[list[pl.DataFrame], Reasons]:
        """Where some of many cannot be read, they are looked for by halves."""
        for timestamps in (False, True):  # the quick way, then any text that is one
            try:
                rows, bad = self._read(wrapped, start, timestamps)
            except pa.ArrowInvalid as error:
                reason = str(error)
                continue
            return [rows], bad
        if len(wrapped) == 1:
            return [self._nothing], {start: _reason(values[start], reason)}
        half = len(wrapped) // 2
        one, bad = self._found(wrapped[:half], values, start)
        other, more = self._found(wrapped[half:], values, start + half)
        return [*one, *other], bad | more

    def _read(self, wrapped: list[bytes], start: int, timestamps: bool) -> tuple[pl.DataFrame, Reasons]:
        data = b"".join(wrapped)
        _check_text(data)
        how = pj.ReadOptions(use_threads=False, block_size=len(data) + 1)
        schema = self._texts if timestamps else self._types
        found = pj.read_json(pa.BufferReader(data), how, pj.ParseOptions(explicit_schema=schema, **OPTIONS))
        frame = pl.DataFrame(found)
        if not np.array_equal(frame["i"].to_numpy(), np.arange(start, start + len(wrapped))):
            raise pa.ArrowInvalid("it is not one JSON object")
        none = frame["v"].is_null().arg_true().to_list()
        rows = frame["v"].struct.unnest() if self.fields else frame.select()
        columns, reasons = [], [dict.fromkeys(none, "the value is not a JSON object, but null")]
        for name, dtype in self.fields.items():
            column = rows[name]
            if column.dtype == pl.String and dtype != pl.String:
                column = from_text(column, dtype)
                reasons.append(misfits(rows[name], column, name))
            columns.append(column if column.dtype == dtype else column.cast(dtype))
        return pl.DataFrame(columns), {start + row: why for row, why in first(*reasons).items()}

    @cached_property
    def _types(self) -> pa.Schema:
        return _schema(self.fields, False)

    @cached_property
    def _texts(self) -> pa.Schema:
        return _schema(self.fields, True)

    @cached_property
    def _nothing(self) -> pl.DataFrame:
        return pl.DataFrame({name: [None] for name in self.fields}, schema=self.fields)


def _check_text(data: bytes) -> None:
    """What Arrow's reader would take for text, or for an end."""
    if b"\0" in data:
        raise pa.ArrowInvalid("it has a byte of zero")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise pa.ArrowInvalid(f"it is not UTF-8: {error}") from None


def _schema(fields: Mapping[str, pl.DataType], timestamps: bool) -> pa.Schema:
    """What values are read as. ``timestamps``: as texts, like all that JSON has no notation for."""
    inside = []
    for name, dtype in fields.items():
        text = dtype in (pl.Date, pl.Binary, pl.String) or (timestamps and isinstance(dtype, pl.Datetime))
        inside.append(pa.field(name, pa.string() if text else arrow(dtype)))
    return pa.schema([("i", pa.int64()), ("v", pa.struct(inside))])


def arrow(dtype: pl.DataType) -> pa.DataType:
    """A type as Arrow's reader of JSON knows it."""
    match dtype:
        case pl.String():
            return pa.string()
        case pl.List():
            return pa.list_(arrow(_type(dtype.inner)))
        case pl.Struct():
            return pa.struct([pa.field(field.name, arrow(_type(field.dtype))) for field in dtype.fields])
    return pl.Series([], dtype=dtype).to_arrow().type


def _type(dtype: object) -> pl.DataType:
    return dtype() if isinstance(dtype, type) else dtype  # type: ignore[return-value]


def _reason(value: bytes, found: str) -> str:
    """Why one value cannot be read, in words."""
    try:
        if not isinstance(json.loads(value), dict):
            return "the value is not a JSON object"
    except (ValueError, RecursionError) as error:
        return f"the value is not JSON: {error!s:.200}"
    if at := CHANGED.search(found):
        return f"column {at[1].replace('/', '.')}: the value is of type {at[3]}, not {at[2]}"
    if at := PARSED.search(found):
        return f"{at[2]!r:.100} is no {at[1]}"
    if at := SPECIFIED.search(found):
        return f"the value has field {at[1]} twice"
    return f"the value cannot be read: {found.splitlines()[0]:.200}"
