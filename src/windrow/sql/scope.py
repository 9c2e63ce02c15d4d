"""Names in a SELECT: ``s.k`` is a column of the table that is called s there, and of no other.

Over several tables, ``L.src`` and ``R.src`` are two columns, and ``src`` alone is ambiguous.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from windrow.errors import QueryError, listing
from windrow.logical.expressions import Schema, dotted, fail, visible
from windrow.logical.nodes import Node, Project
from windrow.logical.reading import place, written
from windrow.sql.trees import UNIONED, WindowClause

ALIASED = ("group", "having", "order")  # the parts of a SELECT that may name items of its list
ATTRIBUTES = ("wa", "rattr", "sattr", "pa")  # the parts of a window clause that name columns
WRITTEN = "windrow_column"  # the name of a column as it was written, in the meta of its identifier


def name_of(tree: exp.Expr) -> str | None:
    """The name that qualifies the columns of a FROM: that of the only table, or its alias.

    The members of ``FROM a UNION b`` have no common name, unless one follows the last of them, and only that one.
    """
    members = tree.args.get(UNIONED)
    if tree.alias and (not members or tree.args["alias"].meta.get("whole")):
        return str(tree.alias)
    if members:
        named = [each.alias for each in (tree, *members)]
        return str(named[-1]) if named[-1] and not any(named[:-1]) else None
    if isinstance(tree, (exp.Subquery, exp.Paren)) and isinstance(tree.this, (exp.Table, exp.Paren)):
        return name_of(tree.this)
    return str(tree.name) if isinstance(tree, exp.Table) else None


def renamed(tree: exp.Expr, node: Node, sql: str) -> Node:
    """The rows of a table whose alias gives names to its columns: ``FROM s AS z(a, b)``."""
    alias = tree.args.get("alias")
    given = alias.args.get("columns") if alias is not None else None
    if alias is None or not given:
        return node
    old, new = [c for c in visible(node.schema) if c not in node.hidden], [c.name for c in given]
    if tree.args.get(UNIONED) and alias.meta.get("whole"):
        raise fail(given[0], "an alias of united tables cannot name columns: rename them in a query", sql)
    if odd := [c for c in given if not isinstance(c, exp.Identifier)]:
        raise fail(odd[0], "an alias takes only names for the columns", sql)
    if len(new) != len(old):
        raise fail(alias, f"{len(new)} names for {len(old)} columns: {', '.join(old)}", sql)
    if twice := [c for c in given if new.count(c.name) > 1]:
        raise fail(twice[-1], f"columns need different names; given twice: {twice[-1].name}", sql)
    return Project(node, tuple((n, exp.column(o)) for o, n in zip(old, new, strict=True)))


@dataclass(frozen=True, eq=False)
class Merged:
    """A column that USING makes of several. ``of``: its name in each of these tables."""

    name: str
    tree: exp.Expr
    of: Mapping[int, str]


@dataclass(frozen=True)
class View:
    """The tables whose columns can be named at a place; ``hidden``: why those of another one cannot."""

    tables: tuple[int, ...]
    merged: tuple[Merged, ...] = ()
    hidden: Mapping[int, str] = field(default_factory=dict)

    def merges(self, table: int, column: str) -> bool:
        """Whether a column is part of one that USING made."""
        return any(each.of.get(table) == column for each in self.merged)


@dataclass(frozen=True)
class Scope:
    """The tables of a FROM: their names, if they have any, and their columns."""

    names: Sequence[str | None]
    schemas: Sequence[Schema]
    text: str
    hidden: Sequence[Collection[str]] = ()  # of each table, the columns that * does not stand for

    def shown(self, table: int) -> list[str]:
        """The columns that ``s.*`` stands for."""
        hidden = self.hidden[table] if self.hidden else ()
        return [c for c in visible(self.schemas[table]) if c not in hidden]

    @property
    def everything(self) -> View:
        return View(tuple(range(len(self.names))))

    def resolve(self, select: exp.Expr, view: View | None = None) -> None:
        """Replace each qualified column of a SELECT by the column it means, and refuse unknown and ambiguous names.

        A column of which several tables have the name is called ``L.k``; all others keep their names.
        """
        view = self.everything if view is None else view
        aliases = {i.alias.lower() for i in select.expressions if i.alias}
        Stars(self, view).expand(select)
        items = {id(i): i.name for i in select.expressions if isinstance(i, exp.Column)}
        for part, column in list(_columns(select)):
            if not column.table and part in ALIASED and column.name.lower() in aliases:
                continue
            found = self.column(column, view)
            name = items.get(id(column)) if len(self.names) > 1 else None
            if name is not None and not (isinstance(found, exp.Column) and found.name == name):
                found.replace(exp.alias_(found.copy(), name, quoted=True))
        for clause in [i for i in select.expressions if isinstance(i, WindowClause)]:
            self.clause(clause, view)

    def clause(self, clause: WindowClause, view: View | None = None) -> None:
        """Replace each attribute of a window clause by the column it means."""
        for given in attributes(clause):
            column = given if isinstance(given, exp.Column) else exp.Column(this=given.copy())
            found = self.column(column, self.everything if view is None else view)
            if isinstance(found, exp.Column):
                given.replace(found.this)
            else:
                meant = f"{given.name} is {found.sql('spark').replace('`', '')} here"
                raise fail(given, f"{meant}: select it in a query in FROM, with the window after that", self.text)

    def column(self, column: exp.Column, view: View) -> exp.Expr:
        """Give a column the name it has among all columns; a column that is in no table is left as it is."""
        if isinstance(column.this, exp.Star):
            raise fail(column, f"{written(column, self.text)} is supported in a select list only", self.text)
        if column.table:
            table = self.table(column)
            self._check(table, column, view)
            return self._renamed(column, table)
        found = self._alone(column, view)
        if isinstance(found, Merged):
            tree = found.tree.copy()
            for each in tree.find_all(exp.Column):
                each.this.meta.update({**column.this.meta, WRITTEN: column.name})
            column.replace(tree)
            return tree
        return column if found is None else self._renamed(column, found)

    def joined_name(self, table: int, column: str) -> str:
        """What a column of a table is called among the columns of all."""
        if not any(column in schema for i, schema in enumerate(self.schemas) if i != table):
            return column
        return f"{self.names[table] or f'table {table + 1}'}.{column}"

    def table(self, column: exp.Column) -> int:
        """The table that qualifies a column."""
        table = [p.name for p in column.parts[:-1]]
        known = [name.lower() if name is not None else None for name in self.names]
        if len(table) > 1 or table[0].lower() not in known:
            raise self._unknown(column)
        return known.index(table[0].lower())

    def _check(self, table: int, column: exp.Column, view: View) -> None:
        if table not in view.tables:
            name = self.names[table] or column.name
            why = view.hidden.get(table, f"{name} is not one of the tables that are joined here")
            raise fail(column, f"{column.name} of {name} cannot be named here: {why}", self.text)

    def _alone(self, column: exp.Column, view: View) -> int | Merged | None:
        """What a column that is named alone is a column of."""
        found = self._named(column.name, view)
        if len(found) > 1:
            known = [self.names[each] for each in found if isinstance(each, int)]
            both = " or ".join(f"{name}.{column.name}" for name in known if name)
            raise fail(column, f"column {column.name!r} is ambiguous: write {both or 'another name'}", self.text)
        if not found and (others := self._named(column.name, View(tuple(view.hidden)))):
            assert isinstance(others[0], int)
            self._check(others[0], column, view)
        return found[0] if found else None

    def _named(self, name: str, view: View) -> list[int | Merged]:
        """The columns that a name alone can mean: with the same spelling, or else without regard to case."""
        own = [(i, c) for i in view.tables for c in self.schemas[i] if not view.merges(i, c)]
        there: list[tuple[int | Merged, str]] = [*((each, each.name) for each in view.merged), *own]
        exact = [each for each, c in there if c == name]
        return exact or list(dict.fromkeys(each for each, c in there if c.lower() == name.lower()))

    def _renamed(self, column: exp.Column, table: int) -> exp.Column:
        schema = self.schemas[table]
        name = (
            column.name
            if column.name in schema
            else next((c for c in schema if c.lower() == column.name.lower()), None)
        )
        if name is None and len(self.names) > 1:
            there = listing(visible(schema))
            raise fail(
                column, f"table {self.names[table]} has no column {column.name!r}; available: {there}", self.text
            )
        identifier = column.this
        if len(self.names) > 1 and name is not None:
            joined = self.joined_name(table, name)
            if joined != identifier.name:
                identifier.meta[WRITTEN] = identifier.name
                identifier.set("quoted", True)
            if column.table and "start" in column.args["table"].meta:
                identifier.meta["start"] = column.args["table"].meta["start"]  # so that errors underline both
            identifier.set("this", joined)
        for part in ("table", "db", "catalog"):
            column.set(part, None)
        return column

    def _unknown(self, column: exp.Column) -> QueryError:
        parts = [p.name for p in column.parts]
        known = [n for n in self.names if n is not None]
        there = f"available: {listing(known)}" if known else "what follows FROM has no name: give it an alias"
        message = f"unknown table {'.'.join(parts[:-1])!r} in {'.'.join(parts)}; {there}"
        own = next((e for s in self.schemas if (e := dotted(column, s, self.text)) is not None), None)
        return own or fail(column.args["table"], message, self.text)


@dataclass(frozen=True)
class Stars:
    """``*`` and ``s.*`` in a select list over several tables, as the columns they stand for."""

    scope: Scope
    view: View

    def expand(self, select: exp.Expr) -> None:
        items: list[exp.Expr] = []
        grouped = any(isinstance(i, WindowClause) for i in select.expressions)
        for item in select.expressions:
            qualified = isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
            if qualified and len(self.scope.names) == 1:
                self.scope.table(item)
                items.append(item.this)
            elif qualified:
                items += self.columns(item, self._of(item), item.this)
            elif isinstance(item, exp.Star) and not grouped and (found := self._all(item)) is not None:
                items += self.columns(item, found, item)
            else:
                items.append(item)
        select.set("expressions", items)

    def _of(self, item: exp.Column) -> list[tuple[str, exp.Expr]]:
        table = self.scope.table(item)
        self.scope._check(table, item, self.view)
        return [self._named(table, c) for c in self.scope.shown(table)]

    def _all(self, star: exp.Star) -> list[tuple[str, exp.Expr]] | None:
        """What USING makes one comes first; None where the columns of all tables have their own names anyway."""
        found = [(each.name, each.tree.copy()) for each in self.view.merged]
        for table in self.view.tables:
            own = self.scope.shown(table)
            found += [self._named(table, c) for c in own if not self.view.merges(table, c)]
        names = [name for name, _ in found]
        if twice := {n for n in names if names.count(n) > 1}:
            tables = "both tables" if len(self.view.tables) == 2 else "several tables"
            message = f"{tables} have columns {listing(twice)}: name the columns, and give these different names"
            raise fail(star, message, self.scope.text)
        same = len(self.view.tables) == len(self.scope.names) and all(name == tree.name for name, tree in found)
        same = same and not any(self.scope.hidden)
        return None if same and not self.view.merged else found

    def _named(self, table: int, column: str) -> tuple[str, exp.Expr]:
        return column, exp.column(self.scope.joined_name(table, column), quoted=True)

    def columns(self, item: exp.Expr, found: list[tuple[str, exp.Expr]], star: exp.Expr) -> list[exp.Expr]:
        """Columns in the place of a star, without those of its EXCEPT."""
        left_out = [each.name.lower() for each in star.args.get("except_") or ()]
        for each in star.args.get("except_") or ():
            if each.name.lower() not in {name.lower() for name, _ in found}:
                there = listing(name for name, _ in found)
                raise fail(each, f"unknown column {each.name!r}; available: {there}", self.scope.text)
        start, end = place(item) or (0, 0)
        for column in [column for _, tree in found for column in tree.find_all(exp.Column)]:
            column.this.meta.update({"start": start, "end": end})  # so that errors underline the star
        return [exp.alias_(tree, name, quoted=True) for name, tree in found if name.lower() not in left_out]


def attributes(clause: WindowClause) -> list[exp.Expr]:
    """The columns that a window clause names."""
    return [each for name in ATTRIBUTES for each in _listed(clause.args.get(name))]


def _columns(select: exp.Expr) -> Iterator[tuple[str, exp.Column]]:
    """Those of the SELECT itself, with the part they are in: a query in its FROM has names of its own."""
    for name, value in select.args.items():
        if name in ("from_", "joins", "this", "expression"):
            continue
        for part in _listed(value):
            if isinstance(part, exp.Expr) and not isinstance(part, WindowClause):
                yield from ((name, column) for column in part.find_all(exp.Column))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
