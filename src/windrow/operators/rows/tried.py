"""A user's function over many rows, some of which it may fail for."""

from __future__ import annotations

import polars as pl

from windrow.spec.batches import Batch
from windrow.spec.functions import Function


def tried(function: Function, batch: Batch) -> tuple[pl.Series, dict[int, str]]:
    """The values, NULL for rows that the function fails for, and by the number of such a row the reason.

    >>> half = Function("half", lambda x: 1 // x, ("x",), pl.Int64())
    >>> values, reasons = tried(half, pl.DataFrame({"x": [1, 0]}))
    >>> values.to_list(), reasons
    ([1, None], {1: 'half failed: ZeroDivisionError: integer division or modulo by zero'})
    """
    reasons: dict[int, str] = {}
    if not batch.height:
        return pl.Series([], dtype=function.returns), reasons
    return _halved(function, batch, 0, reasons), reasons


def _halved(function: Function, batch: Batch, first: int, reasons: dict[int, str]) -> pl.Series:
    """Where a call fails, each half is tried by itself, down to the row that fails."""
    try:
        return function.of(batch)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # a user's function may raise anything, SystemExit and panics of Polars, too
        if batch.height == 1:
            reasons[first] = f"{function.name} failed: {type(error).__name__}: {error}"
            return pl.Series([None], dtype=function.returns)
    middle = batch.height // 2
    halves = (batch[:middle], first), (batch[middle:], first + middle)
    return pl.concat([_halved(function, half, at, reasons) for half, at in halves])


def bad_rows(batch: Batch, reasons: dict[int, str], reason: str) -> Batch:
    """The rows that a function failed for, with the reasons in a column of that name."""
    rows = sorted(reasons)
    return batch[rows].select(pl.exclude("^@.*$")).with_columns(pl.Series(reason, [reasons[row] for row in rows]))
