"""Two-level aggregation as Spark drives it: a table so small that it evicts all the time, against panes."""

import os

import numpy as np
import polars as pl
import pytest

import windrow as wr
from windrow.sinks.parquet import read_committed
from windrow.testing import compare
from windrow.testing.disturbed import disturbed
from windrow.testing.simulated import SimulatedSpark


def rows(part):
    rng = np.random.default_rng(part)
    at = part * 300 + np.arange(600) // 2
    order = np.argsort(at + rng.integers(0, 30, 600), kind="stable")
    keys = pl.Series("k", rng.integers(0, 40, 600)).cast(pl.String)
    keys = keys.set(keys == "7", None)
    stamps = pl.Series("ts", at[order] * 1_000_000).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame([stamps, keys, pl.Series("x", rng.integers(0, 100, 600))])


def put(folder, parts):
    folder.mkdir(exist_ok=True)
    for part in parts:
        rows(part).write_parquet(folder / f"{part}.parquet")
        os.utime(folder / f"{part}.parquet", (100 + part, 100 + part))


def query(source, using, memory=None):
    windowed = source.window("2 minutes", "30 seconds", using=using, memory=memory).group_by("k")
    return windowed.agg(n=wr.count(), s=wr.sum("x"), top=wr.max("x"), v=wr.var_pop("x"))


def over(source, using="two-level", memory=300):
    return query(wr.stream(source, progress="ts", slack="30 seconds", name="s"), using, memory)


WHOLE = pl.concat([rows(part) for part in range(4)])


def check(found):
    assert found.height > 100
    expected = over(WHOLE, "paned", None).collect()
    compare(found, expected.filter(pl.col("window_end") <= found["window_end"].max()))


def test_streams_over_restarts_and_batches_equal_panes():
    parts = [{"s": [rows(part)[:250], rows(part)[250:]]} for part in range(4)]
    out = disturbed(lambda spark: over(spark.stream(WHOLE.schema)), parts)
    check(pl.concat([batch.results for batch in out]))
    spark = SimulatedSpark()
    small = over(spark.frame([WHOLE[::2], WHOLE[1::2]]))
    compare(spark.collect(small), over(WHOLE, "paned", None).collect(), "batch")
    assert "in a table of 3 entries (300 bytes); all leave with the task" in small.explain()


@pytest.mark.spark
def test_on_spark_too_over_a_restart(spark, tmp_path):
    for parts in ([0, 1], [2, 3]):
        put(tmp_path / "in", parts)
        source = wr.read_parquet(tmp_path / "in", progress="ts", slack="30 seconds", name="s", streaming=True)
        writer = query(source, "two-level", 300).to_spark().writeStream.trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / "state"))
        writer.format("parquet").option("path", str(tmp_path / "out")).start().awaitTermination()
    check(read_committed(tmp_path / "out"))
