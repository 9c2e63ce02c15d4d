"""The rows of as-of joins: every right row is looked at for every left row."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.logical.nodes import AsOf
from windrow.testing.oracle.expressions.evaluate import evaluate
from windrow.testing.oracle.given import Given
from windrow.testing.oracle.keys import key_cells, key_of, place
from windrow.testing.oracle.values import Row


def as_of_rows(node: AsOf, given: Given) -> Iterator[Row]:
    """Each left row beside the nearest of its candidates. Those without any come out alone, or not."""
    left, right = (given.rows_of(each, given.over(by_rows=False)) for each in node.inputs)
    candidates = _Candidates(node)
    in_order = sorted(right, key=lambda row: (row[candidates.times[1]], place(row, node.right.schema)))
    for row in left:
        found = candidates.nearest(row, [each for each in in_order if candidates.has(row, each)])
        if found is not None or node.how == "left":
            yield candidates.pair(row, found)


class _Candidates:
    """Which right rows can stand beside a left row: equal keys, the right side of its time, near enough, and the
    condition is true. A row whose key is NULL has no candidates."""

    def __init__(self, node: AsOf) -> None:
        self.node = node
        self.times = (node.left.progress or "", node.right.progress or "")
        self.keys = key_cells(node.on, [node.left.schema, node.right.schema])
        self.where = evaluate(node.where, node.schema) if node.where is not None else None

    def has(self, left: Row, right: Row) -> bool:
        """Whether a right row is one of a left row."""
        mine, other = key_of(self.keys[0], left), key_of(self.keys[1], right)
        if mine is None or mine != other or not self._in_time(self.ahead(left, right)):
            return False
        return self.where is None or self.where.of(self.pair(left, right)) is True

    def ahead(self, left: Row, right: Row) -> int:
        """How much later than the left row the right one is, with what is added to its time."""
        return int(right[self.times[1]]) + self.node.shift - int(left[self.times[0]])

    def _in_time(self, ahead: int) -> bool:
        node = self.node
        if node.tolerance is not None and abs(ahead) > node.tolerance:
            return False
        if ahead == 0:
            return node.exact
        return node.strategy == "nearest" or (ahead < 0) == (node.strategy == "backward")

    def nearest(self, left: Row, candidates: list[Row]) -> Row | None:
        """The one that is taken of candidates that are in order.

        The last one looking back, the first one looking ahead. The nearest of all is the last one with the least
        distance: of two equally near the later, and of equal times the last.
        """
        if not candidates:
            return None
        if self.node.strategy != "nearest":
            return candidates[-1 if self.node.strategy == "backward" else 0]
        least = min(abs(self.ahead(left, row)) for row in candidates)
        return [row for row in candidates if abs(self.ahead(left, row)) == least][-1]

    def pair(self, left: Row, right: Row | None) -> Row:
        """A result row; NULL for all columns of a right row that is not there."""
        sides = (left, right)
        return {name: None if (row := sides[side]) is None else row[column] for name, side, column in self.node.columns}
