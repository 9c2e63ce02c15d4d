"""The tables of a FROM with joins, as a tree: which are joined with which, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl
from sqlglot import exp

from windrow.logical.expressions import fail
from windrow.logical.node import Times
from windrow.logical.nodes import UNMATCHED, How, Node
from windrow.spec.tables import Table
from windrow.sql.clause import over
from windrow.sql.consumed import how
from windrow.sql.scope import Scope, name_of
from windrow.sql.table_window import TableWindow, one_for_all, table_window
from windrow.sql.tables import clause_of
from windrow.sql.trees import CLAUSE, COMMA, MATCHED, PAIRING, PUNCTUATED, UNIONED

HALF: tuple[How, ...] = ("semi", "anti")  # the columns of the right side are not in the result


@dataclass(eq=False)
class Static:
    """A static table, which a stream is joined with: it has no times."""

    tree: exp.Expr
    index: int
    name: str | None
    table: Table

    window = None
    range = None

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        return self.table.schema

    @property
    def times(self) -> Times:
        return {}

    @property
    def tables(self) -> tuple[int, ...]:
        return (self.index,)

    @property
    def present(self) -> frozenset[int]:
        return frozenset(self.tables)

    @property
    def sure(self) -> frozenset[int]:
        return frozenset(self.tables)


@dataclass(eq=False)
class Leaf:
    """A stream, a union or a query. ``conditions``: which of its rows are joined."""

    tree: exp.Expr
    index: int
    name: str | None
    node: Node
    window: TableWindow | None = None
    conditions: list[exp.Expr] = field(default_factory=list)

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        return self.node.schema

    @property
    def times(self) -> Times:
        return self.node.times

    @property
    def range(self) -> int | None:
        """For how long its rows are joined, if its window is a RANGE of time."""
        return self.window.length if self.window is not None and self.window.kind == "range" else None

    @property
    def tables(self) -> tuple[int, ...]:
        return (self.index,)

    @property
    def present(self) -> frozenset[int]:
        """The tables whose columns come out."""
        return frozenset(self.tables)

    @property
    def sure(self) -> frozenset[int]:
        """The tables of which every result has a row."""
        return frozenset(self.tables)


@dataclass(eq=False)
class Pair:
    """Two sides that are joined. ``conditions`` decide who is a partner; ``above`` are over the results."""

    join: exp.Join
    how: How
    left: Leaf | Static | Pair
    right: Leaf | Static | Pair
    conditions: list[exp.Expr] = field(default_factory=list)
    above: list[exp.Expr] = field(default_factory=list)

    @property
    def sides(self) -> tuple[Leaf | Static | Pair, Leaf | Static | Pair]:
        return self.left, self.right

    @property
    def in_order(self) -> bool:
        """Whether the order of times says who is a partner: ASOF JOIN and FOLLOWING."""
        return any(self.join.args.get(part) is not None for part in (MATCHED, PAIRING))

    @property
    def of_streams(self) -> bool:
        """Whether streams are joined, here or below: not a stream and a table."""
        here = not any(isinstance(side, Static) for side in self.sides)
        return here or any(isinstance(side, Pair) and side.of_streams for side in self.sides)

    @property
    def tables(self) -> tuple[int, ...]:
        return (*self.left.tables, *self.right.tables)

    @property
    def present(self) -> frozenset[int]:
        return self.left.present | (self.right.present if self.how not in HALF else frozenset())

    @property
    def sure(self) -> frozenset[int]:
        """A side is missing where the rows of the other one come out without a partner."""
        both = [side.sure if 1 - i not in UNMATCHED[self.how] else frozenset() for i, side in enumerate(self.sides)]
        return (both[0] | both[1]) & self.present

    def place(self, condition: exp.Expr, used: set[int]) -> None:
        """Put a condition of WHERE as far down as inner joins go: there it means the same."""
        if self.how != "inner" or self.in_order:
            self.above.append(condition)
        elif not any(down(side, condition, used) for side in self.sides):
            self.conditions.append(condition)

    def place_on(self, condition: exp.Expr, used: set[int]) -> None:
        """Put a condition of ON where it decides who is a partner: on a side only if its rows need one to come out."""
        sides = [side for i, side in enumerate(self.sides) if i not in UNMATCHED[self.how]]
        if not any(down(side, condition, used) for side in sides):
            self.conditions.append(condition)


Relation = Leaf | Static | Pair


def down(side: Relation, condition: exp.Expr, used: set[int]) -> bool:
    """Put a condition into a side, if it is about nothing else."""
    if not used or not used <= set(side.tables) or isinstance(side, Static):
        return False
    if isinstance(side, Leaf):
        side.conditions.append(condition)
    else:
        side.place(condition, used)
    return True


def _windowed(relation: Relation, table: int) -> bool:
    """Whether a table is part of a join that has windows."""
    if not isinstance(relation, Pair) or table not in relation.tables:
        return False
    here = not relation.in_order and not any(isinstance(side, Static) for side in relation.sides)
    return here or any(_windowed(side, table) for side in relation.sides)


def has_join(tree: exp.Expr) -> bool:
    """Whether this is a join, in parentheses or not."""
    inside = tree.this if isinstance(tree, (exp.Subquery, exp.Paren)) else None
    return bool(tree.args.get("joins")) or (
        isinstance(inside, (exp.Table, exp.Subquery, exp.Paren)) and has_join(inside)
    )


@dataclass
class Relations:
    """Reads a FROM. ``rows``: the rows of a stream, a union or a query, or a static table."""

    rows: Callable[[exp.Expr], Node | Table]
    text: str
    leaves: list[Leaf | Static] = field(default_factory=list)

    def of(self, first: exp.Expr, joins: Sequence[exp.Join]) -> Relation:
        """The tree of a FROM, with the windows of its tables."""
        found = self._joined(first, joins)
        if isinstance(found, Pair):
            self._windows(found)
        return found

    def _joined(self, first: exp.Expr, joins: Sequence[exp.Join]) -> Relation:
        """From left to right; JOIN binds more than a comma."""
        found: list[tuple[exp.Join | None, Relation]] = [(None, self._one(first))]
        for join in joins:
            comma, left = (join, None) if join.meta.get(COMMA) else found.pop()
            right = self._one(join.this)
            found.append((comma, right if left is None else Pair(join, how(join, self.text), left, right)))
        whole = found[0][1]
        for comma, right in found[1:]:
            assert comma is not None
            whole = Pair(comma, "inner", whole, right)
        return whole

    def _one(self, tree: exp.Expr) -> Relation:
        if not has_join(tree):
            found, place = self.rows(tree), (tree, len(self.leaves), name_of(tree))
            self.leaves.append(Static(*place, found) if isinstance(found, Table) else Leaf(*place, found))
            return self.leaves[-1]
        if joins := tree.args.get("joins"):
            tree.set("joins", None)
            return self._joined(tree, joins)
        for part, what in (
            (UNIONED, "a union"),
            (PUNCTUATED, "PUNCTUATED BY"),
            (CLAUSE, "a window"),
            ("alias", "a name"),
        ):
            if tree.args.get(part):
                raise fail(
                    tree, f"{what} of a join in parentheses is not supported: write the join as a query", self.text
                )
        return self._one(tree.this)

    def _windows(self, whole: Pair) -> None:
        streams = [leaf for leaf in self.leaves if isinstance(leaf, Leaf)]
        for leaf in self.leaves:
            clause = clause_of(leaf.tree)
            if clause is not None and (isinstance(leaf, Static) or len(streams) == 1):
                why = "a join with a table has no window: only times of streams can be near, or late"
                raise fail(clause, f"{why}. The window of an aggregation follows the select list", self.text)
        for table in streams:
            clause = clause_of(table.tree)
            if clause is None:
                continue
            Scope([table.name], [table.node.schema], self.text).clause(clause)
            table.window = table_window(clause, table.node, self.text)
            self._check_window(table.window, table.index, whole)
            if table.window.kind != "rows":
                table.node = over(clause, table.node)
        windows = one_for_all([table.window for table in streams], self.text)
        for table, window in zip(streams, windows, strict=True):
            if window is not None and window is not table.window:
                table.window = window if table.window is not None else self._again(table, window)

    def _check_window(self, window: TableWindow, table: int, whole: Pair) -> None:
        """Refuse a window that no join uses: those by the order of times have none."""
        if window.kind is not None and not _windowed(whole, table):
            why = "an ASOF JOIN, or FOLLOWING, has no windows: WITHIN says how far apart the times may be. The window "
            why += "of an aggregation follows the select list, or a query in FROM"
            raise fail(window.clause, why, self.text)

    def _again(self, table: Leaf, window: TableWindow) -> TableWindow:
        """The window after the last table, for another one: its attribute must be there, too."""
        found = table_window(window.clause, table.node, self.text)
        table.node = over(window.clause, table.node)
        return found
