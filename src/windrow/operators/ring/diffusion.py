"""Diffusion: runs the rounds where rows go straight to the nodes that are to have them (Gu, Yu and Wang)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import polars as pl

from windrow.operators.ring.head import FLIGHT
from windrow.operators.ring.layout import Tuning
from windrow.operators.ring.messages import Kind, Message
from windrow.operators.ring.rounds import Part, Round
from windrow.operators.ring.sliced_join import HEAD, Layout, Sent
from windrow.operators.ring.spread import Spread
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS

Node = TypeVar("Node", bound=Spread)


class Diffusion(ABC, Generic[Node]):
    """A round: ``prepared``, then ``fed`` for as long as rows are ``left`` and there is ``room`` for them, and when
    nothing is ``busy`` the end, at which every node reports. The work of node 0 waits while there is something to send,
    so that the other nodes have theirs.
    """

    def __init__(self, node: Node, tuning: Tuning, flight: int = FLIGHT) -> None:
        self.node = node
        self.tuning = tuning
        self.flight = flight
        self.counts = [0] * node.joining.streams
        self.reports: list[dict[str, Any]] = []
        self.done = True
        self.round = Round({}, self.counts)
        self._own: deque[Message] = deque()
        self._came: dict[int, dict[str, Any]] = {}
        self._ending = False

    # -- what each of them does in its own way --------------------------------------------------------------------
    @abstractmethod
    def prepared(self, layout: Layout) -> Iterator[Sent]:
        """Before the rows of a round."""

    @abstractmethod
    def left(self) -> bool:
        """Whether rows of the round have not gone yet."""

    @abstractmethod
    def room(self) -> bool:
        """Whether the next ones can go now."""

    @abstractmethod
    def busy(self) -> bool:
        """Whether something is on its way."""

    @abstractmethod
    def fed(self) -> Iterator[Sent]:
        """The next rows."""

    @abstractmethod
    def ended(self, message: Message) -> None:
        """A node has done all that it has to do for a train."""

    def finished(self) -> Sequence[Mapping[str, Any]]:
        """The round is over. The reports as the tuning is to see them: ``live`` counts each row once."""
        return self.reports

    # -- rounds ------------------------------------------------------------------------------------------------
    def begin(self, rows: Mapping[int, Batch]) -> Iterator[Sent]:
        """Start a round with the next rows of each stream, in order and with their progress values."""
        self.done = False
        self.round = Round(rows, self.counts)
        layout, _ = self.tuning.next(self.round.by_stream(), self.counts)
        self.counts = self.round.counts
        yield from self.prepared(layout)

    def can_feed(self) -> bool:
        """Whether there is something to send, or to do here."""
        if self.done or self._ending:
            return False
        return bool(self._own) or (self.room() if self.left() else not self.busy())

    def feed(self) -> Iterator[Sent]:
        """The next rows; what node 0 has to do; after all of it the end of the round."""
        if self.left() and self.room() and not self._brief():
            yield from self.fed()
        elif self._own:
            yield from self._here(self._own.popleft())
        else:
            self._ending = True
            reached = self.reached()
            for node in range(1, self.node.nodes):
                yield from self.sent(node, Message(Kind.DONE, values=reached))
            yield from self._here(Message(Kind.DONE, values=reached))

    def _brief(self) -> bool:
        """Whether what node 0 has to do next is done at once."""
        return bool(self._own) and not self._own[0].frames

    def on_message(self, message: Message) -> Iterator[Sent]:
        """What has come from a node."""
        if message.kind == Kind.DONE:
            self._came[message.sender] = dict(message.values["report"])
            if len(self._came) == self.node.nodes:
                self._finish()
        elif message.end and message.level == self.node.joining.streams - 1:
            self.ended(message)
        else:
            yield from self._here(message)

    def sent(self, node: int, message: Message) -> Iterator[Sent]:
        """To a node; what is for node 0 waits."""
        if node == HEAD:
            self._own.append(message)
            return
        self.node.work.sent += 1
        self.node.work.bytes += message.size()
        yield replace(message, to=node)

    def _here(self, message: Message) -> Iterator[Sent]:
        for each in self.node.on_message(message):
            if isinstance(each, Message) and each.to == HEAD:
                yield from self.on_message(each)
            else:
                yield each

    def _finish(self) -> None:
        self.reports = [self._came[node] for node in range(self.node.nodes)]
        self._came = {}
        self.tuning.learn(self.finished())
        self.done, self._ending, self.round = True, False, Round({}, self.counts)

    def reached(self) -> dict[str, Any]:
        """No row to come is earlier than the last one."""
        return {"seen": self.counts, "time": int(self.round.times[-1])} if len(self.round) else {}

    # -- state -------------------------------------------------------------------------------------------------
    def known(self) -> dict[str, Any]:
        """What it has to know after a restart."""
        return {"counts": self.counts, "tuning": self.tuning.saved()}

    def restore(self, known: Mapping[str, Any]) -> None:
        """What ``known`` gave, after a way through JSON."""
        self.counts = list(known["counts"])
        self.tuning.restore(known["tuning"])


def beginning(part: Part) -> dict[str, Any]:
    """What a node needs to drop rows that none of these rows, or of later ones, can meet."""
    return {"seen": part.seen[0].tolist(), "time": int(part.times[0])}


def seen_frame(part: Part) -> Batch:
    """Of each row how many rows of each stream were there before, and its time: with these a node knows its windows."""
    names = [str(stream) for stream in range(part.seen.shape[1])]
    return pl.DataFrame(part.seen, schema=names, orient="row").with_columns(pl.Series(PROGRESS, part.times))
