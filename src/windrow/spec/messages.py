"""Messages: how a stream whose rows are messages is read. Each message has a value, which holds the columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

import polars as pl

ValueFormat = Literal["json", "csv", "avro", "avro-confluent"]
FORMATS: tuple[ValueFormat, ...] = ("json", "csv", "avro", "avro-confluent")
VALUE, PARTITION, OFFSET = "value", "partition", "offset"
RAW: dict[str, pl.DataType] = {  # as Spark's connector to Kafka has them
    "key": pl.Binary(),
    "value": pl.Binary(),
    "topic": pl.String(),
    "partition": pl.Int32(),
    "offset": pl.Int64(),
    "timestamp": pl.Datetime("us", "UTC"),
    "timestampType": pl.Int32(),
    "headers": pl.List(pl.Struct({"key": pl.String(), "value": pl.Binary()})),
}
ATTRIBUTES = tuple(name for name in RAW if name != VALUE)


@dataclass(frozen=True)
class Messages:
    """``fields``: the columns inside a value. ``attributes``: of the message itself, by the name that they get as
    columns. ``avro``: the schemas that values are written with, by their number in the header of a value; without a
    header there is one. ``partitions``: how many there are, for promises by them: 0 if the source itself tells which.
    """

    format: ValueFormat
    fields: tuple[tuple[str, pl.DataType], ...]
    attributes: tuple[tuple[str, str], ...] = ()
    avro: tuple[tuple[int, str], ...] = ()
    partitions: int | None = None

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """The columns of the stream."""
        return {**dict(self.fields), **{name: RAW[of] for name, of in self.attributes}}

    def read(self, needed: Collection[str]) -> list[str]:
        """What must be read of a message, if a query needs some columns. Where it was is in the record of a bad one."""
        wanted = {VALUE, PARTITION, OFFSET, *(of for name, of in self.attributes if name in needed)}
        return [name for name in RAW if name in wanted]

    def says(self) -> str:
        """What ``explain`` shows."""
        return f"messages with values in {self.format}"

    def named(self) -> Mapping[str, str]:
        """The columns of the stream by what they are of a message."""
        return {of: name for name, of in self.attributes}
