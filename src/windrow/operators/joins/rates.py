"""Rates of streams, in rows per unit of progress: measured from the rows alone, so that a replay measures the same."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from windrow.progress import END, START
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS


@dataclass
class Rate:
    """Of one stream. Rows are counted since ``begin``, the progress value where the last measurement ended."""

    begin: int | None = None
    high: int = START
    rows: int = 0
    rate: float | None = None


class Rates:
    """Rates of several streams, each measured over stretches of at least ``length``: by then they are about right, and
    when they change that is seen after as long.

    >>> rates = Rates(2, length=10)
    >>> rates.saw(0, pl.DataFrame({"@t": [0, 5, 9]}))
    >>> rates.promised(0, 12)
    >>> rates.of(0), rates.of(1)
    (0.25, None)
    """

    def __init__(self, streams: int, length: int) -> None:
        self.length = max(1, length)
        self.streams = [Rate() for _ in range(streams)]

    def saw(self, port: int, rows: Batch) -> None:
        """Rows have come."""
        if not rows.height:
            return
        stream, times = self.streams[port], rows[PROGRESS]
        if stream.begin is None:
            stream.begin = int(times.min())  # type: ignore[arg-type]
        stream.rows += rows.height
        self._reach(stream, int(times.max()))  # type: ignore[arg-type]

    def promised(self, port: int, value: int) -> None:
        """A stream that is silent has a rate, too."""
        if self.streams[port].begin is not None and value not in (START, END):
            self._reach(self.streams[port], value)

    def _reach(self, stream: Rate, value: int) -> None:
        stream.high = max(stream.high, value)
        assert stream.begin is not None
        if (span := stream.high - stream.begin) >= self.length:
            stream.rate, stream.rows, stream.begin = stream.rows / span, 0, stream.high

    def of(self, port: int) -> float | None:
        """Rows per unit of progress; None as long as nothing is known."""
        return self.streams[port].rate

    def so_far(self, port: int) -> float | None:
        """The same, or else what the rows so far suggest."""
        stream = self.streams[port]
        if stream.rate is not None or stream.begin is None:
            return stream.rate
        return stream.rows / max(1, stream.high - stream.begin)

    # -- state -------------------------------------------------------------------------------------------------
    def known(self) -> list[tuple[int | None, int, int, float | None]]:
        return [(s.begin, s.high, s.rows, s.rate) for s in self.streams]

    def frame(self) -> Batch:
        schema = {"begin": pl.Int64, "high": pl.Int64, "rows": pl.Int64, "rate": pl.Float64}
        return pl.DataFrame(self.known(), schema=schema, orient="row")

    def restore(self, state: Batch | None) -> None:
        saved = state.rows() if state is not None else [()] * len(self.streams)
        self.streams = [Rate(*row) for row in saved]
