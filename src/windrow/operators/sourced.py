"""Promises of single source partitions, such as those of a Kafka topic, and the rows they speak of."""

from __future__ import annotations

import polars as pl

from windrow.operators.keyed import matched
from windrow.operators.operator import PROGRESS, Batch
from windrow.progress import START, Promises

SOURCE = "@source"  # the source partition of a row, where promises are per partition


def below(rows: Batch, promises: Promises) -> pl.Series:
    """Which rows lie below what is promised for them.

    >>> promises = Promises(5, {"p": 9})
    >>> below(pl.DataFrame({"@t": [4, 6, 6], "@source": ["q", "q", "p"]}), promises).to_list()
    [True, False, True]
    """
    at = rows[PROGRESS]
    if SOURCE not in rows.columns or not promises.groups:
        return at < promises.low
    told = pl.DataFrame({SOURCE: list(promises.groups), "@told": list(promises.groups.values())})
    told = told.with_columns(pl.col(SOURCE).cast(rows.schema[SOURCE]))
    limits = matched(rows.select(SOURCE), told, [SOURCE], "left")["@told"]
    return at < limits.fill_null(START).clip(lower_bound=promises.low)
