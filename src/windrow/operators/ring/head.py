"""The head of the ring: gives rows their order, sends them round, knows when they are done (Wang, 4.1, Theorem 1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from windrow.errors import InternalError
from windrow.operators.ring.layout import Tuning
from windrow.operators.ring.messages import Kind, Message, Payload
from windrow.operators.ring.sliced_join import BUILD, EDGES, ORDER, PROBE, SEEN, Sent, SlicedJoin
from windrow.operators.ring.slices import NUMBER, TIME
from windrow.spec.batches import Batch
from windrow.windows.tuples import Ints

FLIGHT = 2048  # rows on their way round at the most
HELD = 1 << 27  # bytes on their way round, about
TRAINS = 16  # of a round, for each node: long ones cost less, but with fewer nodes wait for the first and the last one
ROUNDS = 2  # of state on the move: what belongs to a node before its own passes the head


class Head:
    """One round takes rows that no earlier one can follow: it tells all nodes the layout, moves state if that is asked
    for, sends the rows as trains, and ends with a report of every node. Between two rounds nothing is on its way.

    ``flight``: how many rows may be on their way; 1 is the basic scheme, where a row waits for the END of the one
    before it. ``counts``: rows of each stream so far.
    """

    def __init__(self, node: SlicedJoin, tuning: Tuning, flight: int = FLIGHT) -> None:
        self.node = node
        self.tuning = tuning
        self.flight = flight
        self.counts = [0] * node.joining.streams
        self.reports: list[dict[str, Any]] = []
        self.done = True
        self._rows: list[Batch] = []
        self._trains: deque[tuple[int, int]] = deque()  # rows [first, last) of the round
        self._way: dict[int, int] = {}  # rows of each train on its way
        self._next = 0
        self._most = flight  # rows on their way in this round
        self._moves = 0
        self._ending = False
        self._order: Ints = np.empty((0, 2), np.int64)  # of the rows of the round, in their order: time and stream
        self._seen: Ints = self._order  # by stream, the rows before each of them, and before all that come after

    # -- rounds ------------------------------------------------------------------------------------------------
    def begin(self, rows: Mapping[int, Batch]) -> Iterator[Sent]:
        """Start a round with the next rows of each stream, in order and with their progress values."""
        self.done = False
        self._number(rows)
        layout, cuts = self.tuning.next(self._by_stream(), self.counts)
        count, held = len(self._order), sum(int(frame.estimated_size()) for frame in self._rows)
        self._most = max(1, min(self.flight, HELD * count // max(1, held)))
        size = max(1, min(self._most // 4, -(-count // (TRAINS * layout.nodes))))
        self._trains = deque((at, min(at + size, count)) for at in range(0, count, size))
        yield from self.node.on_message(Message(Kind.SETUP, values=layout.values()))
        self._moves = ROUNDS if cuts is not None else 0
        if cuts is not None:
            yield from self._move(Message(Kind.MOVE, values={"cuts": cuts}))

    def can_feed(self) -> bool:
        """Whether the next train, or the end of the round, can go."""
        if self.done or self._moves or self._ending:
            return False
        if not self._trains:
            return not self._way
        first, last = self._trains[0]
        return not self._way or sum(self._way.values()) + last - first <= self._most

    def feed(self) -> Iterator[Sent]:
        """The next train; after the last one, the end of the round."""
        if self._trains:
            first, last = self._trains.popleft()
            self._next += 1
            self._way[self._next] = last - first
            yield from self.node.on_message(self._train(self._next, first, last))
        else:
            self._ending = True
            yield from self.node.on_message(Message(Kind.DONE))

    def on_message(self, message: Message) -> Iterator[Sent]:
        """What has come back from the last node."""
        if message.kind == Kind.MOVE:
            self._moves -= 1
            if self._moves:
                yield from self._move(message)
            elif message.frames:
                raise InternalError(f"state of {[*message.frames]} belongs to no node")
            return
        if message.kind == Kind.DONE:
            self.reports = list(message.values["nodes"])
            self.tuning.learn(self.reports)
            self.done, self._ending, self._next, self._rows = True, False, 0, []
            return
        yield from self.node.on_message(message)
        for train in self.node.finished:
            del self._way[train]
        self.node.finished.clear()

    def _move(self, message: Message) -> Iterator[Sent]:
        yield from self.node.on_message(message)

    # -- state -------------------------------------------------------------------------------------------------
    def known(self) -> dict[str, Any]:
        """What it has to know after a restart."""
        return {"counts": self.counts, "tuning": self.tuning.saved()}

    def restore(self, known: Mapping[str, Any]) -> None:
        """What ``known`` gave, after a way through JSON."""
        self.counts = list(known["counts"])
        self.tuning.restore(known["tuning"])

    # -- trains ------------------------------------------------------------------------------------------------
    def _number(self, rows: Mapping[int, Batch]) -> None:
        """The order of all streams: by time, then by stream; inside a stream it is that of its rows."""
        self._rows, of, times = [], list[Ints](), list[Ints]()
        for stream, before in enumerate(self.counts):
            frame = rows.get(stream)
            if frame is None:
                frame = pl.DataFrame()
            elif frame.height:
                frame = frame.with_columns(pl.Series(NUMBER, np.arange(before, before + frame.height)))
                times.append(frame[TIME].to_numpy())
                of.append(np.full(frame.height, stream))
            self._rows.append(frame)
        both = np.stack([np.concatenate(each or [np.empty(0, np.int64)]) for each in (times, of)], axis=1)
        self._order = both[np.argsort(both[:, 0], kind="stable")]  # those of a stream are in order
        self._seen = np.zeros((len(both) + 1, len(self.counts)), np.int64)
        np.cumsum(self._order[:, 1, None] == np.arange(len(self.counts)), axis=0, out=self._seen[1:])
        self._seen += np.asarray(self.counts, np.int64)

    def _by_stream(self) -> list[Ints]:
        return [frame[TIME].to_numpy() if frame.height else np.empty(0, np.int64) for frame in self._rows]

    def _train(self, number: int, first: int, last: int) -> Message:
        frames: dict[str, Payload] = {}
        begin, before, after = (self._seen[at].tolist() for at in (0, first, last))
        for stream, rows in enumerate(self._rows):
            if count := after[stream] - before[stream]:
                mine = Payload(rows.slice(before[stream] - begin[stream], count))
                frames[f"{BUILD}{stream}"] = frames[f"{PROBE}{stream}"] = mine
        self.counts = after
        seen = self._seen[first:last]
        return Message(
            Kind.TRAIN, number, frames=frames, ints={EDGES: seen, SEEN: seen, ORDER: self._order[first:last]}
        )
