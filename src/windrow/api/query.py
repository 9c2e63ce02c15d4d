"""A query and the hosts that run it: in this process, or on Spark. Both run the same plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from windrow.api.given import size, whole
from windrow.api.warned import warn, warnings
from windrow.errors import PlanError, QueryError
from windrow.hosts import local
from windrow.logical.explain import text
from windrow.logical.nodes import Apply, Filter, Lookup, Node, Ordered, Project, Scan
from windrow.operators.progress.admit import UNPARSABLE
from windrow.planner import Given, Plan, plan
from windrow.sources.files import Files
from windrow.sources.own import OWN
from windrow.spec.lengths import Length, length
from windrow.spec.names import REASON, WINDOW_END

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from windrow.hosts.analysis import Analysis
    from windrow.hosts.spark.continuous import ContinuousRun
    from windrow.hosts.spark.kept import Kept
    from windrow.hosts.warnings import Warned
    from windrow.hosts.why import Why

SAMPLE = 100_000  # rows that the optimizer measures


@dataclass(frozen=True)
class Source:
    """Where the rows of a scan come from: a Spark DataFrame, a frame in this process, or files, which both can read."""

    data: Any
    spark: bool | None
    misfits: pl.DataFrame  # rows whose progress value does not fit into the column at all

    @property
    def is_endless(self) -> bool:
        """Whether rows keep coming."""
        return bool(getattr(self.data, "streaming", False) or getattr(self.data, "isStreaming", False))

    def sample(self) -> pl.DataFrame | None:
        """The first rows, where they can be read without running anything."""
        if isinstance(self.data, Files):
            return self.data.sample(SAMPLE)
        return self.data.head(SAMPLE) if isinstance(self.data, pl.DataFrame) and self.data.height else None


@dataclass(frozen=True)
class Query:
    """What a query means (``node``), and where its rows come from. Immutable."""

    node: Node
    sources: Mapping[str, Source]

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """The columns and their types."""
        return dict(self.node.schema)

    # -- planning ----------------------------------------------------------------------------------------------
    def plan(self) -> Plan:
        """The physical plan."""
        return self._planned(self._on_spark())

    def _planned(self, on_spark: bool, kept: Kept | None = None) -> Plan:
        """``kept``: what the checkpoint of an endless query has kept from its first start. Without a checkpoint nothing
        may depend on files that can be gone at a restart, so none are measured.
        """
        return self._measured(on_spark, kept)[0]

    def _measured(self, on_spark: bool, kept: Kept | None) -> tuple[Plan, dict[str, pl.DataFrame]]:
        """The plan, and the samples that it was chosen by."""
        samples = self._samples() if kept is not None or not self._is_endless() else {}
        if kept is None:
            return plan(self.node, Given(samples, on_spark)), samples
        return plan(self.node, Given(samples, on_spark, kept.choices(), kept.seen())), samples

    def _to_run(self, on_spark: bool, kept: Kept | None = None) -> Plan:
        """The plan, with a warning where the query is probably not meant so."""
        planned, samples = self._measured(on_spark, kept)
        warn(warnings(planned, samples, self._endless()))
        return planned

    def _samples(self) -> dict[str, pl.DataFrame]:
        scans = [each for each in self.node.walk() if isinstance(each, Scan)]
        stamped = {scan.name for scan in scans if scan.stamps or scan.source.messages is not None}
        known = {name: source for name, source in self.sources.items() if name not in stamped}
        return {name: f for name, source in known.items() if (f := source.sample()) is not None}

    def _on_spark(self) -> bool:
        kinds = {s.spark for s in self.sources.values()} - {None}
        if len(kinds) > 1:
            raise PlanError("some sources are Spark DataFrames and some are not: convert all of them to one kind first")
        return kinds == {True} or any(isinstance(s.data, OWN) and s.data.streaming for s in self.sources.values())

    def _found(self, kept: Kept) -> list[Warned]:
        """The warnings before an endless query runs, hints and others."""
        return warnings(*self._measured(True, kept), self._endless())

    def _is_endless(self) -> bool:
        return any(s.is_endless for s in self.sources.values())

    def _endless(self) -> frozenset[str]:
        """The names of the sources that have no end."""
        return frozenset(name for name, source in self.sources.items() if source.is_endless)

    @property
    def _data(self) -> dict[str, Any]:
        return {name: source.data for name, source in self.sources.items()}

    def explain(
        self,
        shards: int | None = None,
        *,
        checkpoint: str | Path | None = None,
        analyze: bool = False,
        limit: int | None = None,
    ) -> str:
        """What the query means and how it will run, in words; with the algorithms that a ``checkpoint`` has kept.

        A query that cannot run is refused, as when it runs. Nothing is started, unless you ask to ``analyze``: then it
        runs in this process over the first ``limit`` rows of each source (1,000,000), and what each part of the plan
        costs is beside what was estimated.
        """
        from windrow.hosts.spark.session import check_shards
        from windrow.planner.explain import explain

        if analyze:
            self._check_analyzed(shards, checkpoint)
            return f"{self.explain()}\n\n{self.analysis(limit).text()}"
        if limit is not None:
            raise QueryError("limit= is for analyze=True: explain alone reads no rows but a sample")
        if shards is not None:
            check_shards(shards)
        on_spark, native = self._on_spark(), False
        kept = None if checkpoint is None else self._kept(checkpoint, False)
        planned, samples = self._measured(on_spark if kept is None else True, kept)
        found = warnings(planned, samples, self._endless())
        if on_spark:
            from windrow.hosts.spark.compile import check_sources
            from windrow.hosts.spark.native import applies

            check_sources(planned, self._data)
            native = applies(planned, self._data)
        files = {n for n, s in self.sources.items() if isinstance(s.data, OWN)}
        plans = explain(planned, on_spark, shards, files, native, samples, {} if kept is None else kept.seen())
        return "\n".join([plans, *(["", "Warnings"] if found else []), *(f"  {each.line}" for each in found)])

    def analysis(self, limit: int | None = None, each: Callable[[float], None] | None = None) -> Analysis:
        """The measured cost of each part of the plan beside the estimated one, over the first ``limit`` rows of each
        source (1,000,000). ``text()`` is what ``explain(analyze=True)`` shows, ``as_json()`` is for programs.

        ``each`` is told after every batch which share of the rows is done.

        >>> from windrow import count, stream
        >>> found = stream([{"t": t} for t in range(4000)], "t", slack=0, name="s").window(100)
        >>> found = found.agg(n=count()).analysis()
        >>> [(line.name, line.rows_in, line.rows_out) for line in found.lines if line.estimated_out is not None]
        [('source s', 4000, 4000), ('stage 0', 4000, 40), ('result', 40, 40), ('the plan', 4000, 40)]
        >>> round(found.lines[-1].estimated_out)
        40
        """
        from windrow.hosts.analysis import LIMIT, analyzed

        most = LIMIT if limit is None else whole(limit, "limit")
        if most < 1:
            raise QueryError(f"limit={most} must be at least 1: it is how many rows of each source are read")
        self._check_analyzed(None, None)
        _load(self.node)
        how = {} if each is None else {"each": each}
        return analyzed(self._planned(False), self._data, self._samples(), most, **how)

    def _check_analyzed(self, shards: int | None, checkpoint: str | Path | None) -> None:
        if shards is not None or checkpoint is not None:
            raise QueryError(
                "analyze runs the query in this process: shards and checkpoint do not apply, leave them out"
            )
        for name, source in self.sources.items():
            if source.is_endless and isinstance(source.data, OWN):
                raise PlanError(
                    f"stream {name!r} has no end, so it cannot be run to be analyzed: read what is there now "
                    "(streaming=False)"
                )
            if source.spark:
                raise PlanError(
                    f"stream {name!r} is a Spark DataFrame, and analyze runs in this process: give wr.stream some of "
                    "its rows, as in df.limit(100000).toPandas(), or read files with wr.read_parquet or wr.read_arrow"
                )

    # -- Spark -------------------------------------------------------------------------------------------------
    def to_spark(
        self,
        shards: int | None = None,
        *,
        with_late: bool = False,
        state_limit: str | int | None = None,
        checkpoint: str | Path | None = None,
    ) -> DataFrame:
        """The result as a Spark DataFrame: streaming if any source is. ``shards`` must not change over a checkpoint.

        ``with_late``: one DataFrame of results, late records and bad rows that were found after a window or a join, for
        ``foreachBatch``: ``wr.results(df)``, ``wr.late_rows(df)`` and ``wr.bad_rows(df)`` separate them.
        ``state_limit``: how much state a shard may hold ("2 GB"); a query that needs more stops with an error that
        names what holds it, instead of filling the machine. ``checkpoint``: the folder that the stream will get as its
        ``checkpointLocation``; the algorithms chosen at the first start are kept there and used again, so that they can
        be chosen by what the files hold.
        """
        from windrow.hosts.spark import compile as spark

        if any(s.spark is False for s in self.sources.values()):
            raise PlanError("this query has no Spark source: use collect(), or give wr.stream a Spark DataFrame")
        limit = None if state_limit is None else size(state_limit)
        _load(self.node)
        if checkpoint is None:
            return spark.to_spark(self._to_run(True), self._data, shards, with_late, limit)
        from windrow.hosts.spark.reports import ReportFile
        from windrow.hosts.spark.seen import FirstBatch

        kept = self._kept(checkpoint)
        planned = self._to_run(True, kept)
        sources = FirstBatch(kept).observed(planned, self._data)
        ReportFile.of(kept.spark, kept.checkpoint)
        result = spark.to_spark(planned, sources, shards, with_late, limit)
        kept.keep(planned.choices())
        return result

    def run_continuously(
        self,
        *,
        sink: str | Path,
        checkpoint: str | Path,
        epoch: Length = "1 second",
        nodes: int | None = None,
        retries: int = 3,
        spark: SparkSession | None = None,
    ) -> ContinuousRun:
        """Run without end, and without micro-batches: for queries in which nothing holds state but one ``using="ring"``
        join, over files (``wr.read_parquet(.., streaming=True)``).

        One long job of Spark whose tasks are the ``nodes`` of the ring; the first one reads the files as they come.
        Every ``epoch`` in which something has come, what has been found is written to the folder ``sink`` as Parquet,
        once, together with the state and how far the files have been read, which go to the folder ``checkpoint``; from
        there a run continues. Late and bad rows go to ``_late`` and ``_bad`` in the sink. ``retries``: how often the
        job begins again, without an epoch in between, if a node dies.
        """
        from windrow.hosts.spark.continuous import started

        _load(self.node)
        every = length(epoch, pl.Datetime("us"), "epoch") / 1_000_000
        if whole(retries, "retries") < 0:
            raise QueryError(f"retries={retries} must be 0 or more")
        where = {"sink": sink, "checkpoint": checkpoint}
        return started(self._to_run(True), self._data, **where, every=every, nodes=nodes, retries=retries, spark=spark)

    def _kept(self, checkpoint: str | Path, start: bool = True) -> Kept:
        """``start``: a session, where there is none yet."""
        from windrow.hosts.spark.kept import Kept, session_for

        if not self._is_endless():
            raise QueryError("checkpoint= is for endless queries, and none of the sources of this one is endless")
        spark = session_for(str(checkpoint), list(self._data.values()), start)
        return Kept(spark, str(checkpoint), text(self.node))

    def why(self, running: StreamingQuery | None = None, *, checkpoint: str | Path | None = None) -> Why:
        """Why results do not come, or not all of them: which source, partition or group holds them back, its last
        promise, what would release something, and what waits.

        ``running`` is what ``writeStream.start()`` returned; ``checkpoint`` is the folder of a query that runs or was
        stopped. Without either the query is run in this process over its finite sources, up to their ends but not
        beyond: what waits then is what would wait if they were streams.

        >>> from windrow import count, stream
        >>> late = stream([{"t": 1}, {"t": 19}], "t", slack=60, name="s").window(10).agg(n=count())
        >>> late.why().cause.name
        'slack too large'
        """
        from windrow.hosts.why import why

        if running is not None or checkpoint is not None:
            from windrow.hosts.spark.reports import explained

            return explained(running if running is not None else checkpoint)
        if self._on_spark():
            raise QueryError(
                "this query runs on Spark: say which run is meant, why(running) with what start() returned, or "
                "why(checkpoint=DIR) for one that runs elsewhere or was stopped"
            )
        _load(self.node)
        return why(local.fed(self.plan(), self._data).report())

    # -- results -----------------------------------------------------------------------------------------------
    def bad_rows(self) -> Any:
        """The rows that cannot take part, with the reason: a Spark DataFrame, or a Polars one.

        On Spark, those that are bad before the first window or join; ``wr.bad_rows`` has those that are found later.

        >>> from windrow import stream
        >>> stream([{"t": 1}, {"t": None}], progress="t").bad_rows()["reason"].to_list()
        ['the progress value is NULL']
        """
        _load(self.node)
        if self._on_spark():
            from windrow.hosts.spark import side

            return side.bad_rows(self.plan(), self._data)
        found = local.bad_rows(self.plan(), self._data)
        misfits = [s.misfits for s in self.sources.values() if s.misfits.height]
        marked = [m.with_columns(pl.lit(UNPARSABLE).alias(REASON)) for m in misfits]
        return pl.concat([found, *marked], how="diagonal_relaxed") if marked else found

    def collect(self) -> pl.DataFrame:
        """Run over finite sources to the end. Rows are sorted by window and group."""
        on_spark = self._on_spark()
        if on_spark:
            self._check_finite()
        planned = self._to_run(on_spark)
        _load(self.node)
        if on_spark:
            from windrow.hosts.spark.compile import to_spark

            result = pl.DataFrame(to_spark(planned, self._data).toArrow()).cast(planned.schema)  # type: ignore[arg-type]
        else:
            result = local.collect(planned, self._data)
        return result if _is_ordered(self.node) else in_order(result)

    def _check_finite(self) -> None:
        for name, source in self.sources.items():
            if source.is_endless:
                raise PlanError(
                    f"stream {name!r} has no end, so its results cannot be collected: write them with "
                    "to_spark().writeStream, or read what is there now (streaming=False; spark.read instead of "
                    "spark.readStream)"
                )

    def run(self, clock: Callable[[], datetime] | None = None) -> local.LocalRun:
        """A running query in this process. Rows and promises are pushed into it.

        ``clock`` says when rows arrive, for queries over ``arrival_ts``; without one it is the wall clock.

        >>> from datetime import datetime
        >>> from windrow import count, stream
        >>> seconds = iter([1, 7, 12])
        >>> s = stream([{"x": 0}], progress="arrival_ts", name="s").window("10 seconds").agg(n=count())
        >>> run = s.run(clock=lambda: datetime(2024, 1, 1, 0, 0, next(seconds)))
        >>> [run.push("s", [{"x": x}]).results()["n"].to_list() for x in (1, 2, 3)]
        [[], [], [2]]
        """
        return local.LocalRun(self._to_run(self._on_spark()), clock)


def merged(queries: Iterable[Query]) -> dict[str, Source]:
    """The sources of several queries by name; a name stands for one source."""
    found: dict[str, Source] = {}
    for query in queries:
        for name, source in query.sources.items():
            if found.setdefault(name, source) is not source:
                raise QueryError(f"two different sources are called {name!r}: give each stream its own name=...")
    return found


def _load(node: Node) -> None:
    """Load all tables of a query now, so that what is wrong with one is an error of its own."""
    for each in node.walk():
        if isinstance(each, Lookup):
            each.table.frame  # noqa: B018 (it is loaded when it is asked for)


def _is_ordered(node: Node) -> bool:
    """Whether a query says in which order its rows come."""
    while isinstance(node, (Filter, Project, Apply, Lookup)):
        node = node.input
    return isinstance(node, Ordered)


def in_order(result: pl.DataFrame) -> pl.DataFrame:
    """By window and group."""
    if WINDOW_END not in result.columns:
        return result
    first = [WINDOW_END, *(c for c in result.columns if not result.schema[c].is_nested() and c != WINDOW_END)]
    return result.sort(first, nulls_last=False)
