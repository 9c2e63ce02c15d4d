"""Python functions of columns, as a query declares them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from windrow.spec.batches import Batch


@dataclass(frozen=True)
class Function:
    """``call`` of some columns gives a value of type ``returns``; ``vectorized``: of Polars series, and a series.

    ``monotone``: it never gives less for more, so that a promise about its argument is one about what it gives.
    """

    name: str
    call: Callable[..., Any] = field(compare=False)
    columns: tuple[str, ...]
    returns: pl.DataType
    vectorized: bool = False
    monotone: bool = False

    def of(self, batch: Batch) -> pl.Series:
        """The function of each row; raises what the function raises."""
        arguments = [batch[c] for c in self.columns]
        if self.vectorized:
            return as_given(self.call(*arguments), batch.height, self.returns)
        return as_declared([self.call(*row) for row in zip(*arguments, strict=True)], self.returns)


def as_given(given: Any, rows: int, returns: pl.DataType) -> pl.Series:
    """What a vectorized function gave, if that is a value of the right type for each row.

    >>> as_given(0.7, 3, pl.Boolean())
    Traceback (most recent call last):
      ...
    TypeError: gave 0.7, not a series or an array with a value for each row
    """
    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__") or getattr(given, "ndim", 1) == 0:
        raise TypeError(f"gave {_shown(given)}, not a series or an array with a value for each row")
    found = given if isinstance(given, pl.Series) else pl.Series(given)
    if found.len() != rows:
        raise ValueError(f"gave {found.len()} values for {rows} rows")
    # Numbers would all be true but 0: a similarity is no condition, and a row of a function that is not vectorized
    # would be bad, too.
    if returns == pl.Boolean() and found.dtype not in (pl.Boolean, pl.Null):
        raise TypeError(f"gave values of type {found.dtype}, not of type Boolean")
    return found.cast(returns)


def as_declared(values: list[Any], returns: pl.DataType) -> pl.Series:
    """What a function gave row by row, if that is of the right type.

    >>> as_declared([0.7], pl.Boolean())
    Traceback (most recent call last):
      ...
    TypeError: gave 0.7, not a value of type Boolean
    """
    try:
        return pl.Series(values, dtype=returns)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        if len(values) == 1:  # the last of several halves
            raise TypeError(f"gave {_shown(values[0])}, not a value of type {returns}") from None
        raise


def _shown(value: object, most: int = 60) -> str:
    text = repr(value)
    if " at 0x" in text:  # which differs from time to time
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= most else f"{text[:most]}.."


def all_of(tests: Sequence[Function]) -> Function | None:
    """Conditions as one that is true where all of them are, each tried where those before it are true.

    >>> less = Function("less", lambda x, y: x < y, ("x", "y"), pl.Boolean())
    >>> odd = Function("odd", lambda x: x % 2 == 1, ("x",), pl.Boolean())
    >>> both = all_of([less, odd])
    >>> both.name, both.of(pl.DataFrame({"x": [1, 2, 3], "y": [2, 3, 3]})).to_list()
    ('less and odd', [True, False, False])
    """
    if len(tests) < 2:
        return tests[0] if tests else None
    columns = tuple(dict.fromkeys(column for test in tests for column in test.columns))
    return Function(" and ".join(t.name for t in tests), _All(tuple(tests), columns), columns, pl.Boolean(), True)


@dataclass(frozen=True)
class _All:
    tests: tuple[Function, ...]
    columns: tuple[str, ...]

    def __call__(self, *given: pl.Series) -> pl.Series:
        rows = pl.DataFrame([series.alias(name) for series, name in zip(given, self.columns, strict=True)])
        true = np.arange(rows.height)
        for test in self.tests:
            true = true[test.of(rows[true]).fill_null(False).to_numpy()] if len(true) else true
        found = np.zeros(rows.height, np.bool_)
        found[true] = True
        return pl.Series(found)
