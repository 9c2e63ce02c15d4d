"""The rows of joins: every left row beside every right row, and those that find no partner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl

from windrow.logical.nodes import UNMATCHED, Join, Lookup
from windrow.spec.names import PROGRESS
from windrow.testing.oracle.expressions.cells import alike
from windrow.testing.oracle.expressions.evaluate import evaluate
from windrow.testing.oracle.functions import passes
from windrow.testing.oracle.given import Given
from windrow.testing.oracle.limited import Limited, Timed, picks
from windrow.testing.oracle.values import Row, Schema, order, plain, rows_of_frame
from windrow.windows import Tuple
from windrow.windows.widjoin import extents_of, matched

Near = Callable[[Row, Row], bool]


def joined_rows(node: Join, given: Given) -> Iterator[Row]:
    """A join of two streams: partners are near, too."""
    inner = given.over(by_rows=True) if node.by_rows else given
    left, right = (given.rows_of(each, inner) for each in node.inputs)
    if node.limits is not None:
        yield from _limited(node, given, left, right)
        return
    yield from _joined(_Pairs(node, (node.left.schema, node.right.schema), _near(node), given.bad), left, right)


def looked_up_rows(node: Lookup, given: Given) -> Iterator[Row]:
    """A join with a table, whose rows are near every row."""
    pairs = _Pairs(node, (node.input.schema, node.table.schema), lambda _a, _b: True, given.bad)
    yield from _joined(pairs, given.rows_of(node.input, given), rows_of_frame(node.table.frame))


def _limited(node: Join, given: Given, *rows: list[Row]) -> Iterator[Row]:
    """The same of the rows that are not shed; a row without a key takes no part, and no place."""
    assert node.limits is not None
    pairs = _Pairs(node, (node.left.schema, node.right.schema), _near(node), given.bad)
    times = [each.progress or "" for each in node.inputs]
    unit = 1_000_000 if isinstance(node.left.schema[times[0]], pl.Datetime) else 1
    sides = [_timed(pairs, side, rows[side], times[side]) for side in (0, 1)]
    found = [(a, b) for a, b in Limited(node.limits, node.window, unit).pairs(sides) if pairs.of(a, b) is not None]
    if node.how == "semi":
        yield from (pairs.alone(0, each) for each in {id(a): a for a, _ in found}.values())
    else:
        yield from (pair for a, b in found if (pair := pairs.of(a, b)) is not None)


def _timed(pairs: _Pairs, side: int, rows: list[Row], time: str) -> list[Timed]:
    """The rows that have all keys, with the hashes of their keys, time, and columns in the result."""
    keys = {f"@key{i}": key[side] for i, key in enumerate(pairs.keys)}
    columns = [(name, c) for name, of, c in pairs.node.columns if of == side and not pairs.node.pairs[name].is_nested()]
    types = {name: cell.dtype for name, cell in keys.items()} | {PROGRESS: pl.Int64()}
    types |= {name: plain(pairs.node.pairs[name]) for name, _ in columns}
    cells = [
        {n: k.of(row) for n, k in keys.items()} | {PROGRESS: row[time]} | {name: row[c] for name, c in columns}
        for row in rows
    ]
    kept = [i for i, each in enumerate(cells) if all(each[name] is not None for name in keys)]
    limits = pairs.node.limits
    assert limits is not None
    found = picks([cells[i] for i in kept], types, limits.seed)
    return [Timed(rows[i], rows[i][time], each) for i, each in zip(kept, found, strict=True)]


def _near(node: Join) -> Near:
    """By the window ids of both, where there are any; a band that does not hold 0 is as it is written."""
    a, b = (each.arrival[-1] if node.by_rows else each.progress or "" for each in node.inputs)
    extents = extents_of(node.window)
    if extents is None:
        return lambda left, right: node.window.near(left[a], right[b])
    return lambda left, right: matched(Tuple(left[a]), Tuple(right[b]), extents)


def _joined(pairs: _Pairs, left: list[Row], right: list[Row]) -> Iterator[Row]:
    """Pairs, and the rows of outer sides without a partner; of a semi or anti join the left rows that are asked for."""
    how = pairs.node.how
    met: tuple[set[int], set[int]] = set(), set()
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            found = pairs.of(a, b)
            if found is None:
                continue
            if how not in ("semi", "anti"):
                yield found
            elif how == "semi" and i not in met[0]:
                yield pairs.alone(0, a)
            met[0].add(i)
            met[1].add(j)
    for side in UNMATCHED[how]:
        yield from (pairs.alone(side, row) for i, row in enumerate((left, right)[side]) if i not in met[side])


class _Pairs:
    """Which rows of two sides are partners: near enough, equal in the keys, and all conditions are true."""

    node: Any

    def __init__(self, node: Join | Lookup, schemas: tuple[Schema, Schema], near: Near, bad: Counter[str]) -> None:
        self.node = node
        self.near = near
        self.bad = bad
        self.keys = [alike(evaluate(a, schemas[0]), evaluate(b, schemas[1])) for a, b in node.on]
        self.where = evaluate(node.where, node.pairs) if node.where is not None else None

    def of(self, left: Row, right: Row) -> Row | None:
        """The pair of two rows, if they are partners."""
        if not self.near(left, right) or not all(equal(a.of(left), b.of(right)) for a, b in self.keys):
            return None
        found = {name: (left, right)[side][column] for name, side, column in self.node.columns}
        if self.where is not None and not self.where.of(found):
            return None
        return found if passes(self.node.test, self.node.pairs, found, self.bad) else None

    def alone(self, side: int, row: Row) -> Row:
        """A row beside nothing."""
        columns = [each for each in self.node.columns if each[0] in self.node.schema]
        return {name: row[column] if of == side else None for name, of, column in columns}


def equal(a: Any, b: Any) -> bool:
    """NULL is equal to nothing, NaN to itself, 0.0 to -0.0."""
    return a is not None and b is not None and order(a) == order(b)
