"""Batches of rows and named chunks of state."""

from __future__ import annotations

import polars as pl

# Batches are Polars frames: Arrow memory, with the kernels the operators need. They cross every process border
# (exchange, state store, hosts) as Arrow IPC. Columns whose names begin with "@" are Windrow's own.
Batch = pl.DataFrame
State = dict[str, Batch]
Changes = dict[str, Batch | None]


def with_series(batch: Batch, *columns: pl.Series) -> Batch:
    """The batch with further columns, or with others in place of its own.

    Columns that are there already need no expression: for a few rows evaluating one takes longer than all else.

    >>> with_series(pl.DataFrame({"x": [1]}), pl.Series("y", [2])).rows()
    [(1, 2)]
    """
    if any(column.name in batch.columns for column in columns):
        return batch.with_columns(columns)
    return batch.hstack(list(columns))
