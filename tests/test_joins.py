"""Window joins end to end: in process, as Spark drives them, and on Spark, against the oracle."""

import os
import random
from collections import Counter
from dataclasses import replace

import polars as pl
import pytest

import windrow as wr
from how_many import EXAMPLES
from random_joins import drawn
from windrow.api.stream import Stream
from windrow.logical.nodes import Join, Ordered
from windrow.testing import compare, oracle, replay
from windrow.testing.accounting import accounted_join, countable_join
from windrow.testing.disturbed import disturbed
from windrow.testing.simulated import SimulatedSpark

SEEDS = range(int(40 * max(1, EXAMPLES)))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_joins_equal_the_oracle_under_any_arrival(seed):
    replay(drawn(seed), runs=2, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_joins_in_order_equal_the_oracle(seed):
    query = drawn(seed, ordered=True)
    replay(query, runs=2, seed=seed)
    if isinstance(query.node, Ordered):
        assert query.collect()["u"].is_sorted()


@pytest.mark.parametrize("seed", SEEDS[::4])
def test_random_joins_in_order_as_spark_drives_them(seed):
    as_spark_drives(drawn(seed, ordered=True), seed)


@pytest.mark.parametrize("seed", SEEDS[::4])
def test_random_joins_as_spark_drives_them(seed):
    as_spark_drives(drawn(seed), seed)


def as_spark_drives(query, seed):
    """In micro-batches that fail and restart on other workers, and over finite sources; results equal the oracle's."""
    given = {name: source.data for name, source in query.sources.items()}
    expected, rng = oracle(query), random.Random(seed)

    def streaming(spark):
        return with_sources(query, {name: spark.stream(data.schema) for name, data in given.items()})

    out = disturbed(streaming, micro_batches(given, rng), seed, shards=rng.choice([1, 2, 5]))
    assert sum(batch.counts["rows_late"] for batch in out) == 0
    found = pl.concat([batch.results for batch in out])
    check_among(found, expected, f"streaming, seed {seed}")
    assert not isinstance(query.node, Ordered) or found["u"].is_sorted()
    join = countable_join(query)
    # Rows of a semi or anti join leave with their first partner, and ordered joins make pairs later.
    if join is not None and join.how not in ("semi", "anti") and join.using in (None, "oa"):
        assert sum(batch.counts["rows_joined"] for batch in out) == partners(query, join)
    spark = SimulatedSpark(shards=3, seed=seed)
    whole = spark.collect(with_sources(query, {n: spark.frame([d[::2], d[1::2]]) for n, d in given.items()}))
    compare(whole, expected, f"batch, seed {seed}")
    assert not isinstance(query.node, Ordered) or whole["u"].is_sorted()


@pytest.mark.parametrize("seed", SEEDS[::2])
def test_rows_that_come_later_than_promised_are_late_and_all_rows_add_up(seed):
    """In any order at all. An inner or semi join then has some of the rows that the oracle has, and no others."""
    whole = drawn(seed)
    joins = [replace(whole, node=n) for n in whole.node.walk() if isinstance(n, Join) and not fails(n.test)]
    for query in [each for each in joins if countable_join(each) is not None]:
        run, rng = query.run(), random.Random(seed)
        names = {scan.name for side in query.node.inputs for scan in side.scans}
        rows = [(name, row) for name in sorted(names) for row in whole.sources[name].data.iter_slices(1)]
        rng.shuffle(rows)
        for name, row in rows:
            run.push(name, row)
        accounted_join(run.end().counts)
        if query.node.how in ("inner", "semi"):
            check_among(run.results(), oracle(query), f"seed {seed}")


def fails(test):
    """Whether it is a condition that fails for some pairs: how many come out then depends on which rows are late."""
    return test is not None and "fails" in test.name


def partners(query, join):
    """How many rows of both sides have a partner: all but those that only a full join has."""
    inner, full = (oracle(replace(query, node=replace(join, how=how))).height for how in ("inner", "full"))
    return sum(oracle(replace(query, node=each)).height for each in join.inputs) - (full - inner)


def micro_batches(given, rng, count=4):
    """The rows of all sources in their order, in some micro-batches, each read by two tasks."""
    cuts = {n: sorted(rng.randrange(d.height + 1) for _ in range(count - 1)) for n, d in given.items()}
    found = []
    for number in range(count):
        ends = {n: [0, *c, given[n].height][number : number + 2] for n, c in cuts.items()}
        parts = {n: given[n][first:last] for n, (first, last) in ends.items()}
        found.append({n: [part[::2], part[1::2]] for n, part in parts.items()})
    return found


def check_among(found, expected, where):
    """Each row that was released is one of those expected, and no more often."""
    left = Counter(map(repr, plain(expected).rows()))
    extra = Counter(map(repr, plain(found).rows())) - left
    assert not extra, f"{where}: not expected: {list(extra)[:5]}"


def plain(frame):
    """Zero has one sign."""
    floats = pl.selectors.float()
    return frame.with_columns(pl.when(floats == 0).then(0.0).otherwise(floats).name.keep())


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


def rows(rng, value):
    """In 10 minutes, in order."""
    data = [
        (t, rng.choice([1, 2, 3, None]), rng.choice([None, *range(9)])) for t in sorted(rng.choices(range(600), k=ROWS))
    ]
    found = pl.DataFrame(data, schema={"t": pl.Int64(), "k": pl.Int64(), value: pl.Int64()}, orient="row")
    return found.with_columns(pl.col("t").mul(1_000_000).cast(pl.Datetime("us", "UTC")))


@pytest.mark.spark
def test_joins_on_spark_streaming_and_batch(spark, tmp_path):
    """Two sources of two kinds, a join by one key, then windows by another."""
    rng = random.Random(3)
    frames = {n: rows(rng, v) for n, v in (("l", "x"), ("r", "y"))}
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
