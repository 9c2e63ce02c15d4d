"""The side output on Spark: the bad rows of every source, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from windrow.graph import Graph
from windrow.hosts.counters import NAMES
from windrow.hosts.spark.compile import session_of
from windrow.hosts.spark.exchange import METRICS
from windrow.hosts.spark.files import Task, load
from windrow.hosts.spark.kafka import BadMessages
from windrow.hosts.spark.kafka import load as load_topic
from windrow.hosts.spark.map_side import together
from windrow.hosts.spark.schema import to_spark as spark_schema
from windrow.hosts.spark.stamped import check_stamps, stamped
from windrow.operators.operator import Side
from windrow.planner import Pipeline, Plan, Read, Step, add_steps
from windrow.sources.arriving import Arrival, TornError, readable
from windrow.sources.files import File, Files
from windrow.sources.kafka.topic import Topic
from windrow.sources.own import OWN, Own
from windrow.spec.names import REASON

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


FINDING = ("decode", "admit", "apply", "split", "retime", "lift")  # the steps that find bad rows


def bad_rows(plan: Plan, sources: Mapping[str, DataFrame | Own]) -> DataFrame:
    """All bad rows as they came, with the source's name and the reason. Stateless: it needs no promises.

    A file that cannot be read is a row of NULLs with the reason.
    """
    from pyspark.sql import functions as f

    check_stamps(plan, sources)
    spark = session_of(list(sources.values()))
    rows = reduce(
        lambda a, b: a.unionByName(b, allowMissingColumns=True),
        [_of_pipeline(plan, pipeline, first, sources, spark) for pipeline, first in _finding(plan)],
    )
    bad = {"rows_bad": f.count("*"), "rows_out": f.count("*")}
    return rows.observe(METRICS, *(bad.get(name, f.sum(f.lit(0))).alias(name) for name in NAMES))


def _finding(plan: Plan) -> list[tuple[Pipeline, int]]:
    """The pipelines that rows can be found bad in, each with its first step that looks: a source is admitted once."""
    found: dict[Read, list[tuple[Pipeline, int]]] = {}
    for pipeline in plan.pipelines():
        if isinstance(pipeline.source, Read):
            others = found.setdefault(pipeline.source, [])
            if not others or any(step.name in FINDING for step in pipeline.steps):
                others.append((pipeline, len(pipeline.source.steps) if others else 0))
    return [each for pipelines in found.values() for each in pipelines]


def _of_pipeline(
    plan: Plan, pipeline: Pipeline, first: int, sources: Mapping[str, DataFrame | Own], spark: SparkSession
) -> DataFrame:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StringType, StructType

    assert isinstance(pipeline.source, Read)
    scan, steps = pipeline.source.scan, pipeline.whole
    source, stamps = sources[scan.name], plan.stamps_of(scan)
    if stamps and not isinstance(source, OWN):
        source = stamped(source, stamps)
    known = {**source.schema, **{c: scan.schema[c] for c in stamps}} if isinstance(source, OWN) else {}
    given = spark_schema(known)[0] if isinstance(source, OWN) else source.schema
    inside = {c: t for c, t in scan.schema.items() if c not in given.names} if scan.source.messages else {}
    fields = [*given.fields, *spark_schema(inside)[0].fields]
    schema = StructType(fields).add(REASON, StringType()).add("source", StringType())
    last = max(at for at, step in enumerate(steps) if step.name in FINDING)
    rows = _BadRows(steps[: last + 1], first, scan.name, to_arrow_schema(schema, timezone="UTC"))
    if isinstance(source, Topic):
        return load_topic(spark, source, BadMessages(rows.found, rows.schema, schema, tuple(stamps)))
    if isinstance(source, Files):
        return load(spark, source, _BadRowsOfFiles(rows, schema, tuple(plan.read_from(scan)), tuple(stamps)))
    return source.mapInArrow(rows, schema)


class _BadRows:
    """The steps of a pipeline as far as rows can be found bad."""

    def __init__(self, steps: tuple[Step, ...], first: int, name: str, schema: pa.Schema) -> None:
        self.steps = steps
        self.first = first  # what earlier steps find, another pipeline reports
        self.name = name
        self.schema = schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from self.found(together(batches))
        yield pa.RecordBatch.from_pylist([], schema=self.schema)

    def found(self, frames: Iterable[pl.DataFrame]) -> Iterator[pa.RecordBatch]:
        graph = Graph()
        add_steps(graph, self.steps, None)
        for frame in frames:
            for node, item in graph.feed(0, frame):
                if isinstance(item, Side) and item.kind == "bad" and node >= self.first:
                    yield from self.batches(item.rows)

    def batches(self, rows: pl.DataFrame) -> list[pa.RecordBatch]:
        """Rows in the columns of the output; what they do not have is NULL."""
        missing = [pl.lit(None).alias(f.name) for f in self.schema if f.name not in rows.columns]
        named = rows.with_columns(*missing).with_columns(pl.lit(self.name).alias("source"))
        found: list[pa.RecordBatch] = named.select(self.schema.names).to_arrow().cast(self.schema).to_batches()
        return found


@dataclass(frozen=True)
class _BadRowsOfFiles:
    """The same over files, and the files themselves that cannot be read."""

    rows: _BadRows
    schema: StructType
    columns: tuple[str, ...]
    stamps: tuple[str, ...] = ()
    waiting: None = None

    @property
    def recorded(self) -> tuple[str, ...]:
        return self.stamps

    def run(self, task: Task, files: Files) -> Iterator[pa.RecordBatch]:
        reasons = [reason for _file, reason in task.aside]
        for file in task.files:
            try:
                yield from self._found(files, file, task.arrival)
            except TornError as error:
                reasons.append(str(error))
        yield from self.rows.batches(pl.DataFrame({REASON: reasons}, schema={REASON: pl.String}))
        yield pa.RecordBatch.from_pylist([], schema=self.rows.schema)

    def _found(self, files: Files, file: File, arrival: Arrival) -> list[pa.RecordBatch]:
        """In all columns, if they can be read: one that the query does not need makes no file torn."""
        others = [c for c in files.schema if c not in self.columns]
        try:
            return list(self.rows.found(readable(files, file, self.columns, others, arrival, self.stamps)))
        except TornError:
            return list(self.rows.found(readable(files, file, self.columns, (), arrival, self.stamps)))
