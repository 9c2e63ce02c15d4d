"""The graphs that a Python worker keeps between micro-batches, so that it does not read back what it wrote itself."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from windrow.hosts.spark.wiring import Wiring

MOST_GRAPHS = 64
MOST_BYTES = 1 << 29  # of state: a shard with more than that is mapped from its live copy each time

Place = tuple[str, int]  # a run of a query, and a shard


@dataclass
class LiveGraphs:
    """Graphs with the version of their state, the least recently used first.

    A graph is used only if its version is the one in the state store. Workers are not sticky: when another one has
    moved a shard on, the graph here is stale, and is dropped by the next call that looks.
    """

    most_bytes: int = MOST_BYTES
    kept: OrderedDict[Place, tuple[str, Wiring]] = field(default_factory=OrderedDict)

    def take(self, place: Place, version: str | None) -> Wiring | None:
        """The graph of exactly this version. It is taken out: if the task fails half way, it must not be used again."""
        token, wired = self.kept.pop(place, (None, None))
        return wired if version is not None and token == version else None

    def put(self, place: Place, version: str, wired: Wiring, newest: Callable[[Place], str | None]) -> None:
        """Keep a graph, and drop what is stale or too much. ``newest``: the version of a shard on this machine."""
        self.kept[place] = version, wired
        for other in [p for p, (token, _) in self.kept.items() if p != place and newest(p) != token]:
            del self.kept[other]
        sizes = {p: wired.graph.state_bytes() for p, (_, wired) in self.kept.items()}
        while len(self.kept) > MOST_GRAPHS or sum(sizes.values()) > self.most_bytes:
            oldest, _ = self.kept.popitem(last=False)
            del sizes[oldest]
