"""How far rows may be ahead of their arrival."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from windrow.spec.names import PROGRESS
from windrow.spec.time import physical


@dataclass(frozen=True)
class Ahead:
    """How far a progress value can be ahead of when its row arrived: what is further ahead is a clock gone wrong.

    One such row would promise that nothing before it follows, and make all others late.
    """

    arrival: str
    most: int
    dtype: pl.DataType
    says: str  # the bound in words

    def exceeded(self) -> pl.Expr:
        """Whether a row is too far ahead. One without an arrival could be: to let it in would close everything."""
        ahead = pl.col(PROGRESS) - self.most > physical(pl.col(self.arrival), self.dtype)
        return (ahead | pl.col(self.arrival).is_null()).fill_null(False)

    def reason(self) -> pl.Expr:
        """Why such a row is bad."""
        unknown = pl.lit(f"the arrival {self.arrival} is NULL, so the progress value cannot be trusted")
        known = pl.lit(f"the progress value is more than {self.says} ahead of {self.arrival}")
        return pl.when(pl.col(self.arrival).is_null()).then(unknown).otherwise(known)
