"""Every aggregate on a real Spark, streaming with a restart and batch; users' functions and policies there."""

import os
import random

import polars as pl
import pytest
from pyspark.errors import PySparkException
from replays import EVERY, frame

import windrow as wr
from windrow.cli.run import reason
from windrow.hosts.spark.schema import to_dataframe
from windrow.testing import compare, oracle
from windrow.testing.replay import latest

pytestmark = pytest.mark.spark
SLACK = 9
GROUPS = ("k",)


def random_rows(count, seed=0):
    rng = random.Random(seed)
    rows = [
        {
            "t": i + rng.randint(-SLACK // 2, SLACK // 2),
            "k": rng.choice(["a", "b", None]),
            "q": rng.randint(1, 3),
            "x": rng.choice([None, 0, 1, -7, 2**55]),
            "f": rng.choice([None, 1.5, -2.25, float("nan"), float("inf")]),
            "w": rng.choice([None, "u", "v", "w"]),
            "d": rng.choice([None, 125, -350]),
        }
        for i in range(count)
    ]
    return frame(rows)


def write(rows, folder, first, parts):
    folder.mkdir(exist_ok=True)
    for i, part in enumerate(parts, first):
        path = folder / f"{i:05d}.parquet"
        part.write_parquet(path)
        os.utime(path, (1_600_000_000 + i, 1_600_000_000 + i))


def stream_of(spark, folder, **options):
    schema = spark.read.parquet(str(folder)).schema
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    return wr.stream(source, progress="t", slack=SLACK, name="s", **options)


def run(query, folder, **options):
    out = []
    df = query.to_spark(**options)

    def take(batch, _number):
        out.append(pl.DataFrame(batch.toArrow()))

    writer = df.writeStream.foreachBatch(take).option("checkpointLocation", str(folder / "checkpoint"))
    running = writer.trigger(availableNow=True).start()
    running.awaitTermination()
    return out


def test_every_aggregate_as_a_stream_with_a_restart_and_as_a_batch(spark, tmp_path):
    rows = random_rows(60)
    parts = [rows[i : i + 15] for i in range(0, 60, 15)]

    def query(source):
        return source.window(12, 6).group_by(*GROUPS).agg(**EVERY)

    in_process = query(wr.stream(rows, progress="t", slack=SLACK, name="s"))
    expected = oracle(in_process)
    batch = query(wr.stream(to_dataframe(spark, rows), progress="t", name="s")).collect()
    compare(batch, expected, "batch")
    write(rows, tmp_path / "in", 0, parts[:2])
    released = run(query(stream_of(spark, tmp_path / "in")), tmp_path)
    write(rows, tmp_path / "in", 2, parts[2:])
    released += run(query(stream_of(spark, tmp_path / "in")), tmp_path)
    closed = expected.filter(pl.col("window_end") <= rows["t"].max() - SLACK)
    assert closed.height > 10
    compare(pl.concat([f.cast(closed.schema) for f in released]), closed, "stream")


SHAPES = {
    "landmark": lambda s: s.landmark(15, origin=2),
    "rows": lambda s: s.rows(7, 3),
    "partitioned": lambda s: s.rows(4, 2, partition_by=["k"]),
    "each row": lambda s: s.each_row(10, 3),
    "each row of a key": lambda s: s.each_row(10, partition_by=["k"]),
    "each third row by arrival": lambda s: s.each_row(10, 3, by="row_num"),
    "session": lambda s: s.session(3),
    "empty": lambda s: s.window(4, 3).with_empty(),
    "empty rows": lambda s: s.rows(4, 2).with_empty(),
    "early": lambda s: s.window(12, 6).emit_early(4),
    "revise": lambda s: s.window(12, 6).late("revise", keep=20),
    "side": lambda s: s.window(12, 6).late("side"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_every_window_type_as_a_batch(name, spark):
    """Shards know only their own groups; the end of the stream is the same for all of them."""
    rows = random_rows(40, seed=2)

    def query(data):
        windowed = SHAPES[name](wr.stream(data, progress="t", row_num="n", name="s"))
        return (windowed if windowed.parts else windowed.group_by("k")).agg(n=wr.count(), w=wr.max("w"), s=wr.sum("x"))

    built = query(to_dataframe(spark, rows))
    compare(latest(built.collect(), built), oracle(query(rows)), name)


def test_rows_that_a_users_aggregate_cannot_take_are_bad_or_stop_the_query(spark, tmp_path):
    inverse = wr.aggregate("inverse", lambda x: 1 / x, lambda a, b: a + b, float, state="DOUBLE", result="DOUBLE")
    rows = pl.DataFrame({"t": [1, 2, 3], "k": ["a", "a", "b"], "x": [2, 0, 4]})
    source = wr.stream(to_dataframe(spark, rows), progress="t", name="s")
    built = source.window(10).group_by("k").agg(r=inverse("x"))
    assert sorted(built.collect().rows()) == [("a", 0, 10, 0.5), ("b", 0, 10, 0.25)]
    (bad,) = built.bad_rows().collect()
    assert (bad["t"], bad["x"], bad["source"]) == (2, 0, "s")
    assert "ZeroDivisionError" in bad["reason"]
    with pytest.raises(PySparkException) as stopped:
        source.window(10).late("error").group_by("k").agg(r=inverse("x")).collect()
    assert "'inverse' failed in lift" in reason(stopped.value)
    assert "'k': 'a'" in reason(stopped.value)


def test_the_policy_error_stops_a_stream_and_says_which_window(spark, tmp_path):
    rows = pl.DataFrame({"t": [1, 40]})
    write(rows, tmp_path / "in", 0, [rows, pl.DataFrame({"t": [2]})])
    built = stream_of(spark, tmp_path / "in").window(10).late("error").agg(n=wr.count())
    with pytest.raises(PySparkException) as stopped:
        run(built, tmp_path)
    assert "1 late rows, the first in the released window [0, 10)" in reason(stopped.value)


def test_partitions_of_a_source_promise_for_themselves_through_the_exchange(spark, tmp_path):
    """As Kafka: offsets of different partitions have nothing to do with each other."""
    rows = pl.DataFrame(
        {
            "t": [0] * 9,
            "k": list("aabbbaabb"),
            "part": [0, 0, 1, 1, 1, 0, 0, 1, 1],
            "off": [900, 901, 3, 4, 5, 902, 903, 6, 7],
        }
    )
    write(rows, tmp_path / "in", 0, [rows[:4], rows[4:6], rows[6:]])
    source = stream_of(spark, tmp_path / "in", row_num=("part", "off"))
    built = source.rows(2, partition_by="k").agg(first=wr.min("off"), last=wr.max("off"))
    found = pl.concat(run(built, tmp_path))
    assert sorted(found.rows()) == [
        ("a", 0, 2, 900, 901),
        ("a", 2, 4, 902, 903),
        ("b", 0, 2, 3, 4),
        ("b", 2, 4, 5, 6),
    ]
