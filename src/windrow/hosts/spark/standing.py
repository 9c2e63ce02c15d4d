"""The queries of a session on Spark: one streaming query runs them all, and is restarted when they change.

A change takes effect between two micro-batches. The running Spark query is stopped after the micro-batch that is being
written; the record of the session is written; and a new Spark query, with the stages of the queries that there are now,
continues over the same checkpoint. Stages of queries that stay find their state under the same names.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from windrow.errors import CheckpointError, PlanError, WindrowError
from windrow.hosts.spark.compile import session_of, standing_rows
from windrow.hosts.spark.migrate import carry
from windrow.hosts.spark.parts_written import SUMMARY, WriteParts
from windrow.hosts.spark.reports import ReportFile, last_written
from windrow.hosts.spark.session import STATE_PARTITIONS, shard_count
from windrow.hosts.spark.session_record import Record, forget_uncommitted
from windrow.hosts.spark.session_results import Results
from windrow.hosts.spark.session_sides import Counted, Sides
from windrow.hosts.spark.start import start
from windrow.hosts.standing import Registry, Standing, Status, Together
from windrow.logical.nodes import Node
from windrow.planner import Combined, Common, Given, Group, combined, plan_group
from windrow.planner.levels import Levels
from windrow.sources.own import Own

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

Sink = Callable[[str, "DataFrame", int], None]
DEPTH = 2  # levels of a new session: most queries need one, a window over windows two
POLL = 0.02  # seconds between two looks at whether Spark has committed


class StandingQueries:
    """``folder`` has the record of the session, its checkpoint and its results; a session in it goes on.

    ``sink`` gets the results of each query and micro-batch, by name, besides the files. ``clock``: some DataFrame can
    be asked how far it has come, whether a query reads it now or not.
    """

    def __init__(
        self,
        folder: str | Path,
        sources: Mapping[str, DataFrame | Own],
        shards: int | None = None,
        depth: int | None = None,
        tasks: int | None = None,
        sink: Sink | None = None,
        clock: bool = False,
    ) -> None:
        if "://" in str(folder):
            raise PlanError(f"the folder of a session must be a local or mounted one, not {folder}")
        self.folder = Path(folder).absolute()
        self.sources = dict(sources)
        self.sink = sink
        self.clock = clock
        self.spark = session_of(list(self.sources.values()))
        self.results_of, self.sides = Results(self.folder / "results"), Sides(self.folder / "sides")
        self.record = self._opened(shards, depth, tasks)
        self._wanted = depth or self.record.depth, tasks or self.record.tasks
        self.common = Common()
        self.plans: dict[int, Group] = {}  # by the number of a group
        self.query: StreamingQuery | None = None
        self._trigger: dict[str, Any] = {"processingTime": "0 seconds"}
        self._changes = threading.RLock()  # one change at a time
        self._writing = threading.Lock()  # held while a micro-batch is written
        self._closing = False
        self._written: int | None = None

    def _opened(self, shards: int | None, depth: int | None, tasks: int | None) -> Record:
        known = Record.opened(self.folder)
        if known is None:
            count = shard_count(self.spark, shards)
            return Record(self.folder, count, depth or DEPTH, sorted(self.sources), tasks or count)
        known.check_streams(self.sources)
        if shards not in (None, known.shards):
            raise CheckpointError(
                f"the session in this folder has {known.shards} shards, which its state is divided by for good. It can "
                f"be given another number of tasks, which share the shards: tasks={shards}, or --tasks {shards}"
            )
        self.results_of.count(known.registry)
        self.sides.count(known.registry)
        return known

    @property
    def registry(self) -> Registry:
        return self.record.registry

    def node_of(self, query: Standing) -> Node:
        """What a query means."""
        [group] = [g for g in self.registry.groups if query in g.queries]
        return self.plans[group.number].queries[query.name]

    def restore(self, node_of: Callable[[Standing], Node]) -> None:
        """Plan the queries of the record; ``node_of`` gives what each means."""
        for group in self.registry.groups:
            nodes = {query.name: node_of(query) for query in group.queries}
            group.check(nodes)
            self._plan(group, nodes)

    def _plan(self, group: Together, nodes: Mapping[str, Node]) -> None:
        kept = Given({}, True, group.choices, spread=False)
        self.plans[group.number] = plan_group(nodes, group.first_stage, self.common, kept, group.alive())

    # -- changes -----------------------------------------------------------------------------------------------
    def add(self, queries: Mapping[str, tuple[Node, str | None]]) -> None:
        """Queries that begin together, by name, with their SQL where there is one."""
        with self._changes:
            self.registry.check_new(list(queries))
            nodes = {name: node for name, (node, _) in queries.items()}
            how = Given({}, True, spread=False)
            alone = plan_group(nodes, self.registry.next_stage, self.common, how)
            running = [*self._running(), (alone, dict.fromkeys(nodes, -1))]
            depth = max(self.record.depth, Levels(combined(running), self.record.shards).depth)
            self._compiled(running, depth)  # refused before anything stops

            def begin(registry: Registry, at: int) -> None:
                self._migrate(depth, self.record.tasks)
                fresh = {query.name: self.node_of(query) for query in registry.began_at(at)}
                texts = {name: sql for name, (_, sql) in queries.items()}
                for group, planned in registry.add(texts, {**fresh, **nodes}, at, self.common, how):
                    self.plans[group.number] = planned

            self._change(begin)

    def drop(self, names: Sequence[str]) -> None:
        """End queries: what they have not released is given up."""
        with self._changes:
            draft = self.registry.copy()
            for name in names:
                draft.drop(name, 0)
            self._change(lambda registry, at: [registry.drop(name, at) for name in names])

    def drop_stream(self, name: str) -> None:
        """No query can be added over it any more. Spark reads it as before, and nobody takes its rows."""
        with self._changes, self._claimed():
            self.registry.dropped_streams.append(name)
            self.record.save()

    def pause(self, names: Sequence[str]) -> None:
        """Queries that share state can only be paused together."""
        with self._changes:
            draft = self.registry.copy()
            for name in names:
                draft.pause(name, 0)
            draft.check_paused()
            self._change(lambda registry, at: [registry.pause(name, at) for name in names])

    def resume(self, names: Sequence[str]) -> None:
        with self._changes:
            draft = self.registry.copy()
            for name in names:
                draft.resume(name, 0)
            self._change(lambda registry, at: [registry.resume(name, at) for name in names])

    def set_strategy(self, strategy: str, name: str | None = None) -> None:
        """Of all graphs, or of the parts that belong to a query."""
        with self._changes:
            self.registry.copy().set_strategy(strategy, name)
            self._change(lambda registry, _at: registry.set_strategy(strategy, name))

    @contextmanager
    def _claimed(self) -> Iterator[None]:
        """No other program runs or changes the session now, nor as long as it runs here."""
        self.record.claim()
        try:
            yield
        finally:
            if self.query is None:
                self.record.release()

    def _change(self, change: Callable[[Registry, int], object]) -> None:
        with self._claimed():
            self._changed(change)

    def _changed(self, change: Callable[[Registry, int], object]) -> None:
        running = self.query is not None
        at = self._halt()
        try:
            change(self.registry, at)
        except Exception:
            if running:
                self._go(at)  # as before
            raise
        left = {group.number: group for group in self.registry.groups}
        self.plans = {number: group for number, group in self.plans.items() if number in left}
        for number, planned in list(self.plans.items()):
            if planned.active != set(left[number].alive()):
                self._plan(left[number], planned.queries)
        self.common.keep(self.plans.values())
        self.record.save()
        if running:
            self._go(at)

    # -- running -----------------------------------------------------------------------------------------------
    def start(self, **trigger: Any) -> None:
        """Run, with a trigger as Spark's; by default one micro-batch after the other."""
        with self._changes:
            if self.query is not None and self.query.isActive:
                raise PlanError("the session is running already")
            self._begin(trigger)

    def _begin(self, trigger: dict[str, Any]) -> None:
        with self._claimed():
            self._halt()  # what is left of a Spark query that an error has ended
            self._trigger = trigger or self._trigger
            self._migrate(*self._wanted)
            self.record.save()
            self._go(self._next_batch())

    def stop(self) -> None:
        """Stop after the micro-batch that is being written. A later start continues from here."""
        with self._changes:
            self._halt()
            self.record.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the Spark query has ended by itself; false if it has not within ``timeout`` seconds."""
        query = self.query
        if query is None or timeout is None:
            if query is not None:
                query.awaitTermination()
            return True
        return bool(query.awaitTermination(max(timeout, 0.001)))  # Spark takes no 0

    def process_available(self) -> None:
        """Wait until all rows that are there now have been processed."""
        with self._changes:
            if self.query is None:
                raise PlanError("the session is not running: start() it first")
            self.query.processAllAvailable()

    def latest(self) -> dict[str, Any] | None:
        """What the last micro-batch has left of its figures."""
        return last_written(self.record.checkpoint)

    def error(self) -> str | None:
        """Why the Spark query has ended, if it has by an error."""
        query = self.query
        found = None if query is None else query.exception()
        return None if found is None else str(found)

    def _running(self, *also: Status) -> list[tuple[Group, dict[str, int]]]:
        """The groups of queries that run, or have another status."""
        found = []
        for group in self.registry.groups:
            names = {q.name: q.number for q in group.queries if q.status in ("running", *also)}
            if names:
                found.append((self.plans[group.number], names))
        return found

    def _compiled(self, running: Sequence[tuple[Group, Mapping[str, int]]], depth: int) -> DataFrame:
        plan = combined(running)
        return standing_rows(
            plan, self.sources, self.record.shards, depth, self._dormant(plan), self.registry.strategies(), self.clock
        )

    def _dormant(self, plan: Combined) -> frozenset[int]:
        """The stages of queries that are paused."""
        alive = combined(self._running("paused")).owners()
        return frozenset(alive) - frozenset(stage.number for stage in plan.stages())

    def _go(self, at: int) -> None:
        """Run from micro-batch ``at`` on. Files of it that are there were written by a run that did not commit it."""
        self.results_of.clear(self.registry, at)
        self.sides.clear(self.registry, at)
        forget_uncommitted(self.record.checkpoint)
        rows = self._compiled(self._running(), self.record.depth)
        queries = {query.number: query for query in self.registry if query.status == "running"}
        self._closing, self._written = False, None
        self.query = self._started(rows, lambda frame, batch: self._take(frame, batch + self.record.earlier, queries))

    def _started(self, rows: DataFrame, take: Callable[[DataFrame, int], None]) -> StreamingQuery:
        self.spark.conf.set(STATE_PARTITIONS, self.record.tasks)
        ReportFile.of(self.spark, str(self.record.checkpoint))
        writer = rows.writeStream.foreachBatch(take).option("checkpointLocation", str(self.record.checkpoint))
        return start(writer.trigger(**self._trigger))

    def _migrate(self, depth: int, tasks: int) -> None:
        """Carry the state into a checkpoint for other numbers of levels and tasks. The session does not run."""
        then, record = (self.record.depth, self.record.tasks), self.record
        if (depth, tasks) == then:
            return
        Levels(combined(self._running("paused")), record.shards).check(depth)
        next_batch = self._next_batch()
        if next_batch:
            self._carry(depth, tasks)
            record.earlier = next_batch - 1
        record.generation, record.depth, record.tasks = record.generation + 1, depth, tasks
        self._wanted = depth, tasks
        record.save()
        shutil.rmtree(record.checkpoint_of(record.generation - 1), ignore_errors=True)

    def _carry(self, depth: int, tasks: int) -> None:
        now = self.record
        levels = Levels(combined(self._running("paused")), now.shards)
        stages = [{stage.number for stage in levels.stages(level)} for level in range(levels.depth)]
        carry(self.spark, now.checkpoint, now.checkpoint_of(now.generation + 1), now.depth, stages, depth, tasks)

    def _halt(self) -> int:
        """Stop between two micro-batches; returns the number of the next one."""
        query, self.query = self.query, None
        if query is not None:
            with self._writing:
                self._closing = True
            pause = threading.Event()
            while self._written is not None and self._next_batch() <= self._written and query.isActive:
                pause.wait(POLL)  # it is written, and Spark is about to commit it
            query.stop()
            with suppress(Exception):
                query.awaitTermination()
        return self._next_batch()

    @property
    def batches(self) -> int:
        """How many micro-batches are committed."""
        return self._next_batch()

    def _next_batch(self) -> int:
        return self.record.next_batch()

    # -- results -----------------------------------------------------------------------------------------------
    def _take(self, frame: DataFrame, batch: int, queries: Mapping[int, Standing]) -> None:
        """One micro-batch: a file per query and task, then a mark that they are complete."""
        with self._writing:
            if self._closing:
                raise WindrowError("the queries of the session are about to change: this micro-batch runs again")
            self.results_of.clear(queries.values(), batch)
            self.sides.clear(queries.values(), batch)
            folders = {number: str(self.results_of.at(query, batch)) for number, query in queries.items()}
            found, failed = self._parts(frame, WriteParts(folders, str(self.sides.at(batch))))
            running = {number for number, query in queries.items() if query.status == "running"}
            counted = {number: each for number, each in found.items() if number in running - failed.keys()}
            self.sides.finish(queries.values(), batch, counted)
            for number in sorted(number for number, each in counted.items() if each.rows):
                self._finish(queries[number], batch, counted[number].rows)
            if stopped := sorted(failed.keys() & running):
                for number in stopped:
                    self.registry.fail(number, failed[number], batch)
                self.record.save()
                self._soon(self._settle)
            self._written = batch

    def _parts(self, frame: DataFrame, write: WriteParts) -> tuple[dict[int, Counted], dict[int, str]]:
        """Write what came out; returns what each query had, and the errors of those that failed."""
        found: dict[int, Counted] = {}
        failed: dict[int, str] = {}
        for query, rows, late, bad, error in self._collected(frame.mapInArrow(write, SUMMARY)):
            if error is None:
                had = found.setdefault(query, Counted())
                had.rows, had.late, had.bad = had.rows + rows, had.late + late, had.bad + bad
            else:
                failed.setdefault(query, error)
        return found, failed

    def _collected(self, frame: DataFrame) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in frame.collect()]

    def _finish(self, query: Standing, batch: int, rows: int) -> None:
        self.results_of.finish(query, batch, rows)
        if self.sink is not None:
            self.sink(query.name, self.spark.read.parquet(str(self.results_of.at(query, batch))), batch)

    def _soon(self, action: Callable[[], None]) -> None:
        """After the micro-batch that is being written, which waits for this call to return."""
        threading.Thread(target=action, daemon=True).start()

    def _settle(self) -> None:
        """Go on without queries that have failed."""
        with self._changes:
            if self.query is not None:
                self._change(lambda _registry, _at: None)

    def results(self, name: str, after: int = -1) -> list[tuple[int, pl.DataFrame]]:
        """The results of a query by micro-batch, as far as they are complete, of micro-batches after a number."""
        return self.results_of.read(self.registry.find(name), after)

    def late_rows(self, name: str, after: int = -1) -> list[tuple[int, pl.DataFrame]]:
        """The late records of a query by micro-batch."""
        return self.sides.late(self.registry.find(name), after)

    def bad_rows(self, name: str, after: int = -1) -> list[tuple[int, pl.DataFrame]]:
        """The bad rows that a query does without, by micro-batch."""
        return self.sides.bad(self.registry.find(name), after)
