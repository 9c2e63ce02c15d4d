"""A new checkpoint for a session whose queries need more levels, or that is to have another number of tasks.

Spark fixes both for the life of a checkpoint. So the state is carried into a new one, as the initial state of its
stateful operators, by a streaming query that has nothing else to do. Its only micro-batch then gets the offsets of the
last one of the old checkpoint: the next continues where that ended.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from windrow.errors import CheckpointError
from windrow.hosts.spark.exchange import COLUMNS, OUT, Kind, Row
from windrow.hosts.spark.session import STATE_PARTITIONS
from windrow.hosts.spark.session_record import committed
from windrow.hosts.spark.shard import declared
from windrow.hosts.spark.start import start

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.stateful_processor import TimerValues

STATE = "shard INT, variable STRING, name STRING, text STRING, blob BINARY"


def carry(
    spark: SparkSession, old: Path, new: Path, before: int, stages: Sequence[Set[int]], depth: int, tasks: int
) -> None:
    """Make a checkpoint with the state and the offsets of an old one, which had ``before`` levels.

    ``stages``: by level, the numbers of those that there are now.
    """
    last = committed(old)
    levels = sorted(int(p.name) for p in (old / "state").iterdir() if p.name.isdigit())
    if levels != list(range(before)):
        raise CheckpointError(
            f"{old / 'state'} has the stateful operators {levels}, and those of the session are {list(range(before))}: "
            "a stream with stateful operators of its own, such as dropDuplicates, cannot be carried along. Write it to "
            "a table first, and read that"
        )
    shutil.rmtree(new, ignore_errors=True)  # of a migration that did not come to its end
    seed = new.with_name(f"{new.name}-seed")
    try:
        states = [_state(spark, old, before - 1 - level) for level in range(min(before, depth))]
        for level, state in enumerate(states):
            _check_stages(state, level, stages)
        _seeded(spark, new, seed, states, depth, tasks)
    finally:
        shutil.rmtree(seed, ignore_errors=True)
    _continue(old, new, last)


def _check_stages(state: DataFrame, level: int, stages: Sequence[Set[int]]) -> None:
    """Spark numbers stateful operators from the last one to the first; state in the wrong place would be lost."""
    elsewhere = {number for other, numbers in enumerate(stages) if other != level for number in numbers}
    for row in state.where("variable = 'identity'").select("text").collect():
        if misplaced := elsewhere & {int(number) for number in json.loads(row.text)["stages"]}:
            raise CheckpointError(f"level {level} of the checkpoint has the stages {misplaced} of another level")


def _seeded(spark: SparkSession, new: Path, seed: Path, states: Sequence[DataFrame], depth: int, tasks: int) -> None:
    """One micro-batch whose stateful operators begin with the state of the old ones."""
    seed.mkdir(parents=True, exist_ok=True)
    nothing = Row(0, OUT, 0, Kind.TICK, 0, 0)._asdict()
    pl.DataFrame([nothing], schema_overrides=_TYPES).write_parquet(seed / "one.parquet")
    rows = spark.readStream.schema(COLUMNS).parquet(str(seed))
    for level in range(depth):
        state = states[level] if level < len(states) else spark.createDataFrame([], STATE)
        grouped = rows.groupBy("shard")
        rows = grouped.transformWithState(Seeding(), COLUMNS, "Append", "None", state.groupBy("shard"))
    spark.conf.set(STATE_PARTITIONS, tasks)
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(new)).trigger(availableNow=True)
    start(writer).awaitTermination()


_TYPES = {name: pl.Int32() for name in ("shard", "stage", "port", "kind")} | {
    "tag": pl.Int64(),
    "value": pl.Int64(),
    "blob": pl.Binary(),
}


def _state(spark: SparkSession, old: Path, operator: int) -> DataFrame:
    """All state of a stateful operator: the variables of ShardProcessor, by shard."""

    def read(variable: str, *columns: str) -> DataFrame:
        reader = spark.read.format("statestore").option("path", str(old)).option("operatorId", operator)
        found = reader.option("stateVarName", variable).load()
        return found.selectExpr("key.shard AS shard", f"'{variable}' AS variable", *columns)

    none = "CAST(NULL AS BINARY) AS blob"
    chunks = read("chunks", "user_map_key.name AS name", "'' AS text", "user_map_value.blob AS blob")
    known = read("identity", "'' AS name", "value.json AS text", none)
    return chunks.unionAll(known).unionAll(read("version", "'' AS name", "value.token AS text", none))


class Seeding(StatefulProcessor):  # type: ignore[misc]
    """Stores what it is given as it is."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.variables = declared(handle)

    def handleInitialState(self, key: Any, initialState: Any, timerValues: TimerValues) -> None:  # noqa: ARG002, N802, N803
        given = initialState.asDict()
        variable = getattr(self.variables, given["variable"])
        if given["variable"] == "chunks":
            variable.updateValue((given["name"],), (bytes(given["blob"]),))
        else:
            variable.update((given["text"],))

    def handleInputRows(  # noqa: N802
        self,
        key: Any,  # noqa: ARG002
        rows: Iterator[Any],  # noqa: ARG002
        timerValues: TimerValues,  # noqa: ARG002, N803
    ) -> Iterator[SparkRow]:
        return iter(())

    def close(self) -> None:
        return None


def _continue(old: Path, new: Path, last: int) -> None:
    """Let the next micro-batch of a new checkpoint begin where the last one of the old checkpoint ended."""
    fresh = (new / "offsets" / "0").read_text().split("\n")
    ended = (old / "offsets" / str(last)).read_text().split("\n")
    if fresh[0] != ended[0] or fresh[0] != "v1":
        raise CheckpointError(f"{old / 'offsets' / str(last)} has format {ended[0]}, and a migration knows v1 only")
    (new / "offsets" / "0").write_text("\n".join([*fresh[:2], *ended[2:]]))
    (new / "offsets" / ".0.crc").unlink(missing_ok=True)  # of what it was
    shutil.rmtree(new / "sources", ignore_errors=True)
    if (old / "sources").is_dir():
        shutil.copytree(old / "sources", new / "sources")
