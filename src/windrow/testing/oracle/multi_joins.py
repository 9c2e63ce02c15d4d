"""The rows of multi-way joins: every row of each stream beside every row of all others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from windrow.logical.nodes import MultiJoin
from windrow.testing.oracle.expressions.cells import Cell, alike
from windrow.testing.oracle.expressions.evaluate import evaluate
from windrow.testing.oracle.functions import passes
from windrow.testing.oracle.given import Given
from windrow.testing.oracle.joins import equal
from windrow.testing.oracle.values import Row


def multi_joined_rows(node: MultiJoin, given: Given) -> Iterator[Row]:
    """One row of each: near, equal in the keys, and all conditions are true."""
    inner = given.over(by_rows=False)
    members = [given.rows_of(each, inner) for each in node.members]
    times = [each.progress or "" for each in node.members]
    keys = [_comparable(node, key) for key in range(len(node.on[0]))]
    where = evaluate(node.where, node.schema) if node.where is not None else None
    for rows in product(*members):
        if not node.ranges.near([row[time] for row, time in zip(rows, times, strict=True)]):
            continue
        if not all(_all_equal(key, rows) for key in keys):
            continue
        found = {name: rows[member][column] for name, member, column in node.columns}
        if (where is None or where.of(found)) and all(
            passes(test, node.schema, found, given.bad) for test in node.tests
        ):
            yield found


def _comparable(node: MultiJoin, key: int) -> list[Cell]:
    """The key of every member, in the type that all of them have in common."""
    return alike(*(evaluate(own[key], member.schema) for own, member in zip(node.on, node.members, strict=True)))


def _all_equal(key: Sequence[Cell], rows: Sequence[Row]) -> bool:
    values = [cell.of(row) for cell, row in zip(key, rows, strict=True)]
    return all(equal(values[0], value) for value in values)
