"""Watched: a whole query in one graph, and what its reports need to know of it."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from windrow.graph import Graph
from windrow.hosts.outline import Outline
from windrow.hosts.report import Report
from windrow.hosts.reporting import merged, note_judge, part_report
from windrow.hosts.tally import OF, Flows, Tally
from windrow.operators import Generate, Punctuate
from windrow.operators.operator import Item, Side, Stateless

REPORT = "@report"  # the chunk of a snapshot with what was known
OUTSIDE = -1  # where what was found before the graph is from


class Watched:
    """Every push and every promise is a micro-batch of its own here."""

    def __init__(self, graph: Graph, outline: Outline) -> None:
        self.graph, self.outline = graph, outline
        self.names = {node.number: node.name for node in graph.nodes}
        self.of = {node.number: f"{of}{OF}{node.name}" for node in graph.nodes if (of := self._source(node.number))}
        self.entered = {
            node.number: outline.reads[int(node.name.partition("/")[0].removeprefix("read"))]
            for node in graph.nodes
            if isinstance(node.operator, Punctuate)
        }
        self.flows = Flows(self.entered)
        graph.measure(self.flows)
        self.total, self.now = Tally(), Tally()
        self.before: dict[str, Any] | None = None

    def _source(self, number: int) -> str | None:
        """The source of which a node takes the rows, if it is before all that holds state."""
        while (before := self.graph.predecessors(number)) and isinstance(self.graph.node(number).operator, Stateless):
            if len(before) > 1:
                return None
            [number] = before
        scope = self.graph.node(number).name.partition("/")[0]
        if not scope.startswith("read"):
            return None
        return self.outline.reads[int(scope.removeprefix("read"))].rpartition(":")[0]

    def read(self, source: str, rows: int) -> None:
        """Rows of a source that come in."""
        self.now.rows[source] = self.now.rows.get(source, 0) + rows

    def note(self, node: int, item: Item) -> None:
        """What comes out of the graph, and of which node."""
        if isinstance(item, Side):
            self.now.note_side(self.names.get(node, "source"), item)
        elif isinstance(item, pl.DataFrame):
            self.now.results += item.height

    def ends_batch(self) -> None:
        """All that belongs together has come."""
        tally, self.now = self.now, Tally()
        tally.note_flows({**self.names, **self.of}, self.flows)
        for number, key in self.entered.items():
            operator = self.graph.node(number).operator
            if isinstance(operator, Generate):
                note_judge(tally, key, operator.judge)
            if isinstance(operator, Punctuate):
                tally.note_promise(key, operator.promises.low)
        self.total.add(tally, self.total.batch + 1)

    def report(self) -> Report:
        """What is known now."""
        self.before = part_report(self.graph, self.outline, self.total, self.before)
        return merged([{**self.before, "outline": self.outline.to_json()}])

    def snapshot(self) -> pl.DataFrame:
        return pl.DataFrame({"json": [json.dumps(self.total.to_json())]})

    def restore(self, saved: pl.DataFrame | None) -> None:
        """A snapshot of an older version has nothing: then counting begins anew."""
        self.total = Tally() if saved is None else Tally.from_json(json.loads(saved["json"][0]))
        self.before = None
