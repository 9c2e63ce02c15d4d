"""A plan as a Spark DataFrame: map sides, exchange, shards, results. Streaming and batch alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from windrow.errors import PlanError
from windrow.hosts.spark.exchange import (
    ARROW,
    COLUMNS,
    COUNTERS,
    LATE,
    METRICS,
    RESULT,
    decode,
    record_batch,
    shard_ids,
)
from windrow.hosts.spark.files import MapFiles, load
from windrow.hosts.spark.map_side import MapSide, Route
from windrow.hosts.spark.native import native
from windrow.hosts.spark.schema import to_spark as spark_schema
from windrow.hosts.spark.session import prepare, session, shard_count
from windrow.hosts.spark.shard import Fragment, ShardProcessor
from windrow.logical.explain import text
from windrow.logical.nodes import Scan
from windrow.planner import Pipeline, Plan, Stage, Step
from windrow.sources.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WAYS = "ordered, slack, rows, partitions, markers, heartbeats, estimated, function"
RESULTS, LATE_ROWS = "result", "late"  # the struct columns of a DataFrame with both


def to_spark(
    plan: Plan,
    sources: Mapping[str, DataFrame | Files],
    shards: int | None = None,
    with_late: bool = False,
    state_limit: int | None = None,
) -> DataFrame:
    """The result of a plan over Spark DataFrames, itself an ordinary DataFrame.

    ``with_late``: each row is either a result or a late record, in the struct columns RESULTS and LATE_ROWS.
    """
    frames = [sources[s.name] for s in plan.scans()]
    streaming = any(is_streaming(f) for f in frames)
    check_sources(plan, sources)
    if streaming and not with_late and sets_aside(plan):
        raise PlanError(
            "LATE SIDE sets late rows aside, and here they have no place to go: take them with "
            "to_spark(with_late=True), then wr.results(df) and wr.late_rows(df) in foreachBatch; on the command line "
            "with --late-rows parquet:DIR. To do without the rows say LATE DROP, which only counts them"
        )
    spark = session_of(frames)
    count = shard_count(spark, shards)
    if streaming:
        prepare(spark, count)
    if not with_late and (own := native(plan, sources)) is not None:
        return own
    compiler = _Compiler(plan, sources, spark, count, streaming, state_limit)
    return compiler.both() if with_late else compiler.result()


def is_streaming(source: DataFrame | Files) -> bool:
    """Whether a source has no end."""
    return source.streaming if isinstance(source, Files) else bool(source.isStreaming)


def session_of(sources: Sequence[DataFrame | Files]) -> SparkSession:
    """The session of the DataFrames among the sources; for files alone the active one, or a new one."""
    from pyspark.sql import SparkSession

    for source in sources:
        if not isinstance(source, Files):
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


def check_sources(plan: Plan, sources: Mapping[str, DataFrame | Files]) -> None:
    """Refuse a query of which nothing would ever come out."""
    for leaf, scan in zip(plan.leaves(), plan.scans(), strict=True):
        if not leaf.by_rows:
            check_progress(scan, is_streaming(sources[scan.name]))


def sets_aside(plan: Plan) -> bool:
    """Whether late rows leave by a way of their own (LATE SIDE). A finite source has none: it ends after all rows."""
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
            f"they are in order); or name a column of markers: punctuation='column'; or give another way, "
            f"punctuation=wr.promise...: {WAYS}. In SQL: FROM {scan.name} PUNCTUATED BY slack('10 seconds'). On the "
            f"command line: --slack '10 seconds' or --punctuation 'rows(100)'"
        )


@dataclass
class _Compiler:
    plan: Plan
    sources: Mapping[str, DataFrame | Files]
    spark: SparkSession
    shards: int
    streaming: bool
    limit: int | None = None

    def result(self) -> DataFrame:
        blobs = self._union([self._fragment(p, Route()) for p in self.plan.outputs])
        spark_types, arrow_types = spark_schema(self.plan.schema)
        return self._observed(blobs).mapInArrow(Decoder(arrow_types), spark_types)

    def both(self) -> DataFrame:
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        blobs = self._union([self._fragment(p, Route()) for p in self.plan.outputs])
        types = StructType().add(RESULTS, spark_schema(self.plan.schema)[0])
        types = types.add(LATE_ROWS, spark_schema(self.plan.late_schema())[0])
        decoder = BothDecoder(to_arrow_schema(types, timezone="UTC"))
        return self._observed(blobs).mapInArrow(decoder, types)

    def _union(self, frames: list[DataFrame]) -> DataFrame:
        return reduce(lambda a, b: a.unionAll(b), frames)

    def _fragment(self, pipeline: Pipeline, route: Route) -> DataFrame:
        """Exchange rows of a pipeline's output, for the shards of ``route``."""
        if isinstance(pipeline.source, Stage):
            return self._stage(pipeline.source, pipeline, route)
        source = self.sources[pipeline.source.name]
        needed = self.plan.read_from(pipeline.source)
        map_side = MapSide([step.split() for step in pipeline.steps], route, ends=not self.streaming)
        if isinstance(source, Files):
            return load(self.spark, source, MapFiles(map_side, tuple(needed)))
        quoted = ["`" + c.replace("`", "``") + "`" for c in needed]
        return source.select(*quoted).mapInArrow(map_side, COLUMNS)

    def _stage(self, stage: Stage, after: Pipeline, route: Route) -> DataFrame:
        ids = tuple(shard_ids(self.shards))
        frames, port = [], 0
        judges: dict[int, tuple[Step, ...]] = {}
        audited = []
        for pipeline in stage.inputs:
            if self.streaming and (judging := pipeline.judging()):
                judges[port] = judging
            if isinstance(pipeline.source, Scan) and pipeline.source.source.marker is not None and not pipeline.by_rows:
                audited.append(port)
            frames.append(self._fragment(pipeline, Route(stage.keys, ids, port, stage.named)))
            port += len(ids) if isinstance(pipeline.source, Stage) else 1
        upstream = ids if route.shards else ()
        steps, made = (*stage.steps, *after.steps), (tuple(judges.items()), tuple(audited))
        fragment = Fragment(port, steps, route, upstream, self.limit, *made, stage.meeting, bool(stage.named))
        exchanged = self._union(frames)
        if not self.streaming:
            return exchanged.repartition(self.shards, "shard").mapInArrow(BatchShards(fragment), COLUMNS)
        processor = ShardProcessor(fragment, self._identity(stage))
        return exchanged.groupBy("shard").transformWithState(processor, COLUMNS, "Append", "None")

    def _identity(self, stage: Stage) -> dict[str, Any]:
        """What a checkpoint belongs to: restoring anything else must fail, and say what differs."""
        sources = {s.name: {c: str(s.schema[c]) for c in self.plan.needed()[s.name]} for s in self.plan.scans()}
        return {
            "query": text(self.plan.logical),
            "algorithm": stage.algorithm,
            "shards": self.shards,
            "source columns": sources,
            "result columns": {c: str(t) for c, t in self.plan.schema.items()},
        }

    def _observed(self, blobs: DataFrame) -> DataFrame:
        from pyspark.sql import functions as f

        counts = [
            f.sum(f.when(f.col("kind") == kind, f.col("value")).otherwise(0)).alias(name)
            for name, kind in COUNTERS.items()
        ]
        return blobs.observe(METRICS, *counts)


class BatchShards:
    """The shards of one partition of a finite input: everything, then the end of the stream."""

    def __init__(self, fragment: Fragment) -> None:
        self.fragment = fragment

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        by_shard: dict[int, list[Any]] = {}
        for batch in batches:
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                by_shard.setdefault(row[0], []).append(row)
        for shard, rows in by_shard.items():
            for out in self.fragment.run(self.fragment.graph(), shard, rows, ended=True):
                yield record_batch([out])
        yield pa.RecordBatch.from_pylist([], schema=ARROW)


def decoded(batches: Iterator[pa.RecordBatch], kinds: tuple[int, ...]) -> Iterator[tuple[int, pl.DataFrame]]:
    """The frames of some kinds of exchange rows."""
    for batch in batches:
        blobs = batch.column("blob")
        for i, kind in enumerate(batch.column("kind").to_pylist()):
            if kind in kinds:
                yield kind, decode(blobs[i].as_py(), "a result")


class Decoder:
    """Result blobs to rows."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _kind, frame in decoded(batches, (RESULT,)):
            yield from frame.to_arrow().cast(self.schema).to_batches()
        yield pa.RecordBatch.from_pylist([], schema=self.schema)


class BothDecoder:
    """Result and late blobs to rows with one struct column each."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for kind, frame in decoded(batches, (RESULT, LATE)):
            yield self._rows(frame, RESULTS if kind == RESULT else LATE_ROWS)
        yield pa.RecordBatch.from_pylist([], schema=self.schema)

    def _rows(self, frame: pl.DataFrame, column: str) -> pa.RecordBatch:
        fields = self.schema.field(column).type.fields
        missing = [pl.lit(None).alias(f.name) for f in fields if f.name not in frame.columns]
        table = frame.with_columns(missing).select([f.name for f in fields]).to_arrow().cast(pa.schema(fields))
        rows = table.to_struct_array().combine_chunks() if table.num_rows else pa.array([], pa.struct(fields))
        rows = rows.chunk(0) if isinstance(rows, pa.ChunkedArray) else rows
        columns = [rows if f.name == column else pa.nulls(len(rows), f.type) for f in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
