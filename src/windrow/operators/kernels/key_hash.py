"""A stable hash of group keys: the same for equal keys everywhere and forever, so that state stays in its shard."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

BLOCK = 1 << 14  # values that are mixed together: they fit into the cache
FEW, SAMPLE = 1 << 10, 1 << 12  # texts of which a sample has few different values are hashed once for each value
_MIX = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0xD1B54A32D192ED03)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def hashes(frame: pl.DataFrame, keys: Sequence[str]) -> Hashes:
    """A 64-bit hash per row, the same for equal keys everywhere and forever."""
    found = np.zeros(frame.height, np.uint64)
    for number, key in enumerate(keys):
        column = _column(frame[key])
        found = _mixed(found * _MIX ^ column if number else column)
    return found


def _column(column: pl.Series) -> Hashes:
    if column.dtype.is_float():
        # 0.0 and -0.0 are equal keys, and so are all NaNs.
        values = column.cast(pl.Float64).fill_null(0.0).fill_nan(float("nan")).to_numpy() + 0.0
        found = _mixed(values.view(np.uint64))
    elif column.dtype.is_integer() or column.dtype.is_temporal() or column.dtype == pl.Boolean:
        found = _mixed(column.to_physical().cast(pl.Int64, wrap_numerical=True).fill_null(0).to_numpy().view(np.uint64))
    else:
        found = _texts(column if column.dtype == pl.Binary else column.cast(pl.String))
    return np.where(column.is_null().to_numpy(), _NULL, found) if column.null_count() else found


def _texts(column: pl.Series) -> Hashes:
    if len(column) <= SAMPLE or column.head(SAMPLE).n_unique() > FEW:
        return _bytes(column)
    coded = column.fill_null(b"" if column.dtype == pl.Binary else "").to_arrow().dictionary_encode()
    values = pl.Series(coded.dictionary, dtype=column.dtype)
    return np.asarray(_bytes(values)[coded.indices.to_numpy()])


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
    found = x + _MIX
    for start in range(0, len(found), BLOCK):
        part = found[start : start + BLOCK]
        part ^= part >> np.uint64(30)
        part *= _FIRST
        part ^= part >> np.uint64(27)
        part *= _SECOND
        part ^= part >> np.uint64(31)
    return found


def mix(x: np.uint64) -> np.uint64:
    """The same for one value, for kernels. An integer key is mixed twice: as a column, and with all columns.

    >>> with np.errstate(over="ignore"):
    ...     int(mix(mix(np.uint64(5)))) == int(hashes(pl.DataFrame({"k": [5]}), ["k"])[0])
    True
    """
    x = x + _MIX
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))
