"""Each window type as operators: steps before the state, the state, and the keys whose rows must meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from windrow.aggregates import Partials
from windrow.errors import PlanError
from windrow.logical.nodes import (
    WindowAggregate,
)
from windrow.operators import (
    Bins,
    Bucket,
    BufferedByTuple,
    Instants,
    Operator,
    Paned,
    Panes,
    PartitionedRows,
    Running,
    Sessions,
    SlidByTuple,
    Wid,
)
from windrow.planner.plan import Step
from windrow.windows import Landmark, Partitioned, RowSliding, Session, SlideByTuple, Sliding

ALGORITHMS = ("paned", "wid")
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
    if algorithm not in ALGORITHMS:
        raise PlanError(
            f"there is no algorithm {algorithm!r} for window aggregation; there are: {', '.join(ALGORITHMS)}"
        )
    if algorithm == "paned":
        low = Step("panes", partial(Panes, window, keys, aggregates, options), "one partial per pane and group")
        paned = partial(Paned, window, keys, aggregates, node.bound, options)
        return Physical(algorithm, (low,), Step("paned", paned, "panes merged to windows as they close"), keys)
    if options.versioned or options.empty:
        raise PlanError("the algorithm 'wid' keeps no panes: EMIT EARLY, LATE REVISE and WITH EMPTY need 'paned'")
    low = Step("bucket", partial(Bucket, window), "tag rows with their window ids")
    wid = partial(Wid, window, keys, aggregates, node.bound, options)
    return Physical(algorithm, (low,), Step("wid", wid, "an accumulator per window and group"), keys)


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
    if algorithm not in BY_TUPLE:
        raise PlanError(
            f"there is no algorithm {algorithm!r} for slide-by-tuple windows; there are: {', '.join(BY_TUPLE)}"
        )
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
