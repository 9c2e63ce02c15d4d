"""Logical plan to physical plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import polars as pl

from windrow.aggregates import Partials
from windrow.errors import InternalError
from windrow.logical import nodes as logical
from windrow.logical.arrival import check_stamps
from windrow.operators import Gate, LastInstant, Panes
from windrow.operators import Project as ProjectOperator
from windrow.operators.state.late import late_schema
from windrow.planner.as_of import as_of_arms, as_of_stage
from windrow.planner.choice import NOTHING, Given, chosen
from windrow.planner.choose import Choice
from windrow.planner.in_order import IOP, check_in_order, check_join_in_order, cost_of_order, merged
from windrow.planner.joins import SIDES, join_arms, join_stage, named_keys, time_of
from windrow.planner.keeping import kept_rows
from windrow.planner.lookups import looking_up
from windrow.planner.multi import multi_arms, multi_stage
from windrow.planner.ordered_joins import in_order, join_below, with_choice
from windrow.planner.pairs import pair_stage
from windrow.planner.partition import ByKeys
from windrow.planner.pipelines import pipeline_of
from windrow.planner.plan import MELD, Arm, Meeting, Pipeline, Plan, Read, Stage, Step
from windrow.planner.prepare import numbered, prepared, wall_clock, without_row
from windrow.planner.ring import ring_stage
from windrow.planner.rows import (
    about_everyone,
    application,
    columns,
    distinct_stage,
    ordered_stage,
    projection,
    reading,
    selection,
    splitting,
    top_stage,
)
from windrow.planner.rules import rewritten
from windrow.planner.sequences import named_steps, sequence_arms, sequence_stage
from windrow.planner.shared import Member, grouped, joined, panes_of, shared_step
from windrow.planner.ways import way_of
from windrow.planner.windows import SHAPES, WATCHING, Physical, groups_promised, key_names
from windrow.spec.in_order import MODES
from windrow.spec.keeping import ALIKE
from windrow.spec.names import WINDOW_END
from windrow.spec.spread import RINGS
from windrow.spec.time import physical
from windrow.windows.multiway import Moment


def plan(node: logical.Node, given: Given = NOTHING) -> Plan:
    """The physical plan; raises PlanError for what is not supported yet, or could never produce output."""
    check_stamps(each for each in node.walk() if isinstance(each, logical.Scan))
    wanted, better = list(node.schema), rewritten(node)
    outputs = tuple(p.then(columns(wanted)) for p in Build(given).pipelines(better, result_of(better)))
    return Plan(node, outputs, dict(node.schema), better)


class Wanted(NamedTuple):
    """How a consumer wants rows to progress: on which attribute of the stream (None: the first), or by row numbers.

    ``needs``: columns of the source that must not be NULL. ``joint``: promises about both times of a join are wanted.
    """

    of: str | None = None
    by_rows: bool = False
    needs: tuple[str, ...] = ()
    joint: bool = False


def wanted_on(node: logical.Node, column: str | None) -> Wanted:
    """The attribute that a column of a node is."""
    return Wanted(None if column is None else node.times[column].of)


PLAIN = Wanted()


def result_of(node: logical.Node) -> Wanted:
    """How the results of a query progress; those that a join puts in order, on the time that they show."""
    join = join_below(node)
    return wanted_on(node, node.progress) if join is not None and join.using in MODES else PLAIN


@dataclass(frozen=True)
class Build:
    """``in_order``: everything below a window that takes its rows in order is in order, too. ``ordered``: the join that
    is below an ORDER BY.
    """

    given: Given
    in_order: bool = False
    reads: list[tuple[Wanted, Read]] = field(default_factory=list)
    filtered: list[tuple[logical.Filter, Pipeline, Step]] = field(default_factory=list)
    stages: list[tuple[logical.Node, Wanted, bool, Stage]] = field(default_factory=list)
    # Of queries that come and go, those that are still there: then nodes that mean the same are one stage, too.
    active: Collection[str] | None = None
    numbers: count[int] = field(default_factory=count)
    needed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ordered: logical.Join | None = None

    def pipelines(self, node: logical.Node, wanted: Wanted = PLAIN) -> list[Pipeline]:
        """What gives the rows of a node, with the attribute that is wanted as their progress value."""
        match node:
            case logical.Scan():
                return [self._own_columns(node, p) for p in self._rows(node, wanted)]
            case logical.Filter() if isinstance(_below_filters(node), logical.Scan):
                return [self._own_columns(node, p) for p in self._rows(node, wanted)]
            case logical.Filter():
                return [p.then(selection(node)) for p in self.pipelines(node.input, wanted)]
            case logical.Project():
                before = wanted if wanted.by_rows else self._below(node, wanted)
                return [p.then(*projection(node, wanted.by_rows)) for p in self.pipelines(node.input, before)]
            case logical.Apply():
                before = replaced(wanted) if node.moves and not wanted.by_rows else wanted
                return [p.then(*application(node, wanted.by_rows)) for p in self.pipelines(node.input, before)]
            case logical.Lookup():
                return [p.then(looking_up(node)) for p in self.pipelines(node.input, wanted)]
            case logical.Split():
                # Its branches progress on nothing else, whatever they call it.
                before = wanted if wanted.by_rows else wanted_on(node.input, node.input.progress)
                return [p.then(splitting(node, wanted.by_rows)) for p in self.pipelines(node.input, before)]
            case logical.Union():
                return [p for each in node.members for p in self.pipelines(each, _of_member(each, wanted))]
            case logical.Together():
                return [p for group in grouped(node) for p in self._of_group(node, group)]
        return self._results(node, wanted)

    def _rows(self, node: logical.Node, wanted: Wanted) -> list[Pipeline]:
        """The rows of a source, filtered or not, with all columns that are read."""
        if not isinstance(node, logical.Filter):
            assert isinstance(node, logical.Scan)
            return [Pipeline(self._read(node, wanted))]
        return [p.then(self._selection(node, p)) for p in self._rows(node.input, wanted)]

    def _selection(self, node: logical.Filter, before: Pipeline) -> Step:
        """The same step for every query that filters the same rows in the same way: hosts run it once."""
        for same, there, step in self.filtered:
            if same == node and (there.source, there.steps) == (before.source, before.steps):
                return step
        step = selection(node)
        self.filtered.append((node, before, step))
        return step

    def _own_columns(self, node: logical.Node, pipeline: Pipeline) -> Pipeline:
        """Without columns that are read for other queries only: the state of a query must not depend on those."""
        [scan] = node.scans
        if scan.name not in self.needed:
            return pipeline
        names = list(self.needed[scan.name])
        kept = partial(ProjectOperator, [pl.col(names), pl.col("^@.*$")])
        return pipeline.then(Step("own", kept, f"columns {', '.join(names)}", renames={n: n for n in names}))

    def _of_group(self, node: logical.Together, group: Sequence[Member]) -> list[Pipeline]:
        """Queries that share panes, or one query alone; each is a struct column, and the others are NULL."""
        names = [member.name for member in group]
        if len(group) > 1:
            return [Pipeline(self.shared_stage(node, group)).then(_beside(node, names))]
        [member] = group
        row = pl.struct([pl.col(c) for c in member.node.schema]).alias(member.name)
        whole = Step("query", partial(ProjectOperator, [row]), f"rows of query {member.name}")
        return [p.then(whole, _beside(node, names)) for p in self.pipelines(member.node)]

    def _results(self, node: logical.Node, wanted: Wanted) -> list[Pipeline]:
        """The results of a stage; a node that is used twice is one stage."""
        joint = wanted.joint and isinstance(node, (logical.Join, logical.PairAggregate))
        own = (
            node.latest.name if isinstance(node, logical.MultiJoin) else next((t.of for t in node.times.values()), None)
        )
        wanted = Wanted(wanted.of or own, joint=joint)
        how = wanted, self.in_order
        stage = next((s for n, *known, s in self.stages if tuple(known) == how and self._same(n, node)), None)
        if stage is None:
            stage = self._stage_of(node, wanted)
            self.stages.append((node, *how, stage))
        windowed = isinstance(node, logical.WindowAggregate) and node.progress is not None
        return [Pipeline(stage, (_progress_of_results(node),) if windowed else ())]  # type: ignore[arg-type]

    def _same(self, node: logical.Node, other: logical.Node) -> bool:
        return node is other or (self.active is not None and node == other)

    def _stage_of(self, node: logical.Node, wanted: Wanted) -> Stage:
        match node:
            case logical.Distinct():
                before = about_everyone(node.input, self.pipelines(node.input, wanted))
                meeting = merged(node, before, self.given) if self.in_order else MELD
                return distinct_stage(next(self.numbers), node, before, meeting)
            case logical.Ordered():
                build = replace(self, ordered=join_below(node.input))
                before = about_everyone(node.input, build.pipelines(node.input, wanted))
                return ordered_stage(next(self.numbers), node, before, cost_of_order(node.input, before, self.given))
            case logical.WindowAggregate():
                return self._aggregation(node)
            case logical.PairAggregate():
                before = self.pipelines(node.input, Wanted(wanted.of, joint=True))
                return pair_stage(next(self.numbers), node, before, wanted.of, wanted.joint)
            case logical.Top():
                before = about_everyone(node.input, self.pipelines(node.input, wanted))
                return top_stage(next(self.numbers), node, before)
            case logical.Join():
                return self._join(node, wanted)
            case logical.MultiJoin():
                return self._multi_join(node, wanted)
            case logical.AsOf():
                return self._as_of(node)
            case logical.Sequence():
                return self._sequence(node)
        raise InternalError(f"no plan for {type(node).__name__}")

    def _join(self, node: logical.Join, wanted: Wanted) -> Stage:
        """The stage of a join; in order, the rows of each side meet in a Merge before it."""
        iop = node.using == IOP or (self.in_order and node.using is None and node.limits is None)
        if iop:
            check_join_in_order(node)
        asked, build = node, replace(self, in_order=iop or self.in_order)
        if node is self.ordered and not iop and node.limits is None:
            node = in_order(node, time_of(node, wanted.of))
        wants = [Wanted(by_rows=True) if node.by_rows else wanted_on(n, n.progress) for n in node.inputs]
        sides = [build.pipelines(each, want) for each, want in zip(node.inputs, wants, strict=True)]
        alike = not iop and not node.limits and node.using in (None, *ALIKE)
        named = [named_keys(node, side) if alike and not node.by_rows else None for side in SIDES]
        sides = [
            side if name is not None else about_everyone(each, side)
            for each, side, name in zip(node.inputs, sides, named, strict=True)
        ]
        costs = [cost_of_order(n, side, self.given) for n, side in zip(node.inputs, sides, strict=True)]
        arms = join_arms(node, sides, costs if iop else None)
        kept = kept_rows(node, arms, self.given) if alike or node.limits else None
        stage = join_stage(next(self.numbers), node, arms, wanted.of, named, wanted.joint, iop, kept)
        return with_choice(stage, asked, time_of(node, wanted.of), self.given.samples)

    def _multi_join(self, node: logical.MultiJoin, wanted: Wanted) -> Stage:
        """One stage for all inputs, or the last one of a pipeline of binary joins."""
        moment = Moment.read(wanted.of or "") or node.latest
        sides = [about_everyone(n, self.pipelines(n, wanted_on(n, n.progress))) for n in node.members]
        arms = multi_arms(node, sides)
        way = way_of(node, arms, self.given)
        if way.name in RINGS:
            return ring_stage(next(self.numbers), node, sides, moment, way)
        if not way.order:
            return multi_stage(next(self.numbers), node, arms, moment, way, way.probes)
        join, of = pipeline_of(node, way.order, moment)
        return replace(self._join(join, Wanted(of)), node=node, algorithm=way.name, choice=way)

    def _as_of(self, node: logical.AsOf) -> Stage:
        sides = [self.pipelines(n, wanted_on(n, n.progress)) for n in node.inputs]
        named = [named_keys(node, side) for side in SIDES]
        sides = [
            side if name is not None else about_everyone(each, side)
            for each, side, name in zip(node.inputs, sides, named, strict=True)
        ]
        return as_of_stage(next(self.numbers), node, as_of_arms(node, sides), named)

    def _sequence(self, node: logical.Sequence) -> Stage:
        named = named_steps(node)
        sides = [
            side if name is not None else about_everyone(each, side)
            for each, name in zip(node.inputs, named, strict=True)
            for side in [self.pipelines(each, wanted_on(each, each.progress))]
        ]
        return sequence_stage(next(self.numbers), node, sequence_arms(node, sides), named)

    def _read(self, scan: logical.Scan, wanted: Wanted) -> Read:
        """A source that is wanted twice, with the same progress, is read once."""
        wanted = wanted._replace(of=wanted.of or scan.progress)
        found = next((read for how, read in self.reads if how == wanted and read.scan == scan), None)
        if found is None:
            found = reading(scan, wanted.of, wanted.by_rows, wanted.needs)
            self.reads.append((wanted, found))
        return found

    def _below(self, node: logical.Project, wanted: Wanted) -> Wanted:
        """What a projection wants of its input."""
        if node.on is not None:
            return wanted._replace(of=node.input.times[node.on].of)
        return wanted if node.retimes is None else replaced(wanted)

    # -- window aggregation ------------------------------------------------------------------------------------
    def _aggregation(self, node: logical.WindowAggregate) -> Stage:
        """The stage of a window aggregation: what runs before the exchange, and after it."""
        if node.using == IOP or (self.in_order and node.using is None):
            return self._aggregation_in_order(node)
        aggregates, inputs, lifts = self._inputs(node)
        choice = None
        if node.window.sliding is not None:
            choice = chosen(node, aggregates, inputs, self.given)
        algorithm = node.using if choice is None else choice.name
        shape = SHAPES[type(node.window)](node, aggregates, algorithm, len(inputs))
        pipelines = [p.then(*lifts) for p in inputs]
        if shape.name in WATCHING and len(pipelines) > 1:
            pipelines = [p.then(numbered(i)) for i, p in enumerate(pipelines)]
        if node.options.late == "side":
            window: Any = node.window.sliding or node.window
            gated = partial(Gate, window, node.bound, node.options, groups_promised(node))
            steps = (Step("gate", gated, "late rows to the side"), *shape.low, shape.high)
            known = dict(node.input.schema)
        else:
            dropped = [without_row()] if lifts else []
            pipelines = [p.then(*dropped, *shape.low) for p in pipelines]
            steps = (shape.high,)
            known = _key_columns(node)
        return self._window_stage(node, pipelines, shape, steps, known, choice=choice)

    def _aggregation_in_order(self, node: logical.WindowAggregate) -> Stage:
        """The same over rows in order: they meet in a Merge, and are aggregated after it."""
        check_in_order(node)
        whole = any(c.user is not None and c.user.combine is None for c in node.calls)
        aggregates, inputs, lifts = replace(self, in_order=True)._inputs(node)
        algorithm = ("buffering" if whole else "paned") if node.window.sliding is not None else None
        shape = SHAPES[type(node.window)](node, aggregates, algorithm, len(inputs))
        dropped = [without_row()] if lifts else []
        pipelines = [p.then(*lifts, *dropped) for p in inputs]
        meeting = merged(node, pipelines, self.given)
        steps = (*shape.low, shape.high)
        shape = replace(shape, name=f"{IOP}, {shape.name}")
        return self._window_stage(node, pipelines, shape, steps, _key_columns(node), meeting)

    def _inputs(self, node: logical.WindowAggregate) -> tuple[Partials, list[Pipeline], list[Step]]:
        """The aggregates, what gives their rows, and the lift of users' aggregates that follows."""
        prepare, aggregates, lifts = prepared(node)
        needs = node.input.arrival if node.window.counts_rows and not node.by_rows else ()
        of = None if node.by_rows else wanted_on(node.input, node.input.progress).of
        inputs = self.pipelines(node.input, Wanted(of, node.by_rows, needs))
        if self.in_order or not (node.closed_by or node.by_rows):  # row numbers have promises of their own
            inputs = about_everyone(node.input, inputs)
        return aggregates, [p.then(prepare, *wall_clock(node.options.zone)) for p in inputs], lifts

    def _window_stage(
        self,
        node: logical.WindowAggregate,
        pipelines: Sequence[Pipeline],
        shape: Physical,
        steps: tuple[Step, ...],
        known: dict[str, pl.DataType],
        meeting: Meeting = MELD,
        choice: Choice | None = None,
    ) -> Stage:
        """``known``: the columns that late records show."""
        late = tuple(late_schema({c: t for c, t in known.items() if not c.startswith("@")}, node.bound).items())
        by = groups_promised(node)
        named = by.columns if set(by) == set(shape.meet) else ()
        arm = Arm(tuple(pipelines), ByKeys(shape.meet), meeting, named)
        return Stage(next(self.numbers), node, (arm,), steps, shape.name, late, choice, spread=shape.meet)

    def shared_stage(self, node: logical.Together, found: Sequence[Member]) -> Stage:
        """One stage for several queries: one pane level, and their window levels over the same panes."""
        panes = panes_of(found)
        window = joined(found, panes)
        prepare, aggregates, lifts = prepared(window)
        dropped = [without_row()] if lifts else []
        keys = key_names(window)
        low = Step("panes", partial(Panes, panes, keys, aggregates), "one partial per pane and group, for all queries")
        before = (prepare, *wall_clock(window.options.zone), *lifts, *dropped, low)
        inputs = self.pipelines(window.input, wanted_on(window.input, window.input.progress))
        inputs = inputs if window.closed_by else about_everyone(window.input, inputs)
        step = shared_step(found, panes, aggregates, _after, self.active)
        late = late_schema({n: t for n, t in window.schema.items() if n in keys}, window.bound)
        arm = Arm(tuple(p.then(*before) for p in inputs), ByKeys(keys))
        return Stage(next(self.numbers), node, (arm,), (step,), "shared-panes", tuple(late.items()))


def _below_filters(node: logical.Node) -> logical.Node:
    while isinstance(node, logical.Filter):
        node = node.input
    return node


def replaced(wanted: Wanted) -> Wanted:
    """The wanted attribute is computed from the first one of the input."""
    return wanted._replace(of=None)


def _of_member(node: logical.Node, wanted: Wanted) -> Wanted:
    """A union calls an attribute by the name of its column; each member has its own name for it."""
    if wanted.by_rows or wanted.of is None or wanted.of not in node.times:
        return wanted
    return wanted._replace(of=node.times[wanted.of].of)


def _beside(node: logical.Together, names: Sequence[str]) -> Step:
    """Rows of some queries with a NULL for each of the others."""
    columns = [pl.col(n) if n in names else pl.lit(None, t).alias(n) for n, t in node.schema.items()]
    return Step("queries", partial(ProjectOperator, columns), "beside those of the other queries")


def _key_columns(node: logical.WindowAggregate) -> dict[str, pl.DataType]:
    return {n: t for n, t in node.schema.items() if n in dict(node.keys)}


def _after(member: Member) -> list[Step]:
    """What follows the windows of a query that shares its panes."""
    steps = [_progress_of_results(member.window)]
    for over in member.over:
        assert isinstance(over, (logical.Filter, logical.Project))
        steps += [selection(over)] if isinstance(over, logical.Filter) else projection(over)
    return [*steps, columns(list(member.node.schema))]


def _progress_of_results(node: logical.WindowAggregate) -> Step:
    """Results progress on the last instant of their window: whatever comes after it sees that as ``@t``."""
    end = physical(pl.col(WINDOW_END), node.schema[WINDOW_END])
    return Step("progress", partial(LastInstant, end, node.times[WINDOW_END].lead), "results progress on window_time")
