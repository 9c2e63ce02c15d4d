"""Files as a source of ours: the map side runs inside the reader, so that raw rows never enter the JVM.

A Python data source may yield Arrow. This one yields exchange rows (pane partials, promises, counts), not the rows of
the files: a micro-batch moves a few blobs from Python to the shards, where ``mapInArrow`` would first move every row
from the JVM to Python, at about a microsecond each.
"""

from __future__ import annotations

import copy
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from windrow.hosts.counters import Counter
from windrow.hosts.spark.exchange import COLUMNS, Row, record_batch
from windrow.hosts.spark.map_side import MapSide
from windrow.hosts.spark.outbox import Outboxes
from windrow.hosts.spark.waiting import Waiting
from windrow.sources.arriving import Arrival, TornError, readable
from windrow.sources.files import File, Files
from windrow.sources.position import Position, spread
from windrow.spec.names import ARRIVAL_TS, POSITION
from windrow.spec.rules import Answer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Sorted = tuple[list[File], list[tuple[File, str]]]  # files that can be read, and the others with the reason


class Job(Protocol):
    """What is done with the files of a task. ``schema`` is that of the batches it yields; ``columns`` are those that a
    file must have; ``stamps``: what it wants to know of the arrival of rows; ``recorded``: what offsets must say of it,
    whoever wants to know now, because a micro-batch may run again for other queries. ``waiting``: when to ask the
    source how far it has come, if it can be asked.
    """

    @property
    def schema(self) -> str | StructType: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def stamps(self) -> tuple[str, ...]: ...

    @property
    def recorded(self) -> tuple[str, ...]: ...

    @property
    def waiting(self) -> Waiting | None: ...

    def run(self, task: Task, files: Files) -> Iterator[pa.RecordBatch]: ...


class Task(InputPartition):  # type: ignore[misc]
    """The files of one Spark task, and those that are set aside, each with the reason."""

    def __init__(
        self,
        number: int,
        files: Sequence[File],
        aside: Sequence[tuple[File, str]] = (),
        arrival: Arrival = Arrival(),  # noqa: B008 (it is a constant)
        answers: Sequence[Answer] = (),
    ) -> None:
        super().__init__(number)
        self.number = number
        self.arrival = arrival
        self.files = tuple(files)
        self.aside = tuple(aside)
        self.answers = tuple(answers)


@dataclass(frozen=True)
class MapFiles:
    """The map side over files. A file counts as a whole or not at all: one torn in the middle adds nothing."""

    map_side: MapSide
    columns: tuple[str, ...]
    stamps: tuple[str, ...] = ()
    schema: str = COLUMNS
    waiting: Waiting | None = None

    @property
    def recorded(self) -> tuple[str, ...]:
        return (ARRIVAL_TS, POSITION) if self.map_side.ticks else self.stamps

    def run(self, task: Task, files: Files) -> Iterator[pa.RecordBatch]:
        outboxes = self.map_side.outboxes(task.number)
        outboxes.answers = task.answers
        outboxes.sender.counts[Counter.FILES_BAD] += len(task.aside)
        reasons = [reason for _, reason in task.aside]
        for file in task.files if self.map_side.reads else ():  # without reads no query wants them
            attempt = copy.deepcopy(outboxes)
            try:
                rows = [row for part in self._rows(files, file, attempt, task.arrival) for row in part]
            except TornError as error:
                outboxes.sender.counts[Counter.FILES_BAD] += 1
                reasons.append(str(error))
                continue
            outboxes = attempt
            if rows:
                yield record_batch(rows)
        yield record_batch([*self.map_side.unread(outboxes, reasons), *self.map_side.last(outboxes)])

    def _rows(self, files: Files, file: File, outboxes: Outboxes, arrival: Arrival) -> Iterator[list[Row]]:
        rows = readable(files, file, self.columns, arrival=arrival, stamps=self.stamps)
        return self.map_side.run(rows, outboxes)


# -- Spark's interface -------------------------------------------------------------------------------------------------
class FileSource(DataSource):  # type: ignore[misc]
    """Configured by subclassing (see ``load``): Spark makes it from a class and options in text only."""

    files: Files
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
        return _StreamReader(self)


def load(spark: SparkSession, files: Files, job: Job) -> DataFrame:
    """A DataFrame of what the job yields, with as many tasks as there are cores."""
    tasks = int(spark.sparkContext.defaultParallelism)
    name = f"windrow_files_{uuid.uuid4().hex[:12]}"
    source: Any = type(name, (FileSource,), {"files": files, "job": job, "tasks": tasks})
    spark.dataSource.register(source)
    return (spark.readStream if files.streaming else spark.read).format(name).load()


def _tasks(source: FileSource, position: Position) -> list[Task]:
    parts = spread(position.batch, source.tasks) or [[]]
    first = dict(zip((file.path for file in position.batch), position.first, strict=False))
    arrival = Arrival(position.arrived, first)
    asked = source.job.waiting is not None and position.asked > 0
    answers = [Answer(None, position.asked, position.all, bool(position.batch))] if asked else []
    return [
        Task(i, part, position.aside if i == 0 else (), arrival, answers if i == 0 else ())
        for i, part in enumerate(parts)
    ]


def _after(
    position: Position,
    source: FileSource,
    found: Sorted,
    remember: int,
    there: Sequence[File],
    asked: tuple[int, bool] | None = None,
) -> Position:
    """The position after some files. What a query wants to know of their arrival is part of it: a micro-batch that
    runs again must have the same.
    """
    read, aside = found
    stamps, columns = source.job.recorded, source.job.columns
    now = time.time_ns() // 1000 if ARRIVAL_TS in stamps else None
    sizes = [source.files.count(file, columns) for file in read] if POSITION in stamps else []
    return position.after(read, aside, remember, there, now, sizes, asked)


def _sorted_out(found: Sequence[File], problem: Callable[[File], str | None], at_once: int) -> Sorted:
    """The files that can be read, and the others with the reason."""
    with ThreadPoolExecutor(at_once) as pool:
        problems = list(zip(found, pool.map(problem, found), strict=True))
    return [f for f, reason in problems if reason is None], [(f, reason) for f, reason in problems if reason]


class _BatchReader(DataSourceReader):  # type: ignore[misc]
    """All files that are there when the query is planned."""

    def __init__(self, source: FileSource) -> None:
        self.source = source

    def partitions(self) -> list[Task]:
        def problem(file: File) -> str | None:  # the task that reads a file finds out what is in it
            pages = POSITION in self.source.job.recorded  # unless the numbers of all rows after it depend on it
            return self.source.files.problem(file, self.source.job.columns, pages)

        found = _sorted_out(self.source.files.listed(), problem, self.source.tasks)
        return _tasks(self.source, _after(Position(), self.source, found, self.source.files.remember, ()))

    def read(self, partition: Task) -> Iterator[pa.RecordBatch]:
        return self.source.job.run(partition, self.source.files)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Micro-batches of files, oldest first. All it knows is in the offsets, which Spark logs before it runs a batch."""

    def __init__(self, source: FileSource) -> None:
        self.source = source
        self.limit_to: frozenset[File] | None = None
        self.limited = 0  # when, in microseconds

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return Position().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable() if self.source.files.max_files is None else ReadMaxFiles(self.source.files.max_files)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.limited = time.time_ns() // 1000
        self.limit_to = frozenset(self.source.files.listed())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        position, remember = Position.from_json(start), self.source.files.remember
        now = self.limited or time.time_ns() // 1000  # before files are listed: those of that time are in the list
        there = self.source.files.listed()
        unread = fresh = position.fresh((f for f in there if self._wanted(f)), remember)
        if isinstance(limit, ReadMaxFiles):
            fresh = fresh[: limit.max_files]
        waiting = self.source.job.waiting
        if not fresh:
            silent = waiting is not None and self.limit_to is None and waiting.wants(now, position.asked)
            return position.after([], [], remember, there, asked=(now, True)).to_json() if silent else start

        def problem(file: File) -> str | None:
            return self._problem(file, position)

        found = _sorted_out(fresh, problem, self.source.tasks)
        asked = None if waiting is None else (now, len(fresh) == len(unread))
        return _after(position, self.source, found, remember, there, asked).to_json()

    def _problem(self, file: File, position: Position) -> str | None:
        """Why a file is set aside. All of it is looked at here: the offset must know which files will be read, or one
        that is found to be damaged later, by the task that reads it, could not be read when it is written anew.
        """
        if (why := position.reason_too_old(file, self.source.files.remember)) is not None:
            return why
        return self.source.files.problem(file, self.source.job.columns, pages=True)

    def _wanted(self, file: File) -> bool:
        return self.limit_to is None or file in self.limit_to

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Task]:
        if start == end:
            return []
        return _tasks(self.source, Position.from_json(end))

    def read(self, partition: Task) -> Iterator[pa.RecordBatch]:
        return self.source.job.run(partition, self.source.files)
