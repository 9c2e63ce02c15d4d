"""A plan as a Spark DataFrame: map sides, exchange, shards, results. Streaming and batch alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from windrow.errors import PlanError
from windrow.hosts.counters import Counter
from windrow.hosts.described import BAD_SCHEMA
from windrow.hosts.outline import outline_of
from windrow.hosts.spark.clock import clock
from windrow.hosts.spark.exchange import COLUMNS, MADE, METRICS, REPORTS, SHARDS, Kind, decode
from windrow.hosts.spark.files import MapFiles, load
from windrow.hosts.spark.fragment import Fragment
from windrow.hosts.spark.kafka import MapTopic
from windrow.hosts.spark.kafka import load as load_topic
from windrow.hosts.spark.map_side import MapSide, Taken
from windrow.hosts.spark.native import native
from windrow.hosts.spark.placed import Placed, placed_stages
from windrow.hosts.spark.ring import RingShards, ring_count
from windrow.hosts.spark.runner import BatchShards, Level, StreamingShards
from windrow.hosts.spark.schema import to_spark as spark_schema
from windrow.hosts.spark.session import prepare, session, shard_count
from windrow.hosts.spark.stamped import check_stamps, stamped
from windrow.hosts.spark.waiting import Waiting, new_name, noted, path_of
from windrow.hosts.spark.wanted import sources_asked
from windrow.hosts.spark.wiring import Hosted
from windrow.hosts.strategies import Strategies
from windrow.logical.nodes import Scan
from windrow.planner import Combined, Plan, Stage
from windrow.sources.files import Files
from windrow.sources.kafka.topic import Topic
from windrow.sources.own import OWN, Own

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MOST_REPORTS = 64  # shards whose reports go into the metrics of a micro-batch; all of them are in the checkpoint
RULES = "ordered, slack, delay, rows, partitions, markers, heartbeats, estimated, function"
RESULTS, LATE_ROWS, BAD_ROWS = "result", "late", "bad"  # the struct columns of a DataFrame with all of them


def to_spark(
    plan: Plan,
    sources: Mapping[str, DataFrame | Own],
    shards: int | None = None,
    with_late: bool = False,
    state_limit: int | None = None,
) -> DataFrame:
    """The result of a plan over Spark DataFrames, itself an ordinary DataFrame.

    ``with_late``: each row is a result, a late record, or a bad row that a shard found, in the struct columns RESULTS,
    LATE_ROWS and BAD_ROWS.
    """
    frames = [sources[s.name] for s in plan.scans()]
    streaming = any(is_streaming(f) for f in frames)
    check_sources(plan, sources)
    if streaming and not with_late and sets_aside(plan):
        raise PlanError(
            "LATE SIDE sets late rows aside, and here they have no destination: take them with "
            "to_spark(with_late=True), then wr.results(df) and wr.late_rows(df) in foreachBatch; on the command line "
            "with --late-rows parquet:DIR. If you do not need the rows, use LATE DROP, which only counts them"
        )
    spark = session_of(frames)
    count = shard_count(spark, shards)
    if rings := [stage for stage in plan.stages() if stage.ring]:
        count = ring_count(spark, count, shards is not None, [stage.nodes for stage in rings])
    if streaming:
        prepare(spark, count)
    if not with_late and (own := native(plan, sources)) is not None:
        return own
    compiler = _Compiler(plan, sources, spark, count, streaming, state_limit)
    return compiler.both() if with_late else compiler.result()


def is_streaming(source: DataFrame | Own) -> bool:
    """Whether a source has no end."""
    return source.streaming if isinstance(source, OWN) else bool(source.isStreaming)


def session_of(sources: Sequence[DataFrame | Own]) -> SparkSession:
    """The session of the DataFrames among the sources; for files alone the active one, or a new one."""
    from pyspark.sql import SparkSession

    for source in sources:
        if not isinstance(source, OWN):
            return source.sparkSession
    return SparkSession.getActiveSession() or session()


def results(both: DataFrame, name: str = RESULTS) -> DataFrame:
    """The results of a DataFrame made by ``to_spark(with_late=True)``, such as the one foreachBatch gives.

    ``name``: of queries that run together, the one whose results are wanted.
    """
    quoted = "`" + name.replace("`", "``") + "`"
    return both.where(f"{quoted} IS NOT NULL").select(f"{quoted}.*")


def late_rows(both: DataFrame) -> DataFrame:
    """The late records of a DataFrame made by ``to_spark(with_late=True)``."""
    return both.where(f"{LATE_ROWS} IS NOT NULL").select(f"{LATE_ROWS}.*")


def bad_rows(both: DataFrame) -> DataFrame:
    """The bad rows that shards found, of a DataFrame made by ``to_spark(with_late=True)``.

    They are rows for which a Python function after a window or a join failed. ``source`` names the stage, ``reason``
    says what failed, and ``row`` is the row as JSON. Rows that are bad before the first window are in
    ``Stream.bad_rows``.
    """
    return both.where(f"{BAD_ROWS} IS NOT NULL").select(f"{BAD_ROWS}.*")


def check_sources(plan: Plan, sources: Mapping[str, DataFrame | Own]) -> None:
    """Refuse a query that would never produce results, or wants what Spark does not know of its rows."""
    check_stamps(plan, sources)
    for read in plan.reads():
        if not read.by_rows and read.attribute == read.scan.progress:
            check_progress(read.scan, is_streaming(sources[read.scan.name]))


def sets_aside(plan: Plan) -> bool:
    """Whether late rows have an output of their own (LATE SIDE). A finite source has none: it ends after all rows."""
    return any(step.name == "gate" for stage in plan.stages() for step in stage.steps)


def check_progress(scan: Scan, streaming: bool) -> None:
    """Refuse an endless source whose windows could never close, or whose rule needs what Spark does not keep."""
    rule = scan.source.rule
    if streaming and rule is not None and (why := rule.check(in_order=False)) is not None:
        raise PlanError(f"stream {scan.name!r}: {why}")
    if streaming and not scan.source.promises:
        raise PlanError(
            f"stream {scan.name!r} makes no promises, so no window over it would ever be released. Say how far behind "
            f"its rows can be: wr.stream(df, progress={scan.progress!r}, slack='10 seconds') (slack='0 seconds' if "
            f"they are in order); or name a column of markers: punctuation='column'; or use another promise rule, "
            f"punctuation=wr.promise...: {RULES}. In SQL: FROM {scan.name} PUNCTUATED BY slack('10 seconds'). On the "
            f"command line: --slack '10 seconds' or --punctuation 'rows(100)'"
        )


def standing_rows(
    plan: Combined,
    sources: Mapping[str, DataFrame | Own],
    shards: int,
    depth: int,
    dormant: frozenset[int],
    strategies: Strategies,
    clock: bool = False,
) -> DataFrame:
    """The exchange rows that come out of several queries at once, each result with the number of its query as its port.

    All ``sources`` are part of it, whether read or not, and there are ``depth`` levels: Spark would refuse to continue
    with fewer or more of either. ``clock``: among the sources is one that asks the DataFrames. ``dormant``: stages that
    do not run now, and whose state stays.
    """
    for name, source in sources.items():
        if not is_streaming(source):
            raise PlanError(
                f"stream {name!r} is finite, and a session on Spark needs endless ones: use spark.readStream"
            )
    check_sources(plan, sources)
    spark = session_of(list(sources.values()))
    prepare(spark, shards)
    how = {"depth": depth, "dormant": dormant, "strategies": strategies, "clock": clock}
    compiler = _Compiler(plan, sources, spark, shards, True, **how)  # type: ignore[arg-type]
    return compiler.observed(compiler.rows())


@dataclass
class _Compiler:
    plan: Plan
    sources: Mapping[str, DataFrame | Own]
    spark: SparkSession
    shards: int
    streaming: bool
    limit: int | None = None
    depth: int | None = None  # of queries that come and go: how many levels there are
    dormant: frozenset[int] = frozenset()
    strategies: Strategies = field(default_factory=Strategies)
    clock: bool = False  # of queries that come and go: whether some DataFrame can be asked
    watched: str = field(default_factory=new_name)  # where what its shards want is seen

    @property
    def notes(self) -> str:
        return path_of(self.watched)

    def result(self) -> DataFrame:
        spark_types, arrow_types = spark_schema(self.plan.schema)
        return self.observed(self.rows()).mapInArrow(Decoder(arrow_types), spark_types)

    def both(self) -> DataFrame:
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        types = StructType().add(RESULTS, spark_schema(self.plan.schema)[0])
        types = types.add(LATE_ROWS, spark_schema(self.plan.late_schema())[0])
        types = types.add(BAD_ROWS, spark_schema(BAD_SCHEMA)[0])
        decoder = SideDecoder(to_arrow_schema(types, timezone="UTC"))
        return self.observed(self.rows()).mapInArrow(decoder, types)

    def rows(self) -> DataFrame:
        """The exchange rows that come out of the last level. Whatever is for a later level passes through the others:
        a stateful operator that two of them read would run twice.
        """
        placed = placed_stages(self.plan, self.shards, self.streaming)
        read = placed.reads if self.depth is None else {name: placed.reads.get(name, []) for name in self.sources}
        owners = {} if self.depth is None else self.plan.owners()
        names = {} if self.depth is None else self.plan.names()
        ticks = () if self.depth is None else placed.ids
        rows = reduce(lambda a, b: a.unionAll(b), [self._source(name, r, owners, ticks) for name, r in read.items()])
        live = None if self.depth is None else self.dormant
        runner = StreamingShards(self.plan, live) if self.streaming else BatchShards()
        if self.streaming:
            rows = self._with_clock(rows, placed, self.plan.asked)
        outline, first = outline_of(self.plan), True
        for stages in self._levels(placed):
            for ring, some in self._by_runner(stages):
                hosted = tuple(hosted for _, hosted in some)
                asks = sources_asked(self.plan) if self.streaming else {}
                fragment = Fragment(
                    hosted, placed.ids, self.limit, owners, names, self.strategies, outline, asks, first
                )
                first = False
                rows = (RingShards(self.plan, self.streaming) if ring else runner).rows(rows, fragment, some)
        return rows

    def _with_clock(self, rows: DataFrame, placed: Placed, asked: Mapping[str, int]) -> DataFrame:
        """The exchange rows, and those that ask the DataFrames; files are asked by their own reader."""
        frames = {name: number for name, number in asked.items() if not isinstance(self.sources[name], OWN)}
        taken = [read for name in frames for read in placed.reads.get(name, []) if read.asked]
        routes = [branch.route for read in taken for branch in read.branches if branch.route.shards]
        waiting = [Waiting(self.notes, number) for number in frames.values()]
        return rows.unionAll(clock(self.spark, routes, waiting)) if frames or self.clock else rows

    def _by_runner(self, stages: Level) -> list[tuple[bool, Level]]:
        """The stages of a level: those that a ring runs, and the others. The nodes of a ring that has one shard, or
        that is in a session, are all in that shard.
        """
        if self.depth is not None or self.shards == 1:
            return [(False, stages)]
        rings = [each for each in stages if each[0].ring]
        others = [each for each in stages if not each[0].ring]
        return [(ring, some) for ring, some in ((False, others), (True, rings)) if some]

    def _levels(self, placed: Placed) -> list[list[tuple[Stage, Hosted]]]:
        if self.depth is None:
            return placed.levels
        return [*placed.levels, *([] for _ in range(self.depth - len(placed.levels)))]

    def _source(
        self, name: str, reads: Sequence[Taken], owners: Mapping[int, tuple[int, ...]], ticks: tuple[int, ...]
    ) -> DataFrame:
        """The exchange rows of a source, which is read once; of one that no query reads, none of its columns."""
        source = self.sources[name]
        needed = [c for scan in self.plan.scans() if scan.name == name for c in self.plan.read_from(scan)]
        map_side = MapSide(reads, not self.streaming, owners, ticks, self.strategies, name)
        stamps = [c for scan in self.plan.scans() if scan.name == name for c in self.plan.stamps_of(scan)]
        number = self.plan.asked.get(name) if self.streaming else None
        waiting = None if number is None else Waiting(self.notes, number)
        if isinstance(source, Topic):
            return load_topic(self.spark, source, MapTopic(map_side, tuple(needed), tuple(stamps), waiting=waiting))
        if isinstance(source, Files):
            return load(self.spark, source, MapFiles(map_side, tuple(needed), tuple(stamps), waiting=waiting))
        quoted = ["`" + c.replace("`", "``") + "`" for c in needed or source.columns[:1]]
        rows = stamped(source, stamps, quoted)
        return (rows if reads else rows.where("false")).mapInArrow(map_side, COLUMNS)

    def observed(self, rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as f

        def count(counter: Counter) -> Column:
            mine = (f.col("kind") == int(Kind.COUNT)) & (f.col("port") == counter.number)
            return f.sum(f.when(mine, f.col("value")).otherwise(0)).alias(counter.label)

        report = f.when((f.col("kind") == int(Kind.REPORT)) & (f.col("port") == MADE), f.col("blob").cast("string"))
        rows = rows.observe(METRICS, *(count(counter) for counter in Counter))
        if not self.streaming:
            return rows
        rows = rows.observe(REPORTS, f.slice(f.collect_list(report), 1, MOST_REPORTS).alias(SHARDS))
        asked = self.plan.asked
        return noted(rows, self.watched, list(asked.values())) if asked else rows


def decoded(batches: Iterator[pa.RecordBatch], kinds: tuple[Kind, ...]) -> Iterator[tuple[Kind, pl.DataFrame]]:
    """The frames of some kinds of exchange rows."""
    for batch in batches:
        blobs = batch.column("blob")
        for i, kind in enumerate(batch.column("kind").to_pylist()):
            if kind in kinds:
                yield Kind(kind), decode(blobs[i].as_py(), "a result")


class Decoder:
    """Result blobs to rows."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _kind, frame in decoded(batches, (Kind.RESULT,)):
            yield from frame.to_arrow().cast(self.schema).to_batches()
        yield pa.RecordBatch.from_pylist([], schema=self.schema)


class SideDecoder:
    """Blobs of results, late rows and bad rows to rows with one struct column each."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        columns = {Kind.RESULT: RESULTS, Kind.LATE: LATE_ROWS, Kind.BAD: BAD_ROWS}
        for kind, frame in decoded(batches, tuple(columns)):
            yield self._rows(frame, columns[kind])
        yield pa.RecordBatch.from_pylist([], schema=self.schema)

    def _rows(self, frame: pl.DataFrame, column: str) -> pa.RecordBatch:
        fields = self.schema.field(column).type.fields
        missing = [pl.lit(None).alias(f.name) for f in fields if f.name not in frame.columns]
        table = frame.with_columns(missing).select([f.name for f in fields]).to_arrow().cast(pa.schema(fields))
        rows = table.to_struct_array().combine_chunks() if table.num_rows else pa.array([], pa.struct(fields))
        rows = rows.chunk(0) if isinstance(rows, pa.ChunkedArray) else rows
        columns = [rows if f.name == column else pa.nulls(len(rows), f.type) for f in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
