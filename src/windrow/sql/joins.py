"""Two tables in a FROM: an inner join on equality within a band of time.

Both come from ON and WHERE; ``FROM L [RANGE a], R [RANGE b]`` gives a band, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from windrow.errors import QueryError, listing
from windrow.logical.checked import filtered
from windrow.logical.checked_join import joined
from windrow.logical.expressions import fail
from windrow.logical.nodes import Node, Side
from windrow.sql.band import Band
from windrow.sql.clause import join_range, over
from windrow.sql.scope import Scope, name_of
from windrow.sql.terms import Terms
from windrow.sql.trees import CLAUSE
from windrow.windows.pairing import Within


@dataclass
class JoinedTables:
    """The tables of a SELECT with one join, and how their rows are paired."""

    terms: Terms
    select: exp.Select
    trees: tuple[exp.Expr, exp.Expr]
    nodes: tuple[Node, Node]

    def plan(self) -> Node:
        """The pairs. The columns of the SELECT are resolved on the way, and its WHERE is used up."""
        self.join: exp.Join = self.select.args["joins"][0]
        self.scope = self._scope()
        self._check_stars()
        self.scope.resolve(self.select)
        self._order_by_aliases()
        self.origins = {
            self.scope.joined_name(side, c): (side, c) for side in self._sides for c in self.scope.schemas[side]
        }
        band, pairs, rest = self._band(), [], []
        sides = list(self.nodes)
        for condition in self._conditions():
            used = self._used(condition)
            pair = self._equality(condition) if len(used) == 2 else None
            bounds = len(used) == 2 and band.take(condition)
            if pair is not None:
                pairs.append(pair)
            elif len(used) == 1:
                side = next(iter(used))
                own = self.terms.resolved(self._own(condition), sides[side])
                sides[side] = filtered(sides[side], own, self.terms.text)
            elif not bounds:
                rest.append(condition)
        low, high = self._bounds(band)
        if not pairs:
            raise self._refused(
                "not supported yet: a join without an equality of a column of one table and one of the other, such as "
                f"{self._example(0, 'k')} = {self._example(1, 'k')}"
            )
        columns = tuple((name, side, c) for name, (side, c) in self.origins.items())
        where = exp.and_(*rest, copy=False) if rest else None
        with self.terms.at(self.join):
            return joined(sides[0], sides[1], pairs, Within(low, high), columns, where, self.terms.text)

    @property
    def _sides(self) -> tuple[Side, Side]:
        return (0, 1)

    def _scope(self) -> Scope:
        names = [name_of(tree) for tree in self.trees]
        if names[0] is not None and names[1] is not None and names[0].lower() == names[1].lower():
            raise fail(self.trees[1], f"both tables are called {names[1]}: give one an alias", self.terms.text)
        for tree, node in zip(self.trees, self.nodes, strict=True):
            if node.progress is None:
                raise fail(
                    tree,
                    "a join needs the progressing column of both tables: keep it in the SELECT list",
                    self.terms.text,
                )
        return Scope(names, [node.schema for node in self.nodes], self.terms.text)

    def _check_stars(self) -> None:
        """``*`` over two tables needs different names."""
        twice = set(self.scope.schemas[0]) & set(self.scope.schemas[1])
        for item in self.select.expressions:
            if isinstance(item, exp.Star) and twice:
                both = f"both tables have columns {listing(twice)}"
                raise fail(item, f"{both}: name the columns, and give these different names", self.terms.text)

    def _order_by_aliases(self) -> None:
        """ORDER BY is over what is selected: ``R.k`` there is the item that selects it."""
        order = self.select.args.get("order")
        named = {i.this: i.alias for i in self.select.expressions if isinstance(i, exp.Alias)}
        for column in list(order.find_all(exp.Column)) if order is not None else ():
            if column in named:
                column.this.set("this", named[column])

    # -- conditions ----------------------------------------------------------------------------------------------
    def _conditions(self) -> list[exp.Expr]:
        """What ON and WHERE ask for, each part by itself."""
        found: list[exp.Expr] = []
        for name, tree in (("ON", self.join.args.get("on")), ("WHERE", self.select.args.get("where"))):
            if tree is None:
                continue
            self.terms.no_aggregates(tree, name)
            for column in tree.find_all(exp.Column) if name == "ON" else ():
                self.scope.column(column)
            found += _conjuncts(tree.this if isinstance(tree, exp.Where) else tree)
        self.select.set("where", None)
        return found

    def _used(self, condition: exp.Expr) -> set[Side]:
        """The tables that a condition is about."""
        columns = list(condition.find_all(exp.Column))
        for column in columns:
            if column.name not in self.origins:
                there = listing(c for c in self.origins if not c.startswith("@"))
                raise fail(column, f"unknown column {column.name!r}; available: {there}", self.terms.text)
        return {self.origins[c.name][0] for c in columns}

    def _equality(self, condition: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
        """An expression over each table, if the condition is that they are equal."""
        if not isinstance(condition, exp.EQ):
            return None
        found: dict[Side, exp.Expr] = {}
        for tree in (condition.this, condition.expression):
            used = self._used(tree)
            if len(used) == 1:
                side = next(iter(used))
                found[side] = self.terms.resolved(self._own(tree), self.nodes[side])
        return (found[0], found[1]) if len(found) == 2 else None

    def _own(self, tree: exp.Expr) -> exp.Expr:
        """An expression over one table, with the names that its columns have there."""
        tree = tree.copy()
        for column in tree.find_all(exp.Column):
            own = exp.to_identifier(self.origins[column.name][1])
            column.this.set("quoted", own.args["quoted"])
            column.this.set("this", own.name)
        return tree

    # -- the band ------------------------------------------------------------------------------------------------
    def _band(self) -> Band:
        left, right = (node.progress or "" for node in self.nodes)
        times = self.scope.joined_name(0, left), self.scope.joined_name(1, right)
        band = Band(times, self.nodes[0].schema[left], self.terms.text)
        clauses = [tree.args.get(CLAUSE) for tree in self.trees]
        given = [clause for clause in clauses if clause is not None]
        if len(given) == 1:
            raise fail(
                given[0],
                "a join has a window after both tables, or after none; the window of an aggregation follows the select "
                "list, or a query in FROM",
                self.terms.text,
            )
        if given:
            pairs = list(zip(given, self.nodes, strict=True))
            self.nodes = over(*pairs[0]), over(*pairs[1])
            band.range(*(join_range(clause, node, self.terms.text) for clause, node in pairs))
        return band

    def _bounds(self, band: Band) -> tuple[int, int]:
        """A join of endless streams needs both bounds: rows that can still be paired are kept."""
        if band.low is not None and band.high is not None:
            return band.low, band.high
        missing = "how far apart the times are" if band.low is band.high else "the times on both sides"
        left, right = self._qualified(0), self._qualified(1)
        raise self._refused(
            f"a join of streams must bound {missing}, or its state would grow forever: add {right} BETWEEN {left} - "
            f"INTERVAL .. AND {left} + INTERVAL .., or [RANGE ..] after both tables"
        )

    def _qualified(self, side: Side) -> str:
        return self._example(side, self.nodes[side].progress or "")

    def _example(self, side: Side, column: str) -> str:
        name = self.scope.names[side]
        return column if name is None else f"{name}.{column}"

    def _refused(self, why: str) -> QueryError:
        return fail(self.join, why, self.terms.text)


def _conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    tree = tree.unnest()
    return [*_conjuncts(tree.this), *_conjuncts(tree.expression)] if isinstance(tree, exp.And) else [tree]
