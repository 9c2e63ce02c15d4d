"""Which sources a shard waits for, and when it helps to ask them again how far they have come.

A micro-batch that only asks costs as much as any other. So a shard says after each micro-batch what it waits for: the
least promise that would release or free something, translated back to what the source itself must promise, and from
that to the time at which its answer will say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from windrow.graph import Graph
from windrow.operators.operator import Wait
from windrow.operators.progress.generate import Judge
from windrow.planner import Step, add_steps
from windrow.progress import FARTHEST, START, Punctuation

SOON = 0  # as soon as an answer says more than the last one


@dataclass
class Ask:
    """A source that can be asked, where its promises enter a stage. ``steps`` translate them into its terms."""

    source: int
    judge: Judge
    steps: Sequence[Step]
    meeting: int
    place: int
    _least: dict[int, int] = field(default_factory=dict)

    def at(self, needed: int | None) -> int | None:
        """When an answer helps to promise what is needed here, or anything more if that is not known."""
        if needed is None:
            return SOON
        if needed not in self._least:
            self._least = {needed: least(self.steps, needed, self.judge.promises.low)}
        return self.judge.helps_at(self._least[needed])


@dataclass
class Asks:
    """The sources that the stages of a shard ask. ``arms``: by the node that takes the arms of a stage, their meetings;
    ``behind``: by stage, the sources that are further back.
    """

    entries: list[Ask] = field(default_factory=list)
    arms: dict[int, list[int]] = field(default_factory=dict)
    behind: dict[int, tuple[int, ...]] = field(default_factory=dict)
    mine: dict[int, list[Ask]] = field(default_factory=dict)  # by stage

    def wanted(self, graph: Graph, stage_of: Mapping[int, int]) -> dict[int, int]:
        """By source, the least time at which asking it helps."""
        found: dict[int, int] = {}
        if not self.entries and not any(self.behind.values()):
            return found
        for node in graph.nodes:
            for wait in node.operator.waits_for() if node.number in stage_of else ():
                if wait.holds == "promises" or not wait.count:
                    continue
                for source, at in self._of(node.number, stage_of[node.number], wait):
                    found[source] = min(at, found.get(source, at))
        return found

    def _of(self, node: int, stage: int, wait: Wait) -> Iterator[tuple[int, int]]:
        yield from ((source, SOON) for source in self.behind.get(stage, ()))
        arms = self.arms.get(node)
        for ask in self.mine.get(stage, ()):
            if node == ask.meeting:
                at = ask.at(wait.promise) if wait.port == ask.place else None
            elif arms is not None:
                at = ask.at(wait.promise) if arms[wait.port] == ask.meeting else None
            else:  # further down the stage: what it waits for is not a promise of the source
                at = ask.at(None)
            if at is not None:
                yield ask.source, at


def least(steps: Sequence[Step], needed: int, known: int = START) -> int:
    """The least promise of a source that is one of at least ``needed`` after some steps. Steps never turn promises
    around: more before them is not less after them.

    >>> from functools import partial
    >>> from windrow.operators import Shift
    >>> least([Step("shift", partial(Shift, 10), "")], 25)
    15
    """
    if not steps:
        return needed
    low, high = max(known, -FARTHEST + 1), FARTHEST - 1
    step = 1 << 20
    while low + step < high and not _reaches(steps, low + step, needed):
        low, step = low + step, step * 2
    high = min(high, low + step)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _reaches(steps, middle, needed) else (middle + 1, high)
    return low


def _reaches(steps: Sequence[Step], value: int, needed: int) -> bool:
    graph = Graph()
    add_steps(graph, steps, None)
    found = graph.on_punctuation(0, Punctuation(value))
    return any(isinstance(p, Punctuation) and p.group is None and p.value >= needed for p in found)
