"""Batches of rows and named chunks of state."""

from __future__ import annotations

import polars as pl

# Batches are Polars frames: Arrow memory, with the kernels the operators need. They cross every process border
# (exchange, state store, hosts) as Arrow IPC. Columns whose names begin with "@" are Windrow's own.
Batch = pl.DataFrame
State = dict[str, Batch]
Changes = dict[str, Batch | None]
