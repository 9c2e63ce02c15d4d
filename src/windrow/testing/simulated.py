"""A simulated Spark: runs in this process what ``to_spark`` compiles, as Spark would, without a JVM.

It has the few DataFrame methods that the Spark host calls, so that the host itself is what runs: functions and
processors are pickled and unpickled for every task, exchange rows arrive in any order, each micro-batch has new
processors over a state store that commits or forgets, and tasks run in one of several Python workers. A real Spark is
still needed for what is Spark's: sources, sinks, offsets, processes that die.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import polars as pl
import pyarrow as pa
from pyspark import SparkContext, SparkFiles, TaskContext
from pyspark.cloudpickle import dumps, loads
from pyspark.sql import DataFrame, Row
from pyspark.sql.types import StructType

from windrow.api.stream import Stream
from windrow.hosts.counters import NAMES
from windrow.hosts.spark import shard as shards_of
from windrow.hosts.spark.clock import Now
from windrow.hosts.spark.compile import BAD_ROWS, LATE_ROWS, RESULTS
from windrow.hosts.spark.exchange import COLUMNS, MADE, METRICS, Kind, partition_of
from windrow.hosts.spark.live_graphs import LiveGraphs
from windrow.hosts.spark.native import applies
from windrow.hosts.spark.ring import BATCH, QUERY
from windrow.hosts.spark.schema import to_spark as spark_schema
from windrow.hosts.spark.session import SHUFFLE_PARTITIONS, STATE_STORE
from windrow.testing.barrier import BarrierTask, simulated_rings, together
from windrow.testing.mismatch import Mismatch
from windrow.testing.state_store import Handle, StateStore

ARROW_TYPES = {"INT": pa.int32(), "BIGINT": pa.int64(), "BINARY": pa.binary(), "STRING": pa.string()}
START = datetime(2024, 1, 1, tzinfo=UTC)  # of the first micro-batch
NOW = "current_timestamp() AS "
Partition = list[pa.RecordBatch]
Rows = pl.DataFrame | Sequence[pl.DataFrame]  # for one task, or for several


# -- a session ---------------------------------------------------------------------------------------------------------
class SimulatedSpark:
    """A stand-in for a session: makes sources and runs queries. ``seed`` decides whatever Spark leaves open.

    ``clock``: when a micro-batch begins; without one they begin a second apart.
    """

    def __init__(self, shards: int = 2, seed: int = 0, clock: Callable[[], datetime] | None = None) -> None:
        self.clock = clock
        settings = {SHUFFLE_PARTITIONS: str(shards), STATE_STORE: "RocksDBStateStoreProvider"}
        self.clocks: dict[str, Any] = {}  # the sources that only know the time, by name
        self.dataSource = SimpleNamespace(register=lambda source: self.clocks.update({source.name(): source}))
        self.readStream = SimpleNamespace(
            format=lambda name: SimpleNamespace(load=lambda: Time(self, self.clocks[name]))
        )
        self.streams = SimpleNamespace(addListener=lambda _: None)
        self.conf = SimpleNamespace(get=settings.__getitem__, set=settings.__setitem__)
        self.sparkContext = SimpleNamespace(defaultParallelism=shards)
        self.random = random.Random(seed)
        machines = [tempfile.mkdtemp(prefix="windrow-executor-") for _ in range(2)]
        self.workers = [Worker(machine) for machine in machines for _ in range(2)]
        for machine in machines:
            weakref.finalize(self, shutil.rmtree, machine, ignore_errors=True)

    def stream(self, schema: Mapping[str, pl.DataType]) -> Source:
        """An endless source; its rows are given with each micro-batch."""
        return Source(self, schema)

    def frame(self, data: Rows) -> Source:
        """A finite source."""
        return Source(self, (data if isinstance(data, pl.DataFrame) else data[0]).schema, data)

    def start(self, query: Stream, checkpoint: Checkpoint | None = None, **options: Any) -> Running:
        """A streaming query, from the beginning or from a checkpoint; ``options`` are those of ``to_spark``."""
        with without_jvm():
            frame = query.to_spark(**options)
        return Running(self, frame, {n: s.data for n, s in query.sources.items()}, checkpoint or Checkpoint())

    def collect(self, query: Stream) -> pl.DataFrame:
        """The result of a query over finite sources. Spark's own aggregation is not simulated: ours takes its place."""
        with without_jvm():
            frame = query.to_spark(with_late=applies(query.plan(), {n: s.data for n, s in query.sources.items()}))
        found = Run(self).rows(frame)
        both = {RESULTS, LATE_ROWS} <= set(found.columns)
        return (_column(found, RESULTS) if both else found).cast(query.schema)  # type: ignore[arg-type]


@dataclass
class Checkpoint:
    """What survives a restart: the state of each stateful operator, as of the last commit, and the log of
    micro-batches: how many have ended, and when the next one began, if it has begun.
    """

    stores: list[StateStore] = field(default_factory=list)
    batch: int = 0  # of a session: the next micro-batch
    ended: int = 0
    begun: datetime | None = None
    _folder: str | None = field(default=None, repr=False)

    @property
    def folder(self) -> Path:
        """Of the state that is in files."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="windrow-checkpoint-")
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return Path(self._folder)


@dataclass(frozen=True)
class MicroBatch:
    """The output of a micro-batch; late and bad rows only if the query was started with ``with_late``."""

    results: pl.DataFrame
    late: pl.DataFrame
    counts: dict[str, int]
    bad: pl.DataFrame = field(default_factory=pl.DataFrame)
    wanted: dict[int, int] = field(default_factory=dict)  # by source, when it helps to ask it how far it has come
    reports: list[dict[str, Any]] = field(default_factory=list)


class Running:
    """A streaming query that goes one micro-batch at a time."""

    def __init__(self, spark: SimulatedSpark, frame: Frame, sources: Mapping[str, Source], kept: Checkpoint) -> None:
        self.spark, self.frame, self.sources, self.checkpoint = spark, frame, sources, kept
        operators = list(frame.stateful())
        if kept.stores and len(kept.stores) != len(operators):
            raise Mismatch(f"the checkpoint has {len(kept.stores)} stateful operators, the query {len(operators)}")
        kept.stores = kept.stores or [StateStore() for _ in operators]

    def push(self, rows: Mapping[str, Rows], commit: bool = True, asked: int | None = None) -> MicroBatch:
        """One micro-batch over new rows. Without ``commit`` it dies before its end, and leaves nothing behind.

        ``asked``: when the sources were asked how far they have come, in microseconds; None: they were not.
        """
        drafts = [store.draft() for store in self.checkpoint.stores]
        given = {self.sources[name]: part for name, part in rows.items()}
        at = self.checkpoint.begun = self.checkpoint.begun or self._now()
        properties = {BATCH: str(self.checkpoint.ended), QUERY: str(self.checkpoint.folder)}
        stores = dict(zip(self.frame.stateful(), drafts, strict=True))
        run = Run(self.spark, given, stores, at, properties=properties, asked=asked)
        found = run.rows(self.frame)
        if commit:
            self.checkpoint.stores = drafts
            self.checkpoint.ended += 1
            self.checkpoint.begun = None
        if not {RESULTS, LATE_ROWS} <= set(found.columns):
            return MicroBatch(found, pl.DataFrame(), run.counts, wanted=run.wanted, reports=run.reports)
        results, late, bad = (_column(found, name) for name in (RESULTS, LATE_ROWS, BAD_ROWS))
        return MicroBatch(results, late, run.counts, bad, run.wanted, run.reports)

    def _now(self) -> datetime:
        return START + timedelta(seconds=self.checkpoint.ended) if self.spark.clock is None else self.spark.clock()


def _column(found: pl.DataFrame, name: str) -> pl.DataFrame:
    """The rows of a struct column."""
    return found.filter(pl.col(name).is_not_null()).select(name).unnest(name)


# -- DataFrames --------------------------------------------------------------------------------------------------------
class Frame(DataFrame):  # type: ignore[misc]
    """A DataFrame as the Spark host sees it: it is not run before ``Run`` asks for its partitions."""

    def __new__(cls, *_args: Any, **_named: Any) -> Frame:
        return object.__new__(cls)

    def __init__(self, spark: SimulatedSpark, inputs: Sequence[Frame] = (), types: pa.Schema | None = None) -> None:
        self.spark, self.inputs, self.types = spark, tuple(inputs), types

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{name} is not simulated")

    # What the host calls.
    @property
    def sparkSession(self) -> SimulatedSpark:  # noqa: N802
        return self.spark

    @property
    def isStreaming(self) -> bool:  # noqa: N802
        return any(frame.isStreaming for frame in self.inputs)

    def select(self, *columns: str) -> Frame:
        names = [re.sub(r"``", "`", c.removeprefix("`").removesuffix("`")) for c in columns]
        return Selected(self.spark, self, names)

    def selectExpr(self, *columns: str) -> Frame:  # noqa: N802
        """Names of columns, and the time of the micro-batch under a name."""
        *names, last = columns
        assert last.startswith(NOW), "other expressions are not simulated"
        return Stamped(self.spark, self.select(*names), last.removeprefix(NOW))

    def mapInArrow(self, function: Any, schema: str | StructType, barrier: bool = False) -> Frame:  # noqa: N802
        return (Barrier if barrier else Mapped)(self.spark, self, function, schema)

    def where(self, condition: str) -> Frame:
        assert condition == "false", "other conditions are not simulated"
        return Nothing(self.spark, [self], self.types)

    def unionAll(self, other: Frame) -> Frame:  # noqa: N802
        return United(self.spark, [self, other], self.types)

    def repartition(self, count: int, column: str) -> Frame:
        return Exchanged(self.spark, self, count, column)

    def groupBy(self, column: str) -> Grouped:  # noqa: N802
        return Grouped(self, column)

    def observe(self, name: str, *_counters: Any) -> Frame:
        return Observed(self.spark, [self], self.types) if name == METRICS else self

    # What runs it.
    def partitions(self, run: Run, first: int) -> list[Partition]:
        """The partitions, one task each; ``first`` is the number of the first of them."""
        raise NotImplementedError

    def stateful(self) -> Iterator[Stateful]:
        """The stateful operators, in an order that is the same whenever the query is compiled."""
        for frame in self.inputs:
            yield from frame.stateful()

    def has_barrier(self) -> bool:
        """Whether tasks run at the same time somewhere in it."""
        return any(frame.has_barrier() for frame in self.inputs)


class Source(Frame):
    """Rows from outside: those of the micro-batch, or all of a finite source."""

    def __init__(self, spark: SimulatedSpark, schema: Mapping[str, pl.DataType], data: Rows | None = None):
        self.struct, types = spark_schema(schema)
        super().__init__(spark, types=types)
        self.data = data

    @property
    def schema(self) -> StructType:
        return self.struct

    @property
    def columns(self) -> list[str]:
        return list(self.struct.names)

    @property
    def isStreaming(self) -> bool:  # noqa: N802
        return self.data is None

    def partitions(self, run: Run, first: int) -> list[Partition]:  # noqa: ARG002
        assert self.types is not None
        given = run.given.get(self, ()) if self.data is None else self.data
        parts = [given] if isinstance(given, pl.DataFrame) else given
        return [part.to_arrow().cast(self.types).to_batches() for part in parts]


class Time(Frame):
    """The answers of a micro-batch in which sources were asked."""

    def __init__(self, spark: SimulatedSpark, source: Any) -> None:
        super().__init__(spark, types=_arrow(COLUMNS))
        self.pickled = dumps(source)

    @property
    def isStreaming(self) -> bool:  # noqa: N802
        return True

    def partitions(self, run: Run, first: int) -> list[Partition]:  # noqa: ARG002
        reader = loads(self.pickled)({}).streamReader(None)
        return [] if run.asked is None else [list(reader.read(Now(run.asked)))]


class Selected(Frame):
    """Some columns."""

    def __init__(self, spark: SimulatedSpark, given: Frame, names: Sequence[str]) -> None:
        super().__init__(spark, [given])
        self.names = list(names)

    def partitions(self, run: Run, first: int) -> list[Partition]:
        return [[batch.select(self.names) for batch in part] for part in self.inputs[0].partitions(run, first)]


class Nothing(Frame):
    """No rows, in as many partitions."""

    def partitions(self, run: Run, first: int) -> list[Partition]:
        return [[] for _ in self.inputs[0].partitions(run, first)]


class Stamped(Frame):
    """One more column: the time of the micro-batch."""

    def __init__(self, spark: SimulatedSpark, given: Frame, name: str) -> None:
        super().__init__(spark, [given])
        self.name = name

    def partitions(self, run: Run, first: int) -> list[Partition]:
        return [[self._stamped(batch, run.at) for batch in part] for part in self.inputs[0].partitions(run, first)]

    def _stamped(self, batch: pa.RecordBatch, at: datetime) -> pa.RecordBatch:
        return batch.append_column(self.name, pa.array([at] * batch.num_rows, pa.timestamp("us", "UTC")))


class Mapped(Frame):
    """A Python function over each partition."""

    def __init__(self, spark: SimulatedSpark, given: Frame, function: Any, schema: str | StructType) -> None:
        super().__init__(spark, [given], _arrow(schema))
        self.pickled = dumps(function)

    def partitions(self, run: Run, first: int) -> list[Partition]:
        given = self.inputs[0].partitions(run, first)
        return [self._task(part, first + number) for number, part in enumerate(given)]

    def _task(self, part: Partition, number: int) -> Partition:
        with self.spark.random.choice(self.spark.workers).task(number):
            return [self._checked(batch) for batch in loads(self.pickled)(iter(part))]

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        assert self.types is not None
        if (batch.schema.names, batch.schema.types) != (self.types.names, self.types.types):
            raise Mismatch(f"a function gave the columns {batch.schema} instead of {self.types}")
        return batch


class Barrier(Mapped):
    """A Python function over all partitions at the same time, in tasks that know of each other."""

    def partitions(self, run: Run, first: int) -> list[Partition]:
        given = self.inputs[0].partitions(run, first)
        workers = [self.spark.random.choice(self.spark.workers) for _ in given]
        stage = run.stage()
        tasks = [BarrierTask(n, len(given), stage, run.properties, w.graphs) for n, w in enumerate(workers)]
        return [[self._checked(batch) for batch in part] for part in together(self.pickled, tasks, given)]

    def has_barrier(self) -> bool:
        return True


class United(Frame):
    """The partitions of several inputs."""

    def partitions(self, run: Run, first: int) -> list[Partition]:
        found: list[Partition] = []
        for frame in self.inputs:
            found += frame.partitions(run, first + len(found))
        return found


class Exchanged(Frame):
    """All rows of equal values in one partition, where Spark's hash puts them, in any order."""

    def __init__(self, spark: SimulatedSpark, given: Frame, count: int, column: str) -> None:
        super().__init__(spark, [given], given.types)
        self.count, self.column = count, column

    def partitions(self, run: Run, first: int) -> list[Partition]:  # noqa: ARG002
        found: list[Partition] = [[] for _ in range(self.count)]
        for key, rows in run.by_key(self.inputs[0], self.column).items():
            found[partition_of(key, self.count)] += rows
        return found


@dataclass(frozen=True)
class Grouped:
    """A DataFrame grouped by a column."""

    frame: Frame
    column: str

    def transformWithState(self, processor: Any, schema: str, output: str, time: str) -> Frame:  # noqa: N802
        assert (output, time) == ("Append", "None"), "other modes are not simulated"
        return Stateful(self.frame.spark, self.frame, self.column, processor, schema)


class Stateful(Frame):
    """A processor over each group, with its state."""

    def __init__(self, spark: SimulatedSpark, given: Frame, column: str, processor: Any, schema: str) -> None:
        super().__init__(spark, [given], _arrow(schema))
        self.column, self.pickled = column, dumps(processor)

    def stateful(self) -> Iterator[Stateful]:
        yield from super().stateful()
        yield self

    def partitions(self, run: Run, first: int) -> list[Partition]:
        groups = run.by_key(self.inputs[0], self.column).items()
        return [self._task(run.stores[self], key, rows, first + n) for n, (key, rows) in enumerate(groups)]

    def _task(self, store: StateStore, key: Any, rows: Partition, number: int) -> Partition:
        assert self.types is not None
        with self.spark.random.choice(self.spark.workers).task(number):
            processor, handle = loads(self.pickled), Handle(store)
            processor.init(handle)
            handle.key = (key,)
            named = Row(*self.types.names)
            given = (named(*row) for batch in rows for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))
            found = [row.asDict() for row in processor.handleInputRows((key,), given, None)]
            processor.close()
        return [pa.RecordBatch.from_pylist([row], self.types) for row in found]


class Observed(Frame):
    """Rows with the counters that observe them."""

    def partitions(self, run: Run, first: int) -> list[Partition]:
        found = self.inputs[0].partitions(run, first)
        for part in found:
            for batch in part:
                for row in batch.select(["kind", "port", "value", "blob"]).to_pylist():
                    if row["kind"] == Kind.COUNT:
                        run.counts[NAMES[row["port"]]] += row["value"]
                    elif row["kind"] == Kind.WANTED:
                        run.wanted[row["port"]] = min(row["value"], run.wanted.get(row["port"], row["value"]))
                    elif row["kind"] == Kind.REPORT and row["port"] == MADE:
                        run.reports.append(json.loads(row["blob"]))
        return found


# -- running -----------------------------------------------------------------------------------------------------------
@dataclass
class Run:
    """One micro-batch, or a whole batch."""

    spark: SimulatedSpark
    given: Mapping[Source, Rows] = field(default_factory=dict)
    stores: Mapping[Stateful, StateStore] = field(default_factory=dict)
    at: datetime = START
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 0))
    properties: Mapping[str, str] = field(default_factory=dict)  # what Spark tells tasks of the micro-batch
    asked: int | None = None
    wanted: dict[int, int] = field(default_factory=dict)
    reports: list[dict[str, Any]] = field(default_factory=list)  # of shards
    stages: int = 0

    def stage(self) -> int:
        """The number of the next stage."""
        self.stages += 1
        return self.stages

    def rows(self, frame: Frame) -> pl.DataFrame:
        """All rows of a DataFrame."""
        batches = [batch for part in frame.partitions(self, 0) for batch in part]
        found = pl.from_arrow(pa.Table.from_batches(batches, frame.types))
        assert isinstance(found, pl.DataFrame)
        return found

    def by_key(self, frame: Frame, column: str) -> dict[Any, Partition]:
        """Rows through an exchange: each by itself, as in the blocks that tasks fetch from each other, in any order."""
        rows = [batch[i : i + 1] for part in frame.partitions(self, 0) for batch in part for i in range(len(batch))]
        self.spark.random.shuffle(rows)
        found: dict[Any, Partition] = {}
        for row in rows:
            found.setdefault(row.column(column)[0].as_py(), []).append(row)
        return found


class Worker:
    """A Python worker of Spark: what its process keeps between tasks, and the folder of its machine."""

    def __init__(self, folder: str) -> None:
        self.graphs = LiveGraphs()
        self.folder = folder

    @contextmanager
    def task(self, partition: int) -> Iterator[None]:
        """The environment of a task."""
        context = object.__new__(TaskContext)  # TaskContext() would stay that of this process when the task is over
        context._partitionId = partition
        with (
            mock.patch.object(shards_of, "_live", self.graphs),
            mock.patch.object(SparkFiles, "_root_directory", self.folder),
            mock.patch.object(TaskContext, "_taskContext", context),
        ):
            yield


@contextmanager
def without_jvm() -> Iterator[None]:
    """The functions of ``pyspark.sql`` ask a JVM for their columns, or, in this mode, make them by themselves."""
    if SparkContext._active_spark_context is not None:
        with simulated_rings():
            yield
        return
    with mock.patch.dict(os.environ, SPARK_CONNECT_MODE_ENABLED="1"), simulated_rings():
        yield


def _arrow(schema: str | StructType) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    if not isinstance(schema, str):
        return to_arrow_schema(schema, timezone="UTC")
    named = [column.split() for column in schema.split(",")]
    return pa.schema([(name, ARROW_TYPES[kind.upper()]) for name, kind in named])
