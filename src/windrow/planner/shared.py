"""Several window queries over one stream as one stage with one pane aggregation: pane = gcd over all."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

import polars as pl

from windrow.aggregates import Partials
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
    aggregation: WindowAggregate | None  # None if it is another kind of query, which shares nothing
    over: tuple[Node, ...]
    node: Node

    @property
    def window(self) -> WindowAggregate:
        """The aggregation of a query that shares panes."""
        assert self.aggregation is not None
        return self.aggregation


def grouped(node: Together) -> list[list[Member]]:
    """The queries that share panes, group by group; one that shares with no other is alone in its group."""
    groups: list[list[Member]] = []
    for name, query in node.queries:
        member = _member(name, query)
        found = next((group for group in groups if _alike(group[0], member)), None)
        if found is None:
            groups.append([member])
        else:
            found.append(member)
    return groups


def _member(name: str, node: Node) -> Member:
    over: list[Node] = []
    inner = node
    while isinstance(inner, (Filter, Project)):
        over.insert(0, inner)
        inner = inner.input
    return Member(name, inner if isinstance(inner, WindowAggregate) else None, tuple(over), node)


def _alike(a: Member, b: Member) -> bool:
    """Whether two queries have the same groups of the same rows, and differ in windows and aggregates only."""
    if not _shares(a.aggregation) or not _shares(b.aggregation):
        return False
    same = a.window.input == b.window.input and a.window.keys == b.window.keys
    return same and a.window.options.zone == b.window.options.zone


def _shares(node: WindowAggregate | None) -> bool:
    """Whether panes are all that a window needs: no window of another type, option or algorithm has them.

    A row for which a user's function fails is bad for that query, and for no other.
    """
    if node is None or any(call.user is not None for call in node.calls):
        return False
    plain = node.options.late in ("drop", "error") and not node.options.versioned and not node.options.empty
    return isinstance(node.window, Sliding) and plain and node.using in (None, "paned") and node.memory is None


def panes_of(found: Sequence[Member]) -> Sliding:
    """The panes of all windows as a tumbling window: no edge of any of them lies inside a pane."""
    windows = [m.window.window for m in found if isinstance(m.window.window, Sliding)]
    origin = windows[0].origin
    lengths = [x for w in windows for x in (w.range, w.slide, w.origin - origin)]
    size = math.gcd(*lengths)
    return Sliding(size, size, origin)


def joined(found: Sequence[Member], panes: Sliding) -> WindowAggregate:
    """One window aggregation with the aggregates of all, each under the name of its query and its own."""
    calls = tuple(replace(c, name=f"{m.name}.{c.name}") for m in found for c in m.window.calls)
    return replace(found[0].window, window=panes, calls=calls)


def shared_step(
    found: Sequence[Member],
    panes: Sliding,
    aggregates: Partials,
    after: Callable[[Member], Sequence[Step]],
    active: Collection[str] | None = None,
) -> Step:
    """The window levels over the panes; ``after`` gives what follows each. ``active``: of queries that come and go, the
    names of those that are still there.
    """
    specs = []
    rest = list(aggregates.aggregates)
    for member in found:
        own = [replace(rest.pop(0), name=c.name) for c in member.window.calls]
        dtype = pl.Struct(dict(member.node.schema))
        specs.append((member, Partials(own), tuple(after(member)), dtype))
    says = f"the panes of {len(found)} queries, merged to the windows of each as they close"
    return Step("shared-panes", partial(_make, panes, aggregates, specs, active), says)


def _make(
    panes: Sliding,
    aggregates: Partials,
    specs: Sequence[tuple[Member, Partials, tuple[Step, ...], pl.DataType]],
    active: Collection[str] | None,
) -> SharedPanes:
    queries = []
    keys = key_names(specs[0][0].window)
    for number, (member, own, after, dtype) in enumerate(specs):
        node = member.window
        assert isinstance(node.window, Sliding)
        by = groups_promised(node)
        by = by if not number else replace(by, counted=False)  # a marker about a group without rows is counted once
        level = Level(Windowing(node.window, keys, own, node.bound, node.options, by), panes)
        queries.append(Query(member.name, level, [step.make() for step in after], dtype))
    return SharedPanes(panes, keys, aggregates, queries, active)
