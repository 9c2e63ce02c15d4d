"""The routing table of a coordinated join: where each segment is, and the route of a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import polars as pl

from windrow.operators.ring.cover import cover, spread
from windrow.operators.ring.rounds import Part
from windrow.spec.batches import Batch
from windrow.windows.multiway import Ranges

HOP, NODE, FIRST, LAST = "hop", "node", "first", "last"
ROUTE = {HOP: pl.Int32, NODE: pl.Int32, FIRST: pl.Int64, LAST: pl.Int64}
KEPT = 0.5  # of the load of a node, from round to round


@dataclass(frozen=True)
class Segment:
    """The rows [first, last) of a stream, the youngest of which has the time ``end``, and the nodes that hold them."""

    first: int
    last: int
    end: int
    nodes: tuple[int, ...]

    @property
    def rows(self) -> int:
        return self.last - self.first


class Routing:
    """By stream the segments that rows to come can meet. ``load``: by node the pairs that routes have led to lately."""

    def __init__(self, ranges: Ranges, nodes: int) -> None:
        self.ranges = ranges
        self.segments: list[list[Segment]] = [[] for _ in ranges.lengths]
        self.load = [0.0] * nodes

    def held(self) -> list[int]:
        """Rows of each node."""
        found = [0] * len(self.load)
        for segments in self.segments:
            for segment in segments:
                for node in segment.nodes:
                    found[node] += segment.rows
        return found

    def live(self) -> list[int]:
        """Rows of each stream, however many nodes hold them."""
        return [sum(segment.rows for segment in segments) for segments in self.segments]

    def expire(self, seen: Sequence[int], time: int) -> None:
        """Drop the segments that no row can meet that comes then or later."""
        for stream, segments in enumerate(self.segments):
            self.segments[stream] = [s for s in segments if self._near(stream, s, seen[stream], time)]

    def _near(self, stream: int, segment: Segment, seen: int, time: int) -> bool:
        """Whether any row of a segment is still held when a row comes."""
        length = self.ranges.lengths[stream]
        return segment.last > seen - length if self.ranges.counts(stream) else segment.end > time - length

    def store(self, part: Part, copies: int, nodes: int) -> dict[int, list[int]]:
        """Give each stream's rows to the nodes that hold least; by node the streams of which it gets rows."""
        held, found = self.held(), dict[int, list[int]]()
        for stream, rows in part.rows.items():
            chosen = sorted(sorted(range(nodes), key=lambda node: (held[node], node))[:copies])
            mine = part.of == stream
            first = int(part.seen[mine, stream][0])
            self.segments[stream].append(Segment(first, first + rows.height, int(part.times[mine][-1]), tuple(chosen)))
            for node in chosen:
                held[node] += rows.height
                found.setdefault(node, []).append(stream)
        return found

    def route(self, part: Part, stream: int, order: Sequence[int]) -> Batch:
        """Where the rows of a stream go, hop by hop in their order: for each node the rows that it is to probe. Each
        row that they can meet is probed at one node. It ends with the first stream of which there is nothing to meet.
        """
        mine = part.of == stream
        seen, times = part.seen[mine], part.times[mine]
        found: list[tuple[int, int, int, int]] = []
        for hop, target in enumerate(order):
            near = [
                segment
                for segment in self.segments[target]
                if segment.first < seen[-1, target] and self._near(target, segment, int(seen[0, target]), int(times[0]))
            ]
            if not near:
                break
            holders = [segment.nodes for segment in near]
            chosen = cover(holders, self._weights())
            at = spread(holders, [segment.rows for segment in near], chosen)
            for node, segment in zip(at, near, strict=True):
                self.load[node] += len(times) * segment.rows
            found += _joined(hop, at, near)
        return pl.DataFrame(found, schema=ROUTE, orient="row")

    def _weights(self) -> list[float]:
        """A node that has twice as much to do as the others counts as two and more."""
        mean = sum(self.load) / len(self.load) or 1.0
        return [1 + load / mean for load in self.load]

    def rest(self) -> None:
        """A round has passed: what was long ago counts for less."""
        self.load = [load * KEPT for load in self.load]

    # -- state -------------------------------------------------------------------------------------------------
    def saved(self) -> dict[str, Any]:
        return {"segments": [[astuple(s) for s in segments] for segments in self.segments], "load": self.load}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """What ``saved`` gave, after a way through JSON."""
        self.load = [float(load) for load in saved["load"]]
        self.segments = [
            [Segment(first, last, end, tuple(nodes)) for first, last, end, nodes in segments]
            for segments in saved["segments"]
        ]


def _joined(hop: int, at: Sequence[int], near: Sequence[Segment]) -> list[tuple[int, int, int, int]]:
    """Segments that follow each other at a node, as one."""
    found: dict[int, list[list[int]]] = {}
    for node, segment in zip(at, near, strict=True):
        runs = found.setdefault(node, [])
        if runs and runs[-1][1] == segment.first:
            runs[-1][1] = segment.last
        else:
            runs.append([segment.first, segment.last])
    return [(hop, node, first, last) for node, runs in found.items() for first, last in runs]
