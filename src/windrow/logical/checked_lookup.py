"""Checked lookups: a stream, a static table, and what must be equal."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from windrow.errors import PlanError, QueryError
from windrow.logical.checked_join import Columns, all_columns, check_conditions, check_names, common_type
from windrow.logical.expressions import dtype_of
from windrow.logical.nodes import LOOKUPS, Lookup, Node
from windrow.spec.functions import Function
from windrow.spec.tables import Table


def looked_up(
    node: Node,
    table: Table,
    on: Sequence[tuple[exp.Expr, exp.Expr]],
    columns: Columns | None = None,
    where: exp.Expr | None = None,
    sql: str | None = None,
    *,
    how: str = "inner",
    test: Function | None = None,
) -> Lookup:
    """A join of a stream, on the left, with a table, on the right. ``columns`` and conditions as for ``joined``."""
    if how not in LOOKUPS:
        raise QueryError(
            f"a {how} join with table {table.name!r} is not possible: its rows without a partner would have to wait "
            "until no row of the stream can come, and that is never. Use inner, left, semi or anti"
        )
    if node.versioned:
        raise PlanError(
            "a join of results with versions with a table is not supported yet: remove EMIT EARLY and LATE REVISE"
        )
    for a, b in on:
        common_type(a, dtype_of(a, node.schema, sql), b, dtype_of(b, table.schema, sql), sql)
    columns = all_columns(node, table) if columns is None else columns
    check_names(columns)
    found = Lookup(node, table, tuple(on), columns, where, how, test)
    check_conditions(found.pairs, where, test, sql)
    return found
