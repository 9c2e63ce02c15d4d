"""A FROM with joins: what its names mean, and where each condition of ON and WHERE belongs."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from windrow.errors import QueryError, listing
from windrow.logical.expressions import fail
from windrow.logical.nodes import Node
from windrow.sql.band import Bands
from windrow.sql.hints import NONE, Hints
from windrow.sql.pairs import Pairs
from windrow.sql.parts import Origins
from windrow.sql.relations import HALF, Leaf, Pair, Relation, Static
from windrow.sql.scope import Merged, Scope, View, attributes
from windrow.sql.several import multi_join_of
from windrow.sql.terms import Terms
from windrow.sql.trees import MATCHED, WindowClause


@dataclass
class JoinedTables:
    """The tables of a SELECT with joins, and how their rows are paired. ``hints``: the physical join, and limits.

    ``clause``: a window over all of it.
    """

    terms: Terms
    select: exp.Select
    whole: Relation
    leaves: list[Leaf | Static]
    hints: Hints = NONE
    clause: WindowClause | None = None

    def plan(self) -> Node:
        """The joined rows. The columns of the SELECT are resolved on the way, and its WHERE is used up."""
        self._check()
        hidden = [t.node.hidden if isinstance(t, Leaf) else () for t in self.leaves]
        self.scope = Scope([t.name for t in self.leaves], [t.schema for t in self.leaves], self.terms.text, hidden)
        self.origins: Origins = {
            self.scope.joined_name(t.index, c): (t.index, c) for t in self.leaves for c in t.schema
        }
        times = {n: self.leaves[i].schema[c] for n, (i, c) in self.origins.items() if c in self.leaves[i].times}
        self.pairs = Pairs(self.terms, self.leaves, self.origins, Bands(times, self.terms.text), self.hints)
        self.view = self._view(self.whole)
        self.scope.resolve(self.select, self.view)
        if self.clause is not None:
            self.scope.clause(self.clause, self.view)
        order_by_aliases(self.select)
        self._place_where()
        self.pairs.wanted = self._wanted(frozenset(times))
        several = multi_join_of(self.pairs, self.whole)
        return self.pairs.part(self.whole).node if several is None else several

    def _wanted(self, times: frozenset[str]) -> frozenset[str]:
        """The times that a window names, or else a group, the order, or the select list."""
        clauses = [self.clause, *(i for i in self.select.expressions if isinstance(i, WindowClause))]
        named = {a.name for clause in clauses if clause is not None for a in attributes(clause)}
        if windowed := named & times:
            return frozenset(windowed)
        for part in ("group", "order", "expressions"):
            trees = self.select.args.get(part) or []
            listed = trees if isinstance(trees, list) else [trees]
            if found := {c.name for tree in listed for c in tree.find_all(exp.Column)} & times:
                return frozenset(found)
        return frozenset()

    def _check(self) -> None:
        """Refuse tables with the same name, and those without a time."""
        seen: set[str] = set()
        for table in self.leaves:
            if table.name is not None and table.name.lower() in seen:
                raise fail(table.tree, f"both tables are called {table.name}: give one an alias", self.terms.text)
            seen.add((table.name or "").lower())
            by_rows = table.window is not None and table.window.kind == "rows"
            if isinstance(table, Leaf) and not table.times and not by_rows:
                why = "a join needs the progressing column of both tables: keep it in the SELECT list"
                raise fail(table.tree, why, self.terms.text)

    # -- names ---------------------------------------------------------------------------------------------------
    def _view(self, relation: Relation) -> View:
        """What can be named over a relation; the conditions of its ON are put where they belong."""
        if not isinstance(relation, Pair):
            return View(relation.tables)
        left, right = (self._view(side) for side in relation.sides)
        both = View((*left.tables, *right.tables), (*left.merged, *right.merged), {**left.hidden, **right.hidden})
        merged = [self._merged(name, relation, left, right) for name in relation.join.args.get("using") or ()]
        if relation.join.args.get(MATCHED) is not None:
            self._resolve(relation.join, MATCHED, both)
        if relation.join.args.get("on") is not None:
            self._resolve(relation.join, "on", both)
            for condition in conjuncts(relation.join.args["on"]):
                relation.place_on(condition, self._used(condition))
        if relation.how in HALF:
            kind = "a SEMI JOIN" if relation.how == "semi" else "an ANTI JOIN"
            why = f"only the columns of the left side come out of {kind}"
            return View(left.tables, left.merged, {**left.hidden, **dict.fromkeys(right.tables, why)})
        gone = {name for each in merged for name in each.of.items()}
        kept = [each for each in both.merged if not gone & {*each.of.items()}]
        return View(both.tables, (*merged, *kept), both.hidden)

    def _resolve(self, join: exp.Join, part: str, both: View) -> None:
        """Give the columns of a condition of a join the names that they have among all columns."""
        self.terms.no_aggregates(join.args[part], "MATCH_CONDITION" if part == MATCHED else "ON")
        others = {t.index for t in self.leaves} - {*both.tables} - {*both.hidden}
        later = dict.fromkeys(others, "it is not part of this join")
        for column in list(join.args[part].find_all(exp.Column)):
            self.scope.column(column, View(both.tables, both.merged, {**both.hidden, **later}))
        self._used(join.args[part])

    def _merged(self, name: exp.Expr, pair: Pair, left: View, right: View) -> Merged:
        """A column of USING: the sides are joined where it is equal, and it is one column from here on."""
        trees = []
        for view, side in ((left, "left"), (right, "right")):
            alone = exp.Paren(this=exp.column(name.name, quoted=True))
            alone.this.this.meta.update(name.meta)
            found = self.scope.column(alone.this, view)
            if not {self.origins[c.name][0] for c in found.find_all(exp.Column) if c.name in self.origins} & {
                *view.tables
            }:
                there = listing(c for i in view.tables for c in self.leaves[i].schema)
                message = f"USING: the {side} side has no column {name.name!r}; available: {there}"
                raise fail(name, message, self.terms.text)
            trees.append(found.copy())
        pair.place_on(
            exp.EQ(this=trees[0].copy(), expression=trees[1].copy()), self._used(exp.Tuple(expressions=trees))
        )
        both = exp.Coalesce(this=trees[0].copy(), expressions=[trees[1].copy()])
        tree = {"full": both, "right": trees[1]}.get(pair.how, trees[0])
        of = {self.origins[c.name][0]: self.origins[c.name][1] for each in trees for c in each.find_all(exp.Column)}
        for each in (*left.merged, *right.merged):
            of |= dict(each.of) if each.name.lower() == name.name.lower() else {}
        return Merged(name.name, tree, of)

    # -- conditions ----------------------------------------------------------------------------------------------
    def _place_where(self) -> None:
        where = self.select.args.get("where")
        if where is None:
            return
        self.terms.no_aggregates(where, "WHERE")
        assert isinstance(self.whole, Pair)
        for condition in conjuncts(where.this):
            self.whole.place(condition, self._used(condition))
        self.select.set("where", None)

    def _used(self, condition: exp.Expr) -> set[int]:
        """The tables that a condition is about."""
        for column in condition.find_all(exp.Column):
            if column.name not in self.origins:
                raise self._unknown(column)
        return self.pairs.used(condition)

    def _unknown(self, column: exp.Column) -> QueryError:
        there = listing(c for c in self.origins if not c.startswith("@"))
        return fail(column, f"unknown column {column.name!r}; available: {there}", self.terms.text)


def order_by_aliases(select: exp.Select) -> None:
    """ORDER BY is over what is selected: ``R.k`` there is the item that selects it."""
    order = select.args.get("order")
    named = {i.this: i.alias for i in select.expressions if isinstance(i, exp.Alias)}
    for tree in list(order.walk()) if order is not None else ():
        if tree in named:
            for column in list(tree.find_all(exp.Column))[:1]:
                column.this.set("this", named[tree])
                tree.replace(column)


def conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    """The parts of a condition that must all be true; TRUE itself says nothing."""
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        return [*conjuncts(tree.this), *conjuncts(tree.expression)]
    return [] if tree == exp.true() else [tree]
