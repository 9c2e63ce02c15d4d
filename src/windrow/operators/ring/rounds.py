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
        self.frames = [self._numbered(rows.get(stream), count) for stream, count in enumerate(counts)]
        self.counts = [count + frame.height for count, frame in zip(counts, self.frames, strict=True)]
        streams = np.concatenate([np.full(frame.height, n, np.int64) for n, frame in enumerate(self.frames)])
        times = np.concatenate(self.by_stream())
        order = np.argsort(times, kind="stable")  # those of a stream are in order
        self.of: Ints = streams[order]
        self.times: Ints = times[order]
        self._seen = np.zeros((len(order) + 1, len(counts)), np.int64)
        np.cumsum(self.of[:, None] == np.arange(len(counts)), axis=0, out=self._seen[1:])
        self._seen += np.asarray(counts, np.int64)

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

    def size(self) -> int:
        """Bytes, about."""
        return sum(int(frame.estimated_size()) for frame in self.frames)

    def part(self, first: int, last: int) -> Part:
        """The rows at [first, last)."""
        begin, before, after = (self._seen[at].tolist() for at in (0, first, last))
        rows = {
            stream: frame.slice(before[stream] - begin[stream], count)
            for stream, frame in enumerate(self.frames)
            if (count := after[stream] - before[stream])
        }
        return Part(self.of[first:last], self.times[first:last], self._seen[first:last], rows)
