"""Decode: the rows inside messages. A message whose value is no row leaves by the side, and spoils no other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import polars as pl

from windrow.operators.operator import Item, Side, Stateless
from windrow.operators.rows.values.avro import AvroValues
from windrow.operators.rows.values.csv import CsvValues
from windrow.operators.rows.values.json import JsonValues
from windrow.operators.rows.values.value import Values
from windrow.spec.batches import Batch
from windrow.spec.messages import RAW, VALUE, Messages
from windrow.spec.names import REASON

TOMBSTONE = "the message has no value: it is a tombstone, which deletes what was said of its key"
BYTES_AT_ONCE = 1 << 26


class Decode(Stateless):
    """Reads the values of messages, and gives what is wanted of the messages themselves as columns.

    >>> decode = Decode(Messages("json", (("x", pl.Int64()),), (("at", "offset"),)))
    >>> messages = pl.DataFrame({"value": [b'{"x": 5}', None, b"oops"], "offset": [7, 8, 9]})
    >>> rows, bad = decode.on_batch(0, messages)
    >>> rows.rows(), bad.rows["offset"].to_list()
    ([(5, 7)], [8, 9])
    """

    def __init__(self, messages: Messages) -> None:
        self.messages = messages

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        found, bad = list[pl.DataFrame](), list[pl.DataFrame]()
        for part in _parts(batch):
            rows, odd = self._decoded(part)
            found.append(rows)
            bad += [odd] if odd.height else []
        good = pl.concat(found)
        if not bad:
            return [good]
        side = pl.concat(bad)
        return [good, Side("bad", side.height, side)]

    def _decoded(self, batch: Batch) -> tuple[pl.DataFrame, pl.DataFrame]:
        if batch.schema[VALUE] == pl.String:
            batch = batch.with_columns(pl.col(VALUE).cast(pl.Binary))
        without = batch[VALUE].is_null()
        there = batch.filter(~without) if without.any() else batch
        rows, reasons = self._values.rows(there[VALUE].to_list())
        shown = [pl.col(of).cast(RAW[of]).alias(name) for name, of in self.messages.attributes if of in batch.columns]
        stamps = [pl.col(name) for name in batch.columns if name not in RAW]
        good = pl.concat([rows, there.select(*shown, *stamps)], how="horizontal") if shown or stamps else rows
        if not reasons and there is batch:
            return good, batch.clear()
        why = np.full(batch.height, None, dtype=object)
        why[without.to_numpy()] = TOMBSTONE
        places = np.flatnonzero(~without.to_numpy())
        fits = np.ones(there.height, dtype=bool)
        for number, reason in reasons.items():
            why[places[number]], fits[number] = reason, False
        bad = batch.with_columns(pl.Series(REASON, why.tolist(), dtype=pl.String)).filter(pl.col(REASON).is_not_null())
        return good.filter(fits), bad

    @cached_property
    def _values(self) -> Values:
        fields = dict(self.messages.fields)
        match self.messages.format:
            case "json":
                return JsonValues(fields)
            case "csv":
                return CsvValues(fields)
        return AvroValues(fields, dict(self.messages.avro), self.messages.format == "avro-confluent")


def _parts(batch: Batch) -> Iterator[Batch]:
    """The messages in parts of bounded size; at least one, which may be empty."""
    size = int(batch[VALUE].cast(pl.Binary).bin.size().sum() or 0)
    count = max(1, -(-size // BYTES_AT_ONCE))
    step = max(1, -(-batch.height // count))
    yield from (batch[at : at + step] for at in range(0, max(1, batch.height), step))
