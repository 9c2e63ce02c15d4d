"""Joins of three and more tables that are one multi-way join: [RANGE ..] after each, and one key for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from sqlglot import exp

from windrow.api.algorithm import USING
from windrow.errors import QueryError, underline
from windrow.logical.checked_multi_join import MOST, multi_joined
from windrow.logical.expressions import dtype_of, fail
from windrow.logical.multi_join import MULTI, PIPELINE
from windrow.logical.nodes import MultiJoin, Node
from windrow.spec.functions import Function
from windrow.spec.options import Policy
from windrow.spec.spread import RINGS
from windrow.sql.hints import NODES
from windrow.sql.pairs import Pairs
from windrow.sql.parts import Part, own_names
from windrow.sql.relations import Leaf, Pair, Relation

Term = tuple[int, exp.Expr]  # a table, and an expression over its columns
NOT_ONE = "is about a join of three or more tables with [RANGE ..] after each, inner, with a key that all of them share"
NO_RING = "is about inner joins of two or more streams with [RANGE ..] after each, without bounds on their distances"


def multi_join_of(pairs: Pairs, whole: Relation) -> Node | None:
    """The tables of a FROM as one multi-way join, if that is what their joins mean. Its windows say the same: each two
    rows are near enough, which is that all are still held when the last one comes.
    """
    asked, conditions = pairs.hints.using, [*_conditions(whole)]
    called = next((each for each in conditions if pairs.terms.function(each) is not None), None)
    spread = asked in RINGS or (asked is None and pairs.hints.nodes is not None)
    possible = (spread or asked in (None, MULTI, PIPELINE)) and pairs.hints.limits is None
    leaves = [*_leaves(whole)]
    alone = spread or called is not None or (len(leaves) > 2 and any(_by_rows(leaf) for leaf in leaves))
    if possible and _inner(pairs, whole, 2 if alone else 3):
        found = _joined(pairs, leaves, conditions, alone)
        if found is not None:
            return found
    if spread or asked in (MULTI, PIPELINE):
        start, end = next((s, e) for name, s, e in pairs.hints.places if name in (USING, NODES))
        what = f"USING({asked})" if asked is not None else "NODES"
        raise QueryError(f"{what} {NO_RING if spread else NOT_ONE}\n{underline(pairs.terms.text, start, end)}")
    if called is not None:
        raise fail(called, f"{called.name} {NO_RING.replace('is about', 'can be a condition of')}", pairs.terms.text)
    return None


def _by_rows(leaf: Relation) -> bool:
    """Whether the last rows of a stream are held."""
    return isinstance(leaf, Leaf) and leaf.window is not None and leaf.window.kind == "rows"


def _inner(pairs: Pairs, whole: Relation, least: int) -> bool:
    """Whether these are inner joins of some streams, each with a RANGE, on times that can be compared."""
    leaves = [*_leaves(whole)]
    windowed = all(isinstance(each, Leaf) and (each.range is not None or _by_rows(each)) for each in leaves)
    if not least <= len(leaves) <= MOST or not windowed:
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


def _joined(pairs: Pairs, leaves: Sequence[Leaf], conditions: Sequence[exp.Expr], alone: bool) -> MultiJoin | None:
    """``alone``: nothing else can run it, with a key or without one."""
    keys, used = _keys(pairs, leaves, conditions)
    if not keys and not alone:
        return None
    tests = {id(each): test for each in conditions if (test := _test(pairs, each)) is not None}
    rest = [condition for condition in conditions if condition not in used and id(condition) not in tests]
    rest += [condition for leaf in leaves if _by_rows(leaf) for condition in leaf.conditions]
    for called in (part for each in rest for part in each.walk() if pairs.terms.function(part) is not None):
        raise fail(called, f"{called.name} must be a whole condition of WHERE or ON", pairs.terms.text)
    parts = [Part(leaf.node, {}, late=_late(leaf)) if _by_rows(leaf) else pairs.part(leaf) for leaf in leaves]
    places = {leaf.index: at for at, leaf in enumerate(leaves)}
    by_member = [[_resolved(pairs, key[leaf.index], leaf) for key in keys] for leaf in leaves]
    with pairs.terms.at(leaves[-1].tree):
        return multi_joined(
            [part.node for part in parts],
            [leaf.name or f"{at}" for at, leaf in enumerate(leaves)],
            by_member,
            [leaf.window.length if leaf.window is not None else 0 for leaf in leaves],
            tuple((name, places[table], column) for name, (table, column) in pairs.origins.items() if table in places),
            exp.and_(*rest, copy=False) if rest else None,
            pairs.terms.text,
            tests=[*tests.values()],
            late=[part.late for part in parts],
            using=pairs.hints.using or (RINGS[0] if pairs.hints.nodes is not None else None),
            alpha=pairs.hints.alpha,
            cost=pairs.hints.cost,
            by_rows=[_by_rows(leaf) for leaf in leaves],
            nodes=pairs.hints.nodes or None,
        )


def _late(leaf: Leaf) -> Policy:
    return "drop" if leaf.window is None else leaf.window.late


def _test(pairs: Pairs, condition: exp.Expr) -> Function | None:
    """A condition that is a call of a user's function, over the columns that it is called with."""
    function, text = pairs.terms.function(condition), pairs.terms.text
    if function is None:
        return None
    given = condition.expressions
    if odd := [each for each in given if not isinstance(each, exp.Column)]:
        raise fail(odd[0], f"{condition.name} takes columns: compute them in a query in FROM", text)
    if len(given) != len(function.columns):
        takes = f"{condition.name}({', '.join(function.columns)})"
        raise fail(condition, f"{takes} is called with {len(given)} columns", text)
    return replace(function, name=condition.name, columns=tuple(each.name for each in given))


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
