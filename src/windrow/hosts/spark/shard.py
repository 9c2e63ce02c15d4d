"""A shard: the stateful fragment of many groups, one graph, its state in Spark's state store as deltas."""

from __future__ import annotations

import json
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl
from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from windrow.errors import CheckpointError, ResultError
from windrow.graph import Graph
from windrow.hosts.spark.exchange import (
    ARROW,
    DATA,
    EVIDENCE,
    MARKS,
    PROMISE,
    PROMISES_IGNORED,
    PROMISES_SENT,
    PROMISES_UNMATCHED,
    REACHED,
    ROWS_BAD,
    ROWS_LATE,
    ROWS_OUT,
    ROWS_REVISED,
    ROWS_SENT,
    STATE_BYTES,
    Row,
    decode,
    encode,
)
from windrow.hosts.spark.live import live_copy
from windrow.hosts.spark.map_side import Outbox, Route
from windrow.operators import Audit
from windrow.operators.progress.meld import group_of
from windrow.planner import MELD, Meeting, Step, add_steps
from windrow.progress import START, Punctuation
from windrow.progress import ended as ends_at
from windrow.spec.batches import State

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState, TimerValues, ValueState

COUNTED = {
    ROWS_BAD: "bad",
    ROWS_LATE: "late",
    ROWS_REVISED: "revised",
    ROWS_OUT: "out",
    PROMISES_IGNORED: "ignored",
    PROMISES_UNMATCHED: "unmatched",
    ROWS_SENT: "sent",
    PROMISES_SENT: "promises",
}
FORMAT = 1  # of the state in a checkpoint
LIVE_GRAPHS = 64  # graphs one Python worker keeps, so that it does not read back what it wrote itself


@dataclass(frozen=True)
class Fragment:
    """A stage as it runs in a shard: union of its inputs, the stage, and what follows up to the next exchange."""

    ports: int
    steps: tuple[Step, ...]
    route: Route
    upstream: tuple[int, ...] = ()  # the ids of this stage's shards, where another stage follows
    limit: int | None = None  # bytes of state that a shard may hold
    judges: tuple[tuple[int, tuple[Step, ...]], ...] = ()  # what makes the promises of a port, from evidence
    audited: tuple[int, ...] = ()  # ports of sources with markers, whose promises are counted if they go back
    meeting: Meeting = MELD
    owns: bool = False  # a shard has all rows of the groups that promises name, and the others none

    def graph(self) -> Graph:
        """A graph whose inputs are the ports of the union."""
        graph = Graph()
        melded = graph.add(self.meeting.name, self.meeting.make(self.ports))
        for port in range(self.ports):
            graph.input(melded, port)
        for port, steps in self.judges:
            graph.connect(add_steps(graph, steps, None), melded, port)
        add_steps(graph, self.steps, melded)
        for port in self.audited:  # behind all others, whose names in checkpoints have their numbers
            graph.input(graph.add(f"audit{port}", Audit()))
        return graph

    def run(self, graph: Graph, shard: int, rows: Iterable[Row], ended: bool = False) -> Iterator[Row]:
        """One micro-batch: all data first, then the promises, so that nothing of the batch itself is late."""
        position = self.route_position(shard)
        ports = tuple(self.route.port + i for i in range(len(self.upstream))) if self.owns else ()
        outbox = Outbox(self.route if position is None else _moved(self.route, position), shard, ports)
        data: list[Row] = []
        shown: dict[int, list[Row]] = {}
        promised: dict[tuple[int, bytes | None], int] = {}
        reached: dict[int, int] = {}
        for row in rows:
            if row[2] == DATA:
                data.append(row)
            elif row[2] in (EVIDENCE, MARKS):
                shown.setdefault(row[1], []).append(row)
            elif row[2] == PROMISE:
                about = row[1], row[5]
                promised[about] = max(promised.get(about, START), row[4])
            elif row[2] == REACHED:
                reached[row[1]] = max(reached.get(row[1], START), row[4])
            else:
                yield outbox.passed(row[2], row[4], row[5])
        # Arrival over the network is in no order; a fixed one makes a replayed micro-batch equal to the first.
        for row in sorted(data, key=lambda row: (row[1], row[3])):
            yield from outbox.rows(graph.on_batch(row[1], decode(_blob(row), f"a blob of shard {shard}")))
        # No source has both: markers and judges are two ways to make promises.
        for number, port in enumerate((*(port for port, _ in self.judges), *self.audited)):
            if found := [decode(_blob(r), "evidence") for r in sorted(shown.get(port, []), key=lambda r: r[3])]:
                yield from outbox.rows(graph.on_batch(self.ports + number, pl.concat(found)))
        ends = ((port, promise) for port in range(self.ports) for promise in ends_at(START, reached.get(port)))
        for port, promise in ends if ended else self._promises(promised):
            yield from outbox.rows(graph.on_punctuation(port, promise))
        yield from outbox.rows(graph.on_flush())
        yield from outbox.last()
        if shard:  # all judges say the same: the first one is counted
            outbox.counts["ignored"] = 0
        for kind, name in COUNTED.items():
            yield outbox.passed(kind, outbox.counts[name])
        yield outbox.passed(STATE_BYTES, self._checked(graph, shard))

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

    def _promises(self, promised: Mapping[tuple[int, bytes | None], int]) -> Iterator[tuple[int, Punctuation]]:
        for (port, group), value in sorted(promised.items(), key=lambda p: (p[0][0], p[0][1] or b"")):
            if value > START:
                yield port, Punctuation(value, None if group is None else group_of(group.decode()))

    def route_position(self, shard: int) -> int | None:
        """Which of the next stage's ports is this shard's (each shard promises for itself)."""
        return self.upstream.index(shard) if self.upstream else None


def _blob(row: Row) -> bytes:
    assert row[5] is not None
    return row[5]


def _moved(route: Route, by: int) -> Route:
    return replace(route, port=route.port + by)


_row = SparkRow(*ARROW.names)
_live: OrderedDict[tuple[str, int], tuple[str, Graph]] = OrderedDict()


class ShardProcessor(StatefulProcessor):  # type: ignore[misc]
    """Runs a fragment under ``transformWithState``, grouped by shard.

    State: ``identity`` (what the checkpoint belongs to), ``version`` (a random token per committed micro-batch) and
    ``chunks``. A worker that still has the graph of exactly this version goes on with it; any other maps the live copy
    on its machine if that is of this version, and else reads the chunks.
    """

    def __init__(self, fragment: Fragment, identity: Mapping[str, Any]) -> None:
        self.fragment = fragment
        self.identity = {"format": FORMAT, **identity}
        self.run_id = uuid.uuid4().hex

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.stored_identity: ValueState = handle.getValueState("identity", "json STRING")
        self.version: ValueState = handle.getValueState("version", "token STRING")
        self.chunks: MapState = handle.getMapState("chunks", "name STRING", "blob BINARY")

    def handleInputRows(  # noqa: N802 (Spark's name)
        self,
        key: tuple[Any, ...],
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: ARG002, N803
    ) -> Iterator[SparkRow]:
        shard = int(key[0])
        self._check_identity()
        before = self.version.get()
        graph = self._graph(shard, None if before is None else before[0])
        for row in self.fragment.run(graph, shard, (tuple(r) for r in rows)):
            yield _row(*row)
        self._keep(shard, graph, None if before is None else before[0])

    def _keep(self, shard: int, graph: Graph, before: str | None) -> None:
        """What changed to the state store, and to the copy that other workers on this machine can map."""
        changes = graph.changes()
        for name, frame in changes.items():
            if frame is None:
                self.chunks.removeKey((name,))
            else:
                self.chunks.updateValue((name,), (encode(frame),))
        token = uuid.uuid4().hex
        self.version.update((token,))
        copy = live_copy(self.run_id, shard)
        if copy is not None:
            copy.store(before, token, changes, graph.snapshot)
        _live[self.run_id, shard] = (token, graph)
        while len(_live) > LIVE_GRAPHS:
            _live.popitem(last=False)

    def close(self) -> None:
        return None

    def _check_identity(self) -> None:
        now = json.loads(json.dumps(self.identity))
        stored = self.stored_identity.get()
        if stored is None:
            self.stored_identity.update((json.dumps(now),))
            return
        before = json.loads(stored[0])
        if before != now:
            raise CheckpointError(difference(before, now))

    def _graph(self, shard: int, stored: str | None) -> Graph:
        # Taken out while it runs: if this task fails half way, nobody may go on with a half-changed graph.
        token, graph = _live.pop((self.run_id, shard), (None, None))
        if graph is not None and stored is not None and stored == token:
            return graph
        graph = self.fragment.graph()
        if stored is not None:
            copy = live_copy(self.run_id, shard)
            state = copy.load(stored) if copy is not None else None
            graph.restore(state if state is not None else self._stored_state(shard))
        return graph

    def _stored_state(self, shard: int) -> State:
        return {k[0]: decode(v[0], f"state chunk {k[0]!r} of shard {shard}") for k, v in self.chunks.iterator()}


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What differs between the query a checkpoint was written by and the one that reads it."""
    lines = ["this checkpoint was written by another query. What differs:"]
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            lines.append(f"  {name}:")
            lines += [f"    checkpoint: {_indented(before.get(name))}", f"    now:        {_indented(now.get(name))}"]
    if before.get("algorithm") != now.get("algorithm"):
        lines.append(
            "State of one algorithm is not that of another. to_spark(checkpoint=..) and windrow run keep that of the "
            f"first start. To go on with this checkpoint, say using={before.get('algorithm')!r} or the hint USING(..)."
        )
    if before.get("source columns") != now.get("source columns"):
        lines.append("Over files schema=.. says what the columns are, whichever files are there.")
    lines.append("Run the old query again, or start the new one with a new checkpoint folder.")
    return "\n".join(lines)


def _indented(value: object) -> str:
    return str(value).replace("\n", "\n" + " " * 16)
