"""The exchange: rows cross from map side to shards as blobs, a few large rows instead of millions."""

from __future__ import annotations

import io
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import polars as pl
import pyarrow as pa

from windrow.errors import CheckpointError


class Kind(IntEnum):
    """What a row of the exchange is."""

    DATA = 0  # rows of a stage's input, as a blob
    PROMISE = 1  # what a part of a stream promises; the blob names a group
    REACHED = 2  # the greatest progress value in a part of a finite stream
    EVIDENCE = 3  # what every shard makes the promises of a source from
    MARKS = 4  # the promises of the markers of a source, for the audit
    RESULT = 5  # rows of the result, as a blob
    LATE = 6  # late rows that were set aside, as a blob
    BAD = 7  # bad rows that a shard found, as a blob
    COUNT = 8  # a count; ``port`` is the number of the counter
    BOXES = 9  # joint promises of a part of a stream, as a blob
    TICK = 10  # nothing, so that a shard takes part in a micro-batch
    FAILED = 11  # a query that raised an error: ``port`` is its number, and the blob is the message
    REPORT = 12  # what is known of sources (``port`` NOTED) or of a shard (MADE), as JSON
    ASKED = 13  # answers of a source that was asked, as a blob; ``value`` is 1 if it had rows
    WANTED = 14  # when it helps to ask a source again: ``port`` is its number, ``value`` the time


class Row(NamedTuple):
    """One row of the exchange. ``tag`` orders the rows of a micro-batch that come to the same port.

    ``stage`` and ``port`` say which input it is for. Rows for the consumer of the result have OUT as their stage: every
    level on the way passes them on.
    """

    shard: int
    stage: int
    port: int
    kind: Kind
    tag: int
    value: int
    blob: bytes | None = None


OUT = -1
NOTED, MADE = 0, 1  # what a task has noted for the report of a shard, and that report
COLUMNS = "shard INT, stage INT, port INT, kind INT, tag BIGINT, value BIGINT, blob BINARY"
ARROW = pa.schema(
    [
        ("shard", pa.int32()),
        ("stage", pa.int32()),
        ("port", pa.int32()),
        ("kind", pa.int32()),
        ("tag", pa.int64()),
        ("value", pa.int64()),
        ("blob", pa.binary()),
    ]
)
METRICS = "windrow"  # the name of the counters in a streaming query's ``observedMetrics``
REPORTS = "windrow-reports"  # the name of what the shards know beside them: a list of reports as JSON, SHARDS
SHARDS = "shards"


# -- blobs -------------------------------------------------------------------------------------------------------------
def encode(frame: pl.DataFrame) -> bytes:
    """A frame as one Arrow IPC stream."""
    out = io.BytesIO()
    frame.write_ipc_stream(out)
    return out.getvalue()


def decode(blob: bytes | None, what: str) -> pl.DataFrame:
    """The frame of a blob; ``what`` names it in the error if it is torn."""
    assert blob is not None
    try:
        return pl.read_ipc_stream(blob)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise CheckpointError(f"{what} is not a readable Arrow stream ({error}): it is torn or foreign") from None


def record_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    """Exchange rows as Spark takes them."""
    columns: list[tuple[object, ...]] = list(zip(*rows, strict=True)) or [()] * len(ARROW)
    return pa.RecordBatch.from_arrays([pa.array(c, t) for c, t in zip(columns, ARROW.types, strict=True)], schema=ARROW)


# -- ids of shards -----------------------------------------------------------------------------------------------------
def shard_ids(shards: int) -> list[int]:
    """Group ids that Spark's hash partitioning spreads over ``shards`` partitions, one each."""
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < shards:
        found.setdefault(partition_of(candidate, shards), candidate)
        candidate += 1
    return sorted(found.values())


def partition_of(shard: int, partitions: int) -> int:
    """Where Spark's hash partitioning puts the rows of a shard."""
    return _murmur3(shard) % partitions


def _murmur3(value: int, seed: int = 42) -> int:
    """Murmur3_x86_32 of one 32-bit integer as Spark's Murmur3Hash has it, signed."""

    def rotate(x: int, by: int) -> int:
        return ((x << by) | (x >> (32 - by))) & 0xFFFFFFFF

    k = rotate(value * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF
    h = (rotate(seed ^ k, 13) * 5 + 0xE6546B64 & 0xFFFFFFFF) ^ 4
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h
