"""A window comes out in the micro-batch that brings the row past its end; by Spark's own watermark one batch later."""

import os

import polars as pl
import pytest
from pyspark.sql import functions as f

import windrow as wr

pytestmark = pytest.mark.spark
NO_DATA_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"
SIZE = 10
# Seconds, one list for each micro-batch. One row is out of order, one is on an end, one passes the ends of two windows.
BATCHES = [[1, 4, 8], [6, 12], [15, 20], [31, 33], [38], [45, 52], [53]]


def put(folder):
    """A file for each micro-batch."""
    folder.mkdir()
    for number, seconds in enumerate(BATCHES):
        stamps = pl.Series("ts", [s * 1_000_000 for s in seconds]).cast(pl.Datetime("us", "UTC"))
        path = folder / f"{number}.parquet"
        stamps.to_frame().write_parquet(path)
        os.utime(path, (100 + number, 100 + number))


@pytest.fixture
def only_data(spark):
    """No micro-batches without rows, so that the number of a batch is that of its file.

    With them, which is Spark's default, its windows come out in an extra batch that Spark runs for nothing else.
    """
    before = spark.conf.get(NO_DATA_BATCHES)
    spark.conf.set(NO_DATA_BATCHES, "false")
    yield
    spark.conf.set(NO_DATA_BATCHES, before)


def when_out(results, folder):
    """{end of the window: (the micro-batch it came out in, its count)}, and how many micro-batches there were."""
    found, batches = {}, []

    def take(frame, batch):
        batches.append(batch)
        for end, n in frame.select("end", "n").collect():
            assert end not in found
            found[end] = batch, n

    writer = results.writeStream.outputMode("append").foreachBatch(take)
    writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).start().awaitTermination()
    return found, batches


def test_ours_comes_in_the_batch_of_the_promise_and_sparks_in_the_next(spark, only_data, tmp_path):
    put(tmp_path / "in")
    source = spark.readStream.schema("ts TIMESTAMP").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    counted = wr.stream(source, progress="ts", slack="0 seconds").window(f"{SIZE} seconds").agg(n=wr.count())
    windowed = source.withWatermark("ts", "0 seconds").groupBy(f.window("ts", f"{SIZE} seconds")).count()
    ours = counted.to_spark().select(f.col("window_end").cast("long").alias("end"), "n")
    sparks = windowed.select(f.col("window.end").cast("long").alias("end"), f.col("count").alias("n"))
    here, batches = when_out(ours, tmp_path / "ours")
    there, sparks_batches = when_out(sparks, tmp_path / "sparks")
    assert batches == sparks_batches == list(range(len(BATCHES)))
    rows = [s for seconds in BATCHES for s in seconds]
    for end in range(SIZE, max(rows) + 1, SIZE):
        passed = next(k for k, seconds in enumerate(BATCHES) if max(seconds) >= end)
        if n := sum(end - SIZE <= s < end for s in rows):
            assert here.pop(end) == (passed, n)
            assert there.pop(end) == (passed + 1, n)
    assert here == there == {}
