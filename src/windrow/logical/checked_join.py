"""Checked joins: two streams, what must be equal, and how near their times must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
from sqlglot import exp

from windrow.errors import PlanError, QueryError, listing
from windrow.logical.checked import on_value
from windrow.logical.checked_limits import check_limits
from windrow.logical.checked_order import check_order
from windrow.logical.expressions import dtype_of, fail
from windrow.logical.nodes import How, Join, Node, Side
from windrow.progress import LONGEST
from windrow.spec.functions import Function
from windrow.spec.joining import Limits
from windrow.spec.options import Policy
from windrow.spec.tables import Table
from windrow.windows.pairing import Pairing, SameWindow, Within

SUFFIX = "_right"  # of a right column whose name is taken, as Polars has it
Columns = tuple[tuple[str, Side, str], ...]


def all_columns(left: Node, right: Node | Table, suffix: str = SUFFIX) -> Columns:
    """All columns of both sides; a right one whose name is taken gets a suffix."""
    own: Columns = tuple((c, 0, c) for c in left.schema)
    return own + tuple((c if c not in left.schema else f"{c}{suffix}", 1, c) for c in right.schema)


def joined(
    left: Node,
    right: Node,
    on: Sequence[tuple[exp.Expr, exp.Expr]],
    window: Pairing,
    columns: Columns | None = None,
    where: exp.Expr | None = None,
    sql: str | None = None,
    *,
    how: How = "inner",
    test: Function | None = None,
    late: tuple[Policy, Policy] = ("drop", "drop"),
    by_rows: bool = False,
    using: str | None = None,
    alpha: float | None = None,
    cost: float | None = None,
    limits: Limits | None = None,
) -> Join:
    """A join of streams that progress, on keys that can be equal; its names are all different.

    ``where`` and ``test`` are over the columns of a pair, and may name those of ``columns`` only.
    """
    if by_rows:
        _check_numbers(left, right)
    else:
        left, right = (_timed(node, name) for node, name in ((left, "left"), (right, "right")))
        _check_times(left, right)
    _check_window(window)
    _check_late(late)
    for a, b in on:
        common_type(a, dtype_of(a, left.schema, sql), b, dtype_of(b, right.schema, sql), sql)
    columns = all_columns(left, right) if columns is None else columns
    check_names(columns)
    ways = using, alpha, limits, cost
    node = Join(left, right, tuple(on), window, columns, where, how, test, late, by_rows, *ways)
    check_limits(node)
    check_order(node)
    check_conditions(node.pairs, where, test, sql)
    return node


def check_names(columns: Columns) -> None:
    names = [name for name, _, _ in columns]
    if twice := {n for n in names if names.count(n) > 1}:
        raise QueryError(f"both sides of the join have columns {listing(twice)}: give them different names")


def check_conditions(
    pairs: Mapping[str, pl.DataType], where: exp.Expr | None, test: Function | None, sql: str | None = None
) -> None:
    """What must be true of pairs that have these columns."""
    if where is not None and (dtype := dtype_of(where, pairs, sql)) != pl.Boolean:
        raise fail(where, f"a condition must be true or false, and this is of type {dtype}", sql)
    if test is not None:
        _check_test(test, pairs)


def _check_window(window: Pairing) -> None:
    match window:
        case Within(low, high) if low > high:
            raise QueryError(f"the join can have no pairs: its band begins at {low} and ends at {high}")
        case Within(low, high) if max(abs(low), abs(high)) > LONGEST:
            raise QueryError("the band of the join is too long")
        case SameWindow(length, _) if not 0 < length <= LONGEST:
            raise QueryError("the window of the join must be longer than 0, and at most 2^60")


def _check_late(late: tuple[Policy, Policy]) -> None:
    if "revise" in late:
        raise QueryError("late rows of a join cannot revise its results: choose drop, side or error")


def _check_test(test: Function, pairs: Mapping[str, pl.DataType]) -> None:
    if missing := [c for c in test.columns if c not in pairs]:
        raise QueryError(
            f"{test.name} takes columns {listing(missing)}, which the pairs do not have; available: {listing(pairs)}"
        )
    if test.returns != pl.Boolean:
        raise QueryError(f"{test.name} is a condition and must return BOOLEAN, not {test.returns}")


def _check_numbers(left: Node, right: Node) -> None:
    """Row numbers of two streams can be compared only if both number the rows of the same source."""
    for node, name in ((left, "left"), (right, "right")):
        if len(node.arrival) != 1:
            why = "has no row numbers" if not node.arrival else "is numbered by partition"
            raise PlanError(
                f"a join over ROWS needs one number for each row, and the {name} side {why}: declare the stream with "
                "row_num= one column, and keep that column"
            )
    if [s.name for s in left.scans] != [s.name for s in right.scans] or len(left.scans) != 1:
        raise PlanError(
            "a join over ROWS needs one numbering for both sides, and these are rows of different streams: the n-th "
            "row of one says nothing about the n-th row of the other. Join a stream with itself, or use times"
        )


def _timed(node: Node, name: str) -> Node:
    """An input whose progress values are the values of its progressing column."""
    if node.versioned:
        raise PlanError(f"the {name} side has results with versions: a join of them is not supported yet")
    if node.progress is None:
        raise PlanError(
            f"the {name} side of the join does not progress: keep its progressing column in the SELECT list"
        )
    return on_value(node, node.progress)


def _check_times(left: Node, right: Node) -> None:
    a, b = (node.schema[node.progress or ""] for node in (left, right))
    if (a.is_integer() and b.is_integer()) or a == b:
        return
    raise QueryError(
        f"the times of a join must be of one type: {left.progress} is {a}, and {right.progress} is {b}. Cast one"
    )


def common_type(a: exp.Expr, of_a: pl.DataType, b: exp.Expr, of_b: pl.DataType, sql: str | None = None) -> pl.DataType:
    """The type in which two keys are compared, so that 1 and 1.0 meet."""
    if of_a == of_b and not of_a.is_nested():
        return of_a
    if of_a.is_integer() and of_b.is_integer():
        return pl.Int64()
    simple = all(t.is_integer() or t.is_float() for t in (of_a, of_b))
    if simple:
        return pl.Float64()
    raise fail(
        b, f"{a.sql('spark')} of type {of_a} and {b.sql('spark')} of type {of_b} cannot be equal: cast one of them", sql
    )
