"""What must be true of a pair besides equal keys and near times: a SQL expression and a user's function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from windrow.operators.operator import Side
from windrow.operators.rows.tried import bad_rows, tried
from windrow.spec.batches import Batch
from windrow.spec.functions import Function
from windrow.spec.names import REASON
from windrow.windows.tuples import Bools


@dataclass(frozen=True)
class Condition:
    """NULL is not true. A pair that the function fails for is bad, with the reason, and no pair."""

    where: pl.Expr | None = None
    test: Function | None = None

    def holds(self, pairs: Batch) -> tuple[Bools, list[Side]]:
        """Which pairs it is true for, and those that are bad."""
        found = np.ones(pairs.height, np.bool_)
        if self.where is not None:
            found = pairs.select(self.where.fill_null(False)).to_series().to_numpy()
        if self.test is None:
            return found, []
        asked = np.flatnonzero(found)
        values, reasons = tried(self.test, pairs[asked])
        found = np.zeros(pairs.height, np.bool_)
        found[asked] = values.fill_null(False).to_numpy()
        if not reasons:
            return found, []
        return found, [Side("bad", len(reasons), bad_rows(pairs[asked], reasons, REASON))]
