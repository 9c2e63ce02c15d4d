"""What a host runs: pipelines of stateless steps, and stages that hold state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl
from sqlglot import exp

from windrow.errors import PlanError
from windrow.logical.explain import text
from windrow.logical.nodes import (
    Apply,
    Distinct,
    Filter,
    Node,
    Ordered,
    Project,
    Scan,
    Split,
    Together,
    Top,
    Union,
    WindowAggregate,
)
from windrow.operators import Meld
from windrow.operators.operator import Operator
from windrow.planner.choose import Choice
from windrow.spec.names import BRANCH


@dataclass(frozen=True, eq=False)
class Step:
    """One operator of a plan: made anew for each graph, described for ``explain``."""

    name: str
    make: Callable[[], Operator]
    says: str
    halves: tuple[Callable[[], Operator], Callable[[], Operator]] | None = None  # in each part of a stream; for all
    in_task: Step | None = None  # what takes its place in a task, which remembers nothing when it ends

    def split(self) -> Step:
        """The step as it is in a part of a stream, where it tells the other half what it sees."""
        if self.in_task is not None:
            return self.in_task
        return self if self.halves is None else replace(self, make=self.halves[0])


@dataclass(frozen=True, eq=False)
class Pipeline:
    """Stateless steps from a source, or from the results of a stage. ``by_rows``: ``@t`` is the number of a row."""

    source: Scan | Stage
    steps: tuple[Step, ...] = ()
    by_rows: bool = False

    def then(self, *steps: Step) -> Pipeline:
        return replace(self, steps=self.steps + steps)

    def judging(self) -> tuple[Step, ...]:
        """What makes the promises of its source from the evidence of all parts, if they are made so, and then the other
        steps: no rows take this way, but each says what a promise means for what it puts out.
        """
        for at, step in enumerate(self.steps):
            if step.halves is not None:
                return replace(step, make=step.halves[1], halves=None), *self.steps[at + 1 :]
        return ()


@dataclass(frozen=True, eq=False)
class Meeting:
    """How the inputs of a stage come together: the operator for a number of inputs, and what it does."""

    name: str
    make: Callable[[int], Operator]
    says: str
    costs: str = ""


MELD = Meeting("meld", Meld, "promises what the slowest promises")


@dataclass(frozen=True, eq=False)
class Stage:
    """What holds state, such as a window aggregation. ``inputs`` end in what ``meeting`` and then ``steps`` take;
    ``keys`` say which rows must meet.
    """

    inputs: tuple[Pipeline, ...]
    keys: tuple[str, ...]
    steps: tuple[Step, ...]
    algorithm: str
    number: int = 0
    late: tuple[tuple[str, pl.DataType], ...] = ()  # the columns of its late records
    choice: Choice | None = None  # why this algorithm, where there are several
    meeting: Meeting = MELD
    node: Node | None = None  # what it does, where there is a choice
    named: tuple[tuple[str, pl.DataType], ...] = ()  # all keys, as promises about single groups name them


@dataclass(frozen=True, eq=False)
class Plan:
    """What a host runs. ``schema`` is the result's, in order."""

    logical: Node
    outputs: tuple[Pipeline, ...]
    schema: dict[str, pl.DataType]

    @cached_property
    def text(self) -> str:
        """The query in words, by which two plans are known to be of the same query."""
        return text(self.logical)

    def stages(self) -> list[Stage]:
        """All stages, inner ones first."""
        return list(dict.fromkeys(s for pipeline in self.outputs for s in stages_of(pipeline)))

    def choices(self) -> dict[str, str]:
        """Which algorithm each aggregation runs by, where there are several: what ``Given.kept`` takes."""
        return {text(s.node): s.algorithm for s in self.stages() if s.choice is not None and s.node is not None}

    def late_schema(self) -> dict[str, pl.DataType]:
        """The columns of the late records of all stages."""
        found: dict[str, pl.DataType] = {}
        for stage in self.stages():
            for name, dtype in stage.late:
                if found.setdefault(name, dtype) != dtype:
                    raise PlanError(f"late rows of two windows have a column {name!r} of different types: rename one")
        return found

    def needed(self) -> dict[str, list[str]]:
        """For each source the columns that the query reads."""
        found: dict[str, set[str]] = {}
        _collect(self.logical, set(self.schema), found)
        return {s.name: [c for c in s.schema if c in found[s.name]] for s in self.scans()}

    def read_from(self, scan: Scan) -> list[str]:
        """The columns that are read from a source: those that the query needs, and the one of markers."""
        marker = [scan.source.marker] if scan.source.marker is not None else []
        return [*self.needed()[scan.name], *marker]

    def leaves(self) -> list[Pipeline]:
        """The pipelines that begin at a source, in the order in which ``graph`` numbers its inputs."""
        return list(_leaves(self.outputs))

    def scans(self) -> list[Scan]:
        """The sources in the same order."""
        return [leaf.source for leaf in self.leaves() if isinstance(leaf.source, Scan)]


def _collect(node: Node, wanted: set[str], found: dict[str, set[str]]) -> None:
    match node:
        case Scan():
            found.setdefault(node.name, set()).update({*wanted, *node.source.columns})
        case Filter():
            _collect(node.input, wanted | _columns_in([node.predicate]), found)
        case Apply():
            _collect(node.input, (wanted - {node.column}) | {*node.function.columns}, found)
        case Split():
            inside: dict[str, set[str]] = {BRANCH: set()}
            for way in (node.yes, node.no):
                _collect(way, wanted, inside)
            _collect(node.input, inside[BRANCH] | _columns_in([node.predicate]), found)
        case Distinct():
            _collect(node.input, set(node.schema), found)
        case Ordered():
            _collect(node.input, wanted | _columns_in([e for e, _ in node.order]), found)
        case Project():
            _collect(node.input, _columns_in([e for _, e in node.columns]), found)
        case Union():
            for each in node.inputs:
                _collect(each, wanted, found)
        case WindowAggregate():
            expressions = [e for _, e in node.keys] + [c.argument for c in node.calls if c.argument is not None]
            wanted = _columns_in(expressions) | {node.attribute, *node.input.arrival}
            if node.options.late == "side" or any(c.user is not None for c in node.calls):
                wanted |= {c for c in node.input.schema if not c.startswith("@")}  # the whole row can be asked for
            _collect(node.input, wanted, found)
        case Top():
            _collect(node.input, wanted | _columns_in([e for e, _ in node.order]), found)
        case Together():
            for _, query in node.queries:
                _collect(query, set(query.schema), found)


def _columns_in(expressions: Sequence[exp.Expr]) -> set[str]:
    return {c.name for e in expressions for c in e.find_all(exp.Column)}


def stages_of(pipeline: Pipeline) -> Iterator[Stage]:
    if isinstance(pipeline.source, Stage):
        for each in pipeline.source.inputs:
            yield from stages_of(each)
        yield pipeline.source


def _leaves(pipelines: Sequence[Pipeline]) -> Iterator[Pipeline]:
    for pipeline in pipelines:
        if isinstance(pipeline.source, Stage):
            yield from _leaves(pipeline.source.inputs)
        else:
            yield pipeline
