"""The stages of one level as they run in a shard: one graph, fed with exchange rows a micro-batch at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from windrow.errors import ResultError
from windrow.graph import Graph, Output
from windrow.hosts.counters import Counter
from windrow.hosts.isolation import isolate, queries_behind
from windrow.hosts.outline import NOTHING, Outline
from windrow.hosts.reporting import note_judge, part_report
from windrow.hosts.spark.exchange import MADE, NOTED, OUT, Kind, Row, decode
from windrow.hosts.spark.map_side import Branch
from windrow.hosts.spark.outbox import Outbox, Outboxes, Route, Sender
from windrow.hosts.spark.wanted import Ask, Source, wanted
from windrow.hosts.strategies import Strategies
from windrow.hosts.tally import Flows, Tally, encoded
from windrow.operators import Audit, Judge
from windrow.operators.progress.meld import group_of
from windrow.planner import Meeting, Step, add_stage, add_steps
from windrow.progress import START, Box, Punctuation, grown
from windrow.progress import ended as ends_at
from windrow.spec.rules import ASKED, Answer, Asked, answers
from windrow.spec.rules.asked import HEARD
from windrow.spec.rules.by_source import PART

BATCH = "streaming.sql.batchId"  # what Spark tells a task


@dataclass(frozen=True)
class Outside:
    """An input of an arm whose rows come through the exchange: on one port, or on one for each shard they come from.

    ``judge``: what makes its promises from evidence. ``marked``: whether its source has markers, whose promises are
    counted if they go backwards. ``again``: another input has the same source, and counts for both. ``source``: the key
    of the source, if it is from one.
    """

    ports: int = 1
    judge: tuple[Step, ...] = ()
    marked: bool = False
    again: bool = False
    source: str = ""


@dataclass(frozen=True)
class Inside:
    """An input of an arm whose rows come from another stage in the same shard."""

    stage: int
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Entrance:
    """An arm in a shard: its inputs, and how they meet."""

    inputs: tuple[Outside | Inside, ...]
    meeting: Meeting


@dataclass(frozen=True)
class Hosted:
    """A stage in a shard. ``owns``: a shard has all rows of the groups that promises name, and the others none."""

    number: int
    arms: tuple[Entrance, ...]
    steps: tuple[Step, ...]
    exits: tuple[Branch, ...]
    owns: bool = False


@dataclass
class Wiring:
    """A graph, and what its nodes and inputs are."""

    graph: Graph = field(default_factory=Graph)
    inputs: dict[tuple[int, int], int] = field(default_factory=dict)  # of a stage and a port: the input of the graph
    shown: dict[tuple[int, int], int] = field(default_factory=dict)  # the same for evidence and answers
    marked: dict[tuple[int, int], int] = field(default_factory=dict)  # the same for marks
    ends: dict[int, list[int]] = field(default_factory=dict)  # by node, the numbers of the exits that end there
    silent: set[int] = field(default_factory=set)
    stage_of: dict[int, int] = field(default_factory=dict)
    asks: dict[str, Ask] = field(default_factory=dict)  # by the key of a source that can be asked
    judges: dict[str, int] = field(default_factory=dict)  # by the key of a source the node that judges it
    keys: dict[tuple[int, int], str] = field(default_factory=dict)  # of judged sources, by where they come in
    flows: Flows = field(default_factory=lambda: Flows({}))
    report: dict[str, Any] | None = None  # the last one; None if it has to be read from the state


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
            meetings = _add_arms(wired, stage, last)
            steps = [step.among(len(self.shards)) for step in stage.steps]
            last[stage.number] = add_stage(wired.graph, steps, meetings)
            _add_audits(wired, stage)  # before the exits: what follows a stage may change, and names must not
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
        batch = _Batch()
        for row in rows:
            if row.stage in batch.mine(self):
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

    def _report(self, wired: Wiring, outboxes: Outboxes, batch: _Batch, home: bool) -> Row:
        """What this shard knows now. It stays with the state, and goes to the consumer of the result. ``home``: it is
        the one that knows about the sources.
        """
        before, tally = wired.report, outboxes.tally
        for row in _in_order(batch.noted):
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


At = tuple[int, int]  # a stage and a port of it


@dataclass
class _Batch:
    """The exchange rows of a micro-batch for the stages of one level, sorted out."""

    rows: list[Row] = field(default_factory=list)
    noted: list[Row] = field(default_factory=list)  # for the report
    evidence: dict[At, list[Row]] = field(default_factory=dict)
    marks: dict[At, list[Row]] = field(default_factory=dict)
    answers: dict[At, list[Row]] = field(default_factory=dict)
    promised: dict[tuple[At, bytes | None], int] = field(default_factory=dict)
    reached: dict[At, int] = field(default_factory=dict)
    boxes: dict[At, tuple[Box, ...]] = field(default_factory=dict)
    _mine: frozenset[int] | None = None

    def mine(self, fragment: Fragment) -> frozenset[int]:
        if self._mine is None:
            self._mine = frozenset(stage.number for stage in fragment.stages)
        return self._mine

    def take(self, row: Row) -> None:
        at = row.stage, row.port
        match row.kind:
            case Kind.DATA:
                self.rows.append(row)
            case Kind.EVIDENCE:
                self.evidence.setdefault(at, []).append(row)
            case Kind.MARKS:
                self.marks.setdefault(at, []).append(row)
            case Kind.ASKED if row.value or row.blob is not None:  # not of a task without rows and answers
                self.answers.setdefault(at, []).append(row)
            case Kind.PROMISE:
                about = at, row.blob
                self.promised[about] = max(self.promised.get(about, START), row.value)
            case Kind.BOXES:
                assert row.blob is not None
                given = tuple((a, b) for a, b in json.loads(row.blob))
                self.boxes[at] = grown(self.boxes.get(at, ()), given)
            case Kind.REACHED:
                self.reached[at] = max(self.reached.get(at, START), row.value)

    def data(self) -> Iterator[tuple[At, Row]]:
        """Rows arrive over the network in any order; a fixed order makes a repeated micro-batch equal to the first."""
        for row in sorted(self.rows, key=lambda row: (row.stage, row.port, row.tag)):
            yield (row.stage, row.port), row

    def asked_at(self, wired: Wiring, key: str) -> int | None:
        """When a source was asked, if its answers are in this micro-batch."""
        found = [_answers(rows)[ASKED].max() for at, rows in self.answers.items() if wired.keys.get(at) == key]
        return max((int(at) for at in found if at is not None), default=None)  # type: ignore[arg-type]

    def shown(self, wired: Wiring) -> Iterator[tuple[dict[At, int], At, pl.DataFrame]]:
        """What judges and audits take, and where. Answers come first: they say which partitions there are."""
        for at, rows in sorted(self.answers.items()):
            yield wired.shown, at, _answers(rows)
        for inputs, found in ((wired.shown, self.evidence), (wired.marked, self.marks)):
            for at, rows in sorted((at, rows) for at, rows in found.items() if at in inputs):  # finite: no judge
                yield inputs, at, pl.concat([decode(row.blob, "evidence") for row in _in_order(rows)])

    def promises(self) -> Iterator[tuple[At, Punctuation]]:
        for (at, group), value in sorted(self.promised.items(), key=lambda p: (p[0][0], p[0][1] or b"")):
            if value > START:
                about = None if group is None else group_of(group.decode())
                boxes = self.boxes.get(at, ()) if about is None else ()
                yield at, Punctuation(value, about, boxes=boxes)

    def ends(self, wired: Wiring) -> Iterator[tuple[At, Punctuation]]:
        """The end of a finite input."""
        for at in wired.inputs:
            yield from ((at, promise) for promise in ends_at(START, self.reached.get(at)))


def _in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row.tag)


def _answers(rows: list[Row]) -> pl.DataFrame:
    """The answers of a source in a micro-batch; what all of it has heard, any of its parts may know."""
    heard = any(row.value for row in rows)
    found = [decode(row.blob, "an answer") for row in _in_order(rows) if row.blob is not None]
    if not found:
        return answers([Answer(None, None, False, True)])
    everywhere = pl.col(PART).is_null() & heard
    return pl.concat(found).with_columns(pl.col(HEARD) | everywhere)


def _add_arms(wired: Wiring, stage: Hosted, last: Mapping[int, int]) -> list[int]:
    """The meeting of each arm, with an input of the graph for each port; ports are numbered over all arms."""
    graph, port = wired.graph, 0
    meetings = []
    for arm in stage.arms:
        before = {
            i: add_steps(graph, x.steps, last[x.stage]) for i, x in enumerate(arm.inputs) if isinstance(x, Inside)
        }
        width = sum(x.ports if isinstance(x, Outside) else 1 for x in arm.inputs)
        meeting = graph.add(arm.meeting.name, arm.meeting.make(width))
        place = 0  # among the ports of this arm
        for i, each in enumerate(arm.inputs):
            if isinstance(each, Inside):
                graph.connect(before[i], meeting, place)
                place += 1
                continue
            if each.judge:
                _add_judge(wired, each, stage.number, port, meeting, place)
            for _ in range(each.ports):
                wired.inputs[stage.number, port] = graph.input(meeting, place)
                port, place = port + 1, place + 1
        meetings.append(meeting)
    return meetings


def _add_judge(wired: Wiring, each: Outside, stage: int, port: int, meeting: int, place: int) -> None:
    graph, first, scope = wired.graph, len(wired.graph.nodes), wired.graph.scope
    judge = each.judge[0].make()
    assert isinstance(judge, Judge)
    if not judge.sees:
        graph.scope = f"asked{stage}"  # it came later than checkpoints without it, which hold the names of the others
    end = add_steps(graph, [replace(each.judge[0], make=lambda: judge), *each.judge[1:]], None)
    graph.scope = scope
    wired.shown[stage, port] = len(graph.inputs) - 1
    if isinstance(graph.node(first).operator, Judge):
        wired.judges.setdefault(each.source, first)
        wired.keys[stage, port] = each.source
    graph.connect(end, meeting, place)
    if each.again:
        wired.silent |= set(range(first, end + 1))
    if isinstance(judge.rule, Asked):
        wired.asks.setdefault(each.source, Ask(judge, each.judge[1:], meeting, place))


def _add_audits(wired: Wiring, stage: Hosted) -> None:
    port = 0
    for each in (x for arm in stage.arms for x in arm.inputs if isinstance(x, Outside)):
        if each.marked and not each.again:
            wired.marked[stage.number, port] = wired.graph.input(wired.graph.add(f"audit{port}", Audit()))
        port += each.ports
