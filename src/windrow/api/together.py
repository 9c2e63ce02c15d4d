"""Several queries, run together."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from windrow.api.query import Source, in_order
from windrow.api.stream import Stream
from windrow.errors import QueryError
from windrow.logical.nodes import Together as TogetherNode


def together(**queries: Stream) -> Together:
    """Several queries that run as one: a stream that they have in common is read and admitted once.

    Window queries with the same input and groups, which differ in windows, aggregates and what follows (``where`` over
    results, ``select``), share one pane aggregation, too: their rows are reduced once. On Spark the result has a struct
    column per query, which ``wr.results(df, "name")`` extracts; in ``foreachBatch`` for streams.

    >>> from windrow import count, stream
    >>> s = stream([{"t": 1}, {"t": 2}, {"t": 7}], progress="t")
    >>> both = together(short=s.window(2).agg(n=count()), long=s.window(6, 3).agg(n=count()))
    >>> {name: frame.rows() for name, frame in both.collect().items()}["long"]
    [(-3, 3, 2), (0, 6, 2), (3, 9, 1), (6, 12, 1)]
    """
    if len(queries) < 2:
        raise QueryError("together() needs at least two queries, by keyword")
    if odd := [name for name, query in queries.items() if not isinstance(query, Stream)]:
        raise QueryError(f"{odd[0]}={queries[odd[0]]!r} is not a query over the stream")
    found: dict[str, Source] = {}
    for query in queries.values():
        for name, source in query.sources.items():
            if found.setdefault(name, source) is not source:
                raise QueryError(f"queries that run together are over two streams named {name!r}: rename one")
    return Together(TogetherNode(tuple((name, q.node) for name, q in queries.items())), found)


@dataclass(frozen=True)
class Together(Stream):
    """Queries that run as one."""

    def collect(self) -> dict[str, pl.DataFrame]:  # type: ignore[override]
        """The results of each query over finite sources."""
        found = super().collect()
        frames = {n: found.filter(pl.col(n).is_not_null()).select(n).unnest(n) for n in found.columns}
        return {n: in_order(frame) for n, frame in frames.items()}
