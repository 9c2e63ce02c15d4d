"""Window joins end to end: in process, as Spark drives them, and on Spark, against the oracle."""

import os
import random
from dataclasses import replace

import polars as pl
import pytest

import windrow as wr
from windrow.api.stream import Stream
from windrow.logical.nodes import Join
from windrow.testing import compare, oracle, replay
from windrow.testing.disturbed import disturbed
from windrow.testing.simulated import SimulatedSpark

KEYS = {
    "bigint": ([1, 2, 3, None], pl.Int64()),
    "double": ([1.0, -0.0, 0.0, float("nan"), None], pl.Float64()),
    "string": (["a", "", None], pl.String()),
    "date": ([None, *pl.select(pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 1, 3))).to_series()], pl.Date()),
}


def rows(rng, kind, count=60, span=120, value="x"):
    values, dtype = KEYS[kind]
    data = [(rng.randrange(span), rng.choice(values), rng.choice([None, *range(9)])) for _ in range(count)]
    return pl.DataFrame(data, schema={"t": pl.Int64(), "k": dtype, value: pl.Int64()}, orient="row")


def shuffled(rng, frame, slack):
    at = [t + rng.random() * slack for t in frame["t"]]
    return frame[sorted(range(frame.height), key=at.__getitem__)]


def drawn(seed):
    """A join of two random streams, as random queries would write it."""
    rng = random.Random(seed)
    kind = rng.choice(sorted(KEYS))
    other = {"bigint": "double", "double": "bigint"}.get(kind, kind) if rng.random() < 0.3 else kind
    slack = rng.choice([0, 7, 30])
    left = wr.stream(shuffled(rng, rows(rng, kind), slack), "t", slack=slack, name="l")
    right = wr.stream(shuffled(rng, rows(rng, other, value="y"), slack), "t", slack=slack, name="r")
    if rng.random() < 0.3:
        more = wr.stream(shuffled(rng, rows(rng, kind, 20), slack), "t", slack=slack, name="m")
        left = left.union(more)
    if rng.random() < 0.3:
        right = right.where("y > 2")
    if rng.random() < 0.2:
        right = left.select("t", "k", y="x")
    low = rng.choice([-20, -3, 0, 4])
    query = left.join(right, on="k", within=(low, low + rng.choice([0, 5, 25])))
    after = rng.choice(["nothing", "left", "right", "later", "earlier", "same key"])
    if after == "nothing":
        return query
    if after == "same key":
        return query.window(30, 10).group_by("k").agg(n=wr.count(), s=wr.sum("y"))
    time = {"left": "t", "right": "t_right", "later": "greatest(t, t_right)", "earlier": "least(t, t_right)"}[after]
    timed = query.select("x", "y", u=time)
    return timed.window(30, 10, on="u").group_by("x").agg(n=wr.count(), s=wr.sum("y"))


@pytest.mark.parametrize("seed", range(40))
def test_random_joins_equal_the_oracle_under_any_arrival(seed):
    replay(drawn(seed), runs=3, seed=seed)


@pytest.mark.parametrize("seed", range(12))
def test_random_joins_as_spark_drives_them(seed):
    """In micro-batches that fail and restart on other workers, and over finite sources; results equal the oracle's."""
    query = drawn(seed)
    given = {name: source.data for name, source in query.sources.items()}
    expected = oracle(query)
    parts = [{name: [data[i::3][:7], data[i::3][7:]] for name, data in given.items()} for i in range(3)]

    def streaming(spark):
        return with_sources(query, {name: spark.stream(data.schema) for name, data in given.items()})

    out = disturbed(streaming, parts)
    released = pl.concat([batch.results for batch in out])
    spark = SimulatedSpark(shards=3, seed=seed)
    whole = spark.collect(with_sources(query, {n: spark.frame([d[::2], d[1::2]]) for n, d in given.items()}))
    compare(whole, expected, f"batch, seed {seed}")
    late = sum(batch.counts["rows_late"] for batch in out)
    if not late:
        assert released.join(expected, on=list(expected.columns), how="anti", nulls_equal=True).height == 0


def with_sources(query, sources):
    return Stream(
        query.node, {name: replace(query.sources[name], data=data, spark=True) for name, data in sources.items()}
    )


def test_a_stream_that_is_joined_with_itself_is_read_and_counted_once():
    s = wr.stream([{"t": 0, "k": 0}], "t", slack=0, name="s")
    query = s.join(s, on="k", within=(1, 5))
    run = query.run().push("s", [{"t": 1, "k": 1}, {"t": 3, "k": 1}, {"t": None, "k": 1}])
    assert run.results().rows() == [(1, 1, 3, 1)]
    assert (run.counts["rows_in"], run.counts["rows_bad"]) == (3, 1)
    assert len(query.plan().reads()) == 1
    spark = SimulatedSpark()
    schema = {"t": pl.Int64(), "k": pl.Int64()}
    both = wr.stream(spark.stream(schema), "t", slack=0, name="s")
    running = spark.start(both.join(both, on="k", within=(1, 5)))
    batch = running.push({"s": pl.DataFrame({"t": [1, 3, None], "k": [1, 1, 1]}, schema=schema)})
    assert batch.results.rows() == [(1, 1, 3, 1)]
    assert (batch.counts["rows_in"], batch.counts["rows_bad"]) == (3, 1)


def test_one_and_one_point_zero_meet_in_the_same_shard():
    left = [{"t": 0, "k": k} for k in range(50)]
    right = [{"t": 0, "k": float(k)} for k in range(50)]
    spark = SimulatedSpark(shards=4)
    lefts, rights = (spark.frame(pl.DataFrame(data)) for data in (left, right))
    query = wr.stream(lefts, "t", name="l").join(wr.stream(rights, "t", name="r"), on="k", within=(0, 0))
    assert spark.collect(query).height == 50


def test_two_stages_of_one_depth_are_one_stateful_operator_and_fused_ones_need_no_other():
    spark = SimulatedSpark(shards=2)
    schema = {"t": pl.Int64(), "k": pl.Int64(), "x": pl.Int64()}

    def counted(name):
        s = wr.stream(spark.stream(schema), "t", slack=0, name=name)
        return s.window(10).group_by("k").agg(n=wr.count())

    a, b = counted("a"), counted("b")
    joined = a.join(b, on="k", within=(0, 0))
    assert isinstance(joined.node, Join)
    assert len(list(spark.start(joined).frame.stateful())) == 2  # both windows; the join
    again = a.window(60).group_by("k").agg(n=wr.sum("n"))
    assert len(list(spark.start(again).frame.stateful())) == 1
    other = a.window(60).agg(n=wr.sum("n"))
    assert len(list(spark.start(other).frame.stateful())) == 2


ROWS = 400


@pytest.mark.spark
def test_joins_on_spark_streaming_and_batch(spark, tmp_path):
    """Two sources of two kinds, a join by one key, then windows by another."""
    rng = random.Random(3)
    stamp = pl.col("t").mul(1_000_000).cast(pl.Datetime("us", "UTC"))
    frames = {n: rows(rng, "bigint", ROWS, 600, v).sort("t").with_columns(stamp) for n, v in (("l", "x"), ("r", "y"))}
    for name, frame in frames.items():
        (tmp_path / name).mkdir()
        for part in range(2):
            file = tmp_path / name / f"{part}.parquet"
            frame[part * ROWS // 2 : (part + 1) * ROWS // 2].write_parquet(file)
            os.utime(file, (100 + part, 100 + part))  # what is older is read first

    def query(left, right):
        pairs = left.join(right, on="k", within=("-5 seconds", "10 seconds"))
        later = pairs.select("x", "y", u="greatest(t, t_right)")
        return later.window("1 minute", on="u").group_by("x").agg(n=wr.count(), s=wr.sum("y"))

    expected = oracle(query(*(wr.stream(frames[name], "t", slack="0 seconds", name=name) for name in "lr")))
    batch = query(*(wr.stream(spark.read.parquet(str(tmp_path / n)), "t", name=n) for n in "lr"))
    compare(batch.collect(), expected, "batch")
    source = spark.readStream.schema(spark.read.parquet(str(tmp_path / "l")).schema).option("maxFilesPerTrigger", 1)
    left = wr.stream(source.parquet(str(tmp_path / "l")), "t", slack="0 seconds", name="l")
    right = wr.read_parquet(tmp_path / "r", progress="t", slack="0 seconds", name="r", streaming=True, max_files=1)
    out = query(left, right).to_spark()
    writer = out.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start().awaitTermination()
    found = pl.read_parquet(tmp_path / "out" / "*.parquet")
    end = min(frame["t"].max() for frame in frames.values())
    compare(found, expected.filter(pl.col("window_end") <= end), "stream")
