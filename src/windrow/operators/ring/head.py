"""The head of the ring: gives rows their order, sends them round, knows when they are done (Wang, 4.1, Theorem 1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from windrow.errors import InternalError
from windrow.operators.ring.layout import Tuning
from windrow.operators.ring.messages import Kind, Message, Payload
from windrow.operators.ring.rounds import Round
from windrow.operators.ring.sliced_join import BUILD, EDGES, ORDER, PROBE, SEEN, Sent, SlicedJoin
from windrow.spec.batches import Batch

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
        self._trains: deque[tuple[int, int]] = deque()  # rows [first, last) of the round
        self._way: dict[int, int] = {}  # rows of each train on its way
        self._next = 0
        self._most = flight  # rows on their way in this round
        self._moves = 0
        self._ending = False
        self._following: Message | None = None  # the next train
        self._round = Round({}, self.counts)

    # -- rounds ------------------------------------------------------------------------------------------------
    def begin(self, rows: Mapping[int, Batch]) -> Iterator[Sent]:
        """Start a round with the next rows of each stream, in order and with their progress values."""
        self.done = False
        self._round = Round(rows, self.counts)
        layout, cuts = self.tuning.next(self._round.by_stream(), self.counts)
        self.counts = self._round.counts
        count = len(self._round)
        self._most = max(1, min(self.flight, HELD * count // max(1, self._round.size())))
        size = train_size(count, layout.nodes, self._most)
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
            train, self._following = self._following or self._train(self._next, first, last), None
            yield from self.node.on_message(train)
            if self.node.ahead and self._trains:
                self._following = self._written(self._next + 1, *self._trains[0])
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
            check_slices(self.reports)
            self.tuning.learn(self.reports)
            self.done, self._ending, self._next, self._round = True, False, 0, Round({}, self.counts)
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
        self._following = None
        self.counts = list(known["counts"])
        self.tuning.restore(known["tuning"])

    # -- trains ------------------------------------------------------------------------------------------------
    def _written(self, number: int, first: int, last: int) -> Message:
        """A train that has to wait is ready to be sent when it can go."""
        train = self._train(number, first, last)
        for payload in train.frames.values():
            payload.written()
        return train

    def _train(self, number: int, first: int, last: int) -> Message:
        part = self._round.part(first, last)
        frames: dict[str, Payload] = {}
        for stream, rows in part.rows.items():
            frames[f"{BUILD}{stream}"] = frames[f"{PROBE}{stream}"] = Payload(rows)
        order = np.stack([part.times, part.of], axis=1)
        return Message(Kind.TRAIN, number, frames=frames, ints={EDGES: part.seen, SEEN: part.seen, ORDER: order})


def check_slices(reports: Sequence[Mapping[str, Any]]) -> None:
    """Raises if a row is live at two nodes, or at none: slices abut, from the youngest rows at the head to the oldest.

    >>> check_slices([{"start": [7], "stop": [9], "live": [2]}, {"start": [4], "stop": [7], "live": [3]}])
    """
    for stream in range(len(reports[0]["live"])):
        held = [(at, node) for at, node in enumerate(reports) if node["live"][stream]]
        for (at, younger), (other, older) in pairwise(held):
            if older["stop"][stream] != younger["start"][stream]:
                raise InternalError(
                    f"node {at} of the ring has stream {stream} from row {younger['start'][stream]} on, and node "
                    f"{other} has it up to row {older['stop'][stream]}"
                )


def train_size(rows: int, nodes: int, flight: int) -> int:
    """Rows of a train: long ones cost less, short ones keep all nodes busy."""
    return max(1, min(flight // 4, -(-rows // (TRAINS * nodes))))
