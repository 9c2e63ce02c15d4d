"""Two-level aggregation on Spark: a table so small that it evicts all the time, against panes."""

import os

import numpy as np
import polars as pl
import pytest

import windrow as wr
from windrow.sinks.parquet import read_committed
from windrow.testing import compare

pytestmark = pytest.mark.spark


def put(folder, parts):
    folder.mkdir(exist_ok=True)
    for part in parts:
        rng = np.random.default_rng(part)
        at = part * 300 + np.arange(600) // 2
        order = np.argsort(at + rng.integers(0, 30, 600), kind="stable")
        keys = pl.Series("k", rng.integers(0, 40, 600)).cast(pl.String)
        keys = keys.set(keys == "7", None)
        stamps = pl.Series("ts", at[order] * 1_000_000).cast(pl.Datetime("us", "UTC"))
        rows = pl.DataFrame([stamps, keys, pl.Series("x", rng.integers(0, 100, 600))])
        rows.write_parquet(folder / f"{part}.parquet")
        os.utime(folder / f"{part}.parquet", (100 + part, 100 + part))


def query(source, using, memory=None):
    windowed = source.window("2 minutes", "30 seconds", using=using, memory=memory).group_by("k")
    return windowed.agg(n=wr.count(), s=wr.sum("x"), top=wr.max("x"), v=wr.var_pop("x"))


def files(folder, **options):
    return wr.read_parquet(folder, progress="ts", slack="30 seconds", name="s", **options)


def frames(spark, folder, streaming):
    schema = "ts TIMESTAMP, k STRING, x BIGINT"
    reader = spark.readStream.option("maxFilesPerTrigger", 1) if streaming else spark.read
    return wr.stream(reader.schema(schema).parquet(str(folder)), progress="ts", slack="30 seconds", name="s")


def test_streams_over_a_restart_and_batches_equal_panes(spark, tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    for parts in ([0, 1], [2, 3]):
        put(folder, parts)
        found = {"files": files(folder, streaming=True), "frame": frames(spark, folder, True)}
        running = []
        for name, source in found.items():
            writer = query(source, "two-level", 300).to_spark().writeStream.trigger(availableNow=True)
            writer = writer.option("checkpointLocation", str(out / f"{name}-state"))
            running.append(writer.format("parquet").option("path", str(out / name)).start())
        for each in running:
            each.awaitTermination()
    expected = query(files(folder), "paned").collect()
    for name in ("files", "frame"):
        got = read_committed(out / name)
        last = got["window_end"].max()
        assert got.height > 100
        compare(got, expected.filter(pl.col("window_end") <= last), name)
    for source in (files(folder), frames(spark, folder, False)):
        small = query(source, "two-level", 300)
        compare(pl.DataFrame(small.to_spark().toArrow()).cast(expected.schema), expected, "batch")
    assert "in a table of 3 entries (300 bytes); all leave with the task" in small.explain()
