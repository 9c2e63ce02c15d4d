"""Plans as graphs of operators: the same pieces, wherever they run."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.graph import Graph
from windrow.logical.nodes import (
    Scan,
)
from windrow.operators import (
    Meld,
)
from windrow.planner.plan import Pipeline, Plan, Step


def add_steps(graph: Graph, steps: Sequence[Step], after: int | None) -> int:
    """Append a chain of operators; without ``after`` its first port becomes an input of the graph."""
    if after is None:
        after = graph.add(steps[0].name, steps[0].make())
        graph.input(after)
        steps = steps[1:]
    for step in steps:
        after = graph.add(step.name, step.make(), [after])
    return after


def pipeline_graph(pipeline: Pipeline) -> Graph:
    """The steps of one pipeline, with one input."""
    graph = Graph()
    add_steps(graph, pipeline.steps, None)
    return graph


def whole_graph(physical_plan: Plan) -> Graph:
    """The whole plan as one graph; its inputs are the plan's scans in order."""
    graph = Graph()

    def end_of(pipeline: Pipeline) -> int:
        if isinstance(pipeline.source, Scan):
            return add_steps(graph, pipeline.steps, None)
        stage = pipeline.source
        meeting = stage.meeting
        melded = graph.add(meeting.name, meeting.make(len(stage.inputs)), [end_of(p) for p in stage.inputs])
        return add_steps(graph, (*stage.steps, *pipeline.steps), melded)

    ends = [end_of(p) for p in physical_plan.outputs]
    if len(ends) > 1:
        graph.add("meld", Meld(len(ends)), ends)
    return graph
