"""What the nodes of a ring that runs without end have in common, and what one of them has."""

from __future__ import annotations

import time
from collections import Counter as Sums
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from windrow.errors import PlanError
from windrow.graph.cycle import Output
from windrow.hosts.counters import OF_SIDES, Counter
from windrow.hosts.described import described
from windrow.hosts.ring.links import TcpLinks
from windrow.hosts.ring.results import BAD, LATE, RESULT, Sink, Staged
from windrow.hosts.ring.store import Manifest, Place, Store
from windrow.operators.operator import Side
from windrow.operators.ring.probing import Watch
from windrow.operators.ring.ring import Ring
from windrow.planner import Plan, whole_graph
from windrow.sources.files import Files

COUNTS, MADE, OFFSETS = "counts", "made", "offsets"  # what a manifest has beside the state


@dataclass(frozen=True)
class Running:
    """A query of which each node has all operators: the head is fed, and the ring hands on what is for the others.

    ``every``: seconds of an epoch. ``identity``: what the state belongs to.
    """

    plan: Plan
    nodes: int
    sources: Mapping[str, Files]
    store: Store
    sink: Sink
    identity: Mapping[str, Any]
    every: float = 1.0


def check_ring(plan: Plan) -> None:
    """Refuse whatever holds state beside one ring: only what is in the ring is spread over its nodes."""
    stages = plan.stages()
    if len(stages) == 1 and stages[0].ring:
        return
    found = ", ".join(f"stage {stage.number} ({stage.algorithm})" for stage in stages) or "none"
    raise PlanError(
        'run_continuously() runs queries in which nothing holds state but one join with using="ring"; what holds state '
        f"in this one: {found}. to_spark() runs all queries"
    )


class Member:
    """One node: its operators, what they have put out in the epoch that is under way, and where its state is."""

    def __init__(self, run: Running, links: TcpLinks, watch: Watch | None) -> None:
        self.run, self.links = run, links
        self.graph = whole_graph(run.plan, run.nodes)
        self.places: Mapping[str, Place] = {}
        self.counts: Sums[str] = Sums()
        self.epoch = 0  # the last one that has been written
        self.staged = Staged(run.sink, links.node, 1)
        self._watch = watch
        self._from = {f"read{n}": read.scan.name for n, read in enumerate(run.plan.reads())}

    def restore(self, before: Manifest | None) -> None:
        """Continue from an epoch that counts."""
        if before is not None:
            self.epoch, self.places = before.round, before.nodes[self.links.node]
            self.staged = Staged(self.run.sink, self.links.node, self.epoch + 1)
            self.graph.restore(self.run.store.read(self.places))
        for node in self.graph.nodes:
            if isinstance(node.operator, Ring):
                node.operator.connect(self.links, self._watch, time.perf_counter)

    def take(self, outputs: Iterable[Output]) -> None:
        """What has come out of the graph."""
        for node, item in outputs:
            if isinstance(item, pl.DataFrame):
                self.counts[Counter.ROWS_OUT.label] += item.height
                self.staged.add(RESULT, item)
            elif isinstance(item, Side) and (counter := OF_SIDES.get(item.kind)) is not None:
                self.counts[counter.label] += item.count
                if item.kind == "late" and item.rows.width:
                    self.staged.add(LATE, item.rows)
                elif item.kind == "bad" and item.rows.width:
                    self.staged.add(BAD, described(item.rows, self._origin(node)))

    def _origin(self, node: int) -> str:
        """The source that a node belongs to, or its stage."""
        scope = self.graph.node(node).name.split("/", 1)[0]
        return self._from.get(scope, scope.replace("stage", "stage "))

    def round(self) -> None:
        """Take part in a round."""
        self.take(self.graph.flush())

    def write(self, epoch: int) -> dict[str, Any]:
        """Write what has changed in an epoch, and what it has put out; returns what the manifest has to say of it."""
        made = self.staged.close()
        self.places = self.run.store.write(epoch, self.links.node, self.graph.changes(), self.places)
        counts, self.counts, self.epoch = dict(self.counts), Sums(), epoch
        self.staged = Staged(self.run.sink, self.links.node, epoch + 1)
        return {"written": self.places, MADE: made, COUNTS: counts}
