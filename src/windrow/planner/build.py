"""Logical plan to physical plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from windrow.aggregates import Partials, make
from windrow.logical.explain import promises_text
from windrow.logical.expressions import dtype_of, translate
from windrow.logical.nodes import (
    WINDOW_END,
    AggregateCall,
    Filter,
    Node,
    Project,
    Scan,
    Shape,
    Together,
    Top,
    Union,
    WindowAggregate,
    arrival,
    versioned,
)
from windrow.operators import (
    Admit,
    Gate,
    Generate,
    Judge,
    Lift,
    Panes,
    Punctuate,
    Retract,
    Select,
    WallClock,
    Witness,
)
from windrow.operators import Project as ProjectOperator
from windrow.operators import Top as TopOperator
from windrow.operators.admit import Unmarked, physical
from windrow.operators.clock import Bounds
from windrow.operators.gate import ROW
from windrow.operators.operator import PROGRESS
from windrow.operators.released import late_schema
from windrow.operators.row_windows import ROW_NUM, nth
from windrow.operators.rowbuffer import INPUT
from windrow.operators.sourced import SOURCE
from windrow.planner.choice import NOTHING, Given, chosen
from windrow.planner.plan import Pipeline, Plan, Stage, Step, stages_of
from windrow.planner.shapes import SHAPES, WATCHING, key_names
from windrow.planner.shared import Member, joined, members, panes_of, shared_step
from windrow.windows import Partitioned, RowSliding, SlideByTuple, Sliding


def plan(node: Node, given: Given = NOTHING) -> Plan:
    """The physical plan; raises PlanError for what has no operator yet, or could never produce output."""
    wanted = list(node.schema)
    outputs = tuple(p.then(_columns(wanted)) for p in _Build(given).pipelines(node))
    return Plan(node, outputs, dict(node.schema))


def _columns(names: Sequence[str]) -> Step:
    return Step("columns", partial(ProjectOperator, [pl.col(n) for n in names]), f"columns {', '.join(names)}")


@dataclass(frozen=True)
class _Build:
    given: Given

    def pipelines(self, node: Node, by_rows: bool = False, needs: tuple[str, ...] = ()) -> list[Pipeline]:
        """``by_rows``: row numbers are the progress values. ``needs``: columns of the source that must not be NULL."""
        match node:
            case Scan():
                return [Pipeline(node, _admission(node, by_rows, needs), by_rows)]
            case Filter():
                return [p.then(_selection(node)) for p in self.pipelines(node.input, by_rows, needs)]
            case Project():
                return [p.then(_projection(node)) for p in self.pipelines(node.input, by_rows, needs)]
            case Union():
                return [p for each in node.inputs for p in self.pipelines(each, by_rows, needs)]
            case WindowAggregate():
                after = (_progress_of_results(node),) if node.progress is not None else ()
                return [Pipeline(self._stage(node), after)]
            case Top():
                return [Pipeline(_top(node, self.pipelines(node.input)))]
            case Together():
                return [Pipeline(self._shared(node))]

    def _stage(self, node: WindowAggregate) -> Stage:
        """The stage of a window aggregation: what runs before the exchange, and after it."""
        prepared, aggregates, extra_steps = _prepared(node)
        wall = [_wall_clock(node.options.zone)] if node.options.zone is not None else []
        needs = arrival(node.input) if isinstance(node.window, SlideByTuple) and _by_number(node.window) else ()
        inputs = [p.then(prepared, *wall) for p in self.pipelines(node.input, node.by_rows, needs)]
        choice = None
        if isinstance(node.window, (Sliding, RowSliding)):
            choice = chosen(node, aggregates, inputs, self.given)
            node = replace(node, using=choice.name)
        shape = SHAPES[type(node.window)](node, aggregates)
        pipelines = [p.then(*extra_steps) for p in inputs]
        if shape.name in WATCHING and len(pipelines) > 1:
            pipelines = [p.then(_numbered(i)) for i, p in enumerate(pipelines)]
        if node.options.late == "side":
            gated = partial(Gate, _gate_shape(node.window), node.bound, node.options)
            steps = (Step("gate", gated, "late rows to the side"), *shape.low, shape.high)
            columns = dict(node.input.schema)
        else:
            if extra_steps:
                pipelines = [p.then(_dropped(ROW)) for p in pipelines]
            pipelines = [p.then(*shape.low) for p in pipelines]
            steps = (shape.high,)
            columns = {n: t for n, t in node.schema.items() if n in dict(node.keys)}
        inner = max((s.number for p in pipelines for s in stages_of(p)), default=-1)
        late = tuple(late_schema({c: t for c, t in columns.items() if not c.startswith("@")}, node.bound).items())
        return Stage(tuple(pipelines), shape.meet, steps, shape.name, inner + 1, late, choice)

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
        pipelines = tuple(p.then(*before) for p in self.pipelines(window.input))
        inner = max((s.number for p in pipelines for s in stages_of(p)), default=-1)
        step = shared_step(found, panes, aggregates, _after)
        late = late_schema({n: t for n, t in window.schema.items() if n in keys}, window.bound)
        return Stage(pipelines, keys, (step,), "shared-panes", inner + 1, tuple(late.items()))


def _after(member: Member) -> list[Step]:
    """What follows the windows of a query that shares its panes."""
    steps = [_progress_of_results(member.window)]
    for over in member.over:
        assert isinstance(over, (Filter, Project))
        steps.append(_selection(over) if isinstance(over, Filter) else _projection(over))
    return [*steps, _columns(list(member.node.schema))]


def _selection(node: Filter) -> Step:
    predicate = translate(node.predicate, node.input.schema)
    if versioned(node.input):
        return Step("retract", partial(Retract, predicate), f"take back rows unless {node.predicate.sql('spark')}")
    return Step("select", partial(Select, predicate), f"keep rows where {node.predicate.sql('spark')}")


def _admission(scan: Scan, by_rows: bool, needs: tuple[str, ...]) -> tuple[Step, ...]:
    source = scan.source
    if by_rows:
        number = source.row_num[-1]
        admit = partial(Admit, number, scan.schema[number], None, None, source.row_num[:-1])
        first = Step("admit", admit, f"rows without a number in {' and '.join(source.row_num)} to the side output")
        sourced = len(source.row_num) > 1
        steps = [first]
        if source.marker is not None:
            steps.insert(0, Step("unmarked", partial(Unmarked, source.marker), "without markers"))
        if sourced:
            tag = [pl.all(), pl.col(source.row_num[0]).alias(SOURCE)]
            steps.append(Step("partition", partial(ProjectOperator, tag), f"promises by {source.row_num[0]}"))
        punctuate = partial(Punctuate, source.row_slack, True, sourced)
        return *steps, Step(
            "punctuate", punctuate, f"promise what is more than {source.row_slack} before max({number})"
        )
    dtype = scan.schema[scan.progress]
    about = tuple(scan.schema[c] for c in source.marker_by)
    markers = source.marker_by, source.skew, source.ahead, about
    admit = partial(Admit, scan.progress, dtype, source.parse, source.marker, needs, *markers)
    first = Step("admit", admit, f"rows without a readable {scan.progress} to the side output")
    if (rule := source.rule) is not None:
        halves = partial(Witness, rule), partial(Judge, rule)
        return first, Step("generate", partial(Generate, rule), promises_text(scan), halves)
    says = f"promise max({scan.progress}) - slack" if source.slack is not None else "notes how far the stream comes"
    return first, Step("punctuate", partial(Punctuate, source.slack), says)


def _projection(node: Project) -> Step:
    given = node.input.schema
    columns = [translate(e, given).alias(n) for n, e in node.columns]
    says = ", ".join(f"{e.sql('spark')} AS {n}" for n, e in node.columns)
    if node.progress is not None:
        columns.append(pl.col(PROGRESS))
    return Step("project", partial(ProjectOperator, columns), f"compute {says}")


def _progress_of_results(node: WindowAggregate) -> Step:
    """Results progress on ``window_end``: whatever comes after a window sees it as ``@t``."""
    progress = physical(pl.col(WINDOW_END), node.schema[WINDOW_END]).alias(PROGRESS)
    return Step("progress", partial(ProjectOperator, [pl.all(), progress]), "results progress on window_end")


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


def _top(node: Top, before_it: Sequence[Pipeline]) -> Stage:
    given = node.input.schema
    names = [f"@order{i}" for i in range(len(node.order))]
    columns = [translate(e, given).alias(n) for n, (e, _) in zip(names, node.order, strict=True)]
    before = Step("order", partial(ProjectOperator, [pl.all(), *columns]), "what the order is by")
    top = partial(TopOperator, names, [down for _, down in node.order], node.limit)
    after = Step("columns", partial(ProjectOperator, [pl.exclude(names)]), "without it")
    inputs = tuple(p.then(before) for p in before_it)
    inner = max((s.number for p in inputs for s in stages_of(p)), default=-1)
    steps = (Step("top", top, f"the first {node.limit} rows of each window"), after)
    return Stage(inputs, (WINDOW_END,), steps, "top", inner + 1)


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
