"""Plans as graphs of operators: the same pieces, wherever they run."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.graph import Graph
from windrow.operators import Meld
from windrow.planner.plan import Pipeline, Plan, Read, Stage, Step


def add_steps(graph: Graph, steps: Sequence[Step], after: int | None) -> int:
    """Append a chain of operators; without ``after`` its first port becomes an input of the graph."""
    if after is None:
        after = graph.add(steps[0].name, steps[0].make())
        graph.input(after)
        steps = steps[1:]
    for step in steps:
        after = graph.add(step.name, step.make(), [after])
    return after


def add_stage(graph: Graph, steps: Sequence[Step], meetings: Sequence[int]) -> int:
    """Append the operators of a stage; the first takes arm i on port i. ``meetings``: where the inputs of each arm come
    together. Without steps there is one arm: an order is all in its meeting.
    """
    if not steps:
        return meetings[0]
    return add_steps(graph, steps[1:], graph.add(steps[0].name, steps[0].make(), list(meetings)))


def pipeline_graph(pipeline: Pipeline) -> Graph:
    """The steps of one pipeline, with one input."""
    graph = Graph()
    add_steps(graph, pipeline.whole, None)
    return graph


def whole_graph(plan: Plan) -> Graph:
    """The whole plan as one graph; its inputs are the plan's reads in order."""
    graph = Graph()
    ends: dict[Read | Stage, int] = {}
    for read in plan.reads():
        graph.scope = f"read{len(ends)}"
        ends[read] = add_steps(graph, read.steps, None)

    def end_of(pipeline: Pipeline) -> int:
        return add_steps(graph, pipeline.steps, ends[pipeline.source])

    for stage in plan.stages():
        graph.scope = f"stage{stage.number}"
        meetings = []
        for arm in stage.arms:
            before = [end_of(p) for p in arm.inputs]
            meetings.append(graph.add(arm.meeting.name, arm.meeting.make(len(before)), before))
        ends[stage] = add_stage(graph, stage.steps, meetings)
    graph.scope = "result"
    last = [end_of(p) for p in plan.outputs]
    if len(last) > 1:
        graph.add("meld", Meld(len(last)), last)
    return graph
