"""Static tables that are Spark DataFrames: their rows are collected once, and not beyond a limit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from windrow.errors import DataError
from windrow.hosts.spark.schema import from_spark
from windrow.sources.frames import normal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def collected(data: DataFrame, name: str, limit: int) -> pl.DataFrame:
    """The rows; an error if they have more bytes than ``limit``, of which not many more are read in each partition."""
    found = data.mapInArrow(partial(_bounded, 2 * limit), data.schema).toArrow()
    if found.nbytes > limit:
        raise DataError(
            f"table {name!r} has more than {limit:,} bytes, too many to send to every worker: join with it by Spark's "
            "own join before wr.stream, or give wr.table a greater limit="
        )
    frame = normal(pl.DataFrame(found))
    return frame.cast(from_spark(data.schema))  # type: ignore[arg-type]


def _bounded(limit: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches until there are more bytes than a table can have: it is refused then, whatever else there is."""
    size = 0
    for batch in batches:
        size += batch.nbytes
        yield batch
        if size > limit:
            return
