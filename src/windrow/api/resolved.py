"""Columns and SQL expressions as the methods of a stream take them, resolved against its columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlglot import exp

from windrow.api import given
from windrow.api.functions import AggregateExpr
from windrow.errors import QueryError
from windrow.logical import expressions
from windrow.logical.checked import where, with_window_time
from windrow.logical.nodes import OF_ROWS, AggregateCall, Node
from windrow.spec.tables import Table

Names = str | Sequence[str]
DIRECTION = re.compile(r"(.*\S)\s+(ASC|DESC)\s*", re.IGNORECASE | re.DOTALL)


def resolved(node: Node | Table, text: str) -> exp.Expr:
    """The column that a text names, keyword or not, or else a SQL expression."""
    tree = expressions.column_or(text, node.schema)
    tree = with_window_time(tree, node) if isinstance(node, Node) else tree
    return expressions.resolve(tree, node.schema, text)


def key_pairs(
    left: Node, right: Node | Table, on: Names, left_on: Names, right_on: Names
) -> list[tuple[exp.Expr, exp.Expr]]:
    """The keys of a join: the same on both sides, or as many on each."""
    both, mine, others = given.texts(on, "on"), given.texts(left_on, "left_on"), given.texts(right_on, "right_on")
    if len(mine) != len(others):
        raise QueryError(f"left_on and right_on need the same number of keys, not {len(mine)} and {len(others)}")
    pairs = [*zip(both, both, strict=True), *zip(mine, others, strict=True)]
    return [(resolved(left, a), resolved(right, b)) for a, b in pairs]


def items(node: Node, columns: Sequence[str], named: Mapping[str, str]) -> dict[str, exp.Expr]:
    """Columns by their names, without backquotes, and expressions by the names that keywords give them."""
    found: dict[str, exp.Expr] = {}
    for name, written in [*((None, c) for c in columns), *named.items()]:
        tree = resolved(node, written)
        plain = expressions.column_or(written, node.schema).name if isinstance(tree, exp.Column) else written
        output = name or plain
        if found.get(output, tree) != tree:
            raise QueryError(f"output columns need different names; given twice: {output}")
        found[output] = tree
    return found


def call(node: Node, name: str, aggregate: AggregateExpr) -> AggregateCall:
    """An aggregate as ``agg`` takes it."""
    if not isinstance(aggregate, AggregateExpr):
        raise QueryError(f"{name}={aggregate!r} is not an aggregate: write {name}=wr.count(), wr.max('x') ..")
    argument = None if aggregate.argument is None else resolved(node, aggregate.argument)
    if aggregate.condition is not None:
        argument = where(argument, resolved(node, aggregate.condition))
    of_values = (1,) if aggregate.condition is not None and aggregate.function in OF_ROWS else ()
    return AggregateCall(name, aggregate.function, argument, (*aggregate.parameters, *of_values), aggregate.user)


def order_term(node: Node, text: str) -> tuple[exp.Expr, bool]:
    """A term of an order: a column or an expression, and whether DESC follows it."""
    given.text(text, "order_by")
    found = None if text in node.schema else DIRECTION.fullmatch(text)
    tree = resolved(node, text if found is None else found[1])
    return tree, found is not None and found[2].upper() == "DESC"
