"""The Python API: streams, windows, groups. It builds the same logical plans as SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from sqlglot import exp

from windrow.api import given
from windrow.api.declared import bounded, numbering, scanned
from windrow.api.functions import Udf
from windrow.api.hints import size as memory_size
from windrow.api.promise import Promise
from windrow.api.windowed import Windowed
from windrow.errors import DataError, PlanError, QueryError, listing
from windrow.hosts import local
from windrow.hosts.local import Value, value
from windrow.logical import expressions
from windrow.logical.checked import (
    applied,
    attribute,
    distinct,
    filtered,
    on_value,
    ordered,
    ranked,
    split,
    united,
    with_window_time,
)
from windrow.logical.explain import text
from windrow.logical.nodes import (
    Apply,
    Filter,
    Node,
    Progress,
    Project,
    Scan,
    Statistics,
)
from windrow.logical.nodes import Ordered as OrderedNode
from windrow.operators.progress.admit import UNPARSABLE
from windrow.planner import Given, Plan, plan
from windrow.sources.files import Files
from windrow.sources.frames import to_frame
from windrow.spec import lengths
from windrow.spec.lengths import Length, check_zone, length
from windrow.spec.names import BRANCH, REASON, WINDOW_END
from windrow.spec.options import PLAIN, Options
from windrow.windows import Landmark, Partitioned, RowSliding, Session, SlideByTuple, Sliding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windrow.hosts.spark.kept import Kept

UNNAMED = "stream"
TESTED = "tested by a function"  # the column of a Python condition, between two steps
DIRECTION = re.compile(r"(.*\S)\s+(ASC|DESC)\s*", re.IGNORECASE | re.DOTALL)
SAMPLE = 100_000  # rows that the optimizer measures


@dataclass(frozen=True)
class Source:
    """Where the rows of a scan come from: a Spark DataFrame, a frame in this process, or files, which both can read."""

    data: Any
    spark: bool | None
    misfits: pl.DataFrame  # rows whose progress value does not fit into the column at all


def stream(
    data: Any,
    progress: str,
    *,
    slack: Length | None = None,
    punctuation: str | Promise | None = None,
    punctuation_by: str | Sequence[str] = (),
    parse: str | None = None,
    row_num: str | Sequence[str] | None = None,
    row_slack: int = 0,
    arrival: str | None = None,
    ahead: Length | None = None,
    statistics: Statistics | None = None,
    name: str = UNNAMED,
) -> Stream:
    """A stream of rows that progresses on a column.

    ``data``: a Spark DataFrame (streaming or batch), or rows, Arrow, pandas or Polars data. ``slack``: how far a
    row can be behind the greatest progress value seen before it. ``punctuation``: instead of slack, a column of
    promises: a row with a value there is a marker and says that all later rows have at least that progress value; or
    another way to make promises, see ``wr.promise``.
    ``punctuation_by``: columns in which a marker names the group it is about (NULL: everyone), so that windows close
    group by group in queries that group by them.
    ``parse``: how to read a text progress value, "iso8601" or a strptime format. ``row_num``: the integer column that
    numbers the rows by arrival, for windows of rows; or two columns, source partition and position in it, as Kafka's
    ("partition", "offset"). ``row_slack``: by how many numbers rows can be out of that order. ``ahead``: how far a
    progress value can be ahead of column ``arrival``, which says when the row came; one that is further ahead, from a
    clock gone wrong, is a bad row and closes nothing. ``statistics``: what is known of the stream, for the optimizer;
    rows that are here, and files, are measured.

    >>> import windrow as wr
    >>> s = stream([{"t": 1, "x": 5}, {"t": 2, "x": 6}], progress="t")
    >>> s.window(range=2).agg(total=wr.sum("x")).collect().rows()
    [(0, 2, 5), (2, 4, 6)]
    """
    given.text(progress, "progress")
    given.text(name, "name")
    if parse is not None:
        given.text(parse, "parse")
    if isinstance(data, Files):
        schema, source = data.schema, Source(data, None, pl.DataFrame())
    elif _is_spark(data):
        from windrow.hosts.spark.schema import from_spark

        if twice := {c for c in data.columns if data.columns.count(c) > 1}:
            raise DataError(f"columns need different names; given twice: {listing(twice)}")
        schema, source = from_spark(data.schema), Source(data, True, pl.DataFrame())
    else:
        frame, misfits = to_frame(data, progress)
        schema, source = dict(frame.schema), Source(frame, False, misfits)
    numbered = numbering(schema, row_num, row_slack)
    by = given.texts(punctuation_by, "punctuation_by")
    told = Progress(progress, None, None, parse, numbered, row_slack, by)
    scan = scanned(schema, told, slack, punctuation, name, _told(statistics))
    scan = scan if arrival is None and ahead is None else bounded(scan, arrival, ahead)
    return Stream(scan, {name: source})


def _told(statistics: Statistics | None) -> Statistics | None:
    if statistics is None:
        return None
    if not isinstance(statistics, Statistics):
        raise QueryError(f"statistics={statistics!r} must be wr.Statistics(rate=.., groups=..)")
    for name, told in (("rate", statistics.rate), ("groups", statistics.groups)):
        if given.number(told, name) <= 0:
            raise QueryError(f"{name}={told} must be above 0")
    return statistics


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
    def where(self, condition: str | Udf) -> Stream:
        """Keep the rows for which a SQL condition is true, or a Python function (``wr.udf``) that gives a boolean.

        >>> stream([{"t": 1}, {"t": 2}], progress="t").where("t > 1").collect().rows()
        [(2,)]
        """
        if isinstance(condition, Udf):
            columns = list(self.node.schema)
            return self.apply(**{TESTED: condition}).where(f"`{TESTED}`").select(*columns)
        return replace(self, node=filtered(self.node, self._resolved(condition), condition))

    filter = where

    def select(self, *columns: str, **named: str) -> Stream:
        """Choose and compute columns: names, or SQL expressions by keyword.

        >>> stream([{"t": 1, "x": 2}], progress="t").select("t", y="x * 10").collect().rows()
        [(1, 20)]
        """
        chosen = self._items(columns, named)
        if not chosen:
            raise QueryError("select() takes at least one column")
        for name, node in chosen.items():
            expressions.dtype_of(node, self.node.schema, named.get(name, name))
        return replace(self, node=Project(self.node, tuple(chosen.items())))

    def apply(self, **columns: str | Udf) -> Stream:
        """More columns, or new values of some, each by a SQL expression or a Python function: see ``wr.udf``.

        Where the progressing column gets new values, windows need to know that its order stays: SQL expressions are
        looked at, a Python function says ``monotone=True``.

        >>> from windrow.api.functions import udf
        >>> s = stream([{"t": 1, "x": 2}], progress="t")
        >>> s.apply(y="x * 10", z=udf(lambda x: "x" * x, "STRING", "x")).collect().rows()
        [(1, 2, 20, 'xx')]
        """
        found = self
        for name, by in columns.items():
            if isinstance(by, Udf):
                found = replace(found, node=applied(found.node, name, by.function))
            elif not isinstance(by, str):
                raise QueryError(f"{name}={by!r} is neither a SQL expression nor a wr.udf(..)")
            else:
                kept = {c: f"`{c.replace('`', '``')}`" for c in found.node.schema}
                found = found.select(**{**kept, name: by})
        return found

    def split(
        self,
        condition: str,
        then: Callable[[Stream], Stream] | None = None,
        otherwise: Callable[[Stream], Stream] | None = None,
    ) -> Stream:
        """Rows for which a condition is true go one way, the others another, and both meet again (Li, Figure 8-3).

        Each way is a function of a stream, with ``where``, ``select`` and ``apply``; left out, rows pass as they are.
        The source is read once, and what is dear on one way is spared for the rows of the other.

        >>> s = stream([{"t": 1, "x": 9}, {"t": 2, "x": 4}, {"t": 3, "x": 3}], progress="t")
        >>> s.split("x > 5", otherwise=lambda rest: rest.where("x % 2 = 0")).collect().rows()
        [(1, 9), (2, 4)]
        """
        if self.node.progress is None:
            raise PlanError("split() needs the progressing column: select it")
        for name, way in (("then", then), ("otherwise", otherwise)):
            if way is not None:
                given.function(way, name)
        scan = Scan(BRANCH, tuple(self.node.schema.items()), Progress(self.node.progress, lead=self.node.lead))
        ways = [replace(self, node=scan) if way is None else way(replace(self, node=scan)) for way in (then, otherwise)]
        if odd := [way for way in ways if not isinstance(way, Stream)]:
            raise QueryError(f"a way of split() gives a stream, not {odd[0]!r}")
        node = split(self.node, self._resolved(condition), ways[0].node, ways[1].node, condition)
        return replace(self, node=node)

    def distinct(self) -> Stream:
        """Each row once, as soon as it comes. The progressing column must be among them: it says what can be forgotten.

        >>> stream([{"t": 1}, {"t": 1}, {"t": 2}], progress="t").distinct().collect().rows()
        [(1,), (2,)]
        """
        return replace(self, node=distinct(self.node))

    def order_by(self, *columns: str) -> Stream:
        """All rows in the order of the progressing column, which comes first, each as soon as no smaller can come.

        Further columns or SQL expressions order rows with the same value, with DESC after them if descending. On Spark
        all rows go through one shard.

        >>> stream([{"t": 3}, {"t": 1}], progress="t").order_by("t").collect().rows()
        [(1,), (3,)]
        """
        if not columns:
            raise QueryError("order_by() takes the progressing column, and more if it should")
        return replace(self, node=ordered(self.node, tuple(self._ordered(c) for c in columns)))

    def _ordered(self, text: str) -> tuple[exp.Expr, bool]:
        """A term of an order: a column, or an expression, with its direction after it."""
        given.text(text, "order_by")
        found = None if text in self.node.schema else DIRECTION.fullmatch(text)
        tree = self._resolved(text if found is None else found[1])
        return tree, found is not None and found[2].upper() == "DESC"

    def union(self, *others: Stream) -> Stream:
        """All rows of all streams, order-agnostic; the union promises what its slowest member promises."""
        sources = dict(self.sources)
        for other in others:
            if not isinstance(other, Stream):
                raise QueryError(f"union() takes streams, not {other!r}")
            for name, source in other.sources.items():
                if sources.setdefault(name, source) is not source:
                    raise QueryError(f"two different sources are called {name!r}: give each stream its own name=...")
        return Stream(united([self.node, *(o.node for o in others)]), sources)

    def window(
        self,
        range: Length,
        slide: Length | None = None,
        *,
        on: str | None = None,
        origin: Value | None = None,
        time_zone: str | None = None,
        using: str | None = None,
        memory: str | int | None = None,
        flush: str | None = None,
    ) -> Windowed:
        """Windows of length ``range``, a new one every ``slide`` (default: tumbling, every ``range``).

        They are over the progressing column; over the results of other windows that is ``window_time``, their last
        instant, so that rolling up in steps equals doing it at once. ``on`` names another column that progresses, such
        as ``window_end``, by its value. Windows end at ``origin`` plus multiples of ``slide``; the origin is the start
        of 1970, UTC, unless given. With a ``time_zone`` they follow its wall clock, so that days begin at midnight
        there. ``using`` forces a physical algorithm: "paned", "wid", "buffering", "adaptwid" or "adaptpaned"; else the
        optimizer takes the fastest one, of those whose state it expects to fit into ``memory`` ("64 MB"), if that is
        given. "two-level" has a table of that size before the panes; its old entries leave it by ``flush``: "at once",
        "slow" or "lazy". "iop" puts all rows in order first, from the sources up to this window: for comparison.
        """
        dtype = self._progressing()
        size = length(range, dtype, "range")
        step = size if slide is None else length(slide, dtype, "slide")
        shape = Sliding(size, step, 0 if origin is None else value(origin, dtype, "origin"))
        limit = None if memory is None else memory_size(memory)
        policy = None if flush is None else lengths.flush(flush)
        return Windowed(self._over(on), shape, using, options=_zoned(time_zone), memory=limit, flush=policy)

    def landmark(
        self, slide: Length, *, on: str | None = None, origin: Value | None = None, time_zone: str | None = None
    ) -> Windowed:
        """Windows from the beginning of the stream, a longer one every ``slide``; ``on`` as for ``window``.

        >>> import windrow as wr
        >>> rows = [{"t": 1, "x": 5}, {"t": 12, "x": 7}]
        >>> stream(rows, progress="t").landmark(10).agg(total=wr.sum("x")).collect().rows()
        [(None, 10, 5), (None, 20, 12)]
        """
        dtype = self._progressing()
        shape = Landmark(length(slide, dtype, "slide"), 0 if origin is None else value(origin, dtype, "origin"))
        return Windowed(self._over(on), shape, options=_zoned(time_zone))

    def rows(
        self,
        range: int,
        slide: int | None = None,
        *,
        partition_by: str | Sequence[str] = (),
        using: str | None = None,
    ) -> Windowed:
        """The last ``range`` rows by arrival, every ``slide`` rows; or those of every partition for itself.

        ``using`` forces a physical algorithm, as for ``window``; partitions have only one.

        >>> import windrow as wr
        >>> rows = [{"t": 9, "n": 0}, {"t": 7, "n": 1}, {"t": 8, "n": 2}]
        >>> numbered = stream(rows, progress="t", row_num="n")
        >>> numbered.rows(2, 1).agg(latest=wr.max("t")).collect().rows()
        [(-1, 1, 9), (0, 2, 9), (1, 3, 8), (2, 4, 8)]
        """
        size = length(range, pl.Int64(), "range")
        step = size if slide is None else length(slide, pl.Int64(), "slide")
        parts = self._keys(partition_by)
        shape = Partitioned(size, step) if parts else RowSliding(size, step)
        return Windowed(self, shape, using, keys=parts, parts=tuple(n for n, _ in parts))

    def each_row(
        self,
        range: Length,
        every: int = 1,
        *,
        on: str | None = None,
        by: Literal["rank", "row_num"] = "rank",
        partition_by: str | Sequence[str] = (),
        using: str | None = None,
    ) -> Windowed:
        """A window of length ``range`` back from every ``every``-th row, by rank of the progress value or by arrival.

        ``using`` forces a physical algorithm: "blocks", "bins" or "buffering"; ``on`` is as for ``window``.

        >>> import windrow as wr
        >>> rows = [{"t": 1}, {"t": 3}, {"t": 9}]
        >>> stream(rows, progress="t").each_row(5).agg(n=wr.count()).collect().rows()
        [(-4, 1, 1), (-2, 3, 2), (4, 9, 1)]
        """
        given.one_of(by, "by", ("rank", "row_num"))
        shape = SlideByTuple(length(range, self._progressing(), "range"), length(every, pl.Int64(), "every"), by)
        parts = self._keys(partition_by)
        return Windowed(self._over(on), shape, using, keys=parts, parts=tuple(n for n, _ in parts))

    def session(self, gap: Length, *, on: str | None = None) -> Windowed:
        """Runs of a group's rows with less than ``gap`` between them; ``on`` as for ``window``.

        >>> import windrow as wr
        >>> rows = [{"t": 1}, {"t": 3}, {"t": 9}]
        >>> stream(rows, progress="t").session(5).agg(n=wr.count()).collect().rows()
        [(1, 8, 2), (9, 14, 1)]
        """
        return Windowed(self._over(on), Session(length(gap, self._progressing(), "gap")))

    def top(self, limit: int, by: str, *, descending: bool = True) -> Stream:
        """The first ``limit`` rows of each window in the order of a SQL expression, the greatest first."""
        given.flag(descending, "descending")
        term = self._resolved(by)
        expressions.dtype_of(term, self.node.schema, by)
        return replace(self, node=ranked(self.node, ((term, descending),), given.whole(limit, "limit")))

    def _over(self, on: str | None) -> Stream:
        """The stream, progressing on the value of a column that is named."""
        if on is None:
            return self
        name = attribute(self.node, on)
        if name is None:
            raise QueryError(
                f"on={on!r} is not a column that the stream progresses on, so windows over it would never close; "
                f"available: {listing(self.node.times)}"
            )
        return replace(self, node=on_value(self.node, name)) if name in self.node.times else self

    def _progressing(self) -> pl.DataType:
        if self.node.progress is None:
            raise PlanError(
                "the progressing column was not selected, so windows have nothing to stand on: keep it. Where a Python "
                "function replaces it, say wr.udf(.., monotone=True) if it never gives less for more"
            )
        return self.node.schema[self.node.progress]

    def _keys(self, columns: str | Sequence[str]) -> tuple[tuple[str, exp.Expr], ...]:
        return tuple(self._items(given.texts(columns, "partition_by"), {}).items())

    def _items(self, columns: Sequence[str], named: Mapping[str, str]) -> dict[str, exp.Expr]:
        """Columns by their names, which backquotes are no part of, and expressions by the names they are given."""
        found: dict[str, exp.Expr] = {}
        for name, written in [*((None, c) for c in columns), *named.items()]:
            tree = self._resolved(written)
            called = name or (expressions.column_or(written, self.node.schema).name if _is_column(tree) else written)
            if found.get(called, tree) != tree:
                raise QueryError(f"output columns need different names; given twice: {called}")
            found[called] = tree
        return found

    def _resolved(self, text: str) -> exp.Expr:
        """The column that a text names, keyword or not, or else a SQL expression."""
        tree = expressions.column_or(text, self.node.schema)
        return expressions.resolve(with_window_time(tree, self.node), self.node.schema, text)

    # -- running -----------------------------------------------------------------------------------------------
    def plan(self) -> Plan:
        """The physical plan."""
        return self._planned(self._on_spark())

    def _planned(self, on_spark: bool, kept: Mapping[str, str] | None = None) -> Plan:
        """``kept``: what the checkpoint of an endless query knows of its first start. Where none is named, files that
        may be gone at a restart must not decide anything.
        """
        measured = kept is not None or not self._is_endless()
        samples = {n: f for n, s in self.sources.items() if measured and (f := _sample(s.data)) is not None}
        return plan(self.node, Given(samples, on_spark, kept or {}))

    def _is_endless(self) -> bool:
        return any(
            getattr(s.data, "streaming", False) or getattr(s.data, "isStreaming", False) for s in self.sources.values()
        )

    def explain(self, shards: int | None = None, *, checkpoint: str | Path | None = None) -> str:
        """What the query means and how it will run, in words; with the algorithms that a ``checkpoint`` keeps.

        A query that cannot run is refused, as when it runs.
        """
        from windrow.hosts.spark.compile import check_sources
        from windrow.hosts.spark.native import applies
        from windrow.hosts.spark.session import check_shards
        from windrow.planner.explain import explain

        if shards is not None:
            check_shards(shards)
        files = {n for n, s in self.sources.items() if isinstance(s.data, Files)}
        on_spark = self._on_spark()
        planned = self.plan() if checkpoint is None else self._planned(True, self._kept(checkpoint).choices())
        data = {n: s.data for n, s in self.sources.items()}
        if on_spark:
            check_sources(planned, data)
        native = on_spark and applies(planned, data)
        return explain(planned, on_spark, shards, files, native)

    def to_spark(
        self,
        shards: int | None = None,
        *,
        with_late: bool = False,
        state_limit: str | int | None = None,
        checkpoint: str | Path | None = None,
    ) -> DataFrame:
        """The result as a Spark DataFrame: streaming if any source is. ``shards`` must not change over a checkpoint.

        ``with_late``: one DataFrame of results and late records, for ``foreachBatch``: ``wr.results(df)`` and
        ``wr.late_rows(df)`` take them apart. ``state_limit``: how much state a shard may hold ("2 GB"); a query that
        needs more stops with an error that says what holds it, instead of filling the machine. ``checkpoint``: the
        folder that the stream will get as its ``checkpointLocation``; the algorithms that are chosen at the first
        start are kept there and used again, so that they can be chosen by what the files hold.
        """
        from windrow.hosts.spark import compile as spark

        if any(s.spark is False for s in self.sources.values()):
            raise PlanError("this query has no Spark source: use collect(), or give wr.stream a Spark DataFrame")
        limit = None if state_limit is None else memory_size(state_limit)
        data = {n: s.data for n, s in self.sources.items()}
        if checkpoint is None:
            return spark.to_spark(self._planned(True), data, shards, with_late, limit)
        kept = self._kept(checkpoint)
        planned = self._planned(True, kept.choices())
        result = spark.to_spark(planned, data, shards, with_late, limit)
        kept.keep(planned.choices())
        return result

    def _kept(self, checkpoint: str | Path) -> Kept:
        from windrow.hosts.spark.compile import session_of
        from windrow.hosts.spark.kept import Kept

        if not self._is_endless():
            raise QueryError("checkpoint= is for endless queries, and none of the sources of this one is endless")
        return Kept(session_of([s.data for s in self.sources.values()]), str(checkpoint), text(self.node))

    def bad_rows(self) -> Any:
        """The rows that cannot take part, with the reason: a Spark DataFrame, or a Polars one.

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
            self._check_finite()
            result = pl.DataFrame(self.to_spark().toArrow()).cast(self.plan().schema)  # type: ignore[arg-type]
        else:
            result = local.collect(self.plan(), {n: s.data for n, s in self.sources.items()})
        return result if _is_ordered(self.node) else in_order(result)

    def _check_finite(self) -> None:
        from windrow.hosts.spark.compile import is_streaming

        for name, source in self.sources.items():
            if is_streaming(source.data):
                raise PlanError(
                    f"stream {name!r} has no end, so its results cannot be collected: write them with "
                    "to_spark().writeStream, or read what is there now (streaming=False; spark.read instead of "
                    "spark.readStream)"
                )

    def run(self) -> local.LocalRun:
        """A running query in this process, to be fed by hand."""
        return local.LocalRun(self.plan())

    def _on_spark(self) -> bool:
        kinds = {s.spark for s in self.sources.values()} - {None}
        if len(kinds) > 1:
            raise PlanError("some sources are Spark DataFrames and some are not: turn all into one kind first")
        return kinds == {True} or any(isinstance(s.data, Files) and s.data.streaming for s in self.sources.values())


def _is_column(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Column)


def _is_ordered(node: Node) -> bool:
    """Whether a query says in which order its rows come."""
    while isinstance(node, (Filter, Project, Apply)):
        node = node.input
    return isinstance(node, OrderedNode)


def in_order(result: pl.DataFrame) -> pl.DataFrame:
    """By window and group."""
    if WINDOW_END not in result.columns:
        return result
    first = [WINDOW_END, *(c for c in result.columns if not result.schema[c].is_nested() and c != WINDOW_END)]
    return result.sort(first, nulls_last=False)


def _sample(data: Any) -> pl.DataFrame | None:
    """The first rows of what can be looked at without running anything."""
    if isinstance(data, Files):
        return data.sample(SAMPLE)
    return data.head(SAMPLE) if isinstance(data, pl.DataFrame) and data.height else None


def _zoned(zone: str | None) -> Options:
    return PLAIN if zone is None else Options(zone=check_zone(zone))
