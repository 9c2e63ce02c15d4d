"""Values as integers that compare as they do, for kernels that know nothing else."""

from __future__ import annotations

import numpy as np
import polars as pl

from windrow.windows.tuples import Bools, Ints


def coded(column: pl.Series) -> tuple[Ints, Bools]:
    """Numbers in the order of the values, equal for equal ones, and which values are NULL.

    NaN is equal to itself and greater than all others, and -0.0 equals 0.0, as in Spark. Numbers and times have the
    same code always; other values, such as texts, among the values that are given.

    >>> coded(pl.Series([-1.5, float("nan"), 0.0, -0.0, None]))[0].argsort(kind="stable").tolist()
    [0, 2, 3, 4, 1]
    >>> coded(pl.Series(["b", "a", "b"]))[0].tolist()
    [2, 1, 2]
    """
    nulls = column.is_null().to_numpy()
    if column.dtype.is_float():
        values = column.cast(pl.Float64).fill_null(0.0).to_numpy() + 0.0
        bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
        return np.where(bits < 0, bits ^ np.int64((1 << 63) - 1), bits), nulls
    plain = column.dtype.is_integer() or column.dtype.is_temporal() or column.dtype == pl.Boolean
    if plain and column.dtype != pl.UInt64:
        return column.to_physical().cast(pl.Int64).fill_null(0).to_numpy(), nulls
    return column.rank("dense").cast(pl.Int64).fill_null(0).to_numpy(), nulls
