"""The exchange: rows cross from map side to shards as blobs, a few large rows instead of millions.

Which shard a group belongs to is a stable hash of its key values, kept here and pinned by a test: state in a
checkpoint stays where it is across versions, machines and processes.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from windrow.errors import CheckpointError

# One row of the exchange. ``kind`` says what ``value`` or ``blob`` is; ``tag`` orders the rows of a micro-batch.
COLUMNS = "shard INT, port INT, kind INT, tag BIGINT, value BIGINT, blob BINARY"
ARROW = pa.schema(
    [
        ("shard", pa.int32()),
        ("port", pa.int32()),
        ("kind", pa.int32()),
        ("tag", pa.int64()),
        ("value", pa.int64()),
        ("blob", pa.binary()),
    ]
)
DATA, PROMISE, ROWS_IN, ROWS_BAD, ROWS_LATE, ROWS_OUT, STATE_BYTES, RESULT, LATE, ROWS_REVISED, FILES_BAD = range(11)
EVIDENCE = 11  # from which every shard makes the promises of a source
ROWS_SENT, PROMISES_SENT = 14, 15  # through the exchange
PROMISES_UNMATCHED = 17
REACHED = 16  # how far a part of a finite stream came
PROMISES_IGNORED, MARKS = 12, 13  # what the markers of a source said, for whoever counts those that are ignored
METRICS = "windrow"  # the name of the counters in a streaming query's ``observedMetrics``
COUNTERS = {
    "rows_in": ROWS_IN,
    "rows_bad": ROWS_BAD,
    "rows_late": ROWS_LATE,
    "rows_revised": ROWS_REVISED,
    "rows_out": ROWS_OUT,
    "state_bytes": STATE_BYTES,
    "files_bad": FILES_BAD,
    "rows_sent": ROWS_SENT,
    "promises_sent": PROMISES_SENT,
    "promises_ignored": PROMISES_IGNORED,
    "promises_unmatched": PROMISES_UNMATCHED,
}
Row = tuple[int, int, int, int, int, bytes | None]
Hashes = NDArray[np.uint64]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0xD1B54A32D192ED03)


# -- blobs -------------------------------------------------------------------------------------------------------------
def encode(frame: pl.DataFrame) -> bytes:
    """A frame as one Arrow IPC stream."""
    out = io.BytesIO()
    frame.write_ipc_stream(out)
    return out.getvalue()


def decode(blob: bytes, what: str) -> pl.DataFrame:
    """The frame of a blob; ``what`` names it in the error if it is torn."""
    try:
        return pl.read_ipc_stream(blob)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise CheckpointError(f"{what} is not a readable Arrow stream ({error}): it is torn or foreign") from None


def record_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    """Exchange rows as Spark takes them."""
    columns: list[tuple[object, ...]] = list(zip(*rows, strict=True)) or [()] * len(ARROW)
    return pa.RecordBatch.from_arrays([pa.array(c, t) for c, t in zip(columns, ARROW.types, strict=True)], schema=ARROW)


# -- which shard -------------------------------------------------------------------------------------------------------
def shard_ids(shards: int) -> list[int]:
    """Group ids that Spark's hash partitioning spreads over ``shards`` partitions, one each."""
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < shards:
        found.setdefault(_murmur3(candidate) % shards, candidate)
        candidate += 1
    return sorted(found.values())


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


def split(frame: pl.DataFrame, keys: Sequence[str], shards: int) -> Iterator[tuple[int, pl.DataFrame]]:
    """The rows of each shard. Without keys there is one group, and it lives in shard 0."""
    if not frame.height:
        return
    if not keys or shards == 1:
        yield 0, frame
        return
    target = (hashes(frame, keys) % np.uint64(shards)).astype(np.int32)
    for part in frame.with_columns(pl.Series("@shard", target)).partition_by("@shard"):
        yield int(part["@shard"][0]), part.drop("@shard")


def hashes(frame: pl.DataFrame, keys: Sequence[str]) -> Hashes:
    """A 64-bit hash per row, the same for equal keys everywhere and for ever."""
    found = np.zeros(frame.height, np.uint64)
    for key in keys:
        found = _mixed(found * _MIX ^ _column(frame[key]))
    return found


def _column(column: pl.Series) -> Hashes:
    nulls = column.is_null().to_numpy()
    if column.dtype.is_float():
        # 0.0 and -0.0 are equal keys, and so are all NaNs.
        values = column.cast(pl.Float64).fill_null(0.0).fill_nan(float("nan")).to_numpy() + 0.0
        found = _mixed(values.view(np.uint64))
    elif column.dtype.is_integer() or column.dtype.is_temporal() or column.dtype == pl.Boolean:
        found = _mixed(column.to_physical().cast(pl.Int64, wrap_numerical=True).fill_null(0).to_numpy().view(np.uint64))
    else:
        found = _bytes(column if column.dtype == pl.Binary else column.cast(pl.String))
    return np.where(nulls, _NULL, found)


def _bytes(column: pl.Series) -> Hashes:
    """Eight bytes at a time for all values together; shorter values drop out of the loop."""
    array = column.fill_null(b"" if column.dtype == pl.Binary else "").cast(pl.Binary).to_arrow()
    offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, array.offset * 8)
    data = array.buffers()[2]
    padded = np.zeros((data.size if data else 0) + 8, np.uint8)
    if data:
        padded[:-8] = np.frombuffer(data, np.uint8)
    words = np.ndarray((len(padded) - 7,), np.dtype("<u8"), padded, 0, (1,))
    lengths = np.diff(offsets)
    found = _mixed(lengths.astype(np.uint64))
    for at in range(0, int(lengths.max(initial=0)), 8):
        live = np.flatnonzero(lengths > at)
        left = np.minimum(lengths[live] - at, 8).astype(np.uint64)
        mask = np.where(left == 8, ~np.uint64(0), (np.uint64(1) << (left % np.uint64(8) * np.uint64(8))) - np.uint64(1))
        found[live] = _mixed(found[live] * _MIX ^ (words[offsets[live] + at] & mask))
    return found


def _mixed(x: Hashes) -> Hashes:
    """The finalizer of splitmix64."""
    with np.errstate(over="ignore"):
        x = x + _MIX
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))
