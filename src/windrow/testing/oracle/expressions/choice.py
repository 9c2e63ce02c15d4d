"""Comparison, logic and choice: three-valued, and what a row does not need is not evaluated for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from windrow.testing.oracle.expressions import kinds
from windrow.testing.oracle.expressions.cells import Cell, alike, computed, constant, converted
from windrow.testing.oracle.expressions.kinds import BOOLEAN
from windrow.testing.oracle.values import Row, order

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _comparable(*cells: Cell) -> list[Cell]:
    """In a common type; integers of any width are compared as they are."""
    return list(cells) if all(c.dtype.is_integer() for c in cells) else alike(*cells)


def compared(symbol: str, left: Cell, right: Cell) -> Cell:
    compare = COMPARISONS[symbol]
    return computed(BOOLEAN, lambda a, b: compare(order(a), order(b)), *_comparable(left, right))


def same(left: Cell, right: Cell, negated: bool = False) -> Cell:
    """``<=>`` and IS [NOT] DISTINCT FROM: NULL is a value like others."""
    a, b = _comparable(left, right)
    return Cell(BOOLEAN, lambda row: (order(a.of(row)) == order(b.of(row))) is not negated)


def is_null(cell: Cell) -> Cell:
    return Cell(BOOLEAN, lambda row: cell.of(row) is None)


def is_truth(cell: Cell, truth: bool) -> Cell:
    return Cell(BOOLEAN, lambda row: cell.of(row) is truth)


def negated(cell: Cell) -> Cell:
    return computed(BOOLEAN, lambda v: not v, cell)


def both(left: Cell, right: Cell) -> Cell:
    """AND: the right side is not asked where the left one is false."""

    def of(row: Row) -> bool | None:
        a = left.of(row)
        if a is False:
            return False
        b = right.of(row)
        return False if b is False else None if a is None or b is None else True

    return Cell(BOOLEAN, of)


def either(left: Cell, right: Cell) -> Cell:
    """OR."""
    return negated(both(negated(left), negated(right)))


def one_of(cell: Cell, items: Sequence[Cell]) -> Cell:
    """IN: true if one is equal, else NULL if one comparison is."""
    value, *others = _comparable(cell, *items)

    def of(row: Row) -> bool | None:
        found = value.of(row)
        given = [o.of(row) for o in others]
        if found is None:
            return None
        if any(g is not None and order(g) == order(found) for g in given):
            return True
        return None if None in given else False

    return Cell(BOOLEAN, of)


def chosen(tests: Sequence[Cell], values: Sequence[Cell], default: Cell | None) -> Cell:
    """CASE: the value of the first test that is true."""
    *found, other = alike(*values, default if default is not None else constant(kinds.VOID, None))

    def of(row: Row) -> Any:
        for test, value in zip(tests, found, strict=True):
            if test.of(row):
                return value.of(row)
        return other.of(row)

    return Cell(other.dtype, of)


def first(cells: Sequence[Cell]) -> Cell:
    """coalesce."""
    found = alike(*cells)

    def of(row: Row) -> Any:
        return next((v for cell in found if (v := cell.of(row)) is not None), None)

    return Cell(found[0].dtype, of)


def unless_equal(value: Cell, other: Cell) -> Cell:
    """nullif."""
    equal = compared("=", value, other)
    return Cell(value.dtype, lambda row: None if equal.of(row) else value.of(row))


def extreme(cells: Sequence[Cell], greatest: bool) -> Cell:
    """greatest and least: NULL does not count, and of equal values the first does."""
    found = alike(*cells, promote=False)

    def of(row: Row) -> Any:
        values = [v for v in [cell.of(row) for cell in found] if v is not None]
        return (max if greatest else min)(values, key=order, default=None)

    return Cell(found[0].dtype, of)


def condition(cell: Cell) -> Cell:
    """A boolean, where NULL alone has no type."""
    return converted(cell, BOOLEAN) if cell.dtype == pl.Null else cell
