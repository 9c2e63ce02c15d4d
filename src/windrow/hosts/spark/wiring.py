"""The graph of the stages of a level in a shard, and what its inputs and nodes are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from windrow.graph import Graph
from windrow.hosts.spark.map_side import Branch
from windrow.hosts.spark.wanted import Ask
from windrow.hosts.tally import Flows
from windrow.operators import Audit, Judge
from windrow.planner import Meeting, Step, add_steps
from windrow.spec.rules import Asked


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


def add_arms(wired: Wiring, stage: Hosted, last: Mapping[int, int]) -> list[int]:
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


def add_audits(wired: Wiring, stage: Hosted) -> None:
    port = 0
    for each in (x for arm in stage.arms for x in arm.inputs if isinstance(x, Outside)):
        if each.marked and not each.again:
            wired.marked[stage.number, port] = wired.graph.input(wired.graph.add(f"audit{port}", Audit()))
        port += each.ports
