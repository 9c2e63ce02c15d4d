"""Names of tables in a SELECT: ``s.k`` is a column of the table that is called s there, and of no other."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from windrow.errors import QueryError, listing
from windrow.logical.expressions import Schema, dotted, fail, visible
from windrow.logical.nodes import Node, Project
from windrow.logical.reading import written
from windrow.sql.trees import UNIONED, WindowClause


def names(tree: exp.Expr) -> set[str]:
    """The names that qualify the columns of a FROM: that of the only table, or its alias.

    The members of ``FROM a UNION b`` have no common name.
    """
    members = tree.args.get(UNIONED)
    if tree.alias and (not members or tree.args["alias"].meta.get("whole")):
        return {tree.alias}
    if members:
        return set()
    if isinstance(tree, (exp.Subquery, exp.Paren)) and isinstance(tree.this, (exp.Table, exp.Paren)):
        return names(tree.this)
    return {tree.name} if isinstance(tree, exp.Table) else set()


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


def unqualified(select: exp.Expr, known: set[str], schema: Schema, sql: str) -> None:
    """Check the table names before the columns of a SELECT, and remove them."""
    for column in list(_columns(select)):
        parts = [p.name for p in column.parts[:-1]]
        if not parts:
            continue
        if len(parts) > 1 or parts[0].lower() not in {k.lower() for k in known}:
            raise _unknown(column, known, schema, sql)
        if isinstance(column.this, exp.Star):
            if column.parent is not select:
                raise fail(column, f"{written(column, sql)} is supported in a select list only", sql)
            column.replace(column.this)
            continue
        for part in ("table", "db", "catalog"):
            column.set(part, None)


def _columns(select: exp.Expr) -> Iterator[exp.Column]:
    """Those of the SELECT itself: a query in its FROM has names of its own."""
    for name, value in select.args.items():
        if name in ("from_", "this", "expression"):
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr) and not isinstance(part, WindowClause):
                yield from part.find_all(exp.Column)


def _unknown(column: exp.Column, known: set[str], schema: Schema, sql: str) -> QueryError:
    parts = [p.name for p in column.parts]
    there = f"available: {listing(known)}" if known else "what follows FROM has no name: give it an alias"
    message = f"unknown table {'.'.join(parts[:-1])!r} in {'.'.join(parts)}; {there}"
    return dotted(column, schema, sql) or fail(column.args["table"], message, sql)
