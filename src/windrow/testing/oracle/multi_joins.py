"""The rows of multi-way joins: every row of each stream beside every row of all others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from windrow.logical.nodes import MultiJoin, Node
from windrow.testing.oracle.expressions.cells import Cell, alike
from windrow.testing.oracle.expressions.evaluate import evaluate
from windrow.testing.oracle.functions import passes
from windrow.testing.oracle.given import Given
from windrow.testing.oracle.joins import equal
from windrow.testing.oracle.values import Row, frame_of

AT = "@at"


def multi_joined_rows(node: MultiJoin, given: Given) -> Iterator[Row]:
    """One row of each: near, equal in the keys, and all conditions are true."""
    inner = given.over(by_rows=False)
    members = [given.rows_of(each, inner) for each in node.members]
    keys = [_comparable(node, key) for key in range(len(node.on[0]))]
    where = evaluate(node.where, node.schema) if node.where is not None else None
    places = [
        _places(rows, each, number) for number, (rows, each) in enumerate(zip(members, node.members, strict=True))
    ]
    for at in product(*(range(len(rows)) for rows in members)):
        if not _near(node, places, at):
            continue
        rows = [own[n] for own, n in zip(members, at, strict=True)]
        if not all(_all_equal(key, rows) for key in keys):
            continue
        found = {name: rows[member][column] for name, member, column in node.columns}
        if (where is None or where.of(found)) and all(
            passes(test, node.schema, found, given.bad) for test in node.tests
        ):
            yield found


Place = tuple[int, int, int]  # of a row among those of all streams: its time, its stream, its number there


def _places(rows: Sequence[Row], member: Node, number: int) -> list[Place]:
    """Rows of equal times are in the order of all their columns."""
    time = member.progress or ""
    frame = frame_of(list(rows), dict(member.schema)).with_row_index(AT)
    ties = [name for name in member.schema if name != time]
    ranks = {at: rank for rank, at in enumerate(frame.sort(time, *ties, maintain_order=True)[AT].to_list())}
    return [(row[time], number, ranks[at]) for at, row in enumerate(rows)]


def _near(node: MultiJoin, places: Sequence[Sequence[Place]], at: Sequence[int]) -> bool:
    """Whether all rows are still held when the last one comes: for a time, or as one of the last of their stream."""
    own = [of[n] for of, n in zip(places, at, strict=True)]
    last = max(own)
    for number, place in enumerate(own):
        if node.ranges.counts(number):
            later = sum(place < other <= last for other in places[number])
            if later >= node.ranges.lengths[number]:
                return False
        elif last[0] - place[0] >= node.ranges.lengths[number]:
            return False
    return True


def _comparable(node: MultiJoin, key: int) -> list[Cell]:
    """The key of every member, in the type that all of them have in common."""
    return alike(*(evaluate(own[key], member.schema) for own, member in zip(node.on, node.members, strict=True)))


def _all_equal(key: Sequence[Cell], rows: Sequence[Row]) -> bool:
    values = [cell.of(row) for cell, row in zip(key, rows, strict=True)]
    return all(equal(values[0], value) for value in values)
