"""Python functions of columns, as a query declares them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

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
