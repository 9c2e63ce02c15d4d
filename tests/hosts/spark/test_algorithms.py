"""Every algorithm, and queries that share panes, on Spark: streaming with a restart half way, and as a batch."""

import os

import numpy as np
import polars as pl
import pytest

import windrow as wr
from windrow.hosts.spark.compile import results
from windrow.sinks.parquet import ParquetBatches, read_committed
from windrow.testing import compare

pytestmark = pytest.mark.spark
SLIDING = ("wid", "buffering", "adaptwid", "adaptpaned")  # paned and blocks run in the transcripts
BY_TUPLE = ("bins", "buffering")
TOGETHER = 3  # streaming queries at the same time
spread = wr.aggregate("spread", int, None, lambda v: v[-1] - v[0], state="BIGINT", result="BIGINT")


def rows(part):
    """Some dense keys and many sparse ones, out of order by up to 30 seconds."""
    rng = np.random.default_rng(part)
    at = part * 300 + np.arange(600) // 2
    order = np.argsort(at + rng.integers(0, 30, 600), kind="stable")
    stamps = pl.Series("ts", at[order] * 1_000_000).cast(pl.Datetime("us", "UTC"))
    keys = np.where(rng.random(600) < 0.6, rng.integers(0, 2, 600), rng.integers(2, 200, 600))
    return pl.DataFrame({"ts": stamps, "k": keys, "x": rng.integers(0, 100, 600)})


def put(folder, parts):
    folder.mkdir(exist_ok=True)
    for part in parts:
        rows(part).write_parquet(folder / f"{part}.parquet")
        os.utime(folder / f"{part}.parquet", (100 + part, 100 + part))


def queries(folder, **options):
    s = wr.read_parquet(folder, progress="ts", slack="30 seconds", name="s", **options)
    found = {}
    other = wr.read_parquet(folder, progress="ts", slack="30 seconds", name="other", **options)
    for using in SLIDING:
        source = s.union(other) if using == "adaptwid" else s  # the one that watches its sources
        windowed = source.window("2 minutes", "30 seconds", using=using).group_by("k")
        found[using] = windowed.agg(n=wr.count(), top=wr.max("x"), kinds=wr.count_distinct("x"))
    for using in BY_TUPLE:
        windowed = s.each_row("1 minute", 10, using=using)
        found[f"by tuple, {using}"] = windowed.agg(n=wr.count(), top=wr.max("x"), mean=wr.avg("x"))
    found["fallback"] = s.window("2 minutes").group_by("k").agg(way=spread("x"))
    short = s.window("1 minute").group_by("k").agg(n=wr.count())
    long = s.window("3 minutes", "90 seconds").group_by("k").agg(top=wr.max("x"), n=wr.count()).where("n > 1")
    found["together"] = wr.together(short=short, long=long)
    return found


class Each:
    """The results of every query that shares panes, to a folder of its own."""

    def __init__(self, folder):
        self.sinks = {name: ParquetBatches(str(folder / name)) for name in ("short", "long")}

    def __call__(self, frame, batch):
        frame.persist()
        for name, sink in self.sinks.items():
            sink(results(frame, name), batch)
        frame.unpersist()


def run_all(folder, out):
    """All queries to the end of what is there, a few at the same time: Spark gives a worker 10 s to start."""
    waiting = list(queries(folder, streaming=True).items())
    for first in range(0, len(waiting), TOGETHER):
        for running in [started(name, query, out) for name, query in waiting[first : first + TOGETHER]]:
            running.awaitTermination()


def started(name, query, out):
    writer = query.to_spark().writeStream.option("checkpointLocation", str(out / f"{name}-state"))
    writer = writer.trigger(availableNow=True)
    if name == "together":
        return writer.foreachBatch(Each(out)).start()
    return writer.format("parquet").option("path", str(out / name)).start()


def test_each_algorithm_streams_over_a_restart_and_equals_the_process(spark, tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    put(folder, [0, 1])
    run_all(folder, out)
    put(folder, [2, 3])
    run_all(folder, out)
    for name, query in queries(folder).items():
        expected = query.collect()
        parts = expected if isinstance(expected, dict) else {name: expected}
        for part, whole in parts.items():
            found = read_committed(out / part)
            last = found["window_end"].max()
            assert found.height > 20
            compare(found, whole.filter(pl.col("window_end") <= last), part)
            assert whole.filter(pl.col("window_end") <= last).height == found.height


def test_each_algorithm_as_a_batch_equals_the_process(spark, tmp_path):
    put(tmp_path / "in", [0])
    for name, query in queries(tmp_path / "in").items():
        here = query.collect()
        frame = query.to_spark()
        if isinstance(here, dict):
            for part, expected in here.items():
                compare(pl.DataFrame(results(frame, part).toArrow()).cast(expected.schema), expected, part)
        else:
            compare(pl.DataFrame(frame.toArrow()).cast(here.schema), here, name)
