"""Push filters: a condition on one side of a join is tested before the join, where rows need not be kept for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce

import polars as pl
from sqlglot import exp

from windrow.logical.expressions import dtype_of
from windrow.logical.join import TIMED
from windrow.logical.node import Node, columns_in
from windrow.logical.nodes import AsOf, Filter, Join, Lookup, MultiJoin
from windrow.planner.rules.transform import transform

# What cannot fail whatever the values are: a row without a partner must not stop a query.
SAFE: tuple[type[exp.Expr], ...] = (
    exp.And,
    exp.Or,
    exp.Not,
    exp.Paren,
    exp.Is,
    exp.In,
    exp.Between,
    exp.EQ,
    exp.NEQ,
    exp.GT,
    exp.GTE,
    exp.LT,
    exp.LTE,
    exp.Column,
    exp.Identifier,
    exp.Literal,
    exp.Null,
    exp.Boolean,
)
COMPARED = (exp.In, exp.Between, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


def push_filters(node: Node) -> Node:
    """Conditions over a join that name columns of one side only go to that side."""
    return transform(node, _pushed)


def _pushed(_before: Node, node: Node) -> Node:
    if isinstance(node, Filter) and isinstance(node.input, Lookup) and node.input.test is None:
        return _before_lookup(node.predicate, node.input)
    if not isinstance(node, Filter) or not isinstance(node.input, (AsOf, Join, MultiJoin)):
        return node
    if isinstance(node.input, MultiJoin) and node.input.test is not None:
        return node
    if isinstance(node.input, Join) and node.input.limits is not None:
        return node  # rows that are filtered before it leave more room for others
    join, rest = node.input, list[exp.Expr]()
    # Of an as-of join only to the left: the nearest right row is taken whatever a condition says about it.
    possible: Collection[int] = TIMED[join.how] if isinstance(join, Join) else (0,)
    if isinstance(join, MultiJoin):  # which rows are the last ones must not depend on a condition on results
        possible = [side for side in range(len(join.inputs)) if not join.ranges.counts(side)]
    sides: list[list[exp.Expr]] = [[] for _ in join.inputs]
    for condition in conjuncts(node.predicate):
        found = _side(condition, join)
        if found is None or found[0] not in possible:  # a row of the other side is NULL where it is missing
            rest.append(condition)
        else:
            side, names = found
            sides[side].append(_renamed(condition, names))
    if not any(sides):
        return node
    inputs = [_filtered(given, conditions) for given, conditions in zip(join.inputs, sides, strict=True)]
    return _filtered(join.rebuild(*inputs), rest)


def _before_lookup(predicate: exp.Expr, lookup: Lookup) -> Node:
    """Conditions on the stream are tested before its rows are looked up, and may go on to a join below."""
    found = [(condition, _side(condition, lookup)) for condition in conjuncts(predicate)]
    before = [_renamed(condition, side[1]) for condition, side in found if side is not None and side[0] == 0]
    rest = [condition for condition, side in found if side is None or side[0] != 0]
    given = _filtered(lookup.input, before)
    return _filtered(lookup.rebuild(_pushed(given, given)), rest)


def conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    """The parts of a condition that must all be true."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return [*conjuncts(tree.left), *conjuncts(tree.right)] if isinstance(tree, exp.And) else [tree]


def harmless(condition: exp.Expr, schema: Mapping[str, pl.DataType]) -> bool:
    """Whether a condition cannot fail, whatever the values are."""
    return all(isinstance(part, SAFE) and _alike(part, schema) for part in condition.walk())


def _side(condition: exp.Expr, join: AsOf | Join | MultiJoin | Lookup) -> tuple[int, Mapping[str, str]] | None:
    """The side whose columns are the only ones that a condition names, and what they are called there."""
    if not harmless(condition, join.schema):
        return None
    from_side = {name: (side, column) for name, side, column in join.columns}
    named = {name: from_side[name] for name in columns_in([condition])}
    sides = {side for side, _ in named.values()}
    return (sides.pop(), {name: column for name, (_, column) in named.items()}) if len(sides) == 1 else None


def _alike(part: exp.Expr, schema: Mapping[str, pl.DataType]) -> bool:
    """Whether what is compared has one type, or is numbers: casting a text to a number can fail."""
    if not isinstance(part, COMPARED):
        return True
    operands = [each for value in part.args.values() for each in (value if isinstance(value, list) else [value])]
    types = [dtype_of(each, schema) for each in operands if isinstance(each, exp.Expr)]
    types = [t for t in types if t != pl.Null]
    return all(t.is_integer() or t.is_float() for t in types) or all(t == types[0] for t in types)


def _renamed(condition: exp.Expr, names: Mapping[str, str]) -> exp.Expr:
    return condition.transform(lambda part: exp.column(names[part.name]) if isinstance(part, exp.Column) else part)


def _filtered(node: Node, conditions: Sequence[exp.Expr]) -> Node:
    if not conditions:
        return node
    return Filter(node, reduce(lambda a, b: exp.And(this=a, expression=b), conditions))
