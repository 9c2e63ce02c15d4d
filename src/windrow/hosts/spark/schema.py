"""Between Spark's types and Polars'. Inside a query timestamps are instants in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from windrow.sources.frames import normal_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def from_spark(schema: StructType) -> dict[str, pl.DataType]:
    """The columns of a Spark schema as a query sees them."""
    from pyspark.sql.pandas.types import to_arrow_schema

    frame = pl.from_arrow(to_arrow_schema(schema, timezone="UTC").empty_table())
    assert isinstance(frame, pl.DataFrame)
    return {name: normal_type(dtype) for name, dtype in frame.schema.items()}


def to_spark(schema: Mapping[str, pl.DataType]) -> tuple[StructType, pa.Schema]:
    """A result's columns for Spark, and the Arrow types that Spark takes for them."""
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    arrow = pl.DataFrame(schema=dict(schema)).to_arrow().schema
    spark = from_arrow_schema(pa.schema([(f.name, _signed(f.type)) for f in arrow]))
    return spark, to_arrow_schema(spark, timezone="UTC")


def to_dataframe(spark: SparkSession, frame: pl.DataFrame) -> DataFrame:
    """A Spark DataFrame of the same types; Spark by itself would read timestamps without a zone as local time."""
    types, arrow = to_spark(frame.schema)
    return spark.createDataFrame(frame.to_arrow().cast(arrow), types)


def _signed(dtype: pa.DataType) -> pa.DataType:
    """Spark has no unsigned integers."""
    wider = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.int64()}
    return wider.get(dtype, dtype)
