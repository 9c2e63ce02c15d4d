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
            given = self.call(*arguments)
            found = given if isinstance(given, pl.Series) else pl.Series(given)
            if found.len() != batch.height:
                raise ValueError(f"gave {found.len()} values for {batch.height} rows")
            return found.cast(self.returns)
        values = [self.call(*row) for row in zip(*arguments, strict=True)]
        return pl.Series(values, dtype=self.returns)


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
