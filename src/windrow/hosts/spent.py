"""What each operator of a graph spends while it runs: CPU time, rows in and out, and the state between batches."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

from windrow.graph import Graph, Memory
from windrow.operators.operator import Item


class Spent(Memory):
    """Given to ``graph.measure``. ``state``: the greatest that ``look`` has seen.

    A step takes from the last thing that the graph has told to its end, so that what is done here counts for nobody.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.nanos: Counter[int] = Counter()  # by node
        self.state: Counter[int] = Counter()
        self._since = time.process_time_ns()

    def ran(self, node: int, item: Item, produced: Iterable[Item]) -> None:
        self.nanos[node] += time.process_time_ns() - self._since
        super().ran(node, item, produced)
        self.mark()

    def look(self) -> None:
        """After a batch and the promises that come with it: what is held until the next one."""
        for node in self.graph.nodes:
            self.state[node.number] = max(self.state[node.number], node.operator.state_bytes())
        self.mark()

    def mark(self) -> None:
        """What comes now belongs to the next step."""
        self._since = time.process_time_ns()

    def arrived(self, item: Item) -> None:
        super().arrived(item)
        self.mark()

    def left(self, item: Item) -> None:
        super().left(item)
        self.mark()

    def of_scope(self, scope: str) -> float:
        """Microseconds of the nodes of a scope."""
        return sum(self.nanos[n.number] for n in self.graph.nodes if n.name.startswith(f"{scope}/")) / 1000
