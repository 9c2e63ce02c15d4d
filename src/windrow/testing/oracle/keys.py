"""Keys that must be equal and the order of rows, for joins and sequences."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from sqlglot import exp

from windrow.testing.oracle.expressions.cells import Cell, alike
from windrow.testing.oracle.expressions.evaluate import evaluate
from windrow.testing.oracle.values import Row, Schema, order


def key_cells(on: Iterable[Sequence[exp.Expr]], schemas: Sequence[Schema]) -> list[list[Cell]]:
    """For each input the expressions of its keys, in the types that all inputs are compared in."""
    keys = [alike(*(evaluate(tree, schema) for tree, schema in zip(key, schemas, strict=True))) for key in on]
    return [[key[number] for key in keys] for number in range(len(schemas))]


def key_of(cells: Iterable[Cell], row: Row) -> tuple[Hashable, ...] | None:
    """Equal for equal keys: NaN equals NaN, and 0.0 equals -0.0. None if one is NULL, which equals nothing."""
    values = [cell.of(row) for cell in cells]
    return None if any(value is None for value in values) else tuple(order(value) for value in values)


def place(row: Row, schema: Schema) -> list[Any]:
    """Where a row is among others in the order of all its columns, as Spark sorts: NULL first, NaN last.

    >>> rows = [{"a": 1, "b": float("nan")}, {"a": 1, "b": 2.0}, {"a": None, "b": 9.0}]
    >>> [row["b"] for row in sorted(rows, key=lambda row: place(row, row))]
    [9.0, 2.0, nan]
    """
    return [_place(row[name]) for name in schema]


def _place(value: Any) -> tuple[Any, ...]:
    """A list is compared value by value, and the shorter one comes first; a struct field by field."""
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return (1, [_place(each) for each in value.values()])
    if isinstance(value, list):
        return (1, [_place(each) for each in value])
    return (1, order(value))
