"""Logical plan to physical plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from windrow.aggregates import Partials, make
from windrow.logical.expressions import dtype_of, translate
from windrow.logical.nodes import (
    AggregateCall,
    Apply,
    Distinct,
    Filter,
    Node,
    Ordered,
    Project,
    Scan,
    Shape,
    Split,
    Together,
    Top,
    Union,
    WindowAggregate,
    arrival,
    closed_by,
)
from windrow.operators import Gate, LastInstant, Lift, Panes, WallClock
from windrow.operators import Project as ProjectOperator
from windrow.operators.state.late import late_schema
from windrow.operators.windows.by_tuple import nth
from windrow.planner.choice import NOTHING, Given, chosen
from windrow.planner.choose import Choice
from windrow.planner.in_order import IOP, check_in_order, cost_of_order, merged
from windrow.planner.plan import MELD, Meeting, Pipeline, Plan, Stage, Step, stages_of
from windrow.planner.rows import (
    about_everyone,
    admission,
    application,
    columns,
    distinct_stage,
    ordered_stage,
    projection,
    selection,
    splitting,
    top_stage,
)
from windrow.planner.shared import Member, joined, members, panes_of, shared_step
from windrow.planner.windows import (
    SHAPES,
    WATCHING,
    Physical,
    groups_promised,
    key_names,
)
from windrow.spec.names import INPUT, PROGRESS, ROW, ROW_NUM, SOURCE, WINDOW_END
from windrow.spec.time import Bounds, physical
from windrow.windows import Partitioned, RowSliding, SlideByTuple, Sliding


def plan(node: Node, given: Given = NOTHING) -> Plan:
    """The physical plan; raises PlanError for what has no operator yet, or could never produce output."""
    wanted = list(node.schema)
    outputs = tuple(p.then(columns(wanted)) for p in _Build(given).pipelines(node))
    return Plan(node, outputs, dict(node.schema))


@dataclass(frozen=True)
class _Build:
    given: Given
    in_order: bool = False  # below a window that wants its rows in order, everything is

    def pipelines(self, node: Node, by_rows: bool = False, needs: tuple[str, ...] = ()) -> list[Pipeline]:
        """``by_rows``: row numbers are the progress values. ``needs``: columns of the source that must not be NULL."""
        match node:
            case Scan():
                return [Pipeline(node, admission(node, by_rows, needs), by_rows)]
            case Filter():
                return [p.then(selection(node)) for p in self.pipelines(node.input, by_rows, needs)]
            case Project():
                return [p.then(*projection(node, by_rows)) for p in self.pipelines(node.input, by_rows, needs)]
            case Apply():
                return [p.then(*application(node, by_rows)) for p in self.pipelines(node.input, by_rows, needs)]
            case Split():
                return [p.then(splitting(node, by_rows)) for p in self.pipelines(node.input, by_rows, needs)]
            case Union():
                return [p for each in node.inputs for p in self.pipelines(each, by_rows, needs)]
            case Distinct():
                before = about_everyone(node.input, self.pipelines(node.input))
                meeting = merged(node, before, self.given) if self.in_order else MELD
                return [Pipeline(distinct_stage(node, before, meeting))]
            case Ordered():
                before = about_everyone(node.input, self.pipelines(node.input))
                return [Pipeline(ordered_stage(node, before, cost_of_order(node, before, self.given)))]
            case WindowAggregate():
                after = (_progress_of_results(node),) if node.progress is not None else ()
                return [Pipeline(self._stage(node), after)]
            case Top():
                return [Pipeline(top_stage(node, about_everyone(node.input, self.pipelines(node.input))))]
            case Together():
                return [Pipeline(self._shared(node))]

    def _stage(self, node: WindowAggregate) -> Stage:
        """The stage of a window aggregation: what runs before the exchange, and after it."""
        if node.using == IOP or (self.in_order and node.using is None):
            return self._stage_in_order(node)
        aggregates, inputs, lifts = self._inputs(node)
        choice = None
        if isinstance(node.window, (Sliding, RowSliding)):
            choice = chosen(node, aggregates, inputs, self.given)
            node = replace(node, using=choice.name)
        shape = SHAPES[type(node.window)](node, aggregates)
        pipelines = [p.then(*lifts) for p in inputs]
        if shape.name in WATCHING and len(pipelines) > 1:
            pipelines = [p.then(_numbered(i)) for i, p in enumerate(pipelines)]
        if node.options.late == "side":
            gated = partial(Gate, _gate_shape(node.window), node.bound, node.options, groups_promised(node))
            steps = (Step("gate", gated, "late rows to the side"), *shape.low, shape.high)
            known = dict(node.input.schema)
        else:
            dropped = [_dropped(ROW)] if lifts else []
            pipelines = [p.then(*dropped, *shape.low) for p in pipelines]
            steps = (shape.high,)
            known = _key_columns(node)
        return _made(node, pipelines, shape, steps, known, choice=choice)

    def _stage_in_order(self, node: WindowAggregate) -> Stage:
        """The same over rows in order: they meet by Merge, and are aggregated behind it."""
        check_in_order(node)
        whole = any(c.user is not None and c.user.combine is None for c in node.calls)
        sliding = isinstance(node.window, (Sliding, RowSliding))
        aggregates, inputs, lifts = replace(self, in_order=True)._inputs(node)
        node = replace(node, using=("buffering" if whole else "paned") if sliding else None)
        shape = SHAPES[type(node.window)](node, aggregates)
        dropped = [_dropped(ROW)] if lifts else []
        pipelines = [p.then(*lifts, *dropped) for p in inputs]
        meeting = merged(node, pipelines, self.given)
        steps = (*shape.low, shape.high)
        return _made(node, pipelines, replace(shape, name=f"{IOP}, {shape.name}"), steps, _key_columns(node), meeting)

    def _inputs(self, node: WindowAggregate) -> tuple[Partials, list[Pipeline], list[Step]]:
        """The aggregates, what gives their rows, and the lift of users' aggregates that follows."""
        prepared, aggregates, lifts = _prepared(node)
        wall = [_wall_clock(node.options.zone)] if node.options.zone is not None else []
        needs = arrival(node.input) if isinstance(node.window, SlideByTuple) and _by_number(node.window) else ()
        inputs = self.pipelines(node.input, node.by_rows, needs)
        if self.in_order or not closed_by(node):
            inputs = about_everyone(node.input, inputs)
        return aggregates, [p.then(prepared, *wall) for p in inputs], lifts

    def _shared(self, node: Together) -> Stage:
        """One stage for several queries: one pane level, and their window levels over the same panes."""
        found = members(node)
        panes = panes_of(found)
        window = joined(found, panes)
        prepared, aggregates, extra_steps = _prepared(window)
        wall = [_wall_clock(window.options.zone)] if window.options.zone is not None else []
        dropped = [_dropped(ROW)] if extra_steps else []
        keys = key_names(window)
        low = Step("panes", partial(Panes, panes, keys, aggregates), "one partial per pane and group, for all queries")
        before = (prepared, *wall, *extra_steps, *dropped, low)
        inputs = self.pipelines(window.input)
        inputs = inputs if closed_by(window) else about_everyone(window.input, inputs)
        pipelines = tuple(p.then(*before) for p in inputs)
        inner = max((s.number for p in pipelines for s in stages_of(p)), default=-1)
        step = shared_step(found, panes, aggregates, _after)
        late = late_schema({n: t for n, t in window.schema.items() if n in keys}, window.bound)
        return Stage(pipelines, keys, (step,), "shared-panes", inner + 1, tuple(late.items()))


def _made(
    node: WindowAggregate,
    pipelines: Sequence[Pipeline],
    shape: Physical,
    steps: tuple[Step, ...],
    known: dict[str, pl.DataType],
    meeting: Meeting = MELD,
    choice: Choice | None = None,
) -> Stage:
    """``known``: the columns that late records show."""
    inner = max((s.number for p in pipelines for s in stages_of(p)), default=-1)
    late = tuple(late_schema({c: t for c, t in known.items() if not c.startswith("@")}, node.bound).items())
    by = groups_promised(node)
    named = by.columns if set(by) == set(shape.meet) else ()
    return Stage(tuple(pipelines), shape.meet, steps, shape.name, inner + 1, late, choice, meeting, node, named)


def _key_columns(node: WindowAggregate) -> dict[str, pl.DataType]:
    return {n: t for n, t in node.schema.items() if n in dict(node.keys)}


def _after(member: Member) -> list[Step]:
    """What follows the windows of a query that shares its panes."""
    steps = [_progress_of_results(member.window)]
    for over in member.over:
        assert isinstance(over, (Filter, Project))
        steps += [selection(over)] if isinstance(over, Filter) else projection(over)
    return [*steps, columns(list(member.node.schema))]


def _progress_of_results(node: WindowAggregate) -> Step:
    """Results progress on the last instant of their window: whatever comes after it sees that as ``@t``."""
    end = physical(pl.col(WINDOW_END), node.schema[WINDOW_END])
    return Step("progress", partial(LastInstant, end, node.times[WINDOW_END]), "results progress on window_time")


def _by_number(window: SlideByTuple) -> bool:
    return window.by == "row_num" and window.slide > 1


def _gate_shape(window: Shape) -> Any:
    return window.over_rows if isinstance(window, RowSliding) else window


def _wall_clock(zone: str) -> Step:
    return Step("clock", partial(WallClock, zone), f"progress on the wall clock of {zone}")


def _numbered(number: int) -> Step:
    tag = [pl.all(), pl.lit(number, pl.Int16).alias(INPUT)]
    return Step("input", partial(ProjectOperator, tag), f"rows of input {number}")


def _dropped(column: str) -> Step:
    return Step("columns", partial(ProjectOperator, [pl.exclude(column)]), "without the whole row")


def _prepared(node: WindowAggregate) -> tuple[Step, Partials, list[Step]]:
    """The step that keeps what the aggregation needs of a row, the aggregates, and the lift of users' aggregates."""
    given = node.input.schema
    calls = [c for c in node.calls if c.argument is not None]
    named = _argument_columns(calls)
    made = [make(c.function, c.name, named.get(c.name), _dtype(c, node), c.parameters, c.user) for c in node.calls]
    by_number = isinstance(node.window, SlideByTuple) and _by_number(node.window)
    extra = [nth(node.window)] if by_number and isinstance(node.window, SlideByTuple) else []
    columns = [translate(e, given).alias(n) for n, e in node.keys] + [pl.col(PROGRESS)]
    first = {named[c.name]: c for c in reversed(calls) if c.argument is not None}
    columns += [translate(c.argument, given).alias(n) for n, c in first.items() if c.argument is not None]
    if by_number:
        columns.append(pl.col(arrival(node.input)[0]).alias(ROW_NUM))
    if isinstance(node.window, Partitioned) and len(arrival(node.input)) > 1:
        columns.append(pl.col(arrival(node.input)[0]).alias(SOURCE))
    user = [(n, c.user) for n, c in first.items() if c.user is not None]
    if user or node.options.late == "side":
        columns.append(pl.struct([pl.col(c) for c in given if not c.startswith("@")]).alias(ROW))
    prepare = Step("prepare", partial(ProjectOperator, columns), "only the keys and arguments of the aggregates")
    lift = partial(Lift, user, [n for n, _ in node.keys], node.options.late == "error", _window_at(node))
    steps = [Step("lift", lift, f"each row by {', '.join(u.name for _, u in user)}")] if user else []
    return prepare, Partials(made, extra), steps


def _window_at(node: WindowAggregate) -> Callable[[int], Any] | None:
    """The first window of a row by its progress value, for messages."""
    window = _gate_shape(node.window)
    return partial(_first_window, window, node.bound) if isinstance(window, Sliding) else None


def _first_window(window: Sliding, dtype: pl.DataType, at: int) -> tuple[Any, Any]:
    wid = (at - window.origin) // window.slide
    bounds = Bounds(dtype).column("t", np.array([window.start(wid), window.end(wid)]))
    return bounds[0], bounds[1]


def _dtype(call: AggregateCall, node: WindowAggregate) -> pl.DataType:
    return pl.Int64() if call.argument is None else dtype_of(call.argument, node.input.schema)


def _argument_columns(calls: Sequence[AggregateCall]) -> dict[str, str]:
    """Equal arguments share one column, and so their state; a user's aggregate has its own, lifted."""
    by_text: dict[tuple[str, str], str] = {}
    found = {}
    for call in calls:
        assert call.argument is not None
        what = call.argument.sql("spark"), call.user.name if call.user is not None else ""
        found[call.name] = by_text.setdefault(what, f"@arg{len(by_text)}")
    return found
