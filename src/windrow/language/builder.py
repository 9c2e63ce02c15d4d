"""The Python API: streams, windows, groups. It builds the same logical plans as SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl
from sqlglot import exp

from windrow.errors import DataError, PlanError, QueryError, listing
from windrow.hosts import local
from windrow.hosts.frames import normal_type, to_frame
from windrow.hosts.local import Value, value
from windrow.language.functions import AggregateExpr
from windrow.language.lengths import Length, length
from windrow.logical import expressions
from windrow.logical.nodes import (
    PROGRESSING,
    WINDOW_END,
    AggregateCall,
    Node,
    Progress,
    Project,
    Scan,
    aggregated,
    filtered,
    progressing,
    united,
)
from windrow.operators.admit import REASON, UNPARSABLE
from windrow.planner import Plan, plan
from windrow.windows import Sliding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNNAMED = "stream"


@dataclass(frozen=True)
class Source:
    """Where the rows of a scan come from: a Spark DataFrame, or a frame in this process."""

    data: Any
    spark: bool
    misfits: pl.DataFrame  # rows whose progress value does not fit into the column at all


def stream(
    data: Any,
    progress: str,
    *,
    slack: Length | None = None,
    punctuation: str | None = None,
    parse: str | None = None,
    name: str = UNNAMED,
) -> Stream:
    """A stream of rows that progresses on a column.

    ``data``: a Spark DataFrame (streaming or batch), or rows, Arrow, pandas or Polars data. ``slack``: how far a
    row can be behind the greatest progress value seen before it. ``punctuation``: instead of slack, a column of
    promises: a row with a value there is a marker and says that all later rows have at least that progress value.
    ``parse``: how to read a text progress value, "iso8601" or a strptime format.

    >>> s = stream([{"t": 1, "x": 5}, {"t": 2, "x": 6}], progress="t")
    >>> s.window(range=2).agg(total=AggregateExpr("sum", "x")).collect().rows()
    [(0, 2, 5), (2, 4, 6)]
    """
    if _is_spark(data):
        from windrow.hosts.spark.schema import from_spark

        schema, source = from_spark(data.schema), Source(data, True, pl.DataFrame())
    else:
        frame, misfits = to_frame(data, progress)
        schema, source = dict(frame.schema), Source(frame, False, misfits)
    return _stream(schema, source, progress, slack, punctuation, parse, name)


def _stream(
    schema: dict[str, pl.DataType],
    source: Source,
    progress: str,
    slack: Length | None,
    punctuation: str | None,
    parse: str | None,
    name: str,
) -> Stream:
    if odd := [c for c in schema if c.startswith("@")]:
        raise DataError(f"column names that begin with '@' are reserved: rename {listing(odd)}")
    for argument, column in (("progress", progress), ("punctuation", punctuation)):
        if column is not None and column not in schema:
            raise QueryError(f"{argument}={column!r} is not a column; there are: {listing(schema)}")
    if parse is not None:
        if schema[progress] != pl.String:
            raise QueryError(f"parse={parse!r} needs a text column, and {progress!r} is of type {schema[progress]}")
        schema = {**schema, progress: pl.Datetime("us", "UTC")}
    dtype = schema[progress]
    if not progressing(dtype):
        hint = " (for timestamps in text, say parse='iso8601' or a strptime format)" if dtype == pl.String else ""
        raise QueryError(f"progress={progress!r} must be {PROGRESSING}, not {dtype}{hint}")
    if punctuation is not None:
        if slack is not None:
            raise QueryError("give either slack or punctuation: two sources of promises would contradict each other")
        if schema[punctuation] != pl.Null and normal_type(schema[punctuation]) != normal_type(dtype):
            raise QueryError(
                f"punctuation={punctuation!r} is of type {schema[punctuation]}, {progress!r} of type {dtype}"
            )
    held = None if slack is None else length(slack, dtype, "slack", zero=True)
    columns = tuple((c, t) for c, t in schema.items() if c != punctuation)
    scan = Scan(name, columns, Progress(progress, held, punctuation, parse))
    return Stream(scan, {name: source})


def _is_spark(data: Any) -> bool:
    return any(cls.__module__.startswith("pyspark.sql") for cls in type(data).__mro__)


@dataclass(frozen=True)
class Stream:
    """A query: what it means (``node``) and where its rows come from. Immutable; every method gives a new one."""

    node: Node
    sources: Mapping[str, Source]

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """The columns and their types."""
        return dict(self.node.schema)

    # -- building ----------------------------------------------------------------------------------------------
    def where(self, condition: str) -> Stream:
        """Keep the rows for which a SQL condition is true.

        >>> stream([{"t": 1}, {"t": 2}], progress="t").where("t > 1").collect().rows()
        [(2,)]
        """
        return replace(self, node=filtered(self.node, self._resolved(condition), condition))

    filter = where

    def select(self, *columns: str, **named: str) -> Stream:
        """Choose and compute columns: names, or SQL expressions by keyword.

        >>> stream([{"t": 1, "x": 2}], progress="t").select("t", y="x * 10").collect().rows()
        [(1, 20)]
        """
        items = {**{c: c for c in columns}, **named}
        chosen = tuple((name, self._resolved(text)) for name, text in items.items())
        for name, node in chosen:
            expressions.dtype_of(node, self.node.schema, items[name])
        return replace(self, node=Project(self.node, chosen))

    def union(self, *others: Stream) -> Stream:
        """All rows of all streams, order-agnostic; the union promises what its slowest member promises."""
        sources = dict(self.sources)
        for other in others:
            for name, source in other.sources.items():
                if sources.setdefault(name, source) is not source:
                    raise QueryError(f"two different sources are called {name!r}: give each stream its own name=...")
        return Stream(united([self.node, *(o.node for o in others)]), sources)

    def window(
        self, range: Length, slide: Length | None = None, *, origin: Value | None = None, using: str | None = None
    ) -> Windowed:
        """Windows of length ``range``, a new one every ``slide`` (default: tumbling, every ``range``).

        Windows end at ``origin`` plus multiples of ``slide``; the origin is the start of 1970, UTC, unless given.
        ``using`` forces a physical algorithm: "paned" or "wid".
        """
        if self.node.progress is None:
            raise PlanError("the progressing column was not selected, so windows have nothing to stand on: keep it")
        dtype = self.node.schema[self.node.progress]
        size = length(range, dtype, "range")
        step = size if slide is None else length(slide, dtype, "slide")
        return Windowed(self, Sliding(size, step, 0 if origin is None else value(origin, dtype, "origin")), using)

    def _resolved(self, text: str) -> exp.Expr:
        return expressions.resolve(expressions.parse(text), self.node.schema, text)

    # -- running -----------------------------------------------------------------------------------------------
    def plan(self) -> Plan:
        """The physical plan."""
        return plan(self.node)

    def explain(self, shards: int | None = None) -> str:
        """What the query means and how it will run, in words."""
        from windrow.language.explain import explain

        return explain(self.plan(), on_spark=self._on_spark(), shards=shards)

    def to_spark(self, shards: int | None = None) -> DataFrame:
        """The result as a Spark DataFrame: streaming if any source is. ``shards`` must not change over a checkpoint."""
        from windrow.hosts.spark import compile as spark

        if not self._on_spark():
            raise PlanError("this query has no Spark source: use collect(), or give wr.stream a Spark DataFrame")
        return spark.to_spark(self.plan(), {n: s.data for n, s in self.sources.items()}, shards)

    def bad_rows(self) -> Any:
        """The rows that have no readable progress value, with the reason: a Spark DataFrame, or a Polars one.

        >>> stream([{"t": 1}, {"t": None}], progress="t").bad_rows()["reason"].to_list()
        ['the progress value is NULL']
        """
        if self._on_spark():
            from windrow.hosts.spark import side

            return side.bad_rows(self.plan(), {n: s.data for n, s in self.sources.items()})
        found = local.bad_rows(self.plan(), {n: s.data for n, s in self.sources.items()})
        misfits = [s.misfits for s in self.sources.values() if s.misfits.height]
        marked = [m.with_columns(pl.lit(UNPARSABLE).alias(REASON)) for m in misfits]
        return pl.concat([found, *marked], how="diagonal_relaxed") if marked else found

    def collect(self) -> pl.DataFrame:
        """Run over finite sources to the end. Rows are sorted by window and group."""
        if self._on_spark():
            result = pl.DataFrame(self.to_spark().toArrow()).cast(self.plan().schema)  # type: ignore[arg-type]
        else:
            result = local.collect(self.plan(), {n: s.data for n, s in self.sources.items()})
        if WINDOW_END not in result.columns:
            return result
        first = [WINDOW_END, *(c for c in result.columns if not result.schema[c].is_nested() and c != WINDOW_END)]
        return result.sort(first, nulls_last=False)

    def run(self) -> local.LocalRun:
        """A running query in this process, to be fed by hand."""
        return local.LocalRun(self.plan())

    def _on_spark(self) -> bool:
        kinds = {s.spark for s in self.sources.values()}
        if len(kinds) > 1:
            raise PlanError("some sources are Spark DataFrames and some are not: turn all into one kind first")
        return kinds == {True}


@dataclass(frozen=True)
class Windowed:
    """A stream with a window on it, waiting for groups or aggregates."""

    stream: Stream
    shape: Sliding
    using: str | None = None
    keys: tuple[tuple[str, exp.Expr], ...] = ()

    def group_by(self, *columns: str, **named: str) -> Windowed:
        """Group by columns, or by SQL expressions given by keyword."""
        items = {**{c: c for c in columns}, **named}
        return replace(self, keys=tuple((n, self.stream._resolved(text)) for n, text in items.items()))

    def agg(self, **aggregates: AggregateExpr) -> Stream:
        """The aggregates of each window and group. Output: the keys, window_start, window_end, the aggregates.

        >>> from windrow.language.functions import count
        >>> rows = [{"t": 0, "k": "a"}, {"t": 3, "k": "b"}]
        >>> stream(rows, progress="t").window(range=4, slide=2).group_by("k").agg(n=count()).collect().rows()
        [('a', -2, 2, 1), ('a', 0, 4, 1), ('b', 0, 4, 1), ('b', 2, 6, 1)]
        """
        calls = []
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, AggregateExpr):
                raise QueryError(f"{name}={aggregate!r} is not an aggregate: write {name}=wr.count(), wr.max('x') ..")
            argument = None if aggregate.argument is None else self.stream._resolved(aggregate.argument)
            calls.append(AggregateCall(name, aggregate.function, argument))
        node = aggregated(self.stream.node, self.shape, self.keys, tuple(calls), self.using)
        return replace(self.stream, node=node)
