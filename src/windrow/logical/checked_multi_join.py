"""Checked multi-way joins: streams that progress, what must be equal, and how long their rows are held."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from windrow.errors import QueryError, listing
from windrow.logical.checked_join import check_conditions
from windrow.logical.checked_order import check_adaptive
from windrow.logical.checked_sequence import check_times, key_type, timed
from windrow.logical.multi_join import WAYS, MultiJoin
from windrow.logical.node import Node
from windrow.progress import LONGEST
from windrow.spec.functions import Function
from windrow.spec.options import Policy
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
    test: Function | None = None,
    late: Sequence[Policy] | None = None,
    using: str | None = None,
    alpha: float | None = None,
    cost: float | None = None,
) -> MultiJoin:
    """A join of streams that progress, on keys that can be equal. ``on``: for each member as many expressions."""
    if not 2 <= len(members) <= MOST:
        raise QueryError(f"a multi-way join takes 2 to {MOST} streams, not {len(members)}")
    nodes = [timed(node, f"stream {name} of the join") for node, name in zip(members, names, strict=True)]
    check_times(nodes, None, sql)
    policies = tuple(["drop"] * len(nodes) if late is None else late)
    _check(ranges, policies, using)
    for key in zip(*on, strict=True):
        key_type(nodes, key, sql)
    columns = all_columns(nodes, names) if columns is None else columns
    held = Ranges(tuple(ranges))
    by = tuple(map(tuple, on))
    node = MultiJoin(tuple(nodes), by, held, columns, where, test, policies, using, alpha, cost)  # type: ignore[arg-type]
    check_adaptive(node)
    check_conditions(node.schema, where, test, sql)
    return node


def _check(ranges: Sequence[int], late: Sequence[str], using: str | None) -> None:
    if not all(0 < held <= LONGEST for held in ranges):
        raise QueryError("how long rows are held must be more than 0, and at most 2^60")
    if "revise" in late:
        raise QueryError("late rows of a join cannot revise its results: choose drop, side or error")
    if using is not None and using not in WAYS:
        raise QueryError(f"no join of several streams is called {using}; available: {listing(WAYS)}")
