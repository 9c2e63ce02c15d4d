"""Promises by every rule, as Spark drives them: the windows are out that one process lets out for the same rows."""

import os

import numpy as np
import polars as pl
import pytest

import windrow as wr
from windrow.sinks.parquet import read_committed
from windrow.testing import accounted, compare
from windrow.testing.disturbed import disturbed

FILES = 5


WAYS = {
    "rows": (wr.promise.rows(40), {"row_num": "nr"}),
    "partitions": (wr.promise.partitions("p", 3, slack="5 seconds"), {}),
    "estimated": (wr.promise.estimated("20 seconds", quantile=0.95), {}),
    "function": (wr.promise.function(lambda seen: seen.all_greatest - (seen.greatest - seen.least) / 4), {}),
}


def frame(number):
    """Rows of three partitions, one of them 20 seconds behind, out of order by up to 30 rows; one clock is wrong."""
    rng = np.random.default_rng(number)
    n = 400
    nr = number * n + np.arange(n)
    part = rng.integers(0, 3, n)
    at = (nr + rng.integers(-15, 16, n)) * 500_000 - 20_000_000 * (part == 2)
    came, at[::100] = at.copy(), 10**15
    stamps, came = (pl.Series(v).cast(pl.Datetime("us", "UTC")) for v in (at, came))
    return pl.DataFrame({"ts": stamps, "came": came, "p": part.astype(str), "nr": nr, "k": rng.integers(0, 20, n)})


def put(folder, numbers):
    folder.mkdir(exist_ok=True)
    for number in numbers:
        frame(number).write_parquet(folder / f"{number}.parquet", row_group_size=90)
        os.utime(folder / f"{number}.parquet", (100 + number, 100 + number))


def query(source, way):
    punctuation, more = WAYS[way]
    more = {**more, "arrival": "came", "ahead": "1 hour"}
    stream = wr.stream(source, "ts", punctuation=punctuation, name="s", **more)
    keys = ("p", "k") if way == "partitions" else ("k",)  # each partition promises for its own keys, too
    return stream.window("20 seconds", "10 seconds").group_by(*keys).agg(n=wr.count(), last=wr.max("nr"))


@pytest.mark.parametrize("way", WAYS)
def test_every_rule_lets_out_what_it_lets_out_in_process(way):
    batches = [{"s": frame(number)} for number in range(FILES)]
    out = disturbed(lambda spark: query(spark.stream(frame(0).schema), way), batches)
    check(way, pl.concat([batch.results for batch in out]), [batch.counts for batch in out])


def check(way, found, counts):
    run = query(frame(0).clear(), way).run()
    expected = pl.concat([run.push("s", frame(number)).results() for number in range(FILES)])
    assert expected.height > 100
    compare(found, expected, way)
    counted = {c: sum(m[c] for m in counts) for c in ("rows_in", "rows_late", "rows_bad", "promises_ignored")}
    assert counted == {c: run.counts[c] for c in counted}
    assert run.counts["rows_bad"] == 4 * FILES
    # What is out and what is still open are all rows, each in two windows.
    accounted(counted, pl.concat([found, run.end().results()]), windows=2, where=way)


@pytest.mark.spark
def test_on_spark_too_over_a_restart(spark, tmp_path):
    metrics = []
    for numbers in (range(3), range(3, FILES)):
        put(tmp_path / "in", numbers)
        source = spark.readStream.schema(spark.read.parquet(str(tmp_path / "in")).schema)
        source = source.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
        writer = query(source, "estimated").to_spark().writeStream.format("parquet")
        writer = writer.option("path", str(tmp_path / "out")).option("checkpointLocation", str(tmp_path / "state"))
        running = writer.trigger(availableNow=True).start()
        running.awaitTermination()
        metrics += [p.observedMetrics["windrow"] for p in running.recentProgress]
    check("estimated", read_committed(tmp_path / "out"), metrics)


def test_slack_in_rows_needs_an_order_on_spark(tmp_path):
    put(tmp_path / "in", range(1))
    stream = wr.read_parquet(tmp_path / "in", "ts", punctuation=wr.promise.rows(5), streaming=True)
    with pytest.raises(wr.PlanError, match="name the column that numbers them"):
        stream.window("1 minute").agg(n=wr.count()).to_spark()
