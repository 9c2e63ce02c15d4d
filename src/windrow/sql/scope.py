"""Names in a SELECT: ``s.k`` is a column of the table that is called s there, and of no other.

Over two tables, ``L.src`` and ``R.src`` are two columns, and ``src`` alone is ambiguous.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from windrow.errors import QueryError, listing
from windrow.logical.expressions import Schema, dotted, fail, visible
from windrow.logical.nodes import Node, Project, Side
from windrow.logical.reading import written
from windrow.sql.trees import UNIONED, WindowClause

ALIASED = ("group", "having", "order")  # the parts of a SELECT that may name items of its list
WRITTEN = "windrow_column"  # the name of a column as it was written, in the meta of its identifier


def name_of(tree: exp.Expr) -> str | None:
    """The name that qualifies the columns of a FROM: that of the only table, or its alias.

    The members of ``FROM a UNION b`` have no common name.
    """
    members = tree.args.get(UNIONED)
    if tree.alias and (not members or tree.args["alias"].meta.get("whole")):
        return str(tree.alias)
    if members:
        return None
    if isinstance(tree, (exp.Subquery, exp.Paren)) and isinstance(tree.this, (exp.Table, exp.Paren)):
        return name_of(tree.this)
    return str(tree.name) if isinstance(tree, exp.Table) else None


def renamed(tree: exp.Expr, node: Node, sql: str) -> Node:
    """The rows of a table whose alias gives names to its columns: ``FROM s AS z(a, b)``."""
    alias = tree.args.get("alias")
    given = alias.args.get("columns") if alias is not None else None
    if alias is None or not given:
        return node
    old, new = visible(node.schema), [c.name for c in given]
    if tree.args.get(UNIONED) and alias.meta.get("whole"):
        raise fail(given[0], "an alias of united tables cannot name columns: rename them in a query", sql)
    if odd := [c for c in given if not isinstance(c, exp.Identifier)]:
        raise fail(odd[0], "an alias takes only names for the columns", sql)
    if len(new) != len(old):
        raise fail(alias, f"{len(new)} names for {len(old)} columns: {', '.join(old)}", sql)
    if twice := [c for c in given if new.count(c.name) > 1]:
        raise fail(twice[-1], f"columns need different names; given twice: {twice[-1].name}", sql)
    return Project(node, tuple((n, exp.column(o)) for o, n in zip(old, new, strict=True)))


@dataclass(frozen=True)
class Scope:
    """The tables of a FROM, one or two: their names, if they have any, and their columns."""

    names: Sequence[str | None]
    schemas: Sequence[Schema]
    text: str

    def resolve(self, select: exp.Expr) -> None:
        """Replace each qualified column of a SELECT by the column it means, and refuse unknown and ambiguous names.

        A column of two tables that have one of that name is called ``L.k``; all others keep their names.
        """
        aliases = {i.alias.lower() for i in select.expressions if i.alias}
        for item in [i for i in select.expressions if isinstance(i, exp.Column) and isinstance(i.this, exp.Star)]:
            self._expand(item, select)
        for part, column in list(_columns(select)):
            if not column.table and part in ALIASED and column.name.lower() in aliases:
                continue
            self.column(column)
        for item in select.expressions if len(self.names) > 1 else ():
            if isinstance(item, exp.Column) and (name := item.this.meta.get(WRITTEN)) is not None:
                item.replace(exp.alias_(item.copy(), name, quoted=True))

    def column(self, column: exp.Column) -> Side | None:
        """Give a column the name it has among all columns; the table it is of, None if there is no such column."""
        if isinstance(column.this, exp.Star):
            raise fail(column, f"{written(column, self.text)} is supported in a select list only", self.text)
        side = self._side(column) if column.table else self._only_side(column)
        if side is None:
            return None
        name = next((c for c in self.schemas[side] if c == column.name), None)
        name = name or next((c for c in self.schemas[side] if c.lower() == column.name.lower()), None)
        if name is None and len(self.names) > 1:
            table, there = self.names[side], listing(visible(self.schemas[side]))
            raise fail(column, f"table {table} has no column {column.name!r}; available: {there}", self.text)
        self._rename(column, self.joined_name(side, name) if name is not None else column.name)
        return side

    def joined_name(self, side: Side, column: str) -> str:
        """What a column of a table is called among the columns of all."""
        if len(self.names) == 1 or column not in self.schemas[1 - side]:
            return column
        return f"{self.names[side] or ('left', 'right')[side]}.{column}"

    def _side(self, column: exp.Column) -> Side:
        table = [p.name for p in column.parts[:-1]]
        known = [name.lower() if name is not None else None for name in self.names]
        if len(table) > 1 or table[0].lower() not in known:
            raise self._unknown(column)
        return 1 if known.index(table[0].lower()) else 0

    def _only_side(self, column: exp.Column) -> Side | None:
        """The table of a column that is named alone."""
        exact: list[Side] = [s for s in self._sides if column.name in self.schemas[s]]
        alike: list[Side] = [s for s in self._sides if column.name.lower() in {c.lower() for c in self.schemas[s]}]
        found = exact or alike
        if len(found) > 1:
            both = " or ".join(f"{self.names[s]}.{column.name}" for s in found if self.names[s])
            raise fail(column, f"column {column.name!r} is ambiguous: write {both}", self.text)
        return found[0] if found else None

    @property
    def _sides(self) -> tuple[Side, ...]:
        return (0,) if len(self.names) == 1 else (0, 1)

    def _rename(self, column: exp.Column, name: str) -> None:
        identifier = column.this
        if len(self.names) > 1:
            if name != identifier.name:
                identifier.meta[WRITTEN] = identifier.name
                identifier.set("quoted", True)
            if column.table and "start" in column.args["table"].meta:
                identifier.meta["start"] = column.args["table"].meta["start"]  # so that errors underline both
            identifier.set("this", name)
        for part in ("table", "db", "catalog"):
            column.set(part, None)

    def _expand(self, star: exp.Column, select: exp.Expr) -> None:
        """``s.*`` in a select list."""
        side = self._side(star)
        if len(self.names) == 1:
            star.replace(star.this)
            return
        if star.this.args.get("except_"):
            raise fail(star, "not supported yet: EXCEPT over a join; name the columns", self.text)
        named = [
            exp.column(self.joined_name(side, c), quoted=True).as_(c, quoted=True) for c in visible(self.schemas[side])
        ]
        at = select.expressions.index(star)
        select.set("expressions", [*select.expressions[:at], *named, *select.expressions[at + 1 :]])

    def _unknown(self, column: exp.Column) -> QueryError:
        parts = [p.name for p in column.parts]
        known = [n for n in self.names if n is not None]
        there = f"available: {listing(known)}" if known else "what follows FROM has no name: give it an alias"
        message = f"unknown table {'.'.join(parts[:-1])!r} in {'.'.join(parts)}; {there}"
        own = next((e for s in self.schemas if (e := dotted(column, s, self.text)) is not None), None)
        return own or fail(column.args["table"], message, self.text)


def _columns(select: exp.Expr) -> Iterator[tuple[str, exp.Column]]:
    """Those of the SELECT itself, with the part they are in: a query in its FROM has names of its own."""
    for name, value in select.args.items():
        if name in ("from_", "joins", "this", "expression"):
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr) and not isinstance(part, WindowClause):
                yield from ((name, column) for column in part.find_all(exp.Column))
