"""What a tree becomes: its type, and a function that gives its value for one row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from windrow.errors import ResultError
from windrow.testing.oracle.expressions import kinds
from windrow.testing.oracle.expressions.casts import cast
from windrow.testing.oracle.values import Row


@dataclass(frozen=True)
class Cell:
    """An expression. ``days``: an interval of whole days, which moves a date to another date."""

    dtype: pl.DataType
    of: Callable[[Row], Any]
    days: bool = False


def constant(dtype: pl.DataType, value: Any, days: bool = False) -> Cell:
    return Cell(dtype, lambda _row: value, days)


def converted(cell: Cell, dtype: pl.DataType, lenient: bool = False) -> Cell:
    """The value in another type; ``lenient``: NULL where there is none."""

    def of(row: Row) -> Any:
        value = cell.of(row)
        try:
            return cast(value, cell.dtype, dtype)
        except ResultError:
            if lenient:
                return None
            raise

    return cell if cell.dtype == dtype else Cell(dtype, of, cell.days)


def computed(
    dtype: pl.DataType, compute: Callable[..., Any], *cells: Cell, days: bool = False, lenient: bool = False
) -> Cell:
    """A function of values, all of which are evaluated; NULL if one of them is.

    ``lenient``: NULL, too, where the function has no value. An operand that has none is an error as ever.
    """

    def of(row: Row) -> Any:
        values = [cell.of(row) for cell in cells]
        if any(v is None for v in values):
            return None
        try:
            return compute(*values)
        except ResultError:
            if lenient:
                return None
            raise

    return Cell(dtype, of, days)


def alike(*cells: Cell, promote: bool = True) -> list[Cell]:
    """All in the type that they have beside each other."""
    dtype = kinds.together([c.dtype for c in cells], promote)
    return [converted(c, dtype) for c in cells]
