"""Plans as graphs of operators: the same pieces, wherever they run."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.graph import Graph
from windrow.operators import Fused, Meld, Operator
from windrow.operators.operator import Stateless
from windrow.planner.plan import Pipeline, Plan, Read, Stage, Step

Shared = dict[tuple[int | None, Step], int]  # steps that a graph has already, by the node before them


def add_steps(graph: Graph, steps: Sequence[Step], after: int | None, shared: Shared | None = None) -> int:
    """Append a chain of operators; without ``after`` its first port becomes an input of the graph.

    ``shared``: a step that already follows the same node is not added again. So several chains that begin alike, as
    those of queries with the same filter, are one as long as they are alike. Else neighbours without state are fused.
    """
    if shared is None:
        for name, operators in _neighbours(steps):
            operator = operators[0] if len(operators) == 1 else Fused(operators)
            # Nodes behind it are called as if each had a place of its own: checkpoints hold their names.
            after = _appended(graph, name, operator, after, len(operators))
    else:
        for step in steps:
            known = shared.get((after, step))
            if known is None:
                known = shared[after, step] = _appended(graph, step.name, step.make(), after)
            after = known
    assert after is not None
    return after


def _appended(graph: Graph, name: str, operator: Operator, after: int | None, places: int = 1) -> int:
    number = graph.add(name, operator, [] if after is None else [after], places=places)
    if after is None:
        graph.input(number)
    return number


def _neighbours(steps: Sequence[Step]) -> list[tuple[str, list[Operator]]]:
    """The operators of steps under their names; those without state are together with their neighbours."""
    found: list[tuple[str, list[Operator]]] = []
    for step in steps:
        operator = step.make()
        if found and isinstance(operator, Stateless) and isinstance(found[-1][1][-1], Stateless):
            found[-1] = f"{found[-1][0]}+{step.name}", [*found[-1][1], operator]
        else:
            found.append((step.name, [operator]))
    return found


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


def whole_graph(plan: Plan, nodes: int | None = None) -> Graph:
    """The whole plan as one graph; its inputs are the plan's reads in order. ``nodes``: it is one of so many graphs,
    whose stages are nodes of a ring.
    """
    graph = Graph()
    ends: dict[Read | Stage, int] = {}
    for read in plan.reads():
        graph.scope = f"read{len(ends)}"
        ends[read] = add_steps(graph, read.steps, None)

    def end_of(pipeline: Pipeline) -> int:
        return add_steps(graph, [step.whole() for step in pipeline.steps], ends[pipeline.source])

    for stage in plan.stages():
        graph.scope = f"stage{stage.number}"
        meetings = []
        for arm in stage.arms:
            before = [end_of(p) for p in arm.inputs]
            meetings.append(graph.add(arm.meeting.name, arm.meeting.make(len(before)), before))
        steps = [step.whole() if nodes is None else step.among(nodes) for step in stage.steps]
        ends[stage] = add_stage(graph, steps, meetings)
    graph.scope = "result"
    last = [end_of(p) for p in plan.outputs]
    if len(last) > 1:
        graph.add("meld", Meld(len(last)), last)
    for read in asked(plan):
        graph.input(ends[read], 1)
    return graph


def asked(plan: Plan) -> list[Read]:
    """The sources that can be asked how far they have come: their answers have inputs after those of all sources."""
    return [read for read in plan.reads() if read.is_asked]
