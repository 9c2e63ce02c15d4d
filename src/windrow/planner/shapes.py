"""Each window type as operators: steps before the state, the state, and the keys whose rows must meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl
from sqlglot import exp

from windrow.aggregates import Partials
from windrow.logical.nodes import (
    Apply,
    Filter,
    Node,
    Project,
    Split,
    Union,
    WindowAggregate,
    promised_by,
)
from windrow.operators import (
    AdaptPaned,
    AdaptWid,
    Bins,
    Bucket,
    BufferedByTuple,
    Buffering,
    FixedTable,
    GroupPaned,
    Instants,
    Paned,
    Panes,
    PartitionedRows,
    Running,
    Sessions,
    SlidByTuple,
    Wid,
)
from windrow.operators.entries import Flush
from windrow.operators.operator import Operator
from windrow.operators.table import MEMORY, slots_for
from windrow.planner.plan import Step
from windrow.windows import Landmark, Partitioned, RowSliding, Session, SlideByTuple, Sliding

# Those that take rows tagged by Bucket: the operator, and what explain says of it.
BY_WINDOW_ID: dict[str, tuple[Callable[..., Operator], str]] = {
    "wid": (Wid, "an accumulator per window and group"),
    "buffering": (Buffering, "rows, and each window from its rows as it closes"),
    "adaptwid": (AdaptWid, "rows of sparse groups, accumulators of dense ones"),
    "adaptpaned": (AdaptPaned, "rows of sparse panes, partials of dense ones, merged as windows close"),
}
WATCHING = ("adaptwid",)  # those that want to know which input of a union a row is from
TWO_LEVEL = "two-level"  # only where it is asked for: nothing here is cheaper than panes, but its memory is bounded
ALGORITHMS = ("paned", *BY_WINDOW_ID, TWO_LEVEL)
BY_TUPLE: dict[str, tuple[Callable[..., Operator], str]] = {
    "blocks": (SlidByTuple, "a window back from every n-th row, of a suffix and a prefix of blocks"),
    "bins": (Bins, "a start and an end bin for every row, each with an accumulator"),
    "buffering": (BufferedByTuple, "each window back from an n-th row computed from all its rows"),
}


@dataclass(frozen=True)
class Physical:
    """How a window type runs: steps before the state, the state, and the keys whose rows must meet."""

    name: str
    low: tuple[Step, ...]
    high: Step
    meet: tuple[str, ...]


def _sliding(node: WindowAggregate, aggregates: Partials) -> Physical:
    window = node.window.over_rows if isinstance(node.window, RowSliding) else node.window
    assert isinstance(window, Sliding)
    algorithm = node.using or "paned"
    keys, options = key_names(node), node.options
    if algorithm == "paned":
        low = Step("panes", partial(Panes, window, keys, aggregates, options), "one partial per pane and group")
        if by := groups_promised(node):
            grouped = partial(GroupPaned, window, keys, aggregates, node.bound, options, by)
            says = f"panes merged to windows as they close, for everyone or by {', '.join(by)}"
            return Physical("group-paned", (low,), Step("paned", grouped, says), keys)
        paned = partial(Paned, window, keys, aggregates, node.bound, options)
        return Physical(algorithm, (low,), Step("paned", paned, "panes merged to windows as they close"), keys)
    if algorithm == TWO_LEVEL:
        paned = partial(Paned, window, keys, aggregates, node.bound, options)
        low = _table(node, window, aggregates)
        return Physical(algorithm, (low,), Step("paned", paned, "panes merged to windows as they close"), keys)
    low = Step("bucket", partial(Bucket, window), "tag rows with their window ids")
    kind, says = BY_WINDOW_ID[algorithm]
    high = partial(kind, window, keys, aggregates, node.bound, options)
    if algorithm in WATCHING:
        high = partial(high, inputs=inputs_of(node.input))
    return Physical(algorithm, (low,), Step(algorithm, high, says), keys)


def _table(node: WindowAggregate, window: Sliding, aggregates: Partials) -> Step:
    """The low level of two-level aggregation. A task promises when it ends, so entries can stay until then."""
    memory = MEMORY if node.memory is None else node.memory
    slots, flush = slots_for(memory, len(node.keys), aggregates), Flush(node.flush or "at once")
    make = partial(FixedTable, window, key_names(node), aggregates, node.options, slots)
    says = f"one partial per pane and group, in a table of {slots:,} entries ({memory:,} bytes);"
    in_task = Step("table", partial(make, Flush("lazy", late=None), drains=True), f"{says} all leave with the task")
    return Step("table", partial(make, flush), f"{says} {flush}", in_task=in_task)


def _landmark(node: WindowAggregate, aggregates: Partials) -> Physical:
    assert isinstance(node.window, Landmark)
    keys, slices = key_names(node), Sliding(node.window.slide, node.window.slide, node.window.origin)
    low = Step("panes", partial(Panes, slices, keys, aggregates), "one partial per slide and group")
    running = partial(Running, node.window, keys, aggregates, node.bound, node.options)
    return Physical("running", (low,), Step("running", running, "a running total per group"), keys)


def _session(node: WindowAggregate, aggregates: Partials) -> Physical:
    assert isinstance(node.window, Session)
    keys = key_names(node)
    low = Step("instants", partial(Instants, keys, aggregates), "one partial per progress value and group")
    sessions = partial(Sessions, node.window, keys, aggregates, node.bound, node.options)
    return Physical("sessions", (low,), Step("sessions", sessions, "runs of a key's rows, out after the gap"), keys)


def _slide_by_tuple(node: WindowAggregate, aggregates: Partials) -> Physical:
    assert isinstance(node.window, SlideByTuple)
    keys = key_names(node)
    low = Step("instants", partial(Instants, keys, aggregates), "one partial per progress value and group")
    algorithm = node.using or "blocks"
    operator, says = BY_TUPLE[algorithm]
    slid = partial(operator, node.window, keys, aggregates, node.bound, node.options, node.parts)
    return Physical(algorithm, (low,), Step("slide-by-tuple", slid, says), node.parts)


def _partitioned(node: WindowAggregate, aggregates: Partials) -> Physical:
    assert isinstance(node.window, Partitioned)
    rows = partial(PartitionedRows, node.window, key_names(node), aggregates, node.options, node.parts)
    return Physical("partitioned", (), Step("partitioned", rows, "rows ranked in their partition"), node.parts)


SHAPES: dict[type[Any], Callable[[WindowAggregate, Partials], Physical]] = {
    Sliding: _sliding,
    RowSliding: _sliding,
    Landmark: _landmark,
    Session: _session,
    SlideByTuple: _slide_by_tuple,
    Partitioned: _partitioned,
}


def key_names(node: WindowAggregate) -> tuple[str, ...]:
    return tuple(n for n, _ in node.keys)


def groups_promised(node: WindowAggregate) -> dict[str, pl.DataType]:
    """The keys by which promises can close single groups. Results that can come again need those about everyone."""
    named = {e.name: n for n, e in node.keys if isinstance(e, exp.Column)}
    columns = promised_by(node.input)
    plain = node.options.late in ("drop", "error") and not node.options.versioned and not node.options.empty
    if not plain or not columns or not all(c in named for c in columns):
        return {}
    return {named[c]: node.schema[named[c]] for c in columns}


def inputs_of(node: Node) -> int:
    """How many pipelines lead here."""
    match node:
        case Union():
            return sum(inputs_of(each) for each in node.inputs)
        case Filter() | Project() | Apply() | Split():
            return inputs_of(node.input)
        case _:
            return 1
