"""When it helps to ask a source again how far it has come: what a shard says of that after each micro-batch.

A micro-batch that only asks costs as much as any other. So a shard looks at what its operators wait for, and at the
promise that this takes of each source, and says from when on the answer of a source promises that much.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from windrow.graph import Graph
from windrow.operators import Judge, Meld
from windrow.planner import Plan, Step
from windrow.planner.origins import Leg, key_of
from windrow.planner.rows import asking
from windrow.progress import END
from windrow.spec.rules import Asked

SOON = 0  # as soon as an answer says more than the last one


@dataclass(frozen=True)
class Source:
    """A source that can be asked: its number among them, and what follows from its answers."""

    number: int
    rule: Asked


@dataclass
class Ask:
    """Where the promises of such a source enter a shard: after its judge and some steps, at a place of a meeting."""

    judge: Judge
    steps: Sequence[Step]
    meeting: int
    place: int
    _made: dict[int, int] = field(default_factory=dict)

    def at(self, graph: Graph, needed: int) -> int | None:
        """From when on an answer promises what is needed; None if that is promised already."""
        meeting = graph.node(self.meeting).operator
        if needed not in self._made:
            self._made = {needed: Leg(tuple(self.steps)).promised(needed)}
        if isinstance(meeting, Meld) and meeting.combined.inputs[self.place].low >= self._made[needed]:
            return None
        assert isinstance(self.judge.rule, Asked)
        return self.judge.rule.helps_at(self.judge.memory, needed)


def sources_asked(plan: Plan) -> dict[str, Source]:
    """The sources of a plan that can be asked, by their keys."""
    found = {key_of(read): (plan.asked[read.scan.name], asking(read.scan)) for read in plan.reads() if read.is_asked}
    return {key: Source(number, rule) for key, (number, rule) in found.items() if rule is not None}


def wanted(
    graph: Graph, waits: Iterable[Mapping[str, Any]], sources: Mapping[str, Source], asks: Mapping[str, Ask]
) -> dict[int, int]:
    """By the number of a source, from when on it helps to ask it. ``waits``: those of the shard's report."""
    found: dict[int, int] = {}
    for wait in waits:
        for key, needed in wait["asks"].items():
            source = sources.get(key)
            if source is None or not wait["count"] or needed == END:
                continue
            at = asks[key].at(graph, needed) if key in asks else source.rule.helps_at(None, needed)
            if at is not None:
                found[source.number] = min(at, found.get(source.number, at))
    return found
