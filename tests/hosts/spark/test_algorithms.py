"""Every algorithm, and queries that share panes: streaming over restarts and as a batch, as one process has it."""

import os

import numpy as np
import polars as pl
import pytest

import windrow as wr
from windrow.hosts.spark.compile import results
from windrow.sinks.parquet import ParquetBatches, read_committed
from windrow.testing import compare
from windrow.testing.disturbed import disturbed
from windrow.testing.simulated import SimulatedSpark

SLIDING = ("wid", "buffering", "adaptwid", "adaptpaned")  # paned and blocks run in the transcripts
BY_TUPLE = ("bins", "buffering")
ON_SPARK = ("adaptwid", "together")  # one that watches its sources, and one with several results
PARTS = range(4)
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


def queries(s, other):
    """``s`` and ``other`` have the same rows."""
    found = {}
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


def over(source):
    return queries(*(wr.stream(source(), progress="ts", slack="30 seconds", name=name) for name in ("s", "other")))


def over_files(folder, **options):
    named = (wr.read_parquet(folder, progress="ts", slack="30 seconds", name=n, **options) for n in ("s", "other"))
    return queries(*named)


WHOLE = pl.concat([rows(part) for part in PARTS])
NAMES = tuple(over(WHOLE.clear))


def by_name(name, frame):
    """The results of each of the queries that run together; of another query, its results."""
    if name != "together":
        return {name: frame}
    return {n: frame.filter(pl.col(n).is_not_null()).select(n).unnest(n) for n in frame.columns}


@pytest.mark.parametrize("name", NAMES)
def test_each_algorithm_streams_over_restarts_what_it_gives_as_a_whole(name):
    batches = [{n: rows(part) for n in (("s", "other") if name == "adaptwid" else ("s",))} for part in PARTS]
    out = disturbed(lambda spark: over(lambda: spark.stream(WHOLE.schema))[name], batches)
    check(name, pl.concat([batch.results for batch in out]))


def check(name, found):
    expected = over(lambda: WHOLE)[name].collect()
    for part, frame in by_name(name, found).items():
        whole = expected[part] if isinstance(expected, dict) else expected
        closed = whole.filter(pl.col("window_end") <= frame["window_end"].max())
        assert frame.height > 20
        compare(frame, closed, part)


@pytest.mark.parametrize("name", NAMES)
def test_each_algorithm_as_a_batch_equals_the_process(name):
    spark = SimulatedSpark()
    expected = over(lambda: WHOLE)[name].collect()
    found = by_name(name, spark.collect(over(lambda: spark.frame([WHOLE[::2], WHOLE[1::2]]))[name]))
    for part, frame in found.items():
        compare(frame, expected[part] if isinstance(expected, dict) else expected, part)


# -- on Spark ----------------------------------------------------------------------------------------------------------
class Each:
    """The results of every query that shares panes, to a folder of its own."""

    def __init__(self, folder):
        self.sinks = {name: ParquetBatches(str(folder / name)) for name in ("short", "long")}

    def __call__(self, frame, batch):
        frame.persist()
        for name, sink in self.sinks.items():
            sink(results(frame, name), batch)
        frame.unpersist()


def started(name, query, out):
    writer = query.to_spark().writeStream.option("checkpointLocation", str(out / f"{name}-state"))
    writer = writer.trigger(availableNow=True)
    if name == "together":
        return writer.foreachBatch(Each(out)).start()
    return writer.format("parquet").option("path", str(out / name)).start()


@pytest.mark.spark
def test_on_spark_too_over_a_restart(spark, tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    for parts in (PARTS[:2], PARTS[2:]):
        put(folder, parts)
        queries = over_files(folder, streaming=True)
        for running in [started(name, queries[name], out) for name in ON_SPARK]:
            running.awaitTermination()
    check("adaptwid", read_committed(out / "adaptwid"))
    for name in ("short", "long"):
        whole = over(lambda: WHOLE)["together"].collect()[name]
        found = read_committed(out / name)
        assert found.height > 20
        compare(found, whole.filter(pl.col("window_end") <= found["window_end"].max()), name)
    frame, whole = over_files(folder)["together"].to_spark(), over(lambda: WHOLE)["together"].collect()
    for name, expected in whole.items():  # as a batch
        compare(pl.DataFrame(results(frame, name).toArrow()).cast(expected.schema), expected, name)
