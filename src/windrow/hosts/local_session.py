"""The queries of a session in one process: one graph, in which queries come and go between two calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from windrow.errors import CheckpointError, QueryError, listing
from windrow.graph import Graph, Output, named
from windrow.hosts.arrivals import STATE as ARRIVALS
from windrow.hosts.arrivals import Arrivals, Clock
from windrow.hosts.isolation import isolate, queries_behind
from windrow.hosts.local import Value, fitting_of, promise_of
from windrow.hosts.standing import Registry, Standing
from windrow.logical.nodes import Node, Scan
from windrow.operators.operator import OnlyNews, Side, Stateless
from windrow.operators.rows.once import Last, Once
from windrow.planner import Common, Group, Read, Stage, Step, plan_group
from windrow.planner.choice import NOTHING
from windrow.planner.plan import sources_of
from windrow.progress import END, Punctuation
from windrow.sources.fitting import Fitting
from windrow.spec.batches import State
from windrow.spec.names import ARRIVAL_TS, POSITION
from windrow.spec.rules import Answer, answers

RECORD = "@session"  # the name of the frame in a snapshot that says which queries there are


@dataclass
class Unit:
    """Queries that share state, and their part of the graph: nodes of their own, and nodes that others use, too."""

    number: int  # the least number of its queries: it names their state
    group: Group
    own: list[int] = field(default_factory=list)
    common: list[int] = field(default_factory=list)
    inputs: dict[str, set[int]] = field(default_factory=dict)  # by stream, the inputs of the graph that feed it
    stamps: dict[str, set[str]] = field(default_factory=dict)  # by stream, what it wants to know of arrivals
    paused: State | None = None  # its state while it takes no rows
    fed: bool = False  # whether it has had anything

    def clear(self) -> None:
        """It has no nodes."""
        self.own, self.common, self.inputs, self.stamps = [], [], {}, {}

    @property
    def scope(self) -> str:
        return f"query{self.number}"


class LocalSession:
    """Rows and promises are pushed; what a query has released since the last call is taken by its name."""

    def __init__(self, streams: Mapping[str, Scan], clock: Clock | None = None) -> None:
        """``clock``: what says when rows arrive; the wall clock if none is given."""
        self.streams = dict(streams)
        self.arrivals = Arrivals(clock)
        self.registry, self.common = Registry(), Common()
        self.graph = Graph()
        self.units: dict[int, Unit] = {}  # by the number of a query
        self.nodes: dict[int, Node] = {}
        self._shared: dict[tuple[int | Read, Step], int] = {}  # nodes without state, by what is before them
        self._computed: dict[Step, Last] = {}  # by filters of several queries
        self._entries: dict[int, int] = {}  # by the first node of a read, its input of the graph
        self._reads: dict[int, Read] = {}  # by input of the graph
        self._asks: dict[int, int] = {}  # by the last node of a read that can be asked, the input of its answers
        self._leaving: dict[int, list[int]] = {}  # by node, the queries whose results leave there
        self._results: dict[int, list[pl.DataFrame]] = {}
        self._sides: dict[str, dict[int, list[pl.DataFrame]]] = {"late": {}, "bad": {}}  # by kind and query
        self._failed: dict[int, str] = {}
        self._scope = ""  # of nodes that are added next
        self._fittings: dict[str, Fitting] = {}
        isolate(self.graph, lambda node: self._leaving.get(node, ()), self._failed)

    # -- queries -----------------------------------------------------------------------------------------------
    def add(self, queries: Mapping[str, tuple[Node, str | None]]) -> None:
        """Queries that begin together, by name, with their SQL where there is one."""
        self.registry.check_new(list(queries))
        nodes = {name: node for name, (node, _) in queries.items()}
        fresh = {q.name: self.nodes[q.number] for q in self.registry.began_at(0) if not self.units[q.number].fed}
        texts = {name: sql for name, (_, sql) in queries.items()}
        found = self.registry.add(texts, {**fresh, **nodes}, 0, self.common, NOTHING)
        for unit in {id(u): u for g, _ in found for q in g.queries if (u := self.units.get(q.number))}.values():
            self._pulled(unit)
        for group, planned in found:
            self._begin(group.queries, planned)

    def _begin(self, queries: Sequence[Standing], group: Group, fed: bool = False) -> None:
        unit = Unit(queries[0].number, group, fed=fed)
        for query in queries:
            self.units[query.number] = unit
            self.nodes[query.number] = group.queries[query.name]
            for found in (self._results, *self._sides.values()):
                found[query.number] = []
        self._build(unit)

    def drop(self, names: Sequence[str]) -> None:
        """End queries: what they have not released is given up."""
        draft = self.registry.copy()
        for name in names:
            draft.drop(name, 0)
        for name in names:
            self._drop(name)

    def _drop(self, name: str) -> None:
        query = self.registry.find(name)
        unit = self.units[query.number]
        kept = self._pulled(unit)
        self.registry.drop(name, 0)
        self._forget(query.number)
        self._put_back(unit, kept)
        self.common.keep({unit.number: unit.group for unit in self.units.values()}.values())
        self._computed = {step: last for step, last in self._computed.items() if step in self.common.steps()}

    def _forget(self, number: int) -> None:
        found: list[dict[int, Any]] = [self.units, self.nodes, self._results, *self._sides.values()]
        for known in found:
            known.pop(number, None)

    def drop_stream(self, name: str) -> None:
        """No query can be added over it any more, and no rows can be pushed."""
        self.registry.dropped_streams.append(name)

    def pause(self, names: Sequence[str]) -> None:
        """Queries that share state are paused together."""
        draft = self.registry.copy()
        for name in names:
            draft.pause(name, 0)
        draft.check_paused()
        for unit in self._units(names):
            unit.paused = self._pulled(unit)
        for name in names:
            self.registry.pause(name, 0)

    def resume(self, names: Sequence[str]) -> None:
        """Paused queries take rows again."""
        draft = self.registry.copy()
        for name in names:
            draft.resume(name, 0)
        for name in names:
            self.registry.resume(name, 0)
        for unit in self._units(names):
            kept, unit.paused = unit.paused, None
            self._put_back(unit, kept or {})

    def set_strategy(self, strategy: str, name: str | None = None) -> None:
        """Of the whole graph, or of the part that belongs to a query and those that share its state."""
        self.registry.set_strategy(strategy, name)
        self.graph.set_strategy(named(self.registry.strategy))
        self._apply_strategies()

    def _apply_strategies(self) -> None:
        units = {unit.number: unit for unit in self.units.values()}.values()
        parts = [([n for n, u in self.units.items() if u is unit], unit.own) for unit in units]
        self.registry.strategies().apply(self.graph, parts)

    def node_of(self, query: Standing) -> Node:
        return self.nodes[query.number]

    def _units(self, names: Sequence[str]) -> list[Unit]:
        found = [self.units[self.registry.find(name).number] for name in names]
        return list({unit.number: unit for unit in found}.values())

    # -- the graph ---------------------------------------------------------------------------------------------
    def _running(self, unit: Unit) -> dict[str, int]:
        mine = (q for q in self.registry if self.units.get(q.number) is unit)
        return {q.name: q.number for q in mine if q.status == "running"}

    def _build(self, unit: Unit) -> None:
        """Add the nodes of the queries of a unit that run. Their names do not depend on which others there are."""
        running = self._running(unit)
        unit.clear()
        ends: dict[Read | Stage, int] = {}
        needed = set(sources_of(p for name in running for p in unit.group.outputs[name]))
        for place, source in enumerate(sources_of(p for found in unit.group.outputs.values() for p in found)):
            self._scope = f"{unit.scope}/{place}"
            if source in needed:
                ends[source] = self._read(unit, source) if isinstance(source, Read) else self._stage(unit, source, ends)
        for name, number in running.items():
            self._scope = f"{unit.scope}/{name}"
            for pipeline in unit.group.outputs[name]:
                end = self.graph.output(self._steps(unit, pipeline.steps, ends[pipeline.source]))
                self._leaving.setdefault(end, []).append(number)
        self._apply_strategies()

    def _read(self, unit: Unit, read: Read) -> int:
        first = self._add(unit, read, read.steps[0])
        if first not in self._entries:
            self._entries[first] = self.graph.input(first)
        self._reads[self._entries[first]] = read
        wanted = {c for c in read.scan.stamps if c in unit.group.needed[read.scan.name]}
        unit.stamps.setdefault(read.scan.name, set()).update(wanted)
        unit.inputs.setdefault(read.scan.name, set()).add(self._entries[first])
        last = self._steps(unit, read.steps[1:], first)
        if read.is_asked and last not in self._asks:
            self._asks[last] = self.graph.input(last, 1)
        return last

    def _stage(self, unit: Unit, stage: Stage, ends: Mapping[Read | Stage, int]) -> int:
        meetings = []
        for arm in stage.arms:
            before = [self._steps(unit, p.steps, ends[p.source]) for p in arm.inputs]
            meetings.append(self._own(unit, arm.meeting.name, arm.meeting.make(len(before)), before))
        if not stage.steps:
            return meetings[0]
        first = self._own(unit, stage.steps[0].name, stage.steps[0].make(), meetings)
        return self._steps(unit, stage.steps[1:], first)

    def _steps(self, unit: Unit, steps: Iterable[Step], after: int) -> int:
        for step in steps:
            after = self._add(unit, after, step)
        return after

    def _add(self, unit: Unit, after: int | Read, step: Step) -> int:
        """A step that remembers nothing, and follows the same node for another query, is there already."""
        known = self._shared.get((after, step))
        if known is not None:
            unit.common.append(known)
            return known
        operator = step.make()
        before = [] if isinstance(after, Read) else [after]
        if not isinstance(operator, Stateless) or isinstance(operator, OnlyNews) or after in unit.own:
            if step in self.common.steps():
                operator = Once(operator, self._computed.setdefault(step, Last()))
            return self._own(unit, step.name, operator, before)
        self.graph.scope = "common"
        node = self._shared[after, step] = self.graph.add(step.name, operator, before)
        unit.common.append(node)
        return node

    def _own(self, unit: Unit, name: str, operator: Any, before: Sequence[int]) -> int:
        self.graph.scope = self._scope
        node = self.graph.add(name, operator, before)
        unit.own.append(node)
        return node

    def _pulled(self, unit: Unit) -> State:
        """Take the nodes of a unit out of the graph; returns their state."""
        there = [n for n in unit.own if n in self.graph]
        prefix = f"{unit.scope}/"
        state = {k: v for k, v in self.graph.snapshot().items() if k.startswith(prefix)}
        others = {node for each in self.units.values() if each is not unit for node in each.common}
        alone = [n for n in dict.fromkeys(unit.common) if n not in others]
        for node in alone:
            self._shared = {place: known for place, known in self._shared.items() if known != node}
            self._entries.pop(node, None)
        numbers = {number for number, each in self.units.items() if each is unit}
        for node, leaving in list(self._leaving.items()):
            self._leaving[node] = [n for n in leaving if n not in numbers]
            if not self._leaving[node]:
                del self._leaving[node]
                self.graph.outputs.discard(node)
        self.graph.remove([*there, *alone])
        for node in there:
            self._entries.pop(node, None)
            self._asks.pop(node, None)
        unit.clear()
        return state

    def _put_back(self, unit: Unit, state: State) -> None:
        """Add the nodes of what is left of a unit, with the state that they had."""
        if unit.paused is not None or not self._running(unit):
            return
        [group] = [group for group in self.registry.groups if group.number == unit.number]
        unit.group = plan_group(unit.group.queries, group.first_stage, self.common, active=group.alive())
        self._build(unit)
        for number in unit.own:
            node = self.graph.node(number)
            prefix = f"{node.name}/"
            node.operator.restore({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})

    # -- rows --------------------------------------------------------------------------------------------------
    def push(self, stream: str, rows: Any) -> None:
        """Rows of a stream, for all queries over it; taken whole or not at all."""
        scan = self._scan(stream)
        if stream not in self._fittings:
            self._fittings[stream] = fitting_of(scan, list(scan.schema))
        frame, misfits = self._fittings[stream].fit(rows)
        stamps = {stamp for unit in self.units.values() for stamp in unit.stamps.get(stream, ())}
        if POSITION not in stamps:
            self.arrivals.skip(stream, frame.height)
        self._fed([stream], self.arrivals.stamped(stream, frame, stamps) if stamps else frame, misfits)

    def promise(self, stream: str, at: Value, group: Mapping[str, Any] | None = None) -> None:
        """Every later row of this stream, or of one group of it, has at least this progress value."""
        scan = self._scan(stream)
        promise = promise_of(scan, at, group)
        if scan.progress == ARRIVAL_TS and ARRIVAL_TS in scan.stamps:
            self.arrivals.passed(promise.value)
        self._fed([stream], promise)

    def ask(self) -> None:
        """All that is there now has been pushed: see ``LocalRun.ask``."""
        answer = answers([Answer(None, self.arrivals.now(), True, False)])
        self._fed(list(self.streams), answer, ports=set(self._asks.values()))

    def end(self) -> None:
        """All streams have ended: whatever is open is released."""
        self._fed(list(self.streams), Punctuation(END))

    def _scan(self, stream: str) -> Scan:
        known = [name for name in self.streams if name not in self.registry.dropped_streams]
        if stream not in known:
            raise QueryError(f"there is no stream {stream!r} in this session; available: {listing(known)}")
        return self.streams[stream]

    def _fed(
        self,
        streams: Sequence[str],
        item: pl.DataFrame | Punctuation,
        misfits: pl.DataFrame | None = None,
        ports: set[int] | None = None,
    ) -> None:
        before = {query.number: self._taken_so_far(query) for query in self.registry}
        if misfits is not None and misfits.height:
            over = [number for number, unit in self.units.items() if unit.inputs.get(streams[0])]
            self._side(Side("bad", misfits.height, misfits), over)
        if ports is None:
            ports = {port for unit in self.units.values() for name in streams for port in unit.inputs.get(name, ())}
        if isinstance(item, Punctuation) and item.value != END:
            ports = {port for port in ports if self._reads[port].on_its_progress}
        for unit in self.units.values():
            unit.fed = unit.fed or any(name in unit.inputs for name in streams)
        for port in sorted(ports):
            if self.graph.feeds(port):  # a query that failed just now may have been its only reader
                self._take(self.graph.feed(port, item))
        self._take(self.graph.flush())
        for last in self._computed.values():
            last.clear()
        for number, error in list(self._failed.items()):
            del self._failed[number]
            self._give_up(number, before[number])
            self._fail(number, error)

    def _taken_so_far(self, query: Standing) -> list[int]:
        lists = [self._results[query.number], *(found[query.number] for found in self._sides.values())]
        return [query.rows_out, query.rows_late, query.rows_bad, *map(len, lists)]

    def _give_up(self, number: int, before: Sequence[int]) -> None:
        """Nothing counts of a call in which a query has failed."""
        query = self._standing(number)
        query.rows_out, query.rows_late, query.rows_bad, *lengths = before
        lists = [self._results[number], *(found[number] for found in self._sides.values())]
        for each, length in zip(lists, lengths, strict=True):
            del each[length:]

    def _fail(self, number: int, error: str) -> None:
        """A query that raised an error is stopped alone; what it has released before stays."""
        unit = self.units[number]
        kept = self._pulled(unit)
        self.registry.fail(number, error, 0)
        self._put_back(unit, kept)

    def _take(self, outputs: Iterable[Output]) -> None:
        for node, item in outputs:
            if isinstance(item, Side):
                self._side(item, queries_behind(self.graph, lambda n: self._leaving.get(n, ()), node))
            elif isinstance(item, pl.DataFrame) and item.height:
                for number in self._leaving.get(node, ()):
                    self._results[number].append(item)
                    self._standing(number).rows_out += item.height

    def _side(self, side: Side, numbers: Collection[int]) -> None:
        """Late and bad rows are counted for each query that does without them."""
        for query in [q for q in self.registry if q.number in numbers and side.of in (None, q.name)]:
            if side.kind == "failed":
                self._failed.setdefault(query.number, side.rows["error"][0])
            elif side.kind == "late":
                query.rows_late += side.count
            elif side.kind == "bad":
                query.rows_bad += side.count
            if side.kind in self._sides and side.rows.width:
                self._sides[side.kind][query.number].append(side.rows)

    def _standing(self, number: int) -> Standing:
        return next(query for query in self.registry if query.number == number)

    def results(self, name: str) -> pl.DataFrame:
        """What a query has released since the last call."""
        query = self.registry.find(name)
        found, self._results[query.number] = self._results[query.number], []
        return pl.concat([pl.DataFrame(schema=dict(self.nodes[query.number].schema)), *found])

    def late_rows(self, name: str) -> pl.DataFrame:
        """Records of the late rows of a query, since the last call."""
        return self._taken("late", name)

    def bad_rows(self, name: str) -> pl.DataFrame:
        """The bad rows that a query does without, with the reason, since the last call."""
        return self._taken("bad", name)

    def _taken(self, kind: str, name: str) -> pl.DataFrame:
        number = self.registry.find(name).number
        found, self._sides[kind][number] = self._sides[kind][number], []
        return pl.concat(found, how="diagonal_relaxed") if found else pl.DataFrame()

    def state_bytes(self) -> int:
        return self.graph.state_bytes()

    # -- state -------------------------------------------------------------------------------------------------
    def snapshot(self) -> State:
        """All that is needed to continue: the queries and their state, without results that were not taken."""
        record = pl.DataFrame({"json": [json.dumps(self.registry.to_json())]})
        paused = {k: v for unit in self.units.values() for k, v in (unit.paused or {}).items()}
        return {RECORD: record, **paused, **self.arrivals.snapshot(), **self.graph.snapshot()}

    def restore(self, state: State, node_of: Callable[[Standing], Node]) -> None:
        """Continue from a snapshot; ``node_of`` gives what each of its queries means."""
        if RECORD not in state:
            raise CheckpointError("this is not a snapshot of a session")
        fresh = LocalSession(self.streams, self.arrivals.clock)
        fresh.arrivals.restore(state.get(ARRIVALS))
        fresh.registry = Registry.from_json(json.loads(state[RECORD].item()))
        for group in fresh.registry.groups:
            nodes = {query.name: node_of(query) for query in group.queries}
            group.check(nodes)
            planned = plan_group(nodes, group.first_stage, fresh.common, active=group.alive())
            fresh._begin(group.queries, planned, fed=True)
            for query in group.queries:
                unit = fresh.units[query.number]
                prefix = f"{unit.scope}/"
                if query.status == "paused":
                    unit.paused = {k: v for k, v in state.items() if k.startswith(prefix)}
                elif query.status == "dropped":
                    fresh._forget(query.number)
        fresh.graph.restore({name: frame for name, frame in state.items() if name != ARRIVALS})
        self.__dict__.update(fresh.__dict__)
        isolate(self.graph, lambda node: self._leaving.get(node, ()), self._failed)
