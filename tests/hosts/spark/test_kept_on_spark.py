"""A join that keeps rows in another way after each restart, on Spark: nested loops on one side, then as it likes."""

import os

import polars as pl
import pytest

import windrow as wr
from windrow.sinks.parquet import read_committed
from windrow.testing import compare

PARTS, ROWS = 3, 60
ORDER = ("hnj", None, "nnj-lazy")


def rows(part, value):
    times = range(part * ROWS, (part + 1) * ROWS)
    data = [(t, None if t % 11 == 0 else t % 4, t * len(value)) for t in times]
    return pl.DataFrame(data, schema={"t": pl.Int64(), "k": pl.Int64(), value: pl.Int64()}, orient="row")


def joined(left, right, using):
    return left.join(right, on="k", within=(-9, 9), how="left", using=using)


def whole():
    sides = (pl.concat([rows(part, value) for part in range(PARTS)]) for value in ("x", "yy"))
    return joined(*(wr.stream(s, "t", slack=0, name=n) for s, n in zip(sides, "lr", strict=True)), None).collect()


@pytest.mark.spark
def test_streaming_over_restarts_and_as_a_batch(spark, tmp_path):
    for part, using in enumerate(ORDER):
        for name, value in (("l", "x"), ("r", "yy")):
            file = tmp_path / name / f"{part}.parquet"
            file.parent.mkdir(exist_ok=True)
            rows(part, value).write_parquet(file)
            os.utime(file, (100 + part, 100 + part))
        sides = [wr.read_parquet(tmp_path / n, progress="t", slack=0, streaming=True, name=n) for n in "lr"]
        writer = joined(*sides, using).to_spark().writeStream.option("checkpointLocation", str(tmp_path / "state"))
        writer = writer.trigger(availableNow=True).format("parquet").option("path", str(tmp_path / "out"))
        writer.start().awaitTermination()
    found, end = read_committed(tmp_path / "out"), PARTS * ROWS - 20
    assert found.height > ROWS
    compare(found.filter(pl.col("t") < end), whole().filter(pl.col("t") < end), "over restarts")
    batch = [wr.read_parquet(tmp_path / n, progress="t", slack=0, name=n) for n in "lr"]
    compare(pl.DataFrame(joined(*batch, "nhj").to_spark().toArrow()).cast(found.schema), whole(), "as a batch")
