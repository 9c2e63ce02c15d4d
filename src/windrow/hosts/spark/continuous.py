"""A ring that runs without end: one long barrier stage, whose first task reads the sources."""

from __future__ import annotations

import json
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from windrow.errors import CheckpointError, PlanError, WindrowError
from windrow.hosts.described import BAD_SCHEMA
from windrow.hosts.ring.epochs import Clocks, Follower, Head, Progress
from windrow.hosts.ring.links import Listener, LostError, TcpLinks
from windrow.hosts.ring.results import BAD, LATE, RESULT, Sink
from windrow.hosts.ring.running import Running, check_ring
from windrow.hosts.ring.store import Store
from windrow.hosts.ring.watch import FileWatch
from windrow.hosts.spark.compile import check_sources, session_of
from windrow.hosts.spark.control import DeskControl, Followed, raised
from windrow.hosts.spark.desk import DeskAddress, desk_of
from windrow.hosts.spark.identity import difference, identity
from windrow.hosts.spark.ring import barrier_task, host_of, ring_count
from windrow.hosts.spark.schema import to_spark as spark_schema
from windrow.hosts.spark.session import shard_count
from windrow.operators.ring.sliced_join import HEAD
from windrow.planner import Plan
from windrow.sources.files import Files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = "windrow/continuous"  # in a checkpoint
STOPS = 60.0  # seconds that an epoch may take to end
GRACE = 1.0  # seconds that a node which has lost another one leaves to that one, to say why


# -- what runs ---------------------------------------------------------------------------------------------------------
def running(
    plan: Plan, sources: Mapping[str, Any], nodes: int, sink: str | Path, checkpoint: str | Path, every: float
) -> Running:
    """A query as the nodes run it; refused if they cannot, or if the checkpoint is of another one."""
    check_ring(plan)
    check_files(sources)
    check_unasked(plan)
    check_sources(plan, sources)
    types: dict[str, Mapping[str, pl.DataType]] = {RESULT: plan.schema, LATE: plan.late_schema(), BAD: BAD_SCHEMA}
    columns: dict[str, pa.Schema] = {kind: spark_schema(schema)[1] for kind, schema in types.items()}
    known = {**identity(plan, plan.stages(), nodes), "result": {c: str(t) for c, t in plan.schema.items()}}
    store = Store(f"{_whole(checkpoint)}/{FOLDER}", lasting=True)
    found = Running(plan, nodes, sources, store, Sink(_whole(sink), columns), known, every)
    _check_checkpoint(found)
    return found


def check_unasked(plan: Plan) -> None:
    """Rows get their times as they arrive, and that is all that the head knows of time."""
    for scan in (read.scan for read in plan.reads() if read.is_asked):
        if scan.progress not in scan.stamps:
            raise PlanError(
                f"stream {scan.name!r} has delay= or idle_after=, and run_continuously() does not ask sources how far "
                "they have come: leave them out, or use to_spark(), which does"
            )


def check_files(sources: Mapping[str, Any]) -> None:
    """The head reads the sources itself, and it can read files."""
    for name, source in sources.items():
        if not isinstance(source, Files):
            raise PlanError(
                f"stream {name!r} is {type(source).__name__} data, and run_continuously() reads files itself: "
                "wr.read_parquet(.., streaming=True) or wr.read_arrow. to_spark() runs over every source of Spark"
            )
        if not source.streaming:
            raise PlanError(
                f"stream {name!r} ends, and run_continuously() is for streams without end: give streaming=True, or "
                "use collect() or to_spark()"
            )


def _whole(folder: str | Path) -> str:
    """A path that is the same for all nodes; a URI is."""
    return str(folder) if "://" in str(folder) or str(folder).startswith("file:/") else str(Path(folder).resolve())


def _check_checkpoint(run: Running) -> None:
    before = run.store.last()
    now: Mapping[str, Any] = json.loads(json.dumps(run.identity))
    if before is None and not run.sink.is_empty():
        raise CheckpointError(
            f"{run.sink.folder} has results, and {run.store.folder} does not know of any: give the checkpoint that "
            "belongs to them, or a new sink"
        )
    if before is None or before.identity == now:
        return
    then = before.identity
    if then.get("shards") != now["shards"]:
        raise CheckpointError(
            f"{run.store.folder} is of a ring of {then.get('shards')} nodes, and this one has {now['shards']}: give "
            f"nodes={then.get('shards')}, or a new checkpoint folder"
        )
    if {**then, "result": None} == {**now, "result": None}:
        raise CheckpointError(
            f"{run.store.folder} is of a query with the columns {then['result']}, and this one has {now['result']}: "
            "select the same columns, or give a new checkpoint and a new sink"
        )
    raise CheckpointError(difference(then, now))


@dataclass(frozen=True)
class RingNode:
    """What a task does: it is the node of its number until the run ends."""

    run: Running
    run_id: str
    desk: DeskAddress

    def __call__(self, _rows: Iterator[Any]) -> Iterator[Any]:
        task = barrier_task()
        node, nodes = task.partitionId(), self.run.nodes
        listener = Listener(host_of(task))
        key = f"{self.run_id}/{task.stageId()}/{task.attemptNumber()}"
        watch = FileWatch(self._watched() / str(node))
        addresses, secret = self.desk.meet(key, task.taskAttemptId(), node, nodes, listener.address)
        watch.gather()
        links = TcpLinks(node, listener, addresses, secret)
        ended = False
        try:
            self._serve(links, watch)
            ended = True
        finally:
            watch.close(ended)
            links.close(ended)
        return iter(())

    def _serve(self, links: TcpLinks, watch: FileWatch) -> None:
        if links.node != HEAD:
            try:
                Follower(self.run, links, watch).serve()
            except LostError:
                time.sleep(GRACE)  # Spark tells the error of the task that fails first: let it have the cause
                raise
            return
        clocks = Clocks(lambda: time.time_ns() // 1000, time.monotonic)
        with self.desk.follow(self.run_id) as connection:
            Head(self.run, links, watch, DeskControl(connection), clocks).serve()

    def _watched(self) -> Path:
        """A folder that stays if this process is killed."""
        store = self.run.store
        name = uuid.uuid5(uuid.NAMESPACE_URL, store.folder).hex
        return store.root / "watch" if store.local else Path(tempfile.gettempdir()) / "windrow-ring" / name


# -- who has started it ------------------------------------------------------------------------------------------------
def started(
    plan: Plan,
    sources: Mapping[str, Any],
    *,
    sink: str | Path,
    checkpoint: str | Path,
    every: float,
    nodes: int | None,
    retries: int,
    spark: SparkSession | None,
) -> ContinuousRun:
    """Start a query; what is wrong with it is an error before anything has started."""
    check_ring(plan)
    check_files(sources)
    session = spark or session_of(list(sources.values()))
    wanted = [stage.nodes for stage in plan.stages()]
    count = ring_count(session, shard_count(session, nodes), nodes is not None, wanted, "nodes")
    return ContinuousRun(session, running(plan, sources, count, sink, checkpoint, every), retries)


class ContinuousRun:
    """A query that runs until ``stop``. ``error``: why it has ended, if it has failed.

    If a node dies, the run begins again with the last epoch that counts. ``retries``: how often it does without an
    epoch in between. An error of Windrow comes again with the same rows, and ends it at once.
    """

    def __init__(self, spark: SparkSession, run: Running, retries: int) -> None:
        self.run, self.retries = run, retries
        self.error: WindrowError | None = None
        self._spark, self._id = spark, uuid.uuid4().hex
        self._followed = Followed(Progress.of(run.store.last()))
        self._desk = desk_of(spark)
        self._desk.followers[self._id] = self._followed.listen
        self._task = RingNode(run, self._id, self._desk.address)
        self._cancelled = False
        self._thread = threading.Thread(target=self._work, name=f"windrow-ring-{self._id[:8]}", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        state = "running" if self._thread.is_alive() else "failed" if self.error is not None else "ended"
        found = self.progress()
        rows = found.counts.get("rows_out", 0)
        return f"ContinuousRun({state}, nodes={self.run.nodes}, epoch={found.epoch}, rows_out={rows})"

    def progress(self) -> Progress:
        """The last epoch that counts and whose results are seen."""
        return self._followed.progress

    def await_epoch(self, epoch: int, timeout: float | None = None) -> Progress:
        """Wait until the results of an epoch are seen. Raises TimeoutError, or the error of a run that has failed."""
        self._followed.wait(lambda: self.progress().epoch >= epoch, timeout)
        if self.progress().epoch >= epoch:
            return self.progress()
        if self.error is not None:
            raise self.error
        raise TimeoutError(f"epoch {epoch} has not come: the last one is {self.progress().epoch}")

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; returns whether it has come. Raises the error of a run that has failed."""
        self._thread.join(timeout)
        if self.error is not None:
            raise self.error
        return not self._thread.is_alive()

    def stop(self, timeout: float = STOPS) -> None:
        """End it after the epoch that is under way. One that takes longer is given up: the next start repeats it."""
        self._followed.stop()
        self._thread.join(timeout)
        if self._thread.is_alive():
            self._cancelled = True
            self._spark.sparkContext.cancelJobGroup(self._id)
            self._thread.join()

    # -- the job -----------------------------------------------------------------------------------------------
    def _work(self) -> None:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        failures, again = 0, True
        while again and not self._cancelled:
            before = self.progress().epoch
            try:
                self._submit()
                again = False
            except (Py4JError, PySparkException) as error:
                failures = failures + 1 if self.progress().epoch == before else 1
                self.error = None if self._cancelled else self._final(error, failures)
                again = self.error is None
        self._desk.followers.pop(self._id, None)
        self._followed.end()

    def _final(self, error: Exception, failures: int) -> WindrowError | None:
        """Why it is not to begin again after an error; None if it is."""
        if self._spark.sparkContext._jsc is None:
            return LostError("the Spark session of the ring has been stopped")
        text = str(error)
        if (own := raised(text)) is None and failures > self.retries:
            own = LostError(f"the ring has failed {failures} times in a row: " + text.split("\n\tat ")[0])  # no Java
        if own is not None:
            own.__cause__ = error
        return own

    def _submit(self) -> None:
        """Returns when the run has ended."""
        context, nodes = self._spark.sparkContext, self.run.nodes
        context.setJobGroup(self._id, f"windrow: ring of {nodes} nodes", interruptOnCancel=True)
        context.parallelize(range(nodes), nodes).barrier().mapPartitions(self._task).collect()
