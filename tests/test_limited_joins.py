"""Joins with limits end to end: in process, as Spark drives them, and on Spark, against the oracle."""

import random
from dataclasses import replace

import polars as pl
import pytest

import windrow as wr
from how_many import EXAMPLES
from random_joins import drawn
from test_joins import check_among, micro_batches, rows, with_sources
from windrow.api.stream import Stream
from windrow.errors import PlanError, QueryError, WindrowError
from windrow.hosts.local import LocalRun
from windrow.logical.nodes import Join
from windrow.planner.partition import ByKeys
from windrow.planner.rules.transform import transform
from windrow.spec.allocation import BOTH_POLICIES, RATE_POLICIES, STATE_POLICIES
from windrow.spec.joining import Limits
from windrow.testing import compare, oracle, replay
from windrow.testing.disturbed import disturbed
from windrow.testing.simulated import SimulatedSpark

SEEDS = range(int(100 * max(1, EXAMPLES)))


def with_limits(seed):
    """A random query in which every join that can have limits has some; None if there is none."""
    query, rng, found = drawn(seed), random.Random(seed), []

    def limited(_before, node):
        if not isinstance(node, Join) or node.how not in ("inner", "semi") or node.by_rows or node.using:
            return node
        found.append(node)
        return replace(node, limits=limits(rng, node.how))

    changed = Stream(transform(query.node, limited), query.sources)
    return changed if found else None


def limits(rng, how="inner"):
    rate = rng.choice([0.0000001, 0.05, 0.2, 1.0, 1000.0])
    state = rng.choice([1, 5, 20, 1000])
    kind = rng.choice(["rate", "state", "both"]) if how == "inner" else "rate"
    known = {"rate": RATE_POLICIES, "state": STATE_POLICIES, "both": BOTH_POLICIES}[kind]
    share = rng.choice([None, None, *known])
    return Limits(None if kind == "state" else rate, None if kind == "rate" else state, share, rng.randrange(3))


QUERIES = [(seed, query) for seed in SEEDS if (query := with_limits(seed)) is not None]


@pytest.mark.parametrize(("seed", "query"), QUERIES)
def test_random_joins_with_limits_equal_the_oracle_under_any_arrival(seed, query):
    replay(query, runs=2, seed=seed)


@pytest.mark.parametrize(("seed", "query"), QUERIES[::2])
def test_random_joins_with_limits_as_spark_drives_them(seed, query):
    """In one shard, as the oracle has all limits in one place: micro-batches that die shed the same rows again."""
    given = {name: source.data for name, source in query.sources.items()}
    expected = oracle(query)

    def streaming(spark):
        return with_sources(query, {name: spark.stream(data.schema) for name, data in given.items()})

    out = disturbed(streaming, micro_batches(given, random.Random(seed)), seed, shards=1)
    check_among(pl.concat([batch.results for batch in out]), expected, f"streaming, seed {seed}")
    spark = SimulatedSpark(shards=1, seed=seed)
    whole = spark.collect(with_sources(query, {n: spark.frame([d[::2], d[1::2]]) for n, d in given.items()}))
    compare(whole, expected, f"batch, seed {seed}")


def sales(seed, count=400):
    rng = random.Random(seed)
    data = [(rng.randrange(300), rng.randrange(20), n) for n in range(count)]
    return pl.DataFrame(data, schema={"t": pl.Int64(), "k": pl.Int64(), "n": pl.Int64()}, orient="row")


@pytest.mark.parametrize("given", [Limits(2.0), Limits(None, 40), Limits(2.0, 40, None, 9)])
def test_each_shard_has_its_part_of_the_limits(given):
    """Three shards shed what three queries would, each over the rows of its keys and with a third of the limits."""
    frames = {"l": sales(1), "r": sales(2, 900)}

    def query(sources, limits):
        left, right = (wr.stream(sources[name], "t", slack=300, name=name) for name in ("l", "r"))
        found = left.join(right, on="k", within=(-30, 30))
        return Stream(replace(found.node, limits=limits), found.sources)

    spark = SimulatedSpark(shards=3, seed=4)
    found = spark.collect(query({n: spark.frame([f[::2], f[1::2]]) for n, f in frames.items()}, given))
    parts = {n: dict(ByKeys(("k",)).split(f, 3)) for n, f in frames.items()}
    expected = [oracle(query({n: p[s] for n, p in parts.items()}, given.of_shard(3))) for s in range(3)]
    compare(found, pl.concat(expected), "three shards")
    assert found.height < oracle(query(frames, None)).height / 2


def test_an_allocation_follows_rates_that_change():
    """The faster stream becomes the slower one: each time the window of the slower one is kept."""
    left = [{"t": t // 10 if t < 1000 else 100 + (t - 1000), "k": 0} for t in range(1100)]
    right = [{"t": t if t < 100 else 100 + (t - 100) // 10, "k": 0} for t in range(1100)]
    streams = [wr.stream(data, "t", slack=0, name=name) for name, data in (("l", left), ("r", right))]
    run = streams[0].join(streams[1], on="k", within=(-40, 40), max_state=41).run()
    held = []
    for until in range(10, 200, 10):
        for name, data in (("l", left), ("r", right)):
            run.push(name, [row for row in data if until - 10 <= row["t"] < until])
        held.append(_held(run))
    assert held[8][0] < 5
    assert held[8][1] > 30
    assert held[-1][0] > 30
    assert held[-1][1] < 5


def _held(run):
    [join] = [n.operator for n in run.graph.nodes if n.name.endswith("join")]
    return [kept.rows.height for kept in join.join.sides]


def streams(progress="t", **options):
    rows = [{"t": 1, "k": 1, "x": 1}]
    return [wr.stream(rows, progress, slack=0, name=name, **options) for name in ("l", "r")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_rate": 0}, "max_rate must be above 0, not 0"),
        ({"max_rate": -1.5}, "max_rate must be above 0, not -1.5"),
        ({"max_state": 0}, "max_state must be above 0, not 0"),
        ({"max_state": 1.5}, "max_state=1.5 must be an integer"),
        ({"max_rate": float("inf")}, "max_rate=inf must be a number"),
        ({"max_rate": "many"}, "max_rate='many' must be a number"),
        ({"share": "equal"}, "give max_rate, max_state or both"),
        ({"seed": 3}, "give max_rate or max_state"),
        (
            {"max_rate": 1, "share": "slower"},
            "share can be equal, inverse, proportional, window-inverse, window-proportional",
        ),
        ({"max_state": 1, "share": "window-inverse"}, "share can be equal, faster, inverse, proportional, slower"),
        ({"max_rate": 1, "how": "left"}, "left joins with limits would be wrong"),
        ({"max_rate": 1, "how": "full"}, "full joins with limits would be wrong"),
        ({"max_state": 1, "how": "anti"}, "anti joins with limits would be wrong"),
        ({"max_state": 1, "how": "semi"}, "Give max_rate alone"),
        ({"max_rate": 1, "using": "opob"}, "an algorithm of its own, and using='opob' names another"),
    ],
)
def test_limits_that_cannot_be_kept_are_refused(options, message):
    left, right = streams()
    with pytest.raises((PlanError, QueryError)) as error:
        left.join(right, on="k", within=(0, 5), **options)
    assert message in str(error.value)


def test_limits_are_about_times_of_two_streams():
    [left, _] = streams(row_num="x")
    with pytest.raises(PlanError, match="limits are per unit of time"):
        left.join(left, on="k", within=("0 rows", "5 rows"), max_rate=1)
    with pytest.raises(QueryError, match="max_rate"):
        left.join(wr.table([{"k": 1}]), on="k", max_rate=1)
    spark = SimulatedSpark(shards=4)
    query = [wr.stream(spark.frame(sales(n)), "t", name=name) for n, name in enumerate("lr")]
    with pytest.raises(PlanError, match="less than one row for each of 4 shards"):
        spark.collect(query[0].join(query[1], on="k", within=(0, 5), max_state=3))


FROM = "FROM l [RANGE 5], r [RANGE 8] WHERE l.k = r.k"


def test_limits_in_sql_are_hints():
    left, right = streams()
    hint = "/*+ MAX_RATE(2.5), MAX_STATE(30), SHARE('left-window/right-rate'), SEED(7) */"
    query = wr.sql(f"SELECT {hint} l.t, r.x {FROM}", l=left, r=right)
    [join] = [node for node in query.node.walk() if isinstance(node, Join)]
    assert join.limits == Limits(2.5, 30, "left-window/right-rate", 7)
    said = "at most 2.5 rows per unit and 30 rows of state, shared left-window/right-rate, seed 7"
    assert said in query.explain()
    assert "each shard has its part of the limits" in query.explain()


@pytest.mark.parametrize(
    ("hint", "rest", "message"),
    [
        ("MAX_RATE(fast)", FROM, "MAX_RATE takes a number, not 'fast'"),
        ("MAX_RATE(-1)", FROM, "max_rate must be above 0"),
        ("SHARE(equal)", FROM, "give max_rate, max_state or both"),
        (
            "MAX_RATES(1)",
            FROM,
            "available: ALPHA(0.3), COST(0.001), MAX_RATE(1000), MAX_STATE(50000)",
        ),
        ("MEMORY('1 MB')", FROM, "MEMORY is about windows, and this is a join"),
        (
            "MAX_RATE(1)",
            "FROM l [RANGE 5] LEFT JOIN r [RANGE 5] ON l.k = r.k",
            "left joins with limits would be wrong",
        ),
        (
            "MAX_RATE(1)",
            "FROM l [RANGE 5], r [RANGE 5], l AS m [RANGE 5] WHERE l.k = r.k AND r.k = m.k",
            "MAX_RATE is about one join, and here are 2",
        ),
        ("MAX_RATE(1)", "FROM l ASOF JOIN r MATCH_CONDITION (l.t >= r.t) ON l.k = r.k", "shed no rows"),
    ],
)
def test_hints_that_cannot_be_kept_are_refused(hint, rest, message):
    left, right = streams()
    with pytest.raises(WindrowError) as error:
        wr.sql(f"SELECT /*+ {hint} */ l.t {rest}", l=left, r=right)
    assert message in str(error.value)


def test_without_limits_nothing_is_dropped():
    left, right = (wr.stream(sales(n), "t", slack=300, name=name) for n, name in enumerate("lr"))
    run = LocalRun(left.join(right, on="k", within=(-30, 30)).plan())
    run.push("l", sales(0)).push("r", sales(1)).end()
    assert {name: run.counts[name] for name in ("rows_shed", "pairs_near", "pairs_missed")} == {
        "rows_shed": 0,
        "pairs_near": 0,
        "pairs_missed": 0,
    }


@pytest.mark.spark
def test_a_join_with_limits_on_spark_sheds_the_same_rows_after_a_restart_and_in_a_batch(spark, tmp_path):
    """In one shard, so that the oracle sheds the same."""
    rng = random.Random(5)
    frames = {n: rows(rng, v) for n, v in (("l", "x"), ("r", "y"))}
    for name, frame in frames.items():
        for part in range(3):
            (tmp_path / name / str(part)).mkdir(parents=True)
            frame[part * 134 : (part + 1) * 134].write_parquet(tmp_path / name / str(part) / "rows.parquet")

    def query(left, right):
        return left.join(right, on="k", within=("-30 seconds", "30 seconds"), max_rate=0.5, max_state=12, seed=2)

    expected = oracle(query(*(wr.stream(frames[n], "t", slack="0 seconds", name=n) for n in "lr")))
    batch = query(*(wr.stream(spark.read.parquet(str(tmp_path / n / "*")), "t", name=n) for n in "lr"))
    compare(pl.from_arrow(batch.to_spark(shards=1).toArrow()), expected, "batch")
    shed = 0
    for parts in ("[0]", "[01]", "[012]"):
        sources = [spark.readStream.schema(spark.read.parquet(str(tmp_path / n / "*")).schema) for n in "lr"]
        read = [s.parquet(str(tmp_path / n / parts)) for s, n in zip(sources, "lr", strict=True)]
        streams = [wr.stream(r, "t", slack="0 seconds", name=n) for r, n in zip(read, "lr", strict=True)]
        writer = query(*streams).to_spark(shards=1).writeStream.format("parquet").option("path", str(tmp_path / "out"))
        run = writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start()
        run.awaitTermination()
        metrics = [progress.observedMetrics["windrow"] for progress in run.recentProgress]
        shed += sum(each["rows_shed"] for each in metrics)
    found = pl.read_parquet(tmp_path / "out" / "*.parquet")
    check_among(found, expected, "streaming")
    assert found.height > expected.height * 0.8
    assert shed > 100
