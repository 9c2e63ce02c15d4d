"""What goes round in the ring beside its rows: how the state is spread, and which rows of it each row meets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windrow.operators.operator import Side
from windrow.operators.ring.messages import Message, Payload
from windrow.spec.batches import Batch
from windrow.windows.tuples import Ints

HEAD = 0
BUILD, PROBE, MOVED = "build ", "probe ", "moved "  # frames: rows of a stream
# Numbers of each row of a train: by stream, from which row on the slices before the node are; by stream, the rows
# before it; its time and its stream. Of rows that build, under the name of their frame, their numbers and their times.
EDGES, SEEN, ORDER = "edges", "seen", "order"
FEW = 8  # rows that are written before it is known that they leave


@dataclass(frozen=True)
class Found:
    """Results, and the train whose rows were the last of them."""

    train: int
    rows: Batch


Sent = Message | Found | Side


@dataclass(frozen=True)
class Layout:
    """How the state is spread. By stream and node: how many rows a slice may have (``counts``), how old they may be
    (``ages``); None where only the window ends it. ``orders``: by stream, how its rows probe the others.
    """

    nodes: int
    counts: tuple[tuple[int | None, ...], ...]
    ages: tuple[tuple[int | None, ...], ...]
    orders: tuple[tuple[int, ...], ...]

    def values(self) -> dict[str, Any]:
        return {"nodes": self.nodes, "counts": self.counts, "ages": self.ages, "orders": self.orders}

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Layout:
        """What ``values`` gives, after a way through JSON.

        >>> one = Layout(1, ((None,),), ((None,),), ((1, 0),))
        >>> Layout.read(one.values()) == one
        True
        """
        counts, ages, orders = (tuple(map(tuple, values[name])) for name in ("counts", "ages", "orders"))
        return cls(int(values["nodes"]), counts, ages, orders)


@dataclass(frozen=True)
class Gone:
    """Rows of a stream that go to the next node, with their numbers and their times."""

    stream: int
    rows: Payload
    known: Ints


@dataclass(frozen=True)
class Marks:
    """The StateStart and StateEnd of the rows of a train: which rows of each slice they meet, by number. ``of``: the
    stream of each.
    """

    low: Ints  # rows of the train x streams
    high: Ints
    of: Ints
