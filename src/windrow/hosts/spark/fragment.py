"""The stages of one level as they run in a shard: one graph, fed with exchange rows a micro-batch at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from windrow.errors import ResultError
from windrow.graph import Graph, Output
from windrow.hosts.counters import Counter
from windrow.hosts.isolation import isolate, queries_behind
from windrow.hosts.outline import NOTHING, Outline
from windrow.hosts.reporting import note_judge, part_report
from windrow.hosts.spark.exchange import MADE, NOTED, OUT, Kind, Row, decode
from windrow.hosts.spark.outbox import Outbox, Outboxes, Route, Sender
from windrow.hosts.spark.sorted_rows import Sorted, in_order
from windrow.hosts.spark.wanted import Source, wanted
from windrow.hosts.spark.wiring import Hosted, Wiring, add_arms, add_audits
from windrow.hosts.strategies import Strategies
from windrow.hosts.tally import Tally, encoded
from windrow.operators import Judge
from windrow.planner import add_stage, add_steps
from windrow.progress import Punctuation

BATCH = "streaming.sql.batchId"  # what Spark tells a task


@dataclass(frozen=True)
class Fragment:
    """The stages of a level, inner ones first. ``shards``: the ids of all shards of the query."""

    stages: tuple[Hosted, ...]
    shards: tuple[int, ...] = (0,)
    limit: int | None = None  # bytes of state that a shard may hold
    owners: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # of queries that come and go, by stage
    names: Mapping[int, str] = field(default_factory=dict)  # of these queries, by number
    strategies: Strategies = field(default_factory=Strategies)
    outline: Outline = NOTHING  # of the query
    asked: Mapping[str, Source] = field(default_factory=dict)  # by key, the sources that can be asked
    first: bool = False  # whether no level is before it: one of its shards knows about the sources

    def wiring(self) -> Wiring:
        """All stages as one graph."""
        wired = Wiring()
        last: dict[int, int] = {}
        exits = 0
        for stage in self.stages:
            wired.graph.scope = f"stage{stage.number}"
            first = len(wired.graph.nodes)
            meetings = add_arms(wired, stage, last)
            steps = [step.among(len(self.shards)) for step in stage.steps]
            last[stage.number] = add_stage(wired.graph, steps, meetings)
            add_audits(wired, stage)  # before the exits: what follows a stage may change, and names must not
            for branch in stage.exits:
                wired.graph.scope = self._scope(stage, branch.route)
                end = wired.graph.output(add_steps(wired.graph, branch.steps, last[stage.number]))
                wired.ends.setdefault(end, []).append(exits)
                exits += 1
            wired.stage_of |= dict.fromkeys(range(first, len(wired.graph.nodes)), stage.number)
        numbers = [stage.number for stage in self.stages]
        nodes = {number: [node for node, of in wired.stage_of.items() if of == number] for number in numbers}
        self.strategies.apply(wired.graph, [(self.owners.get(number, ()), nodes[number]) for number in numbers])
        wired.graph.measure(wired.flows)
        return wired

    def _scope(self, stage: Hosted, route: Route) -> str:
        """Of what follows a stage. Where queries come and go, its names must not depend on which others there are."""
        if not self.owners:
            return f"stage{stage.number}"
        return f"stage{stage.number}/" + (
            f"query{route.port}" if route.stage == OUT else f"to{route.stage}.{route.port}"
        )

    def outboxes(self, shard: int, wired: Wiring) -> Outboxes:
        """Where the output of each exit goes. Each shard has a port of its own at the next stage."""
        boxes = []
        for stage in self.stages:
            for branch in stage.exits:
                route = branch.route
                ports = tuple(route.port + i for i in range(len(self.shards))) if stage.owns else ()
                place = self.shards.index(shard) if route.shards else 0
                boxes.append(Outbox(replace(route, port=route.port + place), ports))
        silent, stages = frozenset(wired.silent), wired.stage_of
        names = {node.number: node.name for node in wired.graph.nodes}
        return Outboxes(Sender(shard, shard), boxes, wired.ends, silent=silent, stage_of=stages, names=names)

    def run(self, wired: Wiring, shard: int, rows: Iterable[Row], ended: bool = False) -> Iterator[Row]:
        """One micro-batch: all data first, then the promises, so that nothing of the batch itself is late."""
        graph, outboxes = wired.graph, self.outboxes(shard, wired)
        if self.names:

            def queries_at(node: int) -> Iterator[int]:
                return self._queries(wired, node)

            isolate(graph, queries_at, outboxes.sender.failed)
            outboxes.concerned = lambda node, side: (
                query
                for query in queries_behind(graph, queries_at, node)
                if side.of is None or self.names[query] == side.of
            )
        batch = Sorted()
        for row in rows:
            if row.stage in batch.mine(self.stages):
                batch.take(row)
            elif row.kind == Kind.REPORT and row.port == NOTED:
                batch.noted.append(row)
            else:  # for a later level, or for the consumer of the result
                yield row
        for at, row in batch.data():
            frame = decode(row.blob, f"a blob of shard {shard}")
            yield from outboxes.rows(_fed(graph, wired.inputs[at], frame))
        for inputs, at, frame in batch.shown(wired):
            yield from outboxes.rows(_fed(graph, inputs[at], frame))
        for at, promise in batch.ends(wired) if ended else batch.promises():
            yield from outboxes.rows(_fed(graph, wired.inputs[at], promise))
        yield from outboxes.rows(graph.flush())
        counts = outboxes.sender.counts
        if shard:  # all judges promise the same: those of the first shard are counted
            counts[Counter.PROMISES_IGNORED] = 0
        counts[Counter.STATE_BYTES] = self._checked(graph, shard)
        yield from outboxes.last()
        home = bool(batch.noted) or (self.first and shard == self.shards[0])
        yield self._report(wired, outboxes, batch, home)
        if self.asked and wired.report is not None:
            for source, when in wanted(graph, wired.report["waits"], self.asked, wired.asks).items():
                yield outboxes.sender.out(Kind.WANTED, when, port=source)

    def _report(self, wired: Wiring, outboxes: Outboxes, batch: Sorted, home: bool) -> Row:
        """What this shard knows now. It stays with the state, and goes to the consumer of the result. ``home``: it is
        the one that knows about the sources.
        """
        before, tally = wired.report, outboxes.tally
        for row in in_order(batch.noted):
            assert row.blob is not None
            tally.join(Tally.from_json(json.loads(row.blob)))
        tally.note_flows(outboxes.names, wired.flows)
        tally.results += outboxes.sender.counts[Counter.ROWS_OUT]
        for key, node in wired.judges.items() if home else ():
            judge = wired.graph.node(node).operator
            assert isinstance(judge, Judge)
            note_judge(tally, key, judge, batch.asked_at(wired, key))
        total = Tally() if before is None else Tally.from_json(before["tally"])
        total.add(tally, batch_number(total.batch + 1))
        found = part_report(wired.graph, self.outline, total, before)
        wired.report = {**found, "outline": self.outline.to_json() if home else None}
        return outboxes.sender.out(Kind.REPORT, total.batch, encoded(wired.report), MADE)

    def _queries(self, wired: Wiring, node: int) -> Iterator[int]:
        """The queries that take what comes out of a node by an exit, or that its stage belongs to."""
        exits = [branch for stage in self.stages for branch in stage.exits]
        for route in (exits[number].route for number in wired.ends.get(node, ())):
            yield from (route.port,) if route.stage == OUT else self.owners.get(route.stage, ())

    def _checked(self, graph: Graph, shard: int) -> int:
        """The bytes of state; more than allowed stops the query before the micro-batch is committed."""
        held = graph.state_bytes()
        if self.limit is not None and held > self.limit:
            parts = {n.name.split("-", 1)[1]: n.operator.state_bytes() for n in graph.nodes}
            largest = ", ".join(f"{name} {size:,}" for name, size in parts.items() if size)
            raise ResultError(
                f"shard {shard} holds {held:,} bytes of state, more than the {self.limit:,} allowed ({largest}). "
                "Windows stay open until a promise closes them: look for a source that is behind or silent. Else give "
                "more shards (with a new checkpoint), shorter windows or fewer groups, or a higher state_limit"
            )
        return held


def batch_number(otherwise: int) -> int:
    """The number of the micro-batch, where Spark tells it."""
    from pyspark import TaskContext

    context = TaskContext.get()
    number = None if context is None else (getattr(context, "_localProperties", None) or {}).get(BATCH)
    return otherwise if number is None else int(number)


def _fed(graph: Graph, port: int, item: pl.DataFrame | Punctuation) -> list[Output]:
    """What comes out; nothing if the query behind an input has been taken out."""
    return graph.feed(port, item) if graph.feeds(port) else []
