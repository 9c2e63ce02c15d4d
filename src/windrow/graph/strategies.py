"""Next-operator selection: which operator of a graph runs next (Bai et al., section 2.3)."""

from __future__ import annotations

from typing import Protocol


class Runnable(Protocol):
    """What a strategy may ask a graph."""

    def more(self, node: int) -> bool:
        """Whether the node has input waiting."""

    def successors(self, node: int) -> list[int]: ...

    def predecessors(self, node: int) -> list[int]: ...


class Strategy(Protocol):
    """``next`` names the node to run after ``current``, or None to hand control back to the graph's owner."""

    def next(self, graph: Runnable, current: int) -> int | None: ...


class DepthFirst:
    """Forward: if yield then next := succ. Encore: else if more then next := self. Backtrack: else next := pred.

    Tuples leave the graph as early as they can, and buffers stay short.
    """

    def next(self, graph: Runnable, current: int) -> int | None:
        for successor in graph.successors(current):  # Forward
            if graph.more(successor):
                return successor
        if graph.more(current):  # Encore
            return current
        return self._backtrack(graph, current)

    def _backtrack(self, graph: Runnable, node: int) -> int | None:
        for predecessor in graph.predecessors(node):
            if graph.more(predecessor):
                return predecessor
            if (further := self._backtrack(graph, predecessor)) is not None:
                return further
        return None
