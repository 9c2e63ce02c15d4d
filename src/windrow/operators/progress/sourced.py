"""Promises of single source partitions, such as those of a Kafka topic, and the rows they are about."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from windrow.operators.state.keyed import matched
from windrow.progress import START, Promises
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS, SOURCE


def below(rows: Batch, promises: Promises) -> pl.Series:
    """Which rows lie below what is promised for them.

    >>> promises = Promises(5, {"p": 9})
    >>> below(pl.DataFrame({"@t": [4, 6, 6], "@source": ["q", "q", "p"]}), promises).to_list()
    [True, False, True]
    """
    return rows[PROGRESS] < promised_by_source(rows, promises)


def promised_by_source(rows: Batch, promises: Promises) -> pl.Series:
    """What is promised for each row, about everyone or about its source partition."""
    return promised(rows, promises, {SOURCE: rows.schema[SOURCE]} if SOURCE in rows.columns else {})


def promised(rows: Batch, promises: Promises, by: Mapping[str, pl.DataType]) -> pl.Series:
    """What is promised for each row, about everyone or about its group: the values of the columns ``by``."""
    if not by or not promises.groups:
        return pl.repeat(promises.low, rows.height, dtype=pl.Int64, eager=True)
    groups = [group if isinstance(group, tuple) else (group,) for group in promises.groups]
    named = pl.DataFrame(groups, schema=dict(by), orient="row", strict=False)
    known = named.with_columns(pl.Series("@promised", list(promises.groups.values()), pl.Int64))
    found = matched(rows.select(*by), known, list(by), "left")["@promised"]
    return found.fill_null(START).clip(lower_bound=promises.low)
