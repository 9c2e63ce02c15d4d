"""Spread: a node of a join whose rows come straight from the first node, which says where each of them is held."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from windrow.operators.ring.holder import Holder
from windrow.operators.ring.joining import Joining
from windrow.operators.ring.messages import Kind, Message
from windrow.operators.ring.probing import Watch
from windrow.operators.ring.sliced_join import HEAD, Sent


class Spread(Holder, ABC):
    """Every message says which node it is for. At the end of a round the node drops what no row to come can meet, and
    reports to the first one.
    """

    def __init__(
        self,
        joining: Joining,
        node: int,
        nodes: int,
        clock: Callable[[], float] | None = None,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(joining, node, nodes, clock, watch)
        self._counted = (0, 0.0)

    def on_message(self, message: Message) -> Iterator[Sent]:
        """What it sends, and results."""
        for each in self._ended(message) if message.kind == Kind.DONE else self.taken(message):
            self._count()
            if isinstance(each, Message) and each.to != self.node:
                self.work.sent += 1
                self.work.bytes += each.size()
            yield each
        self._count()

    @abstractmethod
    def taken(self, message: Message) -> Iterator[Sent]:
        """The same, of a message inside a round."""

    def ended(self, train: int) -> Message:
        """Tells the first node that this one has done all that it has to do for a train."""
        return Message(Kind.PARTIALS, train, self.node, self.joining.streams - 1, end=True, to=HEAD)

    def report(self) -> dict[str, Any]:
        """``held``: rows of each stream, of which others may have copies."""
        self._count()
        found = {**super().report(), "held": [state.height for state in self.slices]}
        self._counted = (0, 0.0)
        return found

    def _ended(self, message: Message) -> Iterator[Sent]:
        if "time" in message.values:
            self.expire(message.values["seen"], message.values["time"])
        yield Message(Kind.DONE, sender=self.node, values={"report": self.report()}, to=HEAD)

    def _count(self) -> None:
        """What conditions have taken since it was called last."""
        now = self.prober.pairs, self.prober.seconds
        self.work.pairs += now[0] - self._counted[0]
        self.work.seconds += now[1] - self._counted[1]
        self._counted = now
