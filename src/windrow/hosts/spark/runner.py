"""What runs the stages of a level on Spark: stateful shards for a stream, partitions for a finite input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from windrow.hosts.spark.exchange import ARROW, COLUMNS, Row, record_batch
from windrow.hosts.spark.fragment import Fragment
from windrow.hosts.spark.identity import identity
from windrow.hosts.spark.shard import ShardProcessor
from windrow.hosts.spark.wiring import Hosted
from windrow.planner import Plan, Stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Level = Sequence[tuple[Stage, Hosted]]  # the stages of a level, in the plan and in a shard


class Runner(Protocol):
    """Takes the exchange rows of a level, and gives those for the next one and for the consumer of the result."""

    def rows(self, exchanged: DataFrame, fragment: Fragment, level: Level) -> DataFrame: ...


class StreamingShards:
    """A ``transformWithState``, grouped by shard. ``dormant``: see ``ShardProcessor``."""

    def __init__(self, plan: Plan, dormant: frozenset[int] | None = None) -> None:
        self.plan = plan
        self.dormant = dormant  # of queries that come and go

    def rows(self, exchanged: DataFrame, fragment: Fragment, level: Level) -> DataFrame:
        known = identity(self.plan, (stage for stage, _ in level), len(fragment.shards))
        processor = ShardProcessor(fragment, known, self.dormant)
        return exchanged.groupBy("shard").transformWithState(processor, COLUMNS, "Append", "None")


class BatchShards:
    """A partition for each shard of a finite input: everything, then the end of the stream."""

    def rows(self, exchanged: DataFrame, fragment: Fragment, level: Level) -> DataFrame:  # noqa: ARG002
        return exchanged.repartition(len(fragment.shards), "shard").mapInArrow(FinitePartition(fragment), COLUMNS)


class FinitePartition:
    """The shards of one partition."""

    def __init__(self, fragment: Fragment) -> None:
        self.fragment = fragment

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        by_shard: dict[int, list[Row]] = {}
        for batch in batches:
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                by_shard.setdefault(row[0], []).append(Row(*row))
        for shard, rows in by_shard.items():
            for out in self.fragment.run(self.fragment.wiring(), shard, rows, ended=True):
                yield record_batch([out])
        yield pa.RecordBatch.from_pylist([], schema=ARROW)
