"""What a host runs: a graph of sources, pipelines of stateless steps, and stages that hold state.

Sources and stages are shared by identity: what two stages use, or both arms of one, is read and computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import polars as pl

from windrow.errors import PlanError
from windrow.logical.explain import text
from windrow.logical.nodes import Node, Scan, columns_read
from windrow.operators import Meld
from windrow.operators.operator import Operator
from windrow.planner.choose import Choice
from windrow.planner.partition import ByKeys, Partition


@dataclass(frozen=True, eq=False)
class Step:
    """One operator of a plan: made anew for each graph, described for ``explain``.

    ``renames``: for columns that it passes on unchanged, their names in its input; None if all keep their names.
    """

    name: str
    make: Callable[[], Operator]
    says: str
    halves: tuple[Callable[[], Operator], Callable[[], Operator]] | None = (
        None  # its half in each part of a stream, and the half for all parts
    )
    in_task: Step | None = None  # what replaces it in a task, which keeps no state when it ends
    in_one: Callable[[], Operator] | None = None  # how it is made where a plan is one graph, without an exchange
    in_shard: Callable[[int], Operator] | None = None  # how it is made in one of so many shards
    renames: dict[str, str] | None = None
    computes: tuple[str, ...] = ()  # columns whose values it changes

    def whole(self) -> Step:
        """The step as it runs where the whole plan is one graph."""
        return self if self.in_one is None else replace(self, make=self.in_one, in_one=None)

    def among(self, shards: int) -> Step:
        """The step as it runs in one of so many shards."""
        return self if self.in_shard is None else replace(self, make=partial(self.in_shard, shards), in_shard=None)

    def split(self) -> Step:
        """The step as it runs in a part of a stream, where it sends what it sees to the other half."""
        if self.in_task is not None:
            return self.in_task
        return self if self.halves is None else replace(self, make=self.halves[0])


@dataclass(frozen=True, eq=False)
class Read:
    """A source, and the steps that admit its rows. ``by_rows``: ``@t`` is the number of a row; else ``attribute``."""

    scan: Scan
    attribute: str
    steps: tuple[Step, ...]
    by_rows: bool = False

    @property
    def on_its_progress(self) -> bool:
        """Whether rows progress here on what the source itself progresses on: what promises about it mean."""
        return not self.by_rows and self.attribute == self.scan.progress

    @property
    def is_asked(self) -> bool:
        """Whether the source can be asked how far it has come, when it has nothing more to give."""
        source = self.scan.source
        return self.on_its_progress and (source.delay is not None or source.idle_after is not None)


@dataclass(frozen=True, eq=False)
class Pipeline:
    """Stateless steps on the rows of a source, or on the results of a stage."""

    source: Read | Stage
    steps: tuple[Step, ...] = ()

    def then(self, *steps: Step) -> Pipeline:
        return replace(self, steps=self.steps + steps)

    @property
    def whole(self) -> tuple[Step, ...]:
        """The steps from the very beginning: of a source, those that admit its rows, too."""
        return (self.source.steps if isinstance(self.source, Read) else ()) + self.steps

    def judging(self) -> tuple[Step, ...]:
        """The step that makes the promises of its source from the evidence of all parts, if there is one, and the steps
        after it. No rows pass here, but each step translates promises into terms of its output.
        """
        for at, step in enumerate(self.whole):
            if step.halves is not None and isinstance(self.source, Read):
                return replace(step, make=step.halves[1], halves=None), *self.whole[at + 1 :]
        return ()

    def origin(self, column: str) -> str | None:
        """The column of the source that a column of the output has its values from; None if it is computed."""
        found: str | None = column
        for step in reversed(self.steps):
            if found is not None and (step.renames is not None or found in step.computes):
                found = (step.renames or {}).get(found)
        return found


@dataclass(frozen=True, eq=False)
class Meeting:
    """How the inputs of an arm come together: the operator for a number of inputs, and what it does."""

    name: str
    make: Callable[[int], Operator]
    says: str
    costs: str = ""


MELD = Meeting("meld", Meld, "promises what the slowest promises")


@dataclass(frozen=True, eq=False)
class Arm:
    """One input of a stage: the pipelines whose rows meet in it, and which of those rows must be in the same shard.

    ``named``: all keys, as promises about single groups name them.
    """

    inputs: tuple[Pipeline, ...]
    partition: Partition = field(default_factory=ByKeys)
    meeting: Meeting = MELD
    named: tuple[tuple[str, pl.DataType], ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns by which its rows are spread; none if they are not spread by columns."""
        return self.partition.keys if isinstance(self.partition, ByKeys) else ()


@dataclass(frozen=True, eq=False)
class Stage:
    """What holds state. The first of ``steps`` takes arm i on port i; an aggregation has one arm, a join two.

    ``number`` names it in checkpoints and in ``explain``. ``spread``: the columns of its results with the values by
    which its rows were spread over shards, in that order; None where results do not have them all. ``ring``: its shards
    are nodes that are connected with each other; ``nodes``: how many of them the query asks for.
    """

    number: int
    node: Node
    arms: tuple[Arm, ...]
    steps: tuple[Step, ...]
    algorithm: str
    late: tuple[tuple[str, pl.DataType], ...] = ()  # the columns of its late records
    choice: Choice | None = None  # why this algorithm, where there are several
    spread: tuple[str, ...] | None = None
    ring: bool = False
    nodes: int | None = None

    @property
    def inputs(self) -> tuple[Pipeline, ...]:
        """The pipelines of all arms."""
        return tuple(pipeline for arm in self.arms for pipeline in arm.inputs)


@dataclass(frozen=True, eq=False)
class Plan:
    """What a host runs. ``schema`` is the result's, in order. ``rewritten``: the query after all rules."""

    logical: Node
    outputs: tuple[Pipeline, ...]
    schema: dict[str, pl.DataType]
    rewritten: Node

    @cached_property
    def text(self) -> str:
        """The query as text. Two plans with the same text are plans of the same query."""
        return text(self.logical)

    def stages(self) -> list[Stage]:
        """All stages, inner ones first, each once."""
        return [source for source in sources_of(self.outputs) if isinstance(source, Stage)]

    def reads(self) -> list[Read]:
        """All sources as they are read, each once, in the order in which a graph numbers its inputs."""
        return [source for source in sources_of(self.outputs) if isinstance(source, Read)]

    def pipelines(self) -> list[Pipeline]:
        """All pipelines: those into stages, then those that give the result."""
        return [*(p for stage in self.stages() for p in stage.inputs), *self.outputs]

    def scans(self) -> list[Scan]:
        """The sources by name, each once, in the order of ``reads``."""
        return list({read.scan.name: read.scan for read in self.reads()}.values())

    @property
    def asked(self) -> dict[str, int]:
        """The sources that can be asked how far they have come, numbered."""
        names = dict.fromkeys(read.scan.name for read in self.reads() if read.is_asked)
        return {name: number for number, name in enumerate(names)}

    def choices(self) -> dict[str, str]:
        """The algorithm of each aggregation that has a choice: what ``Given.kept`` takes."""
        return {text(s.node): s.algorithm for s in self.stages() if s.choice is not None and s.choice.lasting}

    def number_of(self, output: int) -> int:  # noqa: ARG002 (one query has one number)
        """The number of the query that an output belongs to."""
        return 0

    def names(self) -> dict[int, str]:
        """Of queries that come and go, their names, by number."""
        return {}

    def owners(self) -> dict[int, tuple[int, ...]]:
        """By the number of a stage, the numbers of the queries that use it."""
        found: dict[int, tuple[int, ...]] = {}
        for output, pipeline in enumerate(self.outputs):
            for source in sources_of([pipeline]):
                if isinstance(source, Stage):
                    others = found.get(source.number, ())
                    number = self.number_of(output)
                    found[source.number] = others if number in others else (*others, number)
        return found

    def needed_by(self, stage: Stage) -> Mapping[str, Sequence[str]]:  # noqa: ARG002 (they are all of one query)
        """The columns of each source that the query of a stage reads."""
        return self.needed

    def late_schema(self) -> dict[str, pl.DataType]:
        """The columns of the late records of all stages."""
        found: dict[str, pl.DataType] = {}
        for stage in self.stages():
            for name, dtype in stage.late:
                if found.setdefault(name, dtype) != dtype:
                    raise PlanError(f"late rows of two windows have a column {name!r} of different types: rename one")
        return found

    @cached_property
    def needed(self) -> dict[str, list[str]]:
        """For each source the columns that the query reads."""
        found = columns_read(self.rewritten, set(self.schema))
        return {s.name: [c for c in s.schema if c in found[s.name]] for s in self.scans()}

    def read_from(self, scan: Scan) -> list[str]:
        """The columns that are read from a source: those that the query needs, and the one of markers. Where it needs
        nothing but when rows arrived, any column tells how many there are. Of messages what they are read from.
        """
        if (messages := scan.source.messages) is not None:
            return messages.read(self.needed[scan.name])
        marker = [scan.source.marker] if scan.source.marker is not None else []
        found = [*(c for c in self.needed[scan.name] if c not in scan.stamps), *marker]
        return found or [next(c for c in scan.schema if c not in scan.stamps)]

    def stamps_of(self, scan: Scan) -> list[str]:
        """The attributes of arrival that the query needs, and a host gives to the rows of a source."""
        return [c for c in scan.stamps if c in self.needed[scan.name]]


def sources_of(pipelines: Iterable[Pipeline]) -> list[Read | Stage]:
    """What pipelines begin with, inner ones first, each once."""
    return list(dict.fromkeys(_walked(pipelines)))


def _walked(pipelines: Iterable[Pipeline]) -> Iterator[Read | Stage]:
    for pipeline in pipelines:
        if isinstance(pipeline.source, Stage):
            yield from _walked(pipeline.source.inputs)
        yield pipeline.source
