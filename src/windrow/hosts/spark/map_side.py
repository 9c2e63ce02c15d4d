"""The map side: stateless steps and pane partials on every partition, before the exchange."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import polars as pl
import pyarrow as pa

from windrow.graph import Graph
from windrow.hosts.spark.exchange import (
    DATA,
    EVIDENCE,
    LATE,
    MARKS,
    PROMISE,
    PROMISES_IGNORED,
    PROMISES_SENT,
    REACHED,
    RESULT,
    ROWS_BAD,
    ROWS_IN,
    ROWS_SENT,
    Row,
    encode,
    record_batch,
    split,
)
from windrow.operators.operator import Item, Side
from windrow.operators.progress.meld import group_text
from windrow.planner import Step, add_steps
from windrow.progress import END, START, Punctuation
from windrow.sources.frames import normal

ROWS_AT_ONCE = 1_000_000  # rows that are aggregated together: enough to reduce well, some 100 MB at most


KINDS = ("in", "bad", "late", "revised", "out", "ignored", "unmatched", "sent", "promises")  # what is counted
COUNTED = {
    ROWS_IN: "in",
    ROWS_BAD: "bad",
    PROMISES_IGNORED: "ignored",
    ROWS_SENT: "sent",
    PROMISES_SENT: "promises",
}


@dataclass(frozen=True)
class Route:
    """Where the output of a fragment goes: to the shards of a stage, by keys, or out (no shards)."""

    keys: tuple[str, ...] = ()
    shards: tuple[int, ...] = ()
    port: int = 0
    named: tuple[tuple[str, pl.DataType], ...] = ()  # what promises name, where that says in which shard a group is

    def about(self, group: Hashable) -> tuple[int, ...]:
        """The shards that have rows of a group: one, or any."""
        if not self.named:
            return self.shards
        assert isinstance(group, tuple)
        row = pl.DataFrame([group], schema=dict(self.named), orient="row")
        [(shard, _)] = split(row, self.keys, len(self.shards))
        return (self.shards[shard],)


@dataclass
class Outbox:
    """Turns what a graph puts out into exchange rows."""

    route: Route
    part: int  # distinguishes the tasks of a micro-batch, so that shards can order what they get
    ports: tuple[int, ...] = ()  # on which promises about groups go: who has all rows of a group speaks for all
    promised: int = START
    ended: bool = False
    reached: int = START  # of a stream that has ended: how far it came
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    marks: list[pl.DataFrame] = field(default_factory=list)
    _groups: dict[Hashable, int] = field(default_factory=dict, init=False)
    _sequence: int = field(default=0, init=False)

    def rows(self, items: Sequence[Item]) -> Iterator[Row]:
        """Data rows at once; promises and counts are kept for ``last``."""
        for item in items:
            if isinstance(item, Punctuation):
                self._note(item)
            elif isinstance(item, Side) and item.kind == "evidence":
                blob = encode(item.rows) if self.route.shards else None
                yield from ((s, self.route.port, EVIDENCE, self._tag(), 0, blob) for s in self.route.shards)
            elif isinstance(item, Side) and item.kind == "marks":
                self.marks.append(item.rows)
            elif isinstance(item, Side):
                self.counts[item.kind] += item.count
                if item.kind == "late" and item.rows.width:
                    yield self.passed(LATE, item.rows.height, encode(item.rows))
            elif item.height:
                yield from self._data(item)

    def _note(self, promise: Punctuation) -> None:
        if promise.group is not None:
            self._groups[promise.group] = max(promise.value, self._groups.get(promise.group, START))
        elif promise.value == END:
            self.ended = True
            self.reached = max(self.reached, START if promise.reached is None else promise.reached)
        else:
            self.promised = max(self.promised, promise.value)

    def _data(self, frame: pl.DataFrame) -> Iterator[Row]:
        if not self.route.shards:
            self.counts["out"] += frame.height
            yield (0, 0, RESULT, self._tag(), frame.height, encode(frame))
            return
        self.counts["sent"] += frame.height
        for shard, part in split(frame, self.route.keys, len(self.route.shards)):
            yield (self.route.shards[shard], self.route.port, DATA, self._tag(), part.height, encode(part))

    def last(self) -> Iterator[Row]:
        """A promise for every shard, even if it says nothing: each shard so takes part in each micro-batch."""
        groups = {group: self.route.about(group) for group in self._groups}
        self.counts["promises"] += ((self.promised > START) + self.ended) * len(self.route.shards)
        self.counts["promises"] += sum(len(shards) for shards in groups.values())
        for shard in self.route.shards:
            yield (shard, self.route.port, PROMISE, self._tag(), self.promised, None)
            if self.ended:
                yield (shard, self.route.port, PROMISE, self._tag(), END, None)
            if self.reached > START:
                yield (shard, self.route.port, REACHED, self._tag(), self.reached, None)
        for group, shards in groups.items():
            about = self._groups[group], group_text(group).encode()
            for shard, port in product(shards, self.ports or (self.route.port,)):
                yield (shard, port, PROMISE, self._tag(), *about)

    def passed(self, kind: int, value: int, blob: bytes | None = None) -> Row:
        """Something for whoever takes the result; the first shard passes it on."""
        return (self.route.shards[0] if self.route.shards else 0, self.route.port, kind, self._tag(), value, blob)

    def _tag(self) -> int:
        self._sequence += 1
        return self.part << 24 | self._sequence


class MapSide:
    """What ``mapInArrow`` runs: source rows in, exchange rows out."""

    def __init__(self, steps: Sequence[Step], route: Route, ends: bool = False) -> None:
        self.steps = tuple(steps)
        self.route = route
        self.ends = ends  # a finite source: when its rows are all there, it can say how far it came

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        outbox = Outbox(self.route, context.partitionId() if context else 0)
        for rows in self.run(together(batches), outbox):
            yield record_batch(rows)
        yield record_batch(self.last(outbox))

    def run(self, frames: Iterable[pl.DataFrame], outbox: Outbox) -> Iterator[list[Row]]:
        """The exchange rows of some data; promises and counts stay in the outbox."""
        graph = Graph()
        add_steps(graph, self.steps, None)
        for frame in frames:
            outbox.counts["in"] += frame.height
            if rows := list(outbox.rows(graph.on_batch(0, frame))):
                yield rows
        if rows := list(outbox.rows(graph.on_flush())):
            yield rows
        if self.ends:
            list(outbox.rows(graph.on_punctuation(0, Punctuation(END))))
            outbox.ended = False  # this part has ended; whether all have, the shard knows

    def last(self, outbox: Outbox) -> list[Row]:
        """What a task says when it has sent all its rows."""
        rows = list(outbox.last())
        rows += [outbox.passed(kind, outbox.counts[name]) for kind, name in COUNTED.items()]
        if outbox.marks and outbox.route.shards:
            rows.append(outbox.passed(MARKS, 0, encode(pl.concat(outbox.marks))))
        return rows


def together(batches: Iterator[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
    """Arrow batches joined to frames of about ROWS_AT_ONCE rows."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            rows += batch.num_rows
        if rows >= ROWS_AT_ONCE:
            yield _frame(waiting)
            waiting, rows = [], 0
    if waiting:
        yield _frame(waiting)


def _frame(batches: list[pa.RecordBatch]) -> pl.DataFrame:
    frame = pl.from_arrow(pa.Table.from_batches(batches))
    assert isinstance(frame, pl.DataFrame)
    return normal(frame)
