"""A join of three streams on Spark: streaming with a restart, and batch, as one operator, a pipeline and a ring."""

import os
import random
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

import windrow as wr
from windrow.testing import compare, oracle

pytestmark = pytest.mark.spark
AT, FILES, VALUES = datetime(2024, 1, 1, tzinfo=UTC), 3, "xyz"


def frame(value, number):
    """Rows of ten seconds of a stream, which are up to three seconds late."""
    rng = random.Random(f"{value} {number}")
    rows = []
    for n in range(40):
        late = rng.random() * 3 if number else 0.0
        ts = AT + timedelta(seconds=10 * number + n / 4 - late)
        rows.append((ts, rng.choice([*range(6), None]), n))
    return pl.DataFrame(rows, {"ts": pl.Datetime("us", "UTC"), "k": pl.Int64(), value: pl.Int64()}, orient="row")


def query(source, using):
    streams = [wr.stream(source(value), "ts", slack="4 seconds", name=value) for value in VALUES]
    within = {"x": "4 seconds", "y": "2 seconds", "z": "1 second"}
    found = wr.multi_join(*streams, on="k", within=within, where="x < y OR z > 20", using=using)
    last = f"greatest({', '.join(found.node.pair_times)})"
    return found.select("k", "x", u=last).window("5 seconds").group_by("k").agg(n=wr.count(), s=wr.sum("x"))


def put(folder, numbers):
    for value in VALUES:
        (folder / value).mkdir(parents=True, exist_ok=True)
        for number in numbers:
            frame(value, number).write_parquet(folder / value / f"{number}.parquet")
            os.utime(folder / value / f"{number}.parquet", (100 + number, 100 + number))


@pytest.mark.parametrize("using", ["multi", "pipeline", "ring"])
def test_windows_over_a_join_of_three_streams(spark, tmp_path, using):
    def write(results, number):
        results.write.parquet(str(tmp_path / "out" / str(number)))

    def source(value):
        files = spark.readStream.schema(f"ts TIMESTAMP, k BIGINT, {value} BIGINT")
        return files.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in" / value))

    for numbers in (range(2), range(2, FILES)):
        put(tmp_path / "in", numbers)
        writer = query(source, using).to_spark(shards=2).writeStream.foreachBatch(write)
        writer = writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True)
        writer.start().awaitTermination()
    data = {value: pl.concat([frame(value, number) for number in range(FILES)]) for value in VALUES}
    expected = oracle(query(lambda value: data[value], using))
    found = pl.read_parquet(tmp_path / "out" / "*" / "*.parquet").cast(expected.schema)
    assert found.height
    closed = expected.filter(pl.col("window_end") <= found["window_end"].max())
    assert closed.height < expected.height
    compare(found, closed, "streaming")
    batch = query(lambda value: spark.read.parquet(str(tmp_path / "in" / value)), using)
    compare(pl.DataFrame(batch.to_spark(shards=2).toArrow()).cast(expected.schema), expected, "batch")
