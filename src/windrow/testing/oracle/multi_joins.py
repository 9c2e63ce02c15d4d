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
from windrow.testing.oracle.keys import place
from windrow.testing.oracle.values import Row


def multi_joined_rows(node: MultiJoin, given: Given) -> Iterator[Row]:
    """One row of each: near, equal in the keys, and all conditions are true."""
    inner = given.over(by_rows=False)
    members = [given.rows_of(each, inner) for each in node.members]
    times = [each.progress or "" for each in node.members]
    keys = [_comparable(node, key) for key in range(len(node.on[0]))]
    where = evaluate(node.where, node.schema) if node.where is not None else None
    held = Held(node, members, times)
    for rows in product(*members):
        if not held.by_all(rows):
            continue
        if not all(_all_equal(key, rows) for key in keys):
            continue
        found = {name: rows[member][column] for name, member, column in node.columns}
        if (where is None or where.of(found)) and all(
            passes(test, node.schema, found, given.bad) for test in node.tests
        ):
            yield found


class Held:
    """Which rows, one of each stream, are all still held when the last of them comes. Rows come in the order of their
    times, then of their streams, then of all their columns.
    """

    def __init__(self, node: MultiJoin, members: Sequence[Sequence[Row]], times: Sequence[str]) -> None:
        self.ranges, self.times = node.ranges, times
        listed = [
            (row[times[stream]], stream, place(row, node.members[stream].schema), row)
            for stream, rows in enumerate(members)
            for row in rows
        ]
        listed.sort(key=lambda each: each[:3])
        self.place = {id(row): at for at, (*_, row) in enumerate(listed)}
        self.of = [[at for at, (_, of, *_) in enumerate(listed) if of == stream] for stream in range(len(members))]

    def by_all(self, rows: Sequence[Row]) -> bool:
        """Each of them, for a time or as one of the last rows of its stream."""
        last, latest = max(self.place[id(row)] for row in rows), max(map(self._time, range(len(rows)), rows))
        return all(
            self._younger(stream, row, last) < held
            if self.ranges.counts(stream)
            else latest - self._time(stream, row) < held
            for stream, (row, held) in enumerate(zip(rows, self.ranges.lengths, strict=True))
        )

    def _time(self, stream: int, row: Row) -> int:
        return int(row[self.times[stream]])

    def _younger(self, stream: int, row: Row, last: int) -> int:
        """The rows of its stream that have come after it, and before the last one."""
        return sum(self.place[id(row)] < at < last for at in self.of[stream])


def _comparable(node: MultiJoin, key: int) -> list[Cell]:
    """The key of every member, in the type that all of them have in common."""
    return alike(*(evaluate(own[key], member.schema) for own, member in zip(node.on, node.members, strict=True)))


def _all_equal(key: Sequence[Cell], rows: Sequence[Row]) -> bool:
    values = [cell.of(row) for cell, row in zip(key, rows, strict=True)]
    return all(equal(values[0], value) for value in values)
