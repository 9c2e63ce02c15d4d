"""A source that has no rows, only the time: it asks the DataFrames of a query how far they have come.

A micro-batch without rows of a DataFrame shows that nothing had come when Spark asked for its offset. When that was is
in the offset of this source, so that a micro-batch that runs again has the same answer. Spark asks its sources one
after the other, so the time is that of the round before: all others have been asked since.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from windrow.hosts.spark.exchange import COLUMNS, record_batch
from windrow.hosts.spark.outbox import Outbox, Route, Sender
from windrow.hosts.spark.waiting import Waiting
from windrow.spec.rules import Answer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PART = (1 << 31) - 1  # of the tags of its rows: no task of another source has that number
TICK = 1000  # microseconds: Spark knows when a micro-batch begins in milliseconds


class Now(InputPartition):  # type: ignore[misc]
    """When the sources were asked."""

    def __init__(self, asked: int) -> None:
        super().__init__(asked)
        self.asked = asked


class ClockSource(DataSource):  # type: ignore[misc]
    """Configured by subclassing, as the source of files is."""

    routes: Sequence[Route]
    waiting: Sequence[Waiting]

    @classmethod
    def name(cls) -> str:
        return cls.__name__

    def schema(self) -> str:
        return COLUMNS

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 (Spark's name)
        return ClockReader(self.routes, self.waiting)


class ClockReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Moves its offset only when an answer helps."""

    def __init__(self, routes: Sequence[Route], waiting: Sequence[Waiting]) -> None:
        self.routes = tuple(routes)
        self.waiting = tuple(waiting)
        self.before = 0  # when this reader was last asked: all other sources have been asked since
        self.ending = False

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"asked": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.ending = True  # what is there now is read, and nobody waits for what comes

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802
        last, before = int(start["asked"]), self.before
        self.before = self.now()
        helps = [each.wants(before, last) for each in self.waiting] if before > last and not self.ending else []
        return {"asked": before} if any(helps) else dict(start)

    def now(self) -> int:
        return time.time_ns() // 1000 // TICK * TICK

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[Now]:
        return [Now(int(end["asked"]))] if start != end else []

    def read(self, partition: Now) -> Iterator[pa.RecordBatch]:
        sender = Sender(PART)
        answer = Answer(None, partition.asked, None, False)
        yield record_batch([row for route in self.routes for row in Outbox(route).answers([answer], False, sender)])


def clock(spark: SparkSession, routes: Sequence[Route], waiting: Sequence[Waiting]) -> DataFrame:
    """The exchange rows that ask the sources whose rows go by these routes."""
    name = f"windrow_clock_{uuid.uuid4().hex[:12]}"
    source: Any = type(name, (ClockSource,), {"routes": tuple(routes), "waiting": tuple(waiting)})
    spark.dataSource.register(source)
    return spark.readStream.format(name).load()
