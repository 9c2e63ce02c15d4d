"""Several queries over one stream, run together."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from windrow.api.query import in_order
from windrow.api.stream import Stream
from windrow.errors import QueryError
from windrow.logical.nodes import Together as TogetherNode


def together(**queries: Stream) -> Together:
    """Several window queries over one stream that share one pane aggregation: its rows are read and reduced once.

    They must have the same input and groups, and may differ in windows, aggregates and what follows (``where`` over
    results, ``select``). On Spark the result has a struct column per query, which ``wr.results(df, "name")`` extracts;
    in ``foreachBatch`` for streams.

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
    found = next(iter(queries.values())).sources
    for query in queries.values():
        if {n: id(s) for n, s in query.sources.items()} != {n: id(s) for n, s in found.items()}:
            raise QueryError("queries that run together must be over the same stream")
    return Together(TogetherNode(tuple((name, q.node) for name, q in queries.items())), found)


@dataclass(frozen=True)
class Together(Stream):
    """Queries that share their panes."""

    def collect(self) -> dict[str, pl.DataFrame]:  # type: ignore[override]
        """The results of each query over finite sources."""
        found = super().collect()
        frames = {n: found.filter(pl.col(n).is_not_null()).select(n).unnest(n) for n in found.columns}
        return {n: in_order(frame) for n, frame in frames.items()}
