"""Promises that go back, on Spark: as many are counted as in process, and the same windows are released."""

import os

import numpy as np
import polars as pl
import pytest

import windrow as wr
from windrow.sinks.parquet import read_committed
from windrow.testing import accounted, compare

pytestmark = pytest.mark.spark
FILES = 5


def frame(number):
    """Rows of four groups; every tenth is a marker about everyone or one group, and every third of these goes back."""
    rng = np.random.default_rng(number)
    n = 300
    at = number * n + np.arange(n)
    back = (np.arange(n) % 30 == 20) * rng.integers(100, 900, n)
    marker = np.arange(n) % 10 == 0
    group = pl.Series("k", [f"g{i}" for i in rng.integers(0, 4, n)])
    about = pl.Series(np.arange(n) % 20 == 0)
    return pl.DataFrame({"t": at + 40, "m": at - back, "x": marker}).select(
        pl.when(~pl.col("x")).then("t"),
        pl.when(pl.lit(about)).then(None).otherwise(pl.lit(group)).alias("k"),
        pl.when("x").then("m"),
    )


def put(folder, numbers):
    folder.mkdir(exist_ok=True)
    for number in numbers:
        frame(number).write_parquet(folder / f"{number}.parquet", row_group_size=70)
        os.utime(folder / f"{number}.parquet", (100 + number, 100 + number))


WAYS = {
    "markers": ("PUNCTUATED BY markers(m, by => k)", wr.promise.markers("m", by="k")),
    "function": ("PUNCTUATED BY latest()", wr.promise.function(lambda seen: seen.greatest % 700, name="latest")),
}


def in_sql(folder, way):
    text = f"SELECT k, count(*) AS n FROM s {WAYS[way][0]} [RANGE 50, WA t] WHERE t >= 0 GROUP BY k"
    return wr.sql(text, WAYS["function"][1], s=wr.read_parquet(folder, "t", streaming=True, max_files=1))


def in_python(way):
    s = wr.stream(frame(0).clear(), "t", punctuation=WAYS[way][1], name="s")
    return s.where("t >= 0").window(50).group_by("k").agg(n=wr.count())


def stream_all(folder, out):
    running = {}
    for way in WAYS:
        writer = in_sql(folder, way).to_spark(shards=2).writeStream.format("parquet").option("path", str(out / way))
        running[way] = writer.option("checkpointLocation", str(out / f"{way}-state")).trigger(availableNow=True).start()
    for each in running.values():
        each.awaitTermination()
    return {way: [p.observedMetrics["windrow"] for p in each.recentProgress] for way, each in running.items()}


def test_as_many_are_counted_as_in_process_also_over_a_restart(spark, tmp_path):
    put(tmp_path / "in", range(2))
    first = stream_all(tmp_path / "in", tmp_path / "out")
    put(tmp_path / "in", range(2, FILES))
    second = stream_all(tmp_path / "in", tmp_path / "out")
    for way in WAYS:
        run, ignored, released = in_python(way).run(), [], []
        for number in range(FILES):
            released.append(run.push("s", frame(number)).results())
            ignored.append(run.counts["promises_ignored"])
        metrics = [*first[way], *second[way]]
        found = [m["promises_ignored"] for m in metrics]
        assert list(np.cumsum(found)) == ignored, way
        assert ignored[-1] > (10 if way == "markers" else 0)
        compare(read_committed(tmp_path / "out" / way), pl.concat(released), way)
        counts = {name: sum(m[name] for m in metrics) for name in ("rows_in", "rows_late", "rows_bad")}
        assert counts == {name: run.counts[name] for name in counts}
        markers = 30 * FILES if way == "markers" else 0
        both = pl.concat([read_committed(tmp_path / "out" / way), run.end().results()])
        accounted(counts, both, markers=markers, where=way)
