"""Which shard a row belongs to: by a hash of its keys, by a slice of time with copies at the borders, or in all.

State in a checkpoint stays where it is, so the hash is ours, and pinned by a test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windrow.operators.kernels.key_hash import hashes
from windrow.spec.names import HOME, PROGRESS

SHARD = "@shard"


class Partition(Protocol):
    """How the rows of an arm are spread over shards. ``keys``: rows with different ones need never meet."""

    @property
    def keys(self) -> tuple[str, ...]: ...

    def split(self, frame: pl.DataFrame, shards: int) -> Iterator[tuple[int, pl.DataFrame]]:
        """The rows of each shard; the number of a shard is smaller than ``shards``."""

    def __str__(self) -> str:
        """What ``explain`` shows."""


@dataclass(frozen=True)
class ByKeys:
    """Rows with equal keys are in the same shard. Without keys there is one group, and it lives in shard 0.

    >>> frame = pl.DataFrame({"k": [1, 2, 1]})
    >>> sorted(part["k"].to_list() for _, part in ByKeys(("k",)).split(frame, 64))
    [[1, 1], [2]]
    """

    keys: tuple[str, ...] = ()

    def split(self, frame: pl.DataFrame, shards: int) -> Iterator[tuple[int, pl.DataFrame]]:
        if not frame.height:
            return
        if not self.keys or shards == 1:
            yield 0, frame
            return
        yield from _parts(frame, (hashes(frame, self.keys) % np.uint64(shards)).astype(np.int32))

    def __str__(self) -> str:
        return f"hash of {', '.join(self.keys) or 'nothing: one group, one shard'}"


@dataclass(frozen=True)
class BySlice:
    """By slices of time, and by keys if there are any: rows with equal keys in the same slice are in the same shard;
    the next slice is in the next one, so that a key with many rows is not the work of one shard alone.

    A row is in the slices that hold any time from ``before`` below to ``after`` above its own. With 0 and 0 it is in
    exactly one. A join spreads one side so, and copies rows of the other side that lie near a border into both slices:
    every pair then meets in one shard, once. The first copy of a row is at home, and counts for all.

    >>> [(shard, part["@t"].to_list()) for shard, part in BySlice(10, after=3).split(pl.DataFrame({"@t": [4, 8]}), 3)]
    [(0, [4, 8]), (1, [8])]
    """

    length: int
    origin: int = 0
    before: int = 0
    after: int = 0
    keys: tuple[str, ...] = ()

    def split(self, frame: pl.DataFrame, shards: int) -> Iterator[tuple[int, pl.DataFrame]]:
        if not frame.height:
            return
        if shards == 1:
            yield 0, frame
            return
        times = frame[PROGRESS].to_numpy() - self.origin
        place = times // self.length
        if self.before or self.after:
            first, last = (times - self.before) // self.length, (times + self.after) // self.length
            copies = np.minimum(last - first + 1, shards)  # in more slices than there are shards it is in every shard
            row = np.repeat(np.arange(frame.height), copies)
            slices = first[row] + np.arange(len(row)) - np.repeat(np.cumsum(copies) - copies, copies)
            frame = frame[row].with_columns(pl.Series(HOME, slices == first[row]))
            place = slices
        if self.keys:
            place = place + (hashes(frame, self.keys) % np.uint64(shards)).astype(np.int64)
        yield from _parts(frame, (place % shards).astype(np.int32))

    def __str__(self) -> str:
        keys = f"hash of {', '.join(self.keys)} and " if self.keys else ""
        copied = "" if not self.before and not self.after else ", copied into both slices near a border"
        return f"{keys}slice of time{copied}"


@dataclass(frozen=True)
class ToAll:
    """Every shard has all rows.

    >>> [shard for shard, _ in ToAll().split(pl.DataFrame({"k": [1]}), 3)]
    [0, 1, 2]
    """

    keys: tuple[str, ...] = ()

    def split(self, frame: pl.DataFrame, shards: int) -> Iterator[tuple[int, pl.DataFrame]]:
        if frame.height:
            yield from ((shard, frame) for shard in range(shards))

    def __str__(self) -> str:
        return "a copy to every shard"


def _parts(frame: pl.DataFrame, target: NDArray[np.int32]) -> Iterator[tuple[int, pl.DataFrame]]:
    for part in frame.with_columns(pl.Series(SHARD, target)).partition_by(SHARD):
        yield int(part[SHARD][0]), part.drop(SHARD)
