"""The map side: stateless steps and pane partials on every partition, before the exchange."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from windrow.graph import Graph
from windrow.hosts.counters import Counter
from windrow.hosts.isolation import isolate, queries_behind
from windrow.hosts.spark.exchange import NOTED, OUT, Kind, Row, record_batch
from windrow.hosts.spark.outbox import Outbox, Outboxes, Route, Sender
from windrow.hosts.strategies import Strategies
from windrow.hosts.tally import OF, Flows, encoded
from windrow.operators import Punctuate, Witness
from windrow.planner import Shared, Step, add_steps
from windrow.progress import END, Punctuation
from windrow.sources.frames import normal
from windrow.spec.rules import Asked, BySource

ROWS_AT_ONCE = 1_000_000  # rows that are aggregated together: enough to reduce well, some 100 MB at most


@dataclass(frozen=True)
class Branch:
    """Steps that follow a source or a stage, and where their output goes."""

    steps: tuple[Step, ...]
    route: Route


@dataclass(frozen=True)
class Taken:
    """A source as it is read: the steps that admit its rows, once, and the branches that take them.

    ``asked``: it can be asked how far it has come, when it has nothing more to give.
    """

    steps: tuple[Step, ...]
    branches: tuple[Branch, ...]
    asked: bool = False
    key: str = ""  # of the source as it is read here


class MapSide:
    """What ``mapInArrow`` runs: the rows of one source in, exchange rows out."""

    def __init__(
        self,
        reads: Sequence[Taken],
        ends: bool = False,
        owners: Mapping[int, tuple[int, ...]] | None = None,
        ticks: tuple[int, ...] = (),
        strategies: Strategies | None = None,
        name: str = "",
    ) -> None:
        self.name = name  # of the source
        self.reads = tuple(reads)
        self.ends = ends  # a finite source: after its last row, it reports how far it has come
        self.owners = dict(owners or {})  # of queries that come and go: by stage, the queries that use it
        self.strategies = strategies or Strategies()
        self.ticks = ticks  # shards that take part in every micro-batch, whether there is anything for them or not

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        outboxes = self.outboxes(context.partitionId() if context else 0)
        for rows in self.run(together(batches), outboxes):
            yield record_batch(rows)
        yield record_batch(self.last(outboxes))

    def last(self, outboxes: Outboxes) -> list[Row]:
        """What a task sends after all its rows."""
        ticks = [outboxes.sender.out(Kind.TICK, 0)._replace(shard=shard) for shard in self.ticks]
        noted = outboxes.sender.out(Kind.REPORT, 0, encoded(outboxes.tally.to_json()), NOTED)
        return [*outboxes.last(), *ticks, noted]

    def unread(self, outboxes: Outboxes, reasons: Sequence[str]) -> list[Row]:
        """Where queries come and go, files that cannot be read are among their bad rows, with the reason."""
        if not (self.ticks and reasons):
            return []
        routes = [box.route for box in outboxes.boxes]
        files = pl.DataFrame({"source": self.name, "reason": list(reasons), "row": "{}"})
        return [outboxes.bad(files, self._queries(routes, range(len(routes))))]

    def listed(self, outboxes: Outboxes, parts: pl.Series) -> list[Row]:
        """Evidence of the partitions that a source has, for rules that go by them: there is no row of an empty one."""
        found: list[Row] = []
        for node, numbers in () if self.ends else outboxes.evidence.items():
            operator = self._graph()[0].nodes[node].operator
            rule = operator.rule if isinstance(operator, Witness) else None
            rule = rule.rule if isinstance(rule, Asked) else rule
            if isinstance(rule, BySource):
                rows = rule.listed(parts)
                found += [row for number in numbers for row in outboxes.boxes[number].evidence(rows, outboxes.sender)]
        return found

    def outboxes(self, part: int) -> Outboxes:
        """Empty ones for a task."""
        boxes = [Outbox(branch.route) for read in self.reads for branch in read.branches]
        _, ends, evidence = self._graph()
        shards = [shard for box in boxes for shard in box.route.shards]
        taken = [read.asked for read in self.reads for _ in read.branches]
        asked = frozenset(number for number, is_asked in enumerate(taken) if is_asked)
        return Outboxes(Sender(part, min(shards, default=0)), boxes, ends, evidence, asked=asked, source=self.name)

    def run(self, frames: Iterable[pl.DataFrame], outboxes: Outboxes) -> Iterator[list[Row]]:
        """The exchange rows of some data; promises and counts stay in the outboxes."""
        graph, ends, _ = self._graph()
        entered = [n for n in graph.nodes if isinstance(n.operator, Punctuate)]
        read = dict(zip((n.number for n in entered), (taken.key for taken in self.reads), strict=True))
        flows = Flows(read)
        graph.measure(flows)
        if self.ticks:
            routes = [box.route for box in outboxes.boxes]

            def queries_at(node: int) -> Iterator[int]:
                return self._queries(routes, ends.get(node, ()))

            isolate(graph, queries_at, outboxes.sender.failed)
            outboxes.concerned = lambda node, _side: queries_behind(graph, queries_at, node)
        ports = range(len(self.reads))
        for frame in frames:
            outboxes.sender.counts[Counter.ROWS_IN] += frame.height
            outboxes.tally.rows[self.name] = outboxes.tally.rows.get(self.name, 0) + frame.height
            if rows := [row for port in ports if graph.feeds(port) for row in outboxes.rows(graph.feed(port, frame))]:
                yield rows
        if rows := list(outboxes.rows(graph.flush())):
            yield rows
        outboxes.tally.note_flows({n.number: n.name for n in graph.nodes}, flows, f"{self.name}{OF}")
        for node in entered:
            outboxes.tally.note_promise(read[node.number], node.operator.promises.low)  # type: ignore[attr-defined]
        if self.ends:
            for port in ports:
                list(outboxes.rows(graph.feed(port, Punctuation(END))))
            for box in outboxes.boxes:
                box.ended = False  # this part has ended; whether all have, the shard knows

    def _queries(self, routes: Sequence[Route], ends: Iterable[int]) -> Iterator[int]:
        """The queries that take what comes out of a node by some routes."""
        for route in (routes[number] for number in ends):
            yield from (route.port,) if route.stage == OUT else self.owners.get(route.stage, ())

    def _graph(self) -> tuple[Graph, dict[int, list[int]], dict[int, list[int]]]:
        """The graph, the branches that end at a node, and the branches behind the source that a node belongs to."""
        graph = Graph()
        ends: dict[int, list[int]] = {}
        behind: dict[int, list[int]] = {}
        number = 0
        shared: Shared = {}
        for read in self.reads:
            first = len(graph.nodes)
            last = add_steps(graph, read.steps, None)
            numbers = list(range(number, number + len(read.branches)))
            behind |= dict.fromkeys(range(first, last + 1), numbers)
            for number, branch in zip(numbers, read.branches, strict=True):
                end = graph.output(add_steps(graph, branch.steps, last, shared))
                ends.setdefault(end, []).append(number)
            number = numbers[-1] + 1
        routes = [branch.route for read in self.reads for branch in read.branches]
        self.strategies.apply(graph, [(self._queries(routes, ending), [node]) for node, ending in ends.items()])
        return graph, ends, behind


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
