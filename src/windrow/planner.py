"""Logical plan to physical plan: pipelines of stateless steps, and stages that hold state.

A stage is one window aggregation. Every path that leads to it is a pipeline; selections, projections and the pane
level commute with the union, so each path runs them before rows meet. A host decides where pipelines and stages run:
in one graph, or before and after an exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import polars as pl
from sqlglot import exp

from windrow.aggregates import Partials, make
from windrow.errors import PlanError
from windrow.graph import Graph
from windrow.logical.expressions import dtype_of, translate
from windrow.logical.nodes import Filter, Node, Project, Scan, Shape, Union, WindowAggregate
from windrow.operators import Admit, Bucket, Meld, Paned, Panes, Punctuate, Select, Wid
from windrow.operators import Project as ProjectOperator
from windrow.operators.admit import physical
from windrow.operators.operator import PROGRESS, Operator
from windrow.windows import Sliding

ALGORITHMS = ("paned", "wid")


@dataclass(frozen=True, eq=False)
class Step:
    """One operator of a plan: made anew for each graph, described for ``explain``."""

    name: str
    make: Callable[[], Operator]
    says: str


@dataclass(frozen=True, eq=False)
class Pipeline:
    """Stateless steps from a source, or from the results of a stage."""

    source: Scan | Stage
    steps: tuple[Step, ...] = ()

    def then(self, *steps: Step) -> Pipeline:
        return replace(self, steps=self.steps + steps)


@dataclass(frozen=True, eq=False)
class Stage:
    """A window aggregation: ``inputs`` end in what ``step`` takes; ``keys`` say which rows must meet."""

    inputs: tuple[Pipeline, ...]
    keys: tuple[str, ...]
    step: Step
    algorithm: str
    number: int = 0


@dataclass(frozen=True, eq=False)
class Plan:
    """What a host runs. ``schema`` is the result's, in order."""

    logical: Node
    outputs: tuple[Pipeline, ...]
    schema: dict[str, pl.DataType]

    def stages(self) -> list[Stage]:
        """All stages, inner ones first."""
        return list(dict.fromkeys(s for pipeline in self.outputs for s in _stages(pipeline)))

    def needed(self) -> dict[str, list[str]]:
        """For each source the columns that the query reads."""
        found: dict[str, set[str]] = {}
        _collect(self.logical, set(self.schema), found)
        return {s.name: [c for c in s.schema if c in found[s.name]] for s in self.scans()}

    def scans(self) -> list[Scan]:
        """The sources in the order in which ``graph`` numbers its inputs."""
        return list(_scans(self.outputs))


def plan(node: Node) -> Plan:
    """The physical plan; raises PlanError for what has no operator yet, or could never produce output."""
    wanted = list(node.schema)
    outputs = tuple(p.then(_columns(wanted)) for p in _pipelines(node))
    return Plan(node, outputs, dict(node.schema))


def _columns(names: Sequence[str]) -> Step:
    return Step("columns", partial(ProjectOperator, [pl.col(n) for n in names]), f"columns {', '.join(names)}")


def _pipelines(node: Node) -> list[Pipeline]:
    match node:
        case Scan():
            return [Pipeline(node, _admission(node))]
        case Filter():
            predicate = translate(node.predicate, node.input.schema)
            step = Step("select", partial(Select, predicate), f"keep rows where {node.predicate.sql('spark')}")
            return [p.then(step) for p in _pipelines(node.input)]
        case Project():
            return [p.then(_projection(node)) for p in _pipelines(node.input)]
        case Union():
            return [p for each in node.inputs for p in _pipelines(each)]
        case WindowAggregate():
            return [Pipeline(_stage(node), (_progress_of_results(node),))]


def _admission(scan: Scan) -> tuple[Step, ...]:
    dtype, source = scan.schema[scan.progress], scan.source
    admit = partial(Admit, scan.progress, dtype, source.parse, source.marker)
    first = Step("admit", admit, f"rows without a readable {scan.progress} to the side output")
    if source.slack is None:
        return (first,)
    return first, Step("punctuate", partial(Punctuate, source.slack), f"promise max({scan.progress}) - slack")


def _projection(node: Project) -> Step:
    given = node.input.schema
    columns = [translate(e, given).alias(n) for n, e in node.columns]
    says = ", ".join(f"{e.sql('spark')} AS {n}" for n, e in node.columns)
    if node.progress is not None:
        columns.append(pl.col(PROGRESS))
    return Step("project", partial(ProjectOperator, columns), f"compute {says}")


def _progress_of_results(node: WindowAggregate) -> Step:
    """Results progress on ``window_end``: whatever comes after a window sees it as ``@t``."""
    progress = physical(pl.col(node.progress), node.schema[node.progress]).alias(PROGRESS)
    return Step("progress", partial(ProjectOperator, [pl.all(), progress]), "results progress on window_end")


def check_window(window: Shape) -> None:
    """Refuse the window types that have a meaning, but no operator yet."""
    if not isinstance(window, Sliding):
        kind = type(window).__name__
        raise PlanError(f"{kind} windows have no operator yet: sliding, hopping and tumbling windows have")


def _stage(node: WindowAggregate) -> Stage:
    check_window(node.window)
    assert isinstance(node.window, Sliding)
    algorithm = node.using or "paned"
    if algorithm not in ALGORITHMS:
        raise PlanError(
            f"there is no algorithm {algorithm!r} for window aggregation; there are: {', '.join(ALGORITHMS)}"
        )
    given, window = node.input.schema, node.window
    arguments = {c.name: c.argument for c in node.calls if c.argument is not None}
    named = _argument_columns(arguments)
    calls = [make(c.function, c.name, named.get(c.name), _dtype(c.argument, node)) for c in node.calls]
    aggregates = Partials(calls)
    keys = tuple(n for n, _ in node.keys)
    columns = [translate(e, given).alias(n) for n, e in node.keys] + [pl.col(PROGRESS)]
    columns += [translate(e, given).alias(named[n]) for n, e in _first_of_each(arguments, named)]
    prepare = Step("prepare", partial(ProjectOperator, columns), "only the keys and arguments of the aggregates")
    dtype = node.schema[node.progress]
    if algorithm == "paned":
        low = Step("panes", partial(Panes, window, keys, aggregates), "one partial per pane and group")
        high = Step("paned", partial(Paned, window, keys, aggregates, dtype), "panes merged to windows as they close")
    else:
        low = Step("bucket", partial(Bucket, window), "tag rows with their window ids")
        high = Step("wid", partial(Wid, window, keys, aggregates, dtype), "an accumulator per window and group")
    inputs = tuple(p.then(prepare, low) for p in _pipelines(node.input))
    inner = max((s.number for p in inputs for s in _stages(p)), default=-1)
    return Stage(inputs, keys, high, algorithm, inner + 1)


def _dtype(argument: exp.Expr | None, node: WindowAggregate) -> pl.DataType:
    return pl.Int64() if argument is None else dtype_of(argument, node.input.schema)


def _argument_columns(arguments: dict[str, exp.Expr]) -> dict[str, str]:
    """Equal arguments share one column, and so their state."""
    by_text: dict[str, str] = {}
    return {n: by_text.setdefault(e.sql("spark"), f"@arg{len(by_text)}") for n, e in arguments.items()}


def _first_of_each(arguments: dict[str, exp.Expr], named: dict[str, str]) -> Iterator[tuple[str, exp.Expr]]:
    seen: set[str] = set()
    for name, argument in arguments.items():
        if named[name] not in seen:
            seen.add(named[name])
            yield name, argument


def _collect(node: Node, wanted: set[str], found: dict[str, set[str]]) -> None:
    match node:
        case Scan():
            found.setdefault(node.name, set()).update({*wanted, node.progress})
        case Filter():
            _collect(node.input, wanted | _columns_in([node.predicate]), found)
        case Project():
            _collect(node.input, _columns_in([e for _, e in node.columns]), found)
        case Union():
            for each in node.inputs:
                _collect(each, wanted, found)
        case WindowAggregate():
            expressions = [e for _, e in node.keys] + [c.argument for c in node.calls if c.argument is not None]
            _collect(node.input, _columns_in(expressions) | {node.attribute}, found)


def _columns_in(expressions: Sequence[exp.Expr]) -> set[str]:
    return {c.name for e in expressions for c in e.find_all(exp.Column)}


def _stages(pipeline: Pipeline) -> Iterator[Stage]:
    if isinstance(pipeline.source, Stage):
        for each in pipeline.source.inputs:
            yield from _stages(each)
        yield pipeline.source


def _scans(pipelines: Sequence[Pipeline]) -> Iterator[Scan]:
    for pipeline in pipelines:
        if isinstance(pipeline.source, Stage):
            yield from _scans(pipeline.source.inputs)
        else:
            yield pipeline.source


# -- graphs: the same pieces, wherever they run ------------------------------------------------------------------------
def add_steps(graph: Graph, steps: Sequence[Step], after: int | None) -> int:
    """Append a chain of operators; without ``after`` its first port becomes an input of the graph."""
    if after is None:
        after = graph.add(steps[0].name, steps[0].make())
        graph.input(after)
        steps = steps[1:]
    for step in steps:
        after = graph.add(step.name, step.make(), [after])
    return after


def whole_graph(physical_plan: Plan) -> Graph:
    """The whole plan as one graph; its inputs are the plan's scans in order."""
    graph = Graph()

    def end_of(pipeline: Pipeline) -> int:
        if isinstance(pipeline.source, Scan):
            return add_steps(graph, pipeline.steps, None)
        stage = pipeline.source
        melded = graph.add("meld", Meld(len(stage.inputs)), [end_of(p) for p in stage.inputs])
        return add_steps(graph, (stage.step, *pipeline.steps), melded)

    ends = [end_of(p) for p in physical_plan.outputs]
    if len(ends) > 1:
        graph.add("meld", Meld(len(ends)), ends)
    return graph
