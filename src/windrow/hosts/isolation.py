"""A query that raises an error is taken out of a graph that others run in, too; the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from windrow.graph import Graph

QueriesAt = Callable[[int], Iterable[int]]


def queries_behind(graph: Graph, queries_at: QueriesAt, node: int) -> set[int]:
    """The queries that need a node: those whose output leaves the graph there, or further on."""
    return {query for each in (graph.behind(node) if node in graph else ()) for query in queries_at(each)}


def isolate(graph: Graph, queries_at: QueriesAt, failed: dict[int, str]) -> None:
    """From now on an error of an operator is noted in ``failed``, by the numbers of the queries that need it.

    ``queries_at``: the queries whose output leaves the graph at a node.
    """

    def take_out(node: int, error: Exception) -> bool:
        nodes = graph.behind(node)
        queries = queries_behind(graph, queries_at, node)
        for query in queries:
            failed.setdefault(query, f"{type(error).__name__}: {error}")
        graph.remove(nodes)
        return bool(queries)

    graph.on_error = take_out
