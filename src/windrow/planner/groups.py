"""Queries that come and go in one plan: those that begin at the same moment and share state are a group.

Queries of one group share reads, filters, pane aggregations and whatever stage two of them use, such as the same join.
Queries of different groups share reads and filters only: their state is of different rows. Each group has stage numbers
of its own, so that the state of one query is found again whatever becomes of the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import count

from sqlglot import exp

from windrow.logical.arrival import with_all_stamps
from windrow.logical.nodes import Filter, Node, Scan, Together, columns_read
from windrow.operators.rows.of_query import OfQuery
from windrow.planner.build import Build, Wanted, result_of
from windrow.planner.choice import NOTHING, Given
from windrow.planner.plan import Pipeline, Plan, Read, Stage, Step, sources_of
from windrow.planner.rows import columns
from windrow.planner.rules import rewritten
from windrow.planner.shared import Member, grouped, panes_of

COARSENESS = 4  # panes of a group are not shorter than this part of the panes that a query has alone


@dataclass
class Common:
    """What the queries of all groups share: reads of sources, and filters right after them."""

    reads: list[tuple[Wanted, Read]] = field(default_factory=list)
    filtered: list[tuple[Filter, Pipeline, Step]] = field(default_factory=list)

    def steps(self) -> set[Step]:
        """The filters."""
        return {step for _, _, step in self.filtered}

    def keep(self, groups: Iterable[Group]) -> None:
        """Forget what none of these groups uses."""
        pipelines = [pipeline for group in groups for found in group.outputs.values() for pipeline in found]
        sources = sources_of(pipelines)
        inputs = [pipeline for source in sources if isinstance(source, Stage) for pipeline in source.inputs]
        used = {step for pipeline in [*pipelines, *inputs] for step in pipeline.steps}
        self.reads[:] = [(wanted, read) for wanted, read in self.reads if read in sources]
        self.filtered[:] = [found for found in self.filtered if found[2] in used]


@dataclass(frozen=True, eq=False)
class Group:
    """The planned queries of a group. ``needed``: by source, the columns that they read; ``stages``: how many.

    ``active``: those that are still there.
    """

    queries: Mapping[str, Node]
    outputs: Mapping[str, tuple[Pipeline, ...]]
    better: Mapping[str, Node]
    needed: Mapping[str, Sequence[str]]
    stages: int
    active: frozenset[str]

    def choices(self) -> dict[str, str]:
        """The algorithms of its aggregations that have a choice."""
        return combined([(self, dict.fromkeys(self.queries, -1))]).choices()

    def units(self) -> list[tuple[str, ...]]:
        """The queries that share state, directly or through others; one that shares with none is alone."""
        stages = {n: {s for s in sources_of(self.outputs[n]) if isinstance(s, Stage)} for n in self.outputs}
        found: list[tuple[set[str], set[Stage]]] = []
        for name, own in stages.items():
            near = [unit for unit in found if unit[1] & own]
            found = [unit for unit in found if unit not in near]
            found.append(({name, *(n for u in near for n in u[0])}, own.union(*(u[1] for u in near))))
        return [tuple(n for n in self.queries if n in names) for names, _ in found]


def plan_group(
    queries: Mapping[str, Node],
    first_stage: int = 0,
    common: Common | None = None,
    given: Given = NOTHING,
    active: Collection[str] | None = None,
) -> Group:
    """Plan the queries of a group; stages are numbered from ``first_stage``. The same queries get the same numbers.

    ``active``: those that are still there. State that all of them share is that of all queries, as it was.
    """
    common = Common() if common is None else common
    together = Together(tuple(queries.items()))
    better = rewritten(together)
    assert isinstance(better, Together)
    read = columns_read(better, set(better.schema))
    scans = with_all_stamps(scan for scan in better.walk() if isinstance(scan, Scan))
    needed = {n: [c for c in scans[n].schema if c in found] for n, found in read.items()}
    numbers = count(first_stage)
    there = frozenset(queries if active is None else active)
    build = Build(
        given,
        reads=common.reads,
        filtered=common.filtered,
        active=there,
        numbers=numbers,
        needed=needed,
    )
    outputs: dict[str, tuple[Pipeline, ...]] = {}
    for members in _sharing(better):
        if len(members) > 1:
            stage = build.shared_stage(better, members)
            outputs |= {m.name: (_of_query(stage, m.name, m.node),) for m in members}
        else:
            [member] = members
            last = columns(list(member.node.schema))
            outputs[member.name] = tuple(p.then(last) for p in build.pipelines(member.node, result_of(member.node)))
    used = next(numbers) - first_stage
    return Group(dict(queries), outputs, dict(better.queries), needed, used, there)


def units_of(queries: Mapping[str, Node], given: Given = NOTHING) -> list[tuple[str, ...]]:
    """Of queries that begin together, those that share state, by name: each is a group of its own, so that what becomes
    of one query does not matter to those that share nothing with it.
    """
    return plan_group(queries, given=given).units()


def _sharing(node: Together) -> list[list[Member]]:
    """The queries that share panes; not where the common panes would be much shorter than those of a query alone, or
    where one computes what can raise an error, and another does not: each fails alone.
    """
    found: list[list[Member]] = []
    for group in grouped(node):
        while group:
            kept, rest = [group[0]], list[Member]()
            for member in group[1:]:
                shares = _computed(member) == _computed(kept[0]) and _worth_it([*kept, member])
                (kept if shares else rest).append(member)
            found.append(kept)
            group = rest
    return found


def _computed(member: Member) -> set[str]:
    """The arguments of aggregates that are more than a column."""
    calls = member.aggregation.calls if member.aggregation is not None else ()
    found = (call.argument for call in calls if call.argument is not None)
    return {each.sql() for each in found if not isinstance(each, (exp.Column, exp.Literal))}


def _worth_it(members: Sequence[Member]) -> bool:
    common = panes_of(members).range
    return all(panes_of([member]).range <= COARSENESS * common for member in members)


def _of_query(stage: Stage, name: str, node: Node) -> Pipeline:
    """The rows of one of several queries that share a stage: a struct column each."""
    return Pipeline(stage).then(Step("query", partial(OfQuery, name, list(node.schema)), f"rows of query {name}"))


@dataclass(frozen=True, eq=False)
class Combined(Plan):
    """The queries of several groups as one plan. ``numbers``: for each of ``outputs``, the number of its query."""

    numbers: tuple[int, ...] = ()
    of_stage: Mapping[int, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    groups: tuple[Group, ...] = ()
    called: Mapping[int, str] = field(default_factory=dict)

    def number_of(self, output: int) -> int:
        return self.numbers[output]

    def names(self) -> dict[int, str]:
        return dict(self.called)

    def scans(self) -> list[Scan]:
        return list(with_all_stamps(read.scan for read in self.reads()).values())

    @cached_property
    def needed(self) -> dict[str, list[str]]:
        """Each group is planned for the columns that all its queries read, whichever of them run."""
        read: dict[str, set[str]] = {}
        for group in self.groups:
            for name, found in group.needed.items():
                read.setdefault(name, set()).update(found)
        return {scan.name: [c for c in scan.schema if c in read[scan.name]] for scan in self.scans()}

    def needed_by(self, stage: Stage) -> Mapping[str, Sequence[str]]:
        """The columns that its own group reads: what other queries read does not change its state."""
        return self.of_stage[stage.number]


def combined(running: Sequence[tuple[Group, Mapping[str, int]]]) -> Combined:
    """One plan of the queries that run: of each group, the names of those, and their numbers."""
    chosen = [(group, name, number) for group, names in running for name, number in names.items()]
    outputs = [(pipeline, number) for group, name, number in chosen for pipeline in group.outputs[name]]
    logical = Together(tuple((f"query {n}", group.queries[name]) for group, name, n in chosen))
    better = Together(tuple((f"query {n}", group.better[name]) for group, name, n in chosen))
    needed = {
        source.number: group.needed
        for group, names in running
        for source in sources_of(p for name in names for p in group.outputs[name])
        if isinstance(source, Stage)
    }
    numbers = tuple(number for _, number in outputs)
    groups = tuple(group for group, _ in running)
    called = {number: name for _, name, number in chosen}
    every = tuple(p for p, _ in outputs)
    return Combined(logical, every, dict(logical.schema), better, numbers, needed, groups, called)
