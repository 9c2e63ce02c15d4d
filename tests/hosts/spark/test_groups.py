"""Promises about single groups, on Spark: the same windows, late rows and counts as in process, over a restart."""

import os

import numpy as np
import polars as pl
import pytest

import windrow as wr
from windrow.sinks.parquet import read_committed
from windrow.testing import compare

pytestmark = pytest.mark.spark
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


def put(folder, numbers):
    folder.mkdir(exist_ok=True)
    for number in numbers:
        frame(number).write_parquet(folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (100 + number, 100 + number))


def stream_all(folder, out):
    running = {}
    for name, build in QUERIES.items():
        s = wr.read_parquet(folder, "t", punctuation="m", punctuation_by="k", streaming=True, max_files=1, name="s")
        writer = build(s).to_spark(shards=2).writeStream.format("parquet").option("path", str(out / name))
        running[name] = (
            writer.option("checkpointLocation", str(out / f"{name}-state")).trigger(availableNow=True).start()
        )
    for each in running.values():
        each.awaitTermination()
    return {name: [p.observedMetrics["windrow"] for p in each.recentProgress] for name, each in running.items()}


def test_each_group_closes_by_its_own_promises(spark, tmp_path):
    put(tmp_path / "in", range(2))
    first = stream_all(tmp_path / "in", tmp_path / "out")
    put(tmp_path / "in", range(2, FILES))
    second = stream_all(tmp_path / "in", tmp_path / "out")
    for name, build in QUERIES.items():
        run = build(wr.stream(frame(0).clear(), "t", punctuation="m", punctuation_by="k", name="s")).run()
        released = [run.push("s", frame(number)).results() for number in range(FILES)]
        expected = pl.concat(released)
        assert expected.height, name
        compare(read_committed(tmp_path / "out" / name), expected, name)
        metrics = [*first[name], *second[name]]
        for counter in ("rows_in", "rows_late", "rows_revised", "promises_unmatched", "promises_ignored"):
            assert sum(m[counter] for m in metrics) == run.counts[counter], (name, counter)
        assert run.counts["promises_unmatched"] >= FILES
