"""Topics of Kafka as a source of ours: the map side runs inside the reader, so that raw rows never enter the JVM.

It is like the file source (``files.py``): it yields exchange rows. All it knows of a stream is in its offsets.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from windrow.hosts.counters import Counter
from windrow.hosts.spark.exchange import COLUMNS, record_batch
from windrow.hosts.spark.map_side import MapSide
from windrow.hosts.spark.waiting import Waiting
from windrow.logical.arrival import TYPES
from windrow.sources.kafka.client import Client, There
from windrow.sources.kafka.offsets import Offsets, Range, check_loss, spread
from windrow.sources.kafka.reading import Reader
from windrow.sources.kafka.topic import Topic
from windrow.spec.messages import PARTITION, RAW
from windrow.spec.names import ARRIVAL_TS
from windrow.spec.rules import Answer
from windrow.spec.rules.asked import part_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


PAUSE = 0.05  # seconds without new messages after which the brokers are asked again; Spark asks us every 0.01 s


class Task(InputPartition):  # type: ignore[misc]
    """The messages of one Spark task. One task of a step says which partitions there are, and how much is ``lost``."""

    def __init__(self, number: int, ranges: Sequence[Range], offsets: Offsets, lost: int) -> None:
        super().__init__(number)
        self.number = number
        self.ranges = tuple(ranges)
        self.id = offsets.id
        self.asked = offsets.asked
        self.parts = tuple(sorted(offsets.parts)) if number == 0 else ()
        self.lost = lost if number == 0 else 0
        self.answers = tuple(_answers(offsets)) if number == 0 else ()


def _answers(offsets: Offsets) -> Iterator[Answer]:
    """What each partition, and the whole topic, answers when it is asked how far it has come."""
    parts = offsets.parts.values()
    yield Answer(None, offsets.asked, all(at.reached for at in parts), any(at.end > at.start for at in parts))
    for part, at in sorted(offsets.parts.items()):
        yield Answer(part_text(part), offsets.asked, at.reached, at.end > at.start)


class Job(Protocol):
    """What is done with the messages of a task. ``schema`` is that of the batches it yields."""

    @property
    def schema(self) -> str | StructType: ...

    @property
    def waiting(self) -> Waiting | None: ...

    def run(self, task: Task, topic: Topic) -> Iterator[pa.RecordBatch]: ...


@dataclass(frozen=True)
class MapTopic:
    """The map side over messages. ``columns``: what is read of them."""

    map_side: MapSide
    columns: tuple[str, ...]
    stamps: tuple[str, ...] = ()
    schema: str = COLUMNS
    waiting: Waiting | None = None

    def run(self, task: Task, topic: Topic) -> Iterator[pa.RecordBatch]:
        outboxes = self.map_side.outboxes(task.number)
        outboxes.answers = task.answers
        reader = Reader(topic, self.columns)
        if self.map_side.reads:  # without reads no query wants them
            frames = _stamped(reader.frames(task.ranges, task.id), task, self.stamps)
            for rows in self.map_side.run(frames, outboxes):
                yield record_batch(rows)
        outboxes.sender.counts[Counter.ROWS_LOST] += task.lost + reader.lost
        parts = pl.Series(task.parts, dtype=RAW[PARTITION])
        listed = self.map_side.listed(outboxes, parts) if task.parts else []
        yield record_batch([*listed, *self.map_side.last(outboxes)])


@dataclass(frozen=True)
class BadMessages:
    """The messages that are no rows, and the rows that cannot take part."""

    found: Callable[[Iterable[pl.DataFrame]], Iterator[pa.RecordBatch]]
    arrow: pa.Schema
    schema: StructType
    stamps: tuple[str, ...] = ()
    waiting: None = None

    def run(self, task: Task, topic: Topic) -> Iterator[pa.RecordBatch]:
        frames = Reader(topic, tuple(RAW)).frames(task.ranges, task.id)
        yield from self.found(_stamped(frames, task, self.stamps))
        yield pa.RecordBatch.from_pylist([], schema=self.arrow)


def _stamped(frames: Iterable[pl.DataFrame], task: Task, stamps: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Messages with the time at which the step was planned, if a query wants to know when they arrived."""
    wanted = [pl.lit(task.asked, pl.Int64).cast(TYPES[ARRIVAL_TS]).alias(ARRIVAL_TS)] if ARRIVAL_TS in stamps else []
    for frame in frames:
        yield frame.with_columns(wanted) if wanted else frame


# -- Spark's interface -------------------------------------------------------------------------------------------------
class TopicSource(DataSource):  # type: ignore[misc]
    """Configured by subclassing (see ``load``): Spark makes it from a class and options in text only."""

    topic: Topic
    job: Job
    tasks: int

    @classmethod
    def name(cls) -> str:
        return cls.__name__

    def schema(self) -> str | StructType:
        return self.job.schema

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        return _BatchReader(self)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 (Spark's name)
        return StreamReader(self)


def load(spark: SparkSession, topic: Topic, job: Job) -> DataFrame:
    """A DataFrame of what the job yields, with as many tasks as there are cores."""
    tasks = int(spark.sparkContext.defaultParallelism)
    name = f"windrow_kafka_{uuid.uuid4().hex[:12]}"
    source: Any = type(name, (TopicSource,), {"topic": topic, "job": job, "tasks": tasks})
    spark.dataSource.register(source)
    return (spark.readStream if topic.streaming else spark.read).format(name).load()


def _tasks(source: TopicSource, offsets: Offsets) -> list[Task]:
    """The tasks of a step. If its topic is no longer there, the messages it was to read are lost."""
    ranges, lost = offsets.ranges, offsets.lost
    if (now := Client(source.topic).id()) != offsets.id:
        check_loss(source.topic, f"was deleted and made anew: its id was {offsets.id} and is {now}")
        lost, ranges = lost + sum(each.end - each.start for each in ranges), []
    parts = spread(ranges, source.tasks) or [[]]
    return [Task(number, part, offsets, lost) for number, part in enumerate(parts)]


class _BatchReader(DataSourceReader):  # type: ignore[misc]
    """All messages that are there when the query is planned."""

    def __init__(self, source: TopicSource) -> None:
        self.source = source

    def partitions(self) -> list[Task]:
        return _tasks(self.source, Offsets().after(Client(self.source.topic).there(), self.source.topic))

    def read(self, partition: Task) -> Iterator[pa.RecordBatch]:
        return self.source.job.run(partition, self.source.topic)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Micro-batches of messages. All it knows is in the offsets, which Spark logs before it runs a batch."""

    def __init__(self, source: TopicSource) -> None:
        self.source = source
        self.client = Client(source.topic)
        self.limit_to: There | None = None
        self.pause = PAUSE
        self.again = 0.0  # when the brokers are to be asked again

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return Offsets().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most = self.source.topic.max_rows
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.limit_to = self.client.there()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        if time.monotonic() < self.again:
            return start
        before = Offsets.from_json(start, self.source.topic)
        there = self.client.there() if self.limit_to is None else self.limit_to
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        found = before.after(there, self.source.topic, most)
        if found is not before:
            return found.to_json()
        self.again = time.monotonic() + self.pause
        waiting = self.source.job.waiting
        if waiting is None or self.limit_to is not None or not waiting.wants(there.asked, before.asked):
            return start
        return before.silent(there).to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Task]:
        return [] if start == end else _tasks(self.source, Offsets.from_json(end, self.source.topic))

    def read(self, partition: Task) -> Iterator[pa.RecordBatch]:
        return self.source.job.run(partition, self.source.topic)
