"""Holder: what all nodes have in common, the rows that they hold of each stream and what tries conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from windrow.operators.ring.joining import Joining, time_of
from windrow.operators.ring.probing import Prober, Watch
from windrow.operators.ring.slices import Slice
from windrow.operators.state.parts import part_of, together
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import PROGRESS
from windrow.windows.tuples import Ints


@dataclass
class Work:
    """What a node has done since it was last asked: what a simulation charges time for."""

    pairs: int = 0
    inserted: int = 0
    purged: int = 0
    sent: int = 0
    bytes: int = 0
    seconds: float = 0.0


class Holder:
    """``nodes``: all of them, whether they hold state or not."""

    def __init__(
        self,
        joining: Joining,
        node: int,
        nodes: int,
        clock: Callable[[], float] | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.joining = joining
        self.node, self.nodes = node, nodes
        self.slices = [Slice() for _ in range(joining.streams)]
        self.prober = Prober(joining, clock, watch)
        self.work = Work()
        self.ahead = False  # whether others wait for what it sends, so that some of it should be written before
        self.most = 0  # the most rows that were here at once

    def since(self, stream: int, seen: Ints, times: Ints) -> Ints:
        """The place of the first row that is still held when rows come: ``seen`` of the stream were there before each
        of them, and these are their times.
        """
        state, length = self.slices[stream], self.joining.ranges.lengths[stream]
        if self.joining.ranges.counts(stream):
            return state.places(seen - length)
        return np.searchsorted(state.times, times - length, side="right")

    def expire(self, seen: Sequence[int], time: int) -> None:
        """Drop what no row can meet that comes then or later."""
        for stream, state in enumerate(self.slices):
            gone = int(self.since(stream, np.array([seen[stream]]), np.array([time]))[0])
            state.start = max(state.start, int(state.numbers[gone]) if gone < state.height else state.stop)
            state.forget(state.start)
            self.work.purged += gone

    def insert(self, stream: int, rows: Batch) -> None:
        """Take rows that are younger than all of their stream so far."""
        self.slices[stream].append(rows)
        self.work.inserted += rows.height
        self.most = max(self.most, sum(state.height for state in self.slices))

    def result(self, rows: Batch) -> Batch:
        """Rows of all streams as a result."""
        times = [rows[time_of(n)].to_numpy() for n in range(self.joining.streams)]
        names = [name for columns in self.joining.columns for name in columns]
        progress = pl.Series(PROGRESS, self.joining.moment.of(times), dtype=pl.Int64)
        return pl.DataFrame([*(rows.get_column(name) for name in names), progress])

    def report(self) -> dict[str, Any]:
        """What a node has, and has done, since the last round."""
        report = {
            "start": [state.start for state in self.slices],
            "stop": [state.stop for state in self.slices],
            "live": [state.live for state in self.slices],
            "most": self.most,
            "bytes": self.state_bytes(),
            "pairs": self.prober.pairs,
            "seconds": self.prober.seconds,
            "tests": [[count.tried, count.passed, count.seconds] for count in self.prober.counts],
        }
        self.prober.reset()
        self.most = 0
        return report

    # -- state -------------------------------------------------------------------------------------------------
    def known(self) -> dict[str, Any]:
        """What it has to know after a restart, beside its rows."""
        return {"of": [[state.start, state.stop] for state in self.slices]}

    def snapshot(self) -> State:
        return together({str(stream): state.snapshot() for stream, state in enumerate(self.slices)})

    def changes(self) -> Changes:
        return together({str(stream): state.changes() for stream, state in enumerate(self.slices)})

    def restore(self, state: State, known: Mapping[str, Any]) -> None:
        for stream, (start, stop) in enumerate(known["of"]):
            self.slices[stream].restore(part_of(state, str(stream)), start, stop)

    def state_bytes(self) -> int:
        return sum(state.state_bytes() for state in self.slices)
