"""Joins of three and more tables that are one multi-way join: [RANGE ..] after each, and one key for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from sqlglot import exp

from windrow.api.algorithm import USING
from windrow.errors import QueryError, underline
from windrow.logical.checked_multi_join import MOST, multi_joined
from windrow.logical.expressions import dtype_of
from windrow.logical.multi_join import MULTI, PIPELINE
from windrow.logical.nodes import MultiJoin, Node
from windrow.sql.pairs import Pairs
from windrow.sql.parts import own_names
from windrow.sql.relations import Leaf, Pair, Relation

Term = tuple[int, exp.Expr]  # a table, and an expression over its columns
NOT_ONE = "is about a join of three or more tables with [RANGE ..] after each, inner, with a key that all of them share"


def multi_join_of(pairs: Pairs, whole: Relation) -> Node | None:
    """The tables of a FROM as one multi-way join, if that is what their joins mean. Its windows say the same: each two
    rows are near enough, which is that all are still held when the last one comes.
    """
    asked = pairs.hints.using
    possible = asked in (None, MULTI, PIPELINE) and pairs.hints.limits is None
    found = _joined(pairs, [*_leaves(whole)], [*_conditions(whole)]) if possible and _inner(pairs, whole) else None
    if found is None and asked in (MULTI, PIPELINE):
        start, end = next((s, e) for name, s, e in pairs.hints.places if name == USING)
        raise QueryError(f"USING({asked}) {NOT_ONE}\n{underline(pairs.terms.text, start, end)}")
    return found


def _inner(pairs: Pairs, whole: Relation) -> bool:
    """Whether these are inner joins of some streams, each with a RANGE, on times that can be compared."""
    leaves = [*_leaves(whole)]
    if not 3 <= len(leaves) <= MOST or not all(isinstance(each, Leaf) and each.range is not None for each in leaves):
        return False
    if any(join.how != "inner" or join.in_order or join.above for join in _joins(whole)):
        return False
    times = [pairs.time(leaf) for leaf in leaves]
    if any(pairs.bands.of(condition) for condition in _conditions(whole)):  # it can say more than the windows do
        return False
    return all(pairs.bands.comparable(a, b) for a, b in combinations(times, 2))


def _joins(relation: Relation) -> Iterator[Pair]:
    if isinstance(relation, Pair):
        yield from _joins(relation.left)
        yield from _joins(relation.right)
        yield relation


def _leaves(relation: Relation) -> Iterator[Leaf]:
    if isinstance(relation, Pair):
        yield from _leaves(relation.left)
        yield from _leaves(relation.right)
    else:
        yield relation  # type: ignore[misc]  # a static table is refused by whoever asks for its RANGE


def _conditions(whole: Relation) -> Iterator[exp.Expr]:
    for join in _joins(whole):
        yield from join.conditions


def _joined(pairs: Pairs, leaves: Sequence[Leaf], conditions: Sequence[exp.Expr]) -> MultiJoin | None:
    keys, used = _keys(pairs, leaves, conditions)
    if not keys:
        return None
    rest = [condition for condition in conditions if condition not in used]
    parts = [pairs.part(leaf) for leaf in leaves]
    places = {leaf.index: at for at, leaf in enumerate(leaves)}
    by_member = [[_resolved(pairs, key[leaf.index], leaf) for key in keys] for leaf in leaves]
    with pairs.terms.at(leaves[-1].tree):
        return multi_joined(
            [part.node for part in parts],
            [leaf.name or f"{at}" for at, leaf in enumerate(leaves)],
            by_member,
            [leaf.range or 0 for leaf in leaves],
            tuple((name, places[table], column) for name, (table, column) in pairs.origins.items() if table in places),
            exp.and_(*rest, copy=False) if rest else None,
            pairs.terms.text,
            late=[part.late for part in parts],
            using=pairs.hints.using,
            alpha=pairs.hints.alpha,
            cost=pairs.hints.cost,
        )


def _resolved(pairs: Pairs, tree: exp.Expr, leaf: Leaf) -> exp.Expr:
    names = {name: column for name, (table, column) in pairs.origins.items() if table == leaf.index}
    return pairs.terms.resolved(own_names(tree, names), leaf.node)


def _keys(
    pairs: Pairs, leaves: Sequence[Leaf], conditions: Sequence[exp.Expr]
) -> tuple[list[dict[int, exp.Expr]], list[exp.Expr]]:
    """What must be equal in all tables, an expression for each, and the conditions that say so."""
    equalities = [(each, sides) for each in conditions if (sides := _sides(pairs, each)) is not None]
    groups: list[list[Term]] = []
    for _, sides in equalities:
        met = [group for group in groups if any(term in group for term in sides)]
        merged = [term for group in met for term in group]
        groups = [group for group in groups if group not in met]
        groups.append([*merged, *(term for term in sides if term not in merged)])
    keys, used = list[dict[int, exp.Expr]](), list[exp.Expr]()
    for group in groups:
        first: dict[int, exp.Expr] = {}
        for table, tree in group:
            first.setdefault(table, tree)
        if set(first) == {leaf.index for leaf in leaves} and _alike(pairs, first, leaves):
            keys.append(first)
            used += [each for each, sides in equalities if all(first[t] == tree for t, tree in sides)]
    return keys, used


def _sides(pairs: Pairs, condition: exp.Expr) -> tuple[Term, Term] | None:
    """What is equal in two tables, if that is what a condition says."""
    if not isinstance(condition, exp.EQ):
        return None
    found = [(pairs.used(tree), tree) for tree in (condition.this, condition.expression)]
    if any(len(tables) != 1 for tables, _ in found) or found[0][0] == found[1][0]:
        return None
    (a, one), (b, other) = found
    return (a.pop(), one), (b.pop(), other)


def _alike(pairs: Pairs, key: dict[int, exp.Expr], leaves: Sequence[Leaf]) -> bool:
    """Whether what is equal in each two of them is equal in all: numbers are, if all are integers or of one type."""
    types = [dtype_of(_resolved(pairs, key[leaf.index], leaf), leaf.node.schema) for leaf in leaves]
    return len(set(types)) == 1 or all(t.is_integer() for t in types)
