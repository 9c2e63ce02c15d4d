"""The attributes of arrival that a query names: its streams have them, though no stream declares them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sqlglot import exp

from windrow.api.stream import Stream
from windrow.logical.arrival import TYPES, arriving
from windrow.spec.names import POSITION
from windrow.sql.scope import attributes
from windrow.sql.trees import WindowClause

ROWS = ("ROW", "ROWS")


def with_arrival(tree: exp.Expr, tables: Mapping[str, Stream]) -> dict[str, Stream]:
    """The tables of a query, with the attributes of arrival that it names.

    Where it names one without a table, and the data of one of its tables has such a column, then that is what it means.
    """
    named = list(_named(tree))
    used = {table.name.lower() for table in tree.find_all(exp.Table)}
    there = {c.lower() for name, table in tables.items() if name.lower() in used for c in _in_data(table)}
    wanted = {name for name, qualified in named if qualified or name not in there}
    wanted -= {name for name, qualified in named if not qualified and name in there}
    return {name: replace(table, node=arriving(table.node, wanted)) for name, table in tables.items()}


def _in_data(table: Stream) -> set[str]:
    return set(table.node.schema).difference(*(scan.stamps for scan in table.node.scans))


def _named(tree: exp.Expr) -> Iterator[tuple[str, bool]]:
    """The names of attributes of arrival in a query, and whether each is qualified by a table, or follows one."""
    found = [(column.name, bool(column.table)) for column in tree.find_all(exp.Column)]
    for clause in tree.find_all(WindowClause):
        follows = isinstance(clause.parent, exp.Table)
        found += [(c.name, follows or (isinstance(c, exp.Column) and bool(c.table))) for c in attributes(clause)]
        size = clause.args.get("range")
        if size is not None and (unit := size.args.get("unit")) is not None and unit.name.upper() in ROWS:
            yield POSITION, False
    yield from ((name.lower(), qualified) for name, qualified in found if name.lower() in TYPES)
