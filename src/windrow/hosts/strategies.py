"""The strategies that the parts of a session run by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from windrow.graph import Graph, named

DEFAULT = "DFS"


@dataclass(frozen=True)
class Strategies:
    """By their names: one for everything, and those of single queries, by number."""

    everywhere: str = DEFAULT
    of_query: Mapping[int, str] = field(default_factory=dict)

    def apply(self, graph: Graph, parts: Iterable[tuple[Iterable[int], Iterable[int]]] = ()) -> None:
        """Set them in a graph. ``parts``: the queries of some nodes, and the nodes."""
        if self.everywhere != DEFAULT:
            graph.set_strategy(named(self.everywhere))
        for queries, nodes in parts:
            if own := next((self.of_query[query] for query in queries if query in self.of_query), None):
                graph.set_strategy(named(own), nodes)
