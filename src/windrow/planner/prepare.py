"""What an aggregation needs of its input rows: keys, arguments and the lift of users' aggregates, as steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from sqlglot import exp

from windrow.aggregates import Partials, make
from windrow.logical.expressions import dtype_of, translate
from windrow.logical.nodes import AggregateCall, PairAggregate, WindowAggregate
from windrow.operators import Lift, WallClock
from windrow.operators import Project as ProjectOperator
from windrow.operators.windows.by_tuple import nth
from windrow.planner.plan import Step
from windrow.spec.names import INPUT, PROGRESS, ROW, ROW_NUM, SOURCE
from windrow.spec.time import Bounds, physical
from windrow.windows import SlideByTuple, Sliding


def wall_clock(zone: str | None) -> list[Step]:
    """Windows over the wall clock of a time zone, where a query asks for it."""
    if zone is None:
        return []
    return [Step("clock", partial(WallClock, zone), f"progress on the wall clock of {zone}")]


def numbered(number: int) -> Step:
    """Rows with the number of the input that they are from."""
    tag = [pl.all(), pl.lit(number, pl.Int16).alias(INPUT)]
    return Step("input", partial(ProjectOperator, tag), f"rows of input {number}")


def without_row() -> Step:
    """Where the whole row is no longer needed."""
    return Step("columns", partial(ProjectOperator, [pl.exclude(ROW)]), "without the whole row")


def prepared(node: WindowAggregate | PairAggregate) -> tuple[Step, Partials, list[Step]]:
    """The step that keeps what the aggregation needs of a row, the aggregates, and the lift of users' aggregates."""
    given = node.input.schema
    calls = [c for c in node.calls if c.argument is not None]
    named = _argument_columns(calls)
    aggregates = [
        make(c.function, c.name, named.get(c.name), _dtype(c, node), c.parameters, c.user) for c in node.calls
    ]
    window, late = (node.window, node.options.late) if isinstance(node, WindowAggregate) else (None, "drop")
    by_number = isinstance(window, SlideByTuple) and window.counts_rows
    extra = [nth(window)] if isinstance(window, SlideByTuple) and by_number else []
    columns = [translate(e, given).alias(n) for n, e in node.keys] + [_progress(node)]
    first = {named[c.name]: c for c in reversed(calls) if c.argument is not None}
    columns += [translate(c.argument, given).alias(n) for n, c in first.items() if c.argument is not None]
    if by_number:
        columns.append(pl.col(node.input.arrival[0]).alias(ROW_NUM))
    if window is not None and window.in_partitions and len(node.input.arrival) > 1:
        columns.append(pl.col(node.input.arrival[0]).alias(SOURCE))
    user = [(n, c.user) for n, c in first.items() if c.user is not None]
    if user or late == "side":
        columns.append(pl.struct([pl.col(c) for c in given if not c.startswith("@")]).alias(ROW))
    kept = {n: e.name for n, e in node.keys if isinstance(e, exp.Column)}
    says = "only the keys and arguments of the aggregates"
    prepare = Step("prepare", partial(ProjectOperator, columns), says, renames=kept)
    lift = partial(Lift, user, [n for n, _ in node.keys], late == "error", _window_at(node))
    steps = [Step("lift", lift, f"each row by {', '.join(u.name for _, u in user)}")] if user else []
    return prepare, Partials(aggregates, extra), steps


def _progress(node: WindowAggregate | PairAggregate) -> pl.Expr:
    """What orders the rows of a group: of a group by both times the first one, whatever its results progress on."""
    if isinstance(node, WindowAggregate):
        return pl.col(PROGRESS)
    given = node.input
    names = [given.progress] if given.progress is not None else [node.column(k) for k in (node.left, node.right)]
    return pl.max_horizontal([physical(pl.col(n), given.schema[n]) for n in names]).alias(PROGRESS)


def _window_at(node: WindowAggregate | PairAggregate) -> Callable[[int], Any] | None:
    """The first window of a row by its progress value, for messages."""
    if isinstance(node, PairAggregate):
        return None
    window = node.window.sliding
    return partial(_first_window, window, node.bound) if window is not None else None


def _first_window(window: Sliding, dtype: pl.DataType, at: int) -> tuple[Any, Any]:
    wid = (at - window.origin) // window.slide
    bounds = Bounds(dtype).column("t", np.array([window.start(wid), window.end(wid)]))
    return bounds[0], bounds[1]


def _dtype(call: AggregateCall, node: WindowAggregate | PairAggregate) -> pl.DataType:
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
