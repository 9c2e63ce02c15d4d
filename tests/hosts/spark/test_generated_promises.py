"""Promises by every rule on Spark: the windows that are out are those that one process lets out for the same rows."""

import os

import numpy as np
import polars as pl
import pytest

import windrow as wr
from windrow.sinks.parquet import read_committed
from windrow.testing import accounted, compare

pytestmark = pytest.mark.spark
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


def query(source, way, **options):
    punctuation, more = WAYS[way]
    more = {**more, "arrival": "came", "ahead": "1 hour"}
    if isinstance(source, pl.DataFrame):
        stream = wr.stream(source, "ts", punctuation=punctuation, name="s", **more)
    else:
        stream = wr.read_parquet(source, "ts", punctuation=punctuation, name="s", **more, **options)
    keys = ("p", "k") if way == "partitions" else ("k",)  # each partition promises for its own keys, too
    return stream.window("20 seconds", "10 seconds").group_by(*keys).agg(n=wr.count(), last=wr.max("nr"))


def stream_all(folder, out):
    """All of them to the end of what is there, two at a time: Spark gives a worker 10 s to start."""
    progress = {}
    for ways in (["rows", "partitions"], ["estimated", "function"]):
        running = {way: started(folder, way, out) for way in ways}
        for way, each in running.items():
            each.awaitTermination()
            progress[way] = each.recentProgress
    return progress


def started(folder, way, out):
    frame = query(folder, way, streaming=True, max_files=1).to_spark()
    writer = frame.writeStream.format("parquet").option("path", str(out / way))
    return writer.option("checkpointLocation", str(out / f"{way}-state")).trigger(availableNow=True).start()


def test_every_rule_lets_out_on_spark_what_it_lets_out_in_process_also_over_a_restart(spark, tmp_path):
    put(tmp_path / "in", range(3))
    first = stream_all(tmp_path / "in", tmp_path / "out")
    put(tmp_path / "in", range(3, FILES))
    second = stream_all(tmp_path / "in", tmp_path / "out")
    for way in WAYS:
        run = query(frame(0).clear(), way).run()
        parts = []
        for number in range(FILES):
            parts.append(run.push("s", frame(number)).results())
        expected = pl.concat(parts)
        assert expected.height > 100, way
        compare(read_committed(tmp_path / "out" / way), expected, way)
        counted = {}
        for counter in ("rows_in", "rows_late", "rows_bad", "promises_ignored"):
            counted[counter] = sum(p.observedMetrics["windrow"][counter] for p in [*first[way], *second[way]])
            assert counted[counter] == run.counts[counter], counter
        assert run.counts["rows_bad"] == 4 * FILES
        # What Spark has put out and what is still open are all rows, each in two windows.
        still = run.end().results()
        accounted(counted, pl.concat([read_committed(tmp_path / "out" / way), still]), windows=2, where=way)


def test_slack_in_rows_needs_an_order_on_spark(spark, tmp_path):
    put(tmp_path / "in", range(1))
    stream = wr.read_parquet(tmp_path / "in", "ts", punctuation=wr.promise.rows(5), streaming=True)
    with pytest.raises(wr.PlanError, match="name the column that numbers them"):
        stream.window("1 minute").agg(n=wr.count()).to_spark()
