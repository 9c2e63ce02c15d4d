"""Several window queries over one stream as one stage with one pane aggregation: pane = gcd over all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import polars as pl

from windrow.aggregates import Partials
from windrow.errors import PlanError
from windrow.logical.nodes import Filter, Node, Project, Together, WindowAggregate
from windrow.operators import Windowing
from windrow.operators.windows.shared import Level, Query, SharedPanes
from windrow.planner.plan import Step
from windrow.planner.windows import groups_promised, key_names
from windrow.windows import Sliding


@dataclass(frozen=True)
class Member:
    """One of the queries: its window aggregation, and the filters and projections over it, innermost first."""

    name: str
    window: WindowAggregate
    over: tuple[Node, ...]
    node: Node


def members(node: Together) -> list[Member]:
    """The queries; raises PlanError for those that cannot share panes, with the reason."""
    found = [_member(name, query) for name, query in node.queries]
    first = found[0]
    for member in found:
        window = member.window
        if not isinstance(window.window, Sliding):
            raise PlanError(f"query {member.name!r} cannot share panes: its windows are not sliding or tumbling ones")
        if window.options.late not in ("drop", "error") or window.options.versioned or window.options.empty:
            raise PlanError(
                f"query {member.name!r} cannot share panes: LATE SIDE or REVISE, EMIT EARLY and WITH EMPTY need its own"
            )
        if window.using not in (None, "paned"):
            raise PlanError(f"query {member.name!r} cannot share panes: it asks for the algorithm {window.using!r}")
        if window.memory is not None:
            raise PlanError(f"query {member.name!r} cannot share panes: memory= is for the choice of another algorithm")
        same = window.input == first.window.input and window.keys == first.window.keys
        if not same or window.options.zone != first.window.options.zone:
            raise PlanError(
                f"queries {first.name!r} and {member.name!r} cannot share panes: they must have the same input, "
                "conditions, groups and time zone, and differ only in windows and aggregates"
            )
    return found


def _member(name: str, node: Node) -> Member:
    over: list[Node] = []
    inner = node
    while isinstance(inner, (Filter, Project)):
        over.insert(0, inner)
        inner = inner.input
    if not isinstance(inner, WindowAggregate):
        raise PlanError(f"query {name!r} cannot share panes: it is not a window aggregation with conditions over it")
    return Member(name, inner, tuple(over), node)


def panes_of(found: Sequence[Member]) -> Sliding:
    """The panes of all windows as a tumbling window: no edge of any of them lies inside a pane."""
    windows = [m.window.window for m in found]
    assert all(isinstance(w, Sliding) for w in windows)
    origin = windows[0].origin  # type: ignore[union-attr]
    lengths = [x for w in windows if isinstance(w, Sliding) for x in (w.range, w.slide, w.origin - origin)]
    size = math.gcd(*lengths)
    return Sliding(size, size, origin)


def joined(found: Sequence[Member], panes: Sliding) -> WindowAggregate:
    """One window aggregation with the aggregates of all, each under the name of its query and its own."""
    calls = tuple(replace(c, name=f"{m.name}.{c.name}") for m in found for c in m.window.calls)
    return replace(found[0].window, window=panes, calls=calls)


def shared_step(
    found: Sequence[Member], panes: Sliding, aggregates: Partials, after: Callable[[Member], Sequence[Step]]
) -> Step:
    """The window levels over the panes; ``after`` gives what follows each."""
    specs = []
    rest = list(aggregates.aggregates)
    for member in found:
        own = [replace(rest.pop(0), name=c.name) for c in member.window.calls]
        dtype = pl.Struct(dict(member.node.schema))
        specs.append((member, Partials(own), tuple(after(member)), dtype))
    says = f"the panes of {len(found)} queries, merged to the windows of each as they close"
    return Step("shared-panes", partial(_make, panes, aggregates, specs), says)


def _make(
    panes: Sliding,
    aggregates: Partials,
    specs: Sequence[tuple[Member, Partials, tuple[Step, ...], pl.DataType]],
) -> SharedPanes:
    queries = []
    keys = key_names(specs[0][0].window)
    for number, (member, own, after, dtype) in enumerate(specs):
        node = member.window
        assert isinstance(node.window, Sliding)
        by = groups_promised(node)
        by = by if not number else replace(by, counted=False)  # what names nobody is told once
        level = Level(Windowing(node.window, keys, own, node.bound, node.options, by), panes)
        queries.append(Query(member.name, level, [step.make() for step in after], dtype))
    return SharedPanes(panes, keys, aggregates, queries)
