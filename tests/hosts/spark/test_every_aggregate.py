"""Every aggregate and window type as Spark drives them; users' functions and policies on a real one."""

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
from windrow.testing.disturbed import disturbed
from windrow.testing.replay import latest
from windrow.testing.simulated import SimulatedSpark

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


def every(source):
    return source.window(12, 6).group_by(*GROUPS).agg(**EVERY)


def test_every_aggregate_as_a_stream_with_restarts_and_as_a_batch():
    rows = random_rows(60)
    expected = oracle(every(wr.stream(rows, progress="t", slack=SLACK, name="s")))
    spark = SimulatedSpark()
    batch = spark.collect(every(wr.stream(spark.frame([rows[:20], rows[20:]]), progress="t", name="s")))
    compare(batch, expected, "batch")
    parts = [{"s": [rows[i : i + 8], rows[i + 8 : i + 15]]} for i in range(0, 60, 15)]
    out = disturbed(lambda s: every(wr.stream(s.stream(rows.schema), "t", slack=SLACK, name="s")), parts)
    compare(pl.concat([batch.results for batch in out]), closed(rows, expected), "stream")


def closed(rows, expected):
    found = expected.filter(pl.col("window_end") <= rows["t"].max() - SLACK)
    assert found.height > 10
    return found


@pytest.mark.spark
def test_every_aggregate_on_spark_over_a_restart(spark, tmp_path):
    rows = random_rows(60)
    expected = closed(rows, oracle(every(wr.stream(rows, progress="t", slack=SLACK, name="s"))))
    released = []
    for first, parts in ((0, [rows[:30]]), (1, [rows[30:]])):
        write(rows, tmp_path / "in", first, parts)
        released += run(every(stream_of(spark, tmp_path / "in")), tmp_path)
    compare(pl.concat([f.cast(expected.schema) for f in released]), expected, "stream")


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
def test_every_window_type_as_a_batch(name):
    """Shards know only their own groups; the end of the stream is the same for all of them."""
    rows, spark = random_rows(40, seed=2), SimulatedSpark()

    def query(data):
        windowed = SHAPES[name](wr.stream(data, progress="t", row_num="n", name="s"))
        return (windowed if windowed.parts else windowed.group_by("k")).agg(n=wr.count(), w=wr.max("w"), s=wr.sum("x"))

    built = query(spark.frame([rows[:15], rows[15:]]))
    compare(latest(spark.collect(built), built), oracle(query(rows)), name)


@pytest.mark.spark
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


@pytest.mark.spark
def test_the_policy_error_stops_a_stream_and_says_which_window(spark, tmp_path):
    rows = pl.DataFrame({"t": [1, 40]})
    write(rows, tmp_path / "in", 0, [rows, pl.DataFrame({"t": [2]})])
    built = stream_of(spark, tmp_path / "in").window(10).late("error").agg(n=wr.count())
    with pytest.raises(PySparkException) as stopped:
        run(built, tmp_path)
    assert "1 late rows, the first in the released window [0, 10)" in reason(stopped.value)


def test_partitions_of_a_source_promise_for_themselves_through_the_exchange():
    """As Kafka: offsets of different partitions have nothing to do with each other."""
    rows = pl.DataFrame(
        {
            "t": [0] * 9,
            "k": list("aabbbaabb"),
            "part": [0, 0, 1, 1, 1, 0, 0, 1, 1],
            "off": [900, 901, 3, 4, 5, 902, 903, 6, 7],
        }
    )

    def build(spark):
        source = wr.stream(spark.stream(rows.schema), "t", slack=SLACK, row_num=("part", "off"), name="s")
        return source.rows(2, partition_by="k").agg(first=wr.min("off"), last=wr.max("off"))

    out = disturbed(build, [{"s": rows[:4]}, {"s": rows[4:6]}, {"s": rows[6:]}])
    assert sorted(pl.concat([batch.results for batch in out]).rows()) == [
        ("a", 0, 2, 900, 901),
        ("a", 2, 4, 902, 903),
        ("b", 0, 2, 3, 4),
        ("b", 2, 4, 5, 6),
    ]
