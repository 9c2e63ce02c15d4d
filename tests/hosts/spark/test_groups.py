"""Promises about single groups, as Spark drives them: the same windows, late rows and counts as in process."""

import os

import numpy as np
import polars as pl
import pytest

import windrow as wr
from windrow.sinks.parquet import read_committed
from windrow.testing import compare
from windrow.testing.disturbed import disturbed

FILES = 4
QUERIES = {
    "session": lambda s: s.session(3).group_by("k").agg(n=wr.count()),
    "landmark": lambda s: s.landmark(100).group_by("k").agg(n=wr.count()),
    "empty": lambda s: s.window(20).with_empty().group_by("k").agg(n=wr.count()),
    "revise": lambda s: s.window(40, 20).late("revise", keep=60).group_by("k").agg(n=wr.count()),
    "each row": lambda s: s.each_row(9, 2, partition_by="k").agg(n=wr.count()),
    "nested": lambda s: (
        s.window(10).group_by("k").agg(n=wr.count()).window(50).group_by("k").agg(n=wr.sum("n"), parts=wr.count())
    ),
}


def frame(number):
    """Rows of six groups, and markers about five of them and about one that does not exist; none about everyone."""
    rng = np.random.default_rng(number)
    n = 200
    at = number * n + np.arange(n) - rng.integers(0, 30, n)
    rows = pl.DataFrame(
        {"t": at, "k": [f"g{i}" for i in rng.integers(0, 6, n)], "m": pl.Series([None] * n, dtype=pl.Int64)}
    )
    markers = [(None, f"g{i}", number * n + 20 * i) for i in range(5)] + [(None, "nobody", number * n)]
    return pl.concat([rows, pl.DataFrame(markers, schema=rows.schema, orient="row")])


COUNTERS = ("rows_in", "rows_late", "rows_revised", "promises_unmatched", "promises_ignored")


def in_process(name):
    """What is released, and the counters."""
    run = QUERIES[name](wr.stream(frame(0).clear(), "t", punctuation="m", punctuation_by="k", name="s")).run()
    released = pl.concat([run.push("s", frame(number)).results() for number in range(FILES)])
    assert released.height
    assert run.counts["promises_unmatched"] >= FILES
    return released, {counter: run.counts[counter] for counter in COUNTERS}


@pytest.mark.parametrize("name", QUERIES)
def test_each_group_closes_by_its_own_promises(name):
    def build(spark):
        return QUERIES[name](
            wr.stream(spark.stream(frame(0).schema), "t", punctuation="m", punctuation_by="k", name="s")
        )

    out = disturbed(build, [{"s": [frame(number)[:90], frame(number)[90:]]} for number in range(FILES)])
    expected, counts = in_process(name)
    compare(pl.concat([batch.results for batch in out]), expected, name)
    assert {counter: sum(batch.counts[counter] for batch in out) for counter in COUNTERS} == counts


@pytest.mark.spark
def test_on_spark_too_through_two_stages_and_over_a_restart(spark, tmp_path):
    metrics = []
    for numbers in (range(2), range(2, FILES)):
        put(tmp_path / "in", numbers)
        s = wr.read_parquet(tmp_path / "in", "t", punctuation="m", punctuation_by="k", streaming=True, name="s")
        s = QUERIES["nested"](s).to_spark(shards=2)
        writer = s.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        running = writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start()
        running.awaitTermination()
        metrics += [p.observedMetrics["windrow"] for p in running.recentProgress]
    expected, counts = in_process("nested")
    compare(read_committed(tmp_path / "out"), expected, "nested")
    assert sum(m["rows_in"] for m in metrics) == counts["rows_in"]


def put(folder, numbers):
    folder.mkdir(exist_ok=True)
    for number in numbers:
        frame(number).write_parquet(folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (100 + number, 100 + number))
