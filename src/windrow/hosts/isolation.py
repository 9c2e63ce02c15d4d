"""A query that raises an error is taken out of a graph that others run in, too; the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from windrow.graph import Graph


def isolate(graph: Graph, queries_at: Callable[[int], Iterable[int]], failed: dict[int, str]) -> None:
    """From now on an error of an operator is noted in ``failed``, by the numbers of the queries that need it.

    ``queries_at``: the queries whose output leaves the graph at a node.
    """

    def take_out(node: int, error: Exception) -> bool:
        nodes = graph.behind(node)
        queries = {query for each in nodes for query in queries_at(each)}
        for query in queries:
            failed.setdefault(query, f"{type(error).__name__}: {error}")
        graph.remove(nodes)
        return bool(queries)

    graph.on_error = take_out
