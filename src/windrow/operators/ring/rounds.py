"""The rows of a round in the order of all streams: by time, then by stream; inside a stream it is that of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from windrow.operators.ring.slices import NUMBER, TIME
from windrow.spec.batches import Batch
from windrow.windows.tuples import Ints


@dataclass(frozen=True)
class Part:
    """Rows that follow each other. ``of``, ``times``: the stream and the time of each; ``seen``: how many rows of each
    stream there are before it; ``rows``: by stream, those that it has.
    """

    of: Ints
    times: Ints
    seen: Ints  # rows x streams
    rows: Mapping[int, Batch]


class Round:
    """``rows``: the next ones of each stream, in order; ``counts``: how many there were before.

    >>> one = Round({1: pl.DataFrame({"@t": [4, 7]}), 0: pl.DataFrame({"@t": [7]})}, [3, 5])
    >>> part = one.part(1, 3)
    >>> part.of.tolist(), part.seen.tolist(), part.rows[1].rows(), one.counts
    ([0, 1], [[3, 6], [4, 6]], [(7, 6)], [4, 7])
    """

    def __init__(self, rows: Mapping[int, Batch], counts: Sequence[int]) -> None:
        self.before = list(counts)
        self.frames = [self._numbered(rows.get(stream), count) for stream, count in enumerate(counts)]
        self.counts = [count + frame.height for count, frame in zip(counts, self.frames, strict=True)]
        streams = np.concatenate([np.full(frame.height, n) for n, frame in enumerate(self.frames)])
        places = np.concatenate([np.arange(frame.height) for frame in self.frames])
        times = np.concatenate(self.by_stream())
        order = np.lexsort((places, streams, times))
        self.of: Ints = streams[order].astype(np.int64)
        self.times: Ints = times[order]
        self._at = [np.flatnonzero(self.of == stream) for stream in range(len(self.frames))]

    def __len__(self) -> int:
        return len(self.of)

    @staticmethod
    def _numbered(frame: Batch | None, before: int) -> Batch:
        if frame is None or not frame.height:
            return pl.DataFrame()
        return frame.with_columns(pl.Series(NUMBER, np.arange(before, before + frame.height)))

    def by_stream(self) -> list[Ints]:
        """The times of the rows of each stream."""
        return [frame[TIME].to_numpy() if frame.height else np.empty(0, np.int64) for frame in self.frames]

    def part(self, first: int, last: int) -> Part:
        """The rows at [first, last)."""
        rows, seen = {}, []
        for stream, (at, before) in enumerate(zip(self._at, self.before, strict=True)):
            low, high = np.searchsorted(at, [first, last])
            if high > low:
                rows[stream] = self.frames[stream][int(low) : int(high)]
            seen.append(before + np.searchsorted(at, np.arange(first, last)))
        return Part(self.of[first:last], self.times[first:last], np.stack(seen, axis=1), rows)
