"""Checked multi-way joins: streams that progress, what must be equal, and how long their rows are held."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from windrow.errors import PlanError, QueryError, listing
from windrow.logical.checked_join import check_conditions
from windrow.logical.checked_order import check_adaptive
from windrow.logical.checked_sequence import check_times, key_type, timed
from windrow.logical.multi_join import WAYS, MultiJoin
from windrow.logical.node import Node
from windrow.progress import LONGEST
from windrow.spec.functions import Function
from windrow.spec.options import Policy
from windrow.spec.spread import RINGS, RingOptions
from windrow.windows.multiway import Ranges

MOST = 7  # streams of one join: all orders of joining them are compared
Columns = tuple[tuple[str, int, str], ...]


def all_columns(members: Sequence[Node], names: Sequence[str]) -> Columns:
    """All columns of all members; one whose name is taken gets that of its stream as a suffix."""
    found: dict[str, tuple[int, str]] = {}
    for number, (member, of) in enumerate(zip(members, names, strict=True)):
        for column in member.schema:
            name = column if column not in found else f"{column}_{of}"
            if name in found:
                raise QueryError(f"two columns of the join would be called {name}: rename {column} of stream {of}")
            found[name] = (number, column)
    return tuple((name, number, column) for name, (number, column) in found.items())


def multi_joined(
    members: Sequence[Node],
    names: Sequence[str],
    on: Sequence[Sequence[exp.Expr]],
    ranges: Sequence[int],
    columns: Columns | None = None,
    where: exp.Expr | None = None,
    sql: str | None = None,
    *,
    tests: Sequence[Function] = (),
    late: Sequence[Policy] | None = None,
    using: str | None = None,
    alpha: float | None = None,
    cost: float | None = None,
    by_rows: Sequence[bool] = (),
    nodes: int | None = None,
    options: RingOptions | None = None,
) -> MultiJoin:
    """A join of streams that progress, on keys that can be equal. ``on``: for each member as many expressions.
    ``by_rows``: of members whose last rows are held, as many as ``ranges`` says.
    """
    if not 2 <= len(members) <= MOST:
        raise QueryError(f"a multi-way join takes 2 to {MOST} streams, not {len(members)}")
    streams = [timed(node, f"stream {name} of the join") for node, name in zip(members, names, strict=True)]
    check_times(streams, None, sql)
    policies = tuple(["drop"] * len(streams) if late is None else late)
    _check(ranges, policies, using)
    for key in zip(*on, strict=True):
        key_type(streams, key, sql)
    columns = all_columns(streams, names) if columns is None else columns
    held = Ranges(tuple(ranges), tuple(by_rows) if any(by_rows) else ())
    by = tuple(map(tuple, on))
    of = tuple(tests), policies, using, alpha, cost, nodes
    node = MultiJoin(tuple(streams), by, held, columns, where, *of, options or RingOptions())  # type: ignore[arg-type]
    check_adaptive(node)
    check_spread(node, options is not None)
    for test in tests:
        check_conditions(node.schema, None, test, sql)
    check_conditions(node.schema, where, None, sql)
    return node


def _check(ranges: Sequence[int], late: Sequence[str], using: str | None) -> None:
    if not all(0 < held <= LONGEST for held in ranges):
        raise QueryError("how long rows are held must be more than 0, and at most 2^60")
    if "revise" in late:
        raise QueryError("late rows of a join cannot revise its results: choose drop, side or error")
    if using is not None and using not in WAYS:
        raise QueryError(f"no join of several streams is called {using}; available: {listing(WAYS)}")


def check_spread(node: MultiJoin, options: bool) -> None:
    """Refuse what only a join that is spread over nodes can do where another one is asked for."""
    spread = node.using is None or node.using in RINGS
    if node.by_rows and not spread:
        raise PlanError(
            f"using={node.using!r} holds rows for a time, and within= has rows for some stream: leave using= out, or "
            f"take {listing(RINGS)}"
        )
    if node.nodes is not None and not spread:
        raise PlanError(f"nodes= is about joins that are spread over nodes, {listing(RINGS)}, and using={node.using!r}")
    if node.nodes is not None and node.nodes < 1:
        raise QueryError(f"nodes={node.nodes} must be 1 or more, or 'auto'")
    if options and not spread:
        raise PlanError(f"options= is about joins that are spread over nodes: {listing(RINGS)}")
    if (why := node.options.refusal()) is not None:
        raise QueryError(why)
