"""Each window type as operators: steps before the state, the state, and the keys whose rows must meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from windrow.aggregates import Partials
from windrow.errors import PlanError
from windrow.logical.nodes import (
    WindowAggregate,
)
from windrow.operators import (
    AdaptPaned,
    AdaptWid,
    Bins,
    Bucket,
    BufferedByTuple,
    Buffering,
    FixedTable,
    Instants,
    Paned,
    PanedRows,
    Panes,
    PartitionedRows,
    Running,
    Sessions,
    SlidByTuple,
    Wid,
    Windowing,
)
from windrow.operators.operator import Operator
from windrow.operators.state.levels import Named
from windrow.operators.windows.fixed_table import MEMORY, slots_for
from windrow.operators.windows.paned_rows import FEW, takes_rows
from windrow.planner.plan import Step
from windrow.spec.flush import Flush
from windrow.windows import Landmark, Partitioned, RowSliding, Session, SlideByTuple, Sliding

# Those that take rows tagged by Bucket: the operator, and what explain says of it.
BY_WINDOW_ID: dict[str, tuple[Callable[..., Operator], str]] = {
    "wid": (Wid, "an accumulator per window and group"),
    "buffering": (Buffering, "rows, and each window from its rows as it closes"),
    "adaptwid": (AdaptWid, "rows of sparse groups, accumulators of dense ones"),
    "adaptpaned": (AdaptPaned, "rows of sparse panes, partials of dense ones, merged as windows close"),
}
WATCHING = ("adaptwid",)  # those that need to know which input of a union a row is from
TWO_LEVEL = "two-level"  # only on request: it is never cheaper than panes, but its memory is bounded
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


def _sliding(node: WindowAggregate, aggregates: Partials, algorithm: str | None, inputs: int) -> Physical:
    window = node.window.sliding
    assert window is not None
    algorithm = algorithm or "paned"
    keys, options = key_names(node), node.options
    what = Windowing(window, keys, aggregates, node.bound, options, groups_promised(node))
    if algorithm == "paned":
        few = takes_rows(what)
        panes = partial(Panes, window, keys, aggregates, options)
        low = Step("panes", panes, "one partial per pane and group", in_one=partial(panes, few=FEW) if few else None)
        by = what.named
        name = "group-paned" if by else algorithm
        says = f"panes merged to windows as they close{_apart(by)}"
        paned = Step("paned", partial(Paned, what), says, in_one=partial(PanedRows, what) if few else None)
        return Physical(name, (low,), paned, keys)
    if algorithm == TWO_LEVEL:
        paned = Step("paned", partial(Paned, what), "panes merged to windows as they close")
        return Physical(algorithm, (_table(node, what),), paned, keys)
    low = Step("bucket", partial(Bucket, window), "tag rows with their window ids")
    kind, says = BY_WINDOW_ID[algorithm]
    high = partial(kind, what)
    if algorithm in WATCHING:
        high = partial(high, inputs=inputs)
    return Physical(algorithm, (low,), Step(algorithm, high, says), keys)


def _table(node: WindowAggregate, what: Windowing[Sliding]) -> Step:
    """The low level of two-level aggregation. A task promises when it ends, so entries can stay until then."""
    memory = MEMORY if node.memory is None else node.memory
    slots, flush = slots_for(memory, len(node.keys), what.aggregates), Flush(node.flush or "at once")
    make = partial(FixedTable, what, slots)
    says = f"one partial per pane and group, in a table of {slots:,} entries ({memory:,} bytes);"
    in_task = Step("table", partial(make, Flush("lazy", late=None), drains=True), f"{says} all leave with the task")
    return Step("table", partial(make, flush), f"{says} {flush}", in_task=in_task)


def _landmark(node: WindowAggregate, aggregates: Partials, _algorithm: str | None, _inputs: int) -> Physical:
    assert isinstance(node.window, Landmark)
    keys, slices = key_names(node), Sliding(node.window.slide, node.window.slide, node.window.origin)
    low = Step("panes", partial(Panes, slices, keys, aggregates), "one partial per slide and group")
    by = groups_promised(node)
    running = partial(Running, Windowing(node.window, keys, aggregates, node.bound, node.options, by))
    return Physical("running", (low,), Step("running", running, f"a running total per group{_apart(by)}"), keys)


def _session(node: WindowAggregate, aggregates: Partials, _algorithm: str | None, _inputs: int) -> Physical:
    assert isinstance(node.window, Session)
    keys = key_names(node)
    low = Step("instants", partial(Instants, keys, aggregates), "one partial per progress value and group")
    by = groups_promised(node)
    sessions = partial(Sessions, Windowing(node.window, keys, aggregates, node.bound, node.options, by))
    says = f"runs of rows of a key, released after the gap{_apart(by)}"
    return Physical("sessions", (low,), Step("sessions", sessions, says), keys)


def _slide_by_tuple(node: WindowAggregate, aggregates: Partials, algorithm: str | None, _inputs: int) -> Physical:
    assert isinstance(node.window, SlideByTuple)
    keys = key_names(node)
    low = Step("instants", partial(Instants, keys, aggregates), "one partial per progress value and group")
    by = groups_promised(node)
    algorithm = algorithm or ("buffering" if by else "blocks")
    if by and algorithm != "buffering":
        raise PlanError(f"the algorithm {algorithm!r} cannot run this query: {together(by)} 'buffering'")
    operator, says = BY_TUPLE[algorithm]
    slid = partial(operator, Windowing(node.window, keys, aggregates, node.bound, node.options, by, node.parts))
    return Physical(algorithm, (low,), Step("slide-by-tuple", slid, f"{says}{_apart(by)}"), node.parts)


def _partitioned(node: WindowAggregate, aggregates: Partials, _algorithm: str | None, _inputs: int) -> Physical:
    assert isinstance(node.window, Partitioned)
    what = Windowing(node.window, key_names(node), aggregates, options=node.options, parts=node.parts)
    rows = partial(PartitionedRows, what)
    return Physical("partitioned", (), Step("partitioned", rows, "rows ranked in their partition"), node.parts)


# By the type of a window: the aggregation, its aggregates, the algorithm if one is chosen, and how many inputs it has.
SHAPES: dict[type[Any], Callable[[WindowAggregate, Partials, str | None, int], Physical]] = {
    Sliding: _sliding,
    RowSliding: _sliding,
    Landmark: _landmark,
    Session: _session,
    SlideByTuple: _slide_by_tuple,
    Partitioned: _partitioned,
}


def key_names(node: WindowAggregate) -> tuple[str, ...]:
    return tuple(n for n, _ in node.keys)


def groups_promised(node: WindowAggregate) -> Named:
    """The keys by which promises can close single groups. A marker about a group without rows is counted, where one
    shard knows all rows of a group.
    """
    by = node.closed_by
    marked = any(scan.source.marker_by for scan in node.input.scans)
    return Named(tuple((name, node.schema[name]) for name in by), marked and set(by) == set(key_names(node)))


def together(by: Iterable[str]) -> str:
    """Why an algorithm cannot be used on a stream that makes promises about single groups."""
    named = ", ".join(by)
    return f"it closes all groups together, and the stream makes promises about single {named}; leave it out, or use"


def _apart(by: Iterable[str]) -> str:
    return f", for everyone or by {', '.join(by)}" if by else ""
