"""What leaves a task: rows to the shards of a stage, promises to all of them, counts to the consumer of the result."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import polars as pl

from windrow.graph import Output
from windrow.hosts.counters import OF_SIDES, Counter
from windrow.hosts.described import described
from windrow.hosts.spark.exchange import OUT, Kind, Row, encode
from windrow.hosts.tally import Tally
from windrow.operators.operator import Side
from windrow.operators.progress.meld import group_text
from windrow.planner import ByKeys, Partition
from windrow.progress import END, START, Box, Punctuation, grown
from windrow.spec.rules import Answer, answers

QUERIES = "queries"  # the column of bad rows with the numbers of the queries that do without them
MOST_BYTES = 1 << 25  # of rows in one blob


@dataclass(frozen=True)
class Route:
    """Where rows go: to a port of a stage, spread over its shards; or, without a stage, out as results."""

    stage: int = OUT
    port: int = 0
    partition: Partition = field(default_factory=ByKeys)
    shards: tuple[int, ...] = ()
    named: tuple[
        tuple[str, pl.DataType], ...
    ] = ()  # the columns of promises about groups, where they determine the shard of a group

    def about(self, group: Hashable) -> tuple[int, ...]:
        """The shards that have rows of a group: one, or any."""
        if not self.named:
            return self.shards
        assert isinstance(group, tuple)
        row = pl.DataFrame([group], schema=dict(self.named), orient="row")
        [(shard, _)] = self.partition.split(row, len(self.shards))
        return (self.shards[shard],)


@dataclass
class Outbox:
    """Turns what leaves by one route into exchange rows. Promises are kept for ``last``."""

    route: Route
    ports: tuple[int, ...] = ()  # where promises about groups go: a shard that has all rows of a group promises for all
    promised: int = START
    ended: bool = False
    reached: int = START  # of a stream that has ended: how far it came
    boxes: tuple[Box, ...] = ()
    _groups: dict[Hashable, int] = field(default_factory=dict, init=False)

    def note(self, promise: Punctuation) -> None:
        """Keep the strongest promise of each kind."""
        if promise.group is not None:
            self._groups[promise.group] = max(promise.value, self._groups.get(promise.group, START))
        elif promise.value == END:
            self.ended = True
            self.reached = max(self.reached, START if promise.reached is None else promise.reached)
        else:
            self.promised = max(self.promised, promise.value)
            self.boxes = grown(self.boxes, promise.boxes)

    def data(self, frame: pl.DataFrame, sender: Sender) -> Iterator[Row]:
        """Rows, sent immediately."""
        if self.route.stage == OUT:
            sender.counts[Counter.ROWS_OUT] += frame.height
            number = self.route.port
            yield from (sender.out(Kind.RESULT, piece.height, encode(piece), number) for piece in pieces(frame))
            return
        sender.counts[Counter.ROWS_COPIED] -= frame.height
        for shard, part in self.route.partition.split(frame, len(self.route.shards)):
            sender.counts[Counter.ROWS_SENT] += part.height
            sender.counts[Counter.ROWS_COPIED] += part.height
            for piece in pieces(part):
                yield self._row(sender, self.route.shards[shard], Kind.DATA, piece.height, encode(piece))

    def evidence(self, rows: pl.DataFrame, sender: Sender) -> Iterator[Row]:
        """What every shard judges a source by."""
        blob = encode(rows) if self.route.shards else None
        yield from (self._row(sender, shard, Kind.EVIDENCE, 0, blob) for shard in self.route.shards)

    def answers(self, given: Sequence[Answer], heard: bool, sender: Sender) -> Iterator[Row]:
        """What a source answered, and whether this part of it had rows."""
        blob = encode(answers(given)) if given else None
        yield from (self._row(sender, shard, Kind.ASKED, int(heard), blob) for shard in self.route.shards)

    def marks(self, rows: pl.DataFrame, sender: Sender) -> Iterator[Row]:
        """The promises of the markers of a source: one shard compares them with earlier ones."""
        if self.route.shards:
            yield self._row(sender, self.route.shards[0], Kind.MARKS, 0, encode(rows))

    def last(self, sender: Sender) -> Iterator[Row]:
        """A promise for every shard, even if it is not a new one, so that each shard takes part in each micro-batch."""
        groups = {group: self.route.about(group) for group in self._groups}
        about = sum(len(shards) for shards in groups.values())
        sent = ((self.promised > START) + bool(self.boxes) + self.ended) * len(self.route.shards) + about
        sender.counts[Counter.PROMISES_SENT] += sent
        for shard in self.route.shards:
            yield self._row(sender, shard, Kind.PROMISE, self.promised)
            if self.boxes:
                yield self._row(sender, shard, Kind.BOXES, len(self.boxes), json.dumps(self.boxes).encode())
            if self.ended:
                yield self._row(sender, shard, Kind.PROMISE, END)
            if self.reached > START:
                yield self._row(sender, shard, Kind.REACHED, self.reached)
        for group, shards in groups.items():
            for shard, port in product(shards, self.ports or (self.route.port,)):
                row = self._row(sender, shard, Kind.PROMISE, self._groups[group], group_text(group).encode())
                yield row._replace(port=port)

    def _row(self, sender: Sender, shard: int, kind: Kind, value: int, blob: bytes | None = None) -> Row:
        return Row(shard, self.route.stage, self.route.port, kind, sender.tag(), value, blob)


@dataclass
class Sender:
    """A task: its counts, and the tags that distinguish its rows from those of other tasks."""

    part: int  # distinguishes the tasks of a micro-batch, so that shards can order what they get
    home: int = 0  # the shard that passes on what is for the consumer of the result
    counts: dict[Counter, int] = field(default_factory=lambda: dict.fromkeys(Counter, 0))
    failed: dict[int, str] = field(default_factory=dict)  # of queries that come and go, those that raised an error
    _sequence: int = field(default=0, init=False)

    def tag(self) -> int:
        self._sequence += 1
        return self.part << 24 | self._sequence

    def out(self, kind: Kind, value: int, blob: bytes | None = None, port: int = 0) -> Row:
        """A row for the consumer of the result; every level on the way passes it on."""
        return Row(self.home, OUT, port, kind, self.tag(), value, blob)

    def counted(self) -> list[Row]:
        """All counts that are not 0, and always one, so that there is something to add up."""
        counts = ((counter, n) for counter, n in self.counts.items() if n or counter is Counter.ROWS_IN)
        failed = [self.out(Kind.FAILED, 0, text.encode(), query) for query, text in self.failed.items()]
        return [*failed, *(self.out(Kind.COUNT, n, port=counter.number) for counter, n in counts)]


@dataclass
class Outboxes:
    """The outboxes of a graph: by the node that items come out of, and for side outputs by the node that found them.

    ``evidence``: the boxes of all judges of the source that a node belongs to; the first gets its marks.
    ``silent``: nodes that repeat what another one counts, and are not counted. ``stage_of``: in a shard, the stage of a
    node; bad rows that it finds go to the side output. Those of a source are found there by a query of their own.
    ``asked``: the boxes behind a source that can be asked, and ``answers`` what it answered, in the task that knows it.
    ``concerned``: where queries come and go, those that a side output of a node is counted for. There is no query for
    the bad rows of a source then: ``source`` is its name, and they go to the side output, too.
    """

    sender: Sender
    boxes: Sequence[Outbox]
    ends: Mapping[int, Sequence[int]]
    evidence: Mapping[int, Sequence[int]] = field(default_factory=dict)
    silent: frozenset[int] = frozenset()
    stage_of: Mapping[int, int] = field(default_factory=dict)
    asked: frozenset[int] = frozenset()
    answers: Sequence[Answer] = ()
    concerned: Callable[[int, Side], Iterable[int]] | None = None
    source: str = ""
    tally: Tally = field(default_factory=Tally)
    names: Mapping[int, str] = field(default_factory=dict)  # of nodes, where the tally is of a shard
    _marks: dict[int, list[pl.DataFrame]] = field(default_factory=dict, init=False)

    def rows(self, outputs: Iterable[Output]) -> Iterator[Row]:
        """Data rows at once; promises and counts are kept for ``last``."""
        for node, item in outputs:
            if isinstance(item, Side):
                yield from self._side(node, item)
                continue
            for box in (self.boxes[number] for number in self.ends.get(node, ())):
                if isinstance(item, Punctuation):
                    box.note(item)
                elif item.height:
                    yield from box.data(item, self.sender)

    def _side(self, node: int, side: Side) -> Iterator[Row]:
        if side.kind == "evidence":
            for number in self.evidence[node]:
                yield from self.boxes[number].evidence(side.rows, self.sender)
        elif side.kind == "marks":
            self._marks.setdefault(self.evidence[node][0], []).append(side.rows)
        elif side.kind == "failed":
            assert self.concerned is not None
            for query in self.concerned(node, side):
                self.sender.failed.setdefault(query, side.rows["error"][0])
        elif node not in self.silent:
            self.sender.counts[OF_SIDES[side.kind]] += side.count
            self.tally.note_side(self.names.get(node, self.source), side)
            if self.concerned is not None:
                yield from self._of_queries(node, side, sorted(set(self.concerned(node, side))))
            elif side.kind == "late" and side.rows.width:
                yield self.sender.out(Kind.LATE, side.rows.height, encode(side.rows))
            elif side.kind == "bad" and side.rows.width and node in self.stage_of:
                found = described(side.rows, f"stage {self.stage_of[node]}")
                yield self.sender.out(Kind.BAD, found.height, encode(found))

    def _of_queries(self, node: int, side: Side, queries: Sequence[int]) -> Iterator[Row]:
        """The count for each query. Late records are small, and each query has its own; bad rows are sent once."""
        if side.kind == "late":
            blob = encode(side.rows) if side.rows.width else None
            yield from (self.sender.out(Kind.LATE, side.count, blob, query) for query in queries)
        elif side.kind == "bad" and side.rows.width:
            source = f"stage {self.stage_of[node]}" if node in self.stage_of else self.source
            yield self.bad(described(side.rows, source), queries)

    def bad(self, found: pl.DataFrame, queries: Iterable[int]) -> Row:
        """Bad rows, as ``described``, that some queries do without."""
        found = found.with_columns(pl.lit(sorted(set(queries)), pl.List(pl.Int32)).alias(QUERIES))
        return self.sender.out(Kind.BAD, found.height, encode(found), OUT)

    def last(self) -> list[Row]:
        """What a task sends after all its rows."""
        rows = [row for box in self.boxes for row in box.last(self.sender)]
        for number, marks in self._marks.items():
            rows += self.boxes[number].marks(pl.concat(marks), self.sender)
        heard = self.sender.counts[Counter.ROWS_IN] > 0
        for number in sorted(self.asked):
            rows += self.boxes[number].answers(self.answers, heard, self.sender)
        return rows + self.sender.counted()


def pieces(frame: pl.DataFrame, most: int = MOST_BYTES) -> Iterator[pl.DataFrame]:
    """A frame in parts of bounded size: the JVM holds each blob, and each batch that comes out of it, as a whole.

    >>> [part.height for part in pieces(pl.DataFrame({"x": range(10)}), 32)]
    [4, 4, 2]
    """
    size = max(1, frame.height * most // max(int(frame.estimated_size()), 1))
    yield from (frame[at : at + size] for at in range(0, frame.height, size))
