"""A ring inside a query: in each micro-batch a barrier stage, each task of which is one node.

Sources, offsets and sinks stay Spark's. A node finds its state in files beside the checkpoint, as of the micro-batch
before, and leaves what has changed there before Spark commits; so a micro-batch that runs again begins as it did.
"""

from __future__ import annotations

import json
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.errors import CheckpointError, InternalError, PlanError
from windrow.hosts.ring.agree import agreed
from windrow.hosts.ring.links import Listener, TcpLinks
from windrow.hosts.ring.store import Manifest, Store
from windrow.hosts.ring.watch import FileWatch
from windrow.hosts.spark.desk import DeskAddress, desk
from windrow.hosts.spark.exchange import ARROW, COLUMNS, Row, partition_of, record_batch
from windrow.hosts.spark.fragment import Fragment
from windrow.hosts.spark.identity import difference, identity
from windrow.hosts.spark.live_graphs import LiveGraphs
from windrow.hosts.spark.shard import REPORT, chunk_of, report_in
from windrow.hosts.spark.wiring import Wiring
from windrow.operators.ring.ring import Ring
from windrow.planner import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windrow.hosts.spark.runner import Level

FOLDER = "windrow/ring"  # in a checkpoint
PATIENCE = 60.0  # seconds for slots, where executors come up
BATCH, QUERY = "streaming.sql.batchId", "sql.streaming.queryId"  # what Spark tells a task
_live = LiveGraphs()


class RingShards:
    """Runs a level whose stages are rings. ``streaming``: with state from micro-batch to micro-batch."""

    def __init__(self, plan: Plan, streaming: bool) -> None:
        self.plan, self.streaming = plan, streaming

    def rows(self, exchanged: DataFrame, fragment: Fragment, level: Level) -> DataFrame:
        known = identity(self.plan, (stage for stage, _ in level), len(fragment.shards))
        numbers = "-".join(str(stage.number) for stage, _ in level)
        count = len(fragment.shards)
        task = RingTask(fragment, known, f"stage{numbers}", desk(exchanged.sparkSession), self.streaming)
        rows = exchanged.repartition(count, "shard").mapInArrow(task, COLUMNS, barrier=True)
        # Spark runs a barrier stage again only if another stage comes after it.
        return rows.repartition(count, "shard")


@dataclass
class RingTask:
    """What a node does in a micro-batch, or in a finite query. ``level`` names its state."""

    fragment: Fragment
    identity: Mapping[str, Any]
    level: str
    desk: DeskAddress
    streaming: bool
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = barrier_task()
        rows = [Row(*r) for b in batches for r in zip(*(c.to_pylist() for c in b.columns), strict=True)]
        node = self._node(task.partitionId())
        shard = self.fragment.shards[node]
        mine = {stage.number for stage in self.fragment.stages}
        if strange := {row.shard for row in rows if row.stage in mine} - {shard}:
            raise InternalError(f"rows for shards {sorted(strange)} came to the task of shard {shard}")
        kept = self._kept(task)
        before = None if kept is None else self._before(*kept)
        wired = self._wiring(shard, node, before, kept)
        with self._connected(task, node, wired, kept) as links:
            for row in self.fragment.run(wired, shard, rows, ended=kept is None):
                yield record_batch([row])
            if kept is not None:
                self._commit(links, wired, before, *kept)
        yield pa.RecordBatch.from_pylist([], schema=ARROW)

    def _node(self, partition: int) -> int:
        """Rows for a shard come to the partition that Spark's hash of its id says."""
        count = len(self.fragment.shards)
        return next(n for n, shard in enumerate(self.fragment.shards) if partition_of(shard, count) == partition)

    # -- state -------------------------------------------------------------------------------------------------
    def _kept(self, task: Any) -> tuple[Store, int] | None:
        """Where state is, and the number of the micro-batch; nothing of a finite query."""
        if not self.streaming:
            return None
        query, number = task.getLocalProperty(QUERY), task.getLocalProperty(BATCH)
        root = self.desk.checkpoint(query)
        return Store(f"{root}/{FOLDER}/{query}/{self.level}"), int(number)

    def _before(self, store: Store, number: int) -> Manifest | None:
        found = store.manifest(number - 1)
        if found is None:
            # The first micro-batch of a query has no state, and no other one has it either.
            if any(known < number for known in store.rounds()):
                raise CheckpointError(
                    f"{store.folder} has no state for micro-batch {number - 1}, after which the query is to go on: "
                    "restore the checkpoint from a copy, or start with a new checkpoint folder"
                )
            return None
        if found.identity != (now := json.loads(json.dumps(self.identity))):
            raise CheckpointError(difference(found.identity, now))
        return found

    def _wiring(self, shard: int, node: int, before: Manifest | None, kept: tuple[Store, int] | None) -> Wiring:
        token = None if before is None else before.token
        wired = _live.take((self.run_id, shard), token)
        if wired is None:
            wired = self.fragment.wiring()
            if before is not None and kept is not None:
                state = dict(kept[0].read(before.nodes[node]))
                wired.report = report_in(state.pop(REPORT)) if REPORT in state else None
                wired.graph.restore(state)
        return wired

    def _commit(self, links: TcpLinks, wired: Wiring, before: Manifest | None, store: Store, number: int) -> None:
        """Before Spark commits the micro-batch."""
        old = {} if before is None else before.nodes[links.node]
        changes = {**wired.graph.changes(), REPORT: chunk_of(wired.report)}
        written = store.write(number, links.node, changes, old)
        token = agreed(links, store, number, self.identity, written)
        _live.put((self.run_id, self.fragment.shards[links.node]), token, wired, lambda _place: token)

    # -- the other nodes ---------------------------------------------------------------------------------------
    @contextmanager
    def _connected(self, task: Any, node: int, wired: Wiring, kept: tuple[Store, int] | None) -> Iterator[TcpLinks]:
        listener, nodes = Listener(host_of(task)), len(self.fragment.shards)
        key = f"{self.run_id}/{self.level}/{task.stageId()}/{task.getLocalProperty(BATCH)}"
        watch = FileWatch(self._watched(task, kept) / str(node))
        addresses, secret = self.desk.meet(key, task.taskAttemptId(), node, nodes, listener.address)
        watch.gather()
        links = TcpLinks(node, listener, addresses, secret)
        survived = False
        try:
            for each in wired.graph.nodes:
                if isinstance(each.operator, Ring):
                    each.operator.connect(links, watch, time.perf_counter)
            yield links
            survived = True
        finally:
            watch.close(survived)
            links.close(survived)

    def _watched(self, task: Any, kept: tuple[Store, int] | None) -> Path:
        """A folder that stays if this process is killed."""
        if kept is not None and kept[0].local:
            return kept[0].root / "watch"
        name = self.run_id if kept is None else f"{task.getLocalProperty(QUERY)}-{self.level}"
        return Path(tempfile.gettempdir()) / "windrow-ring" / name


def barrier_task() -> Any:
    """The task that runs this, in a barrier stage."""
    from pyspark import BarrierTaskContext

    return BarrierTaskContext.get()


def host_of(task: Any) -> str:
    """Where the other nodes reach this one: loopback, if all of them are on the same machine."""
    hosts = [info.address.rpartition(":")[0] for info in task.getTaskInfos()]
    return "127.0.0.1" if len(set(hosts)) == 1 else hosts[task.partitionId()]


# -- slots -------------------------------------------------------------------------------------------------------------
def slots(spark: SparkSession) -> int:
    """How many tasks can run at once: a barrier stage with more of them would never start."""
    context = spark.sparkContext._jsc.sc()
    return int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))


def ring_count(
    spark: SparkSession, shards: int, asked: bool, wanted: Sequence[int | None], called: str = "shards"
) -> int:
    """How many tasks a query with rings has: as many as it has shards, if there are slots for them at once.

    ``asked``: whether the query says how many shards; if not, there are no more than slots, and enough for the nodes
    that are ``wanted``. ``called``: what says how many.
    """
    nodes = max((each for each in wanted if each is not None), default=1)
    needed = max(nodes, shards if asked else 1)
    until = time.monotonic() + PATIENCE
    while (there := slots(spark)) < needed and time.monotonic() < until and not _is_local(spark):
        time.sleep(0.5)  # executors are still coming up
    if asked and nodes > shards:
        raise PlanError(
            f"the join asks for {nodes} nodes, and {called}={shards} gives the query {shards} tasks: leave out "
            f"{called}=, or give {nodes} or more"
        )
    if there < needed:
        what = f"nodes={nodes}" if nodes == needed else f"{called}={shards}"
        raise PlanError(
            f"{what} needs {needed} tasks at the same time, and this Spark has {there} slot{'s' * (there != 1)}: give "
            f"fewer, or more cores (wr.session(master='local[{needed}]'), or more executors)"
        )
    return max(needed, shards if asked else min(shards, there))


def _is_local(spark: SparkSession) -> bool:
    return str(spark.sparkContext.master).startswith("local[") or spark.sparkContext.master == "local"
