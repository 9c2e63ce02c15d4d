"""Ways to spread a join over nodes: what each node does with its messages, and what the first one decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from windrow.operators.ring.aligned import AlignedJoin, Aligning
from windrow.operators.ring.coordinated import CoordinatedJoin, Coordinating
from windrow.operators.ring.head import Head
from windrow.operators.ring.holder import Work
from windrow.operators.ring.joining import Joining
from windrow.operators.ring.layout import Tuning
from windrow.operators.ring.messages import Message
from windrow.operators.ring.probing import Prober
from windrow.operators.ring.sliced_join import Sent, SlicedJoin
from windrow.spec.batches import Batch, Changes, State


class Node(Protocol):
    """A part of the join. ``on_message`` gives what it sends, in order, and results; a round ends with DONE."""

    node: int
    prober: Prober
    work: Work
    ahead: bool

    def on_message(self, message: Message) -> Iterator[Sent]: ...

    def known(self) -> dict[str, Any]:
        """What it has to know after a restart, beside its rows, as JSON."""

    def snapshot(self) -> State: ...

    def changes(self) -> Changes: ...

    def restore(self, state: State, known: Mapping[str, Any]) -> None: ...

    def state_bytes(self) -> int: ...


class First(Protocol):
    """Runs the rounds: it is at node 0, and takes the messages of that node, too."""

    done: bool
    reports: list[dict[str, Any]]
    tuning: Tuning

    def begin(self, rows: Mapping[int, Batch]) -> Iterator[Sent]:
        """Start a round with the next rows of each stream, which are in order."""

    def can_feed(self) -> bool:
        """Whether ``feed`` may be called now."""

    def feed(self) -> Iterator[Sent]:
        """The next rows of the round; after the last ones, its end."""

    def on_message(self, message: Message) -> Iterator[Sent]: ...

    def known(self) -> dict[str, Any]: ...

    def restore(self, known: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True)
class Way:
    """``node``: makes a node, given its number, how many there are, and a clock. ``first``: makes what runs the rounds,
    given node 0.
    """

    name: str
    node: Callable[[Joining, int, int, Callable[[], float] | None], Node]
    first: Callable[[Any, Tuning, int], First]


RING = Way("ring", SlicedJoin, Head)
ATR = Way("atr", AlignedJoin, Aligning)
CTR = Way("ctr", CoordinatedJoin, Coordinating)

WAYS = {way.name: way for way in (RING, ATR, CTR)}
