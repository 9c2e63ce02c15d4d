"""Values in Avro: one record each, with or without the header that names its schema in a registry."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import polars as pl

from windrow.operators.rows.values.value import Reasons
from windrow.spec import extras

MAGIC, HEADER = 0, 5  # the first byte of a header, and its length


class AvroValues:
    """``schemas``: those that values are written with, by number. With ``header`` each value names its own, and is read
    as the one with the greatest number.
    """

    def __init__(self, fields: Mapping[str, pl.DataType], schemas: Mapping[int, str], header: bool) -> None:
        self.fields = dict(fields)
        self.schemas = dict(schemas)
        self.header = header

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_parsed"}

    def rows(self, values: list[bytes]) -> tuple[pl.DataFrame, Reasons]:
        found: list[dict[str, Any]] = []
        bad: Reasons = {}
        for row, value in enumerate(values):
            try:
                record = self._record(value)
            except Exception as error:  # the library raises anything over bytes that are no record
                bad[row] = f"the value is no Avro record of the schema: {error!s:.200}" if str(error) else NO_RECORD
                record = {}
            found.append(record)
        columns = {name: [record.get(name) for record in found] for name in self.fields}
        return pl.DataFrame(columns, schema=self.fields, strict=True), bad

    def _record(self, value: bytes) -> dict[str, Any]:
        number, start = next(iter(self.schemas)), 0
        if self.header:
            if len(value) < HEADER or value[0] != MAGIC:
                raise ValueError("it does not begin with the number of a schema")
            number, start = int.from_bytes(value[1:HEADER], "big"), HEADER
            if number not in self.schemas:
                raise ValueError(f"it is written with schema {number}, and those given are {sorted(self.schemas)}")
        data = io.BytesIO(value)
        data.seek(start)
        library, wanted = extras.avro(), max(self.schemas)
        as_ = None if number == wanted else self._parsed[wanted]
        record = library.schemaless_reader(data, self._parsed[number], as_)
        if (left := len(value) - data.tell()) > 0:
            raise ValueError(f"{left} bytes are left after it")
        if not isinstance(record, dict):
            raise ValueError("it is not a record")
        return {name: _plain(each) for name, each in record.items()}

    @cached_property
    def _parsed(self) -> dict[int, Any]:
        return {number: extras.avro().parse_schema(json.loads(text)) for number, text in self.schemas.items()}


NO_RECORD = "the value is no Avro record of the schema: it ends too early"


def _plain(value: Any) -> Any:
    return str(value) if type(value).__name__ == "UUID" else value
