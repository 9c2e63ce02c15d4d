"""Plain tumbling windows over finite DataFrames run as Spark's own aggregation, with the same rows; others do not."""

import datetime as dt

import polars as pl
import pytest

import windrow as wr
from windrow.hosts.spark.native import applies
from windrow.hosts.spark.schema import to_dataframe
from windrow.testing import compare

pytestmark = pytest.mark.spark
MICRO = dt.timedelta(microseconds=1)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def rows():
    """Times around window edges, on both sides of 1970; NULLs everywhere."""
    minute = 60_000_000
    at = [k * minute + d for k in (-1_000_000, -3, -1, 0, 1, 28_333_334) for d in (-1, 0, 1, minute // 2)]
    stamps = pl.Series("ts", [*at, None], dtype=pl.Int64).cast(pl.Datetime("us", "UTC"))
    n = len(stamps)
    return pl.DataFrame(
        {
            "ts": stamps,
            "t": pl.Series([a // 1000 for a in at] + [None], dtype=pl.Int64),
            "k": [None if i % 7 == 0 else f"k{i % 3}" for i in range(n)],
            "x": pl.Series([None if i % 5 == 0 else i - 9 for i in range(n)], dtype=pl.Int32),
            "seen": [None if i % 4 == 0 else EPOCH + i * MICRO for i in range(n)],
            "odd`name": list(range(n)),
        }
    )


def queries(data, attribute):
    size = "1 minute" if attribute == "ts" else 60_000
    origin = EPOCH + 7 * MICRO if attribute == "ts" else 7
    s = wr.stream(data, progress=attribute, slack=0 if attribute == "t" else "0 seconds", name="s")
    calls = {"n": wr.count(), "nx": wr.count("x"), "s": wr.sum("x"), "lo": wr.min("x"), "hi": wr.max("seen")}
    yield s.window(size).group_by("k").agg(**calls)
    yield s.window(size, origin=origin).agg(n=wr.count(), o=wr.max("`odd``name`"))
    yield s.where("x > -3 AND (x < 12 OR x IS NULL)").window(size).group_by("k", "x").agg(**calls)
    yield s.where("k IN ('k1', 'k2') OR k IS NULL").window(size).group_by("k").agg(**calls)


def both(query, query_here):
    assert applies(query.plan(), {n: s.data for n, s in query.sources.items()})
    assert "Spark's own groupBy" in query.explain()
    expected = query_here.collect()
    compare(pl.DataFrame(query.to_spark().toArrow()).cast(expected.schema), expected)


@pytest.mark.parametrize("attribute", ["ts", "t"])
def test_sparks_own_aggregation_gives_the_same_rows_and_types(spark, attribute):
    here = rows()
    there = to_dataframe(spark, here)
    for query, query_here in zip(queries(there, attribute), queries(here, attribute), strict=True):
        both(query, query_here)
        assert query.to_spark().schema.fieldNames() == list(query.schema)


@pytest.mark.parametrize(
    "shape",
    [
        lambda s: s.window(60_000, 30_000).agg(n=wr.count()),
        lambda s: s.window(60_000, using="paned").agg(n=wr.count()),
        lambda s: s.window(60_000).agg(n=wr.avg("x")),
        lambda s: s.window(60_000).agg(n=wr.sum("t")),
        lambda s: s.window(60_000).agg(n=wr.max("k")),
        lambda s: s.window(60_000).group_by(y="x + 1").agg(n=wr.count()),
        lambda s: s.window(60_000).with_empty().agg(n=wr.count()),
        lambda s: s.where("x + 1 > 2").window(60_000).agg(n=wr.count()),
        lambda s: s.where("seen > TIMESTAMP '1970-01-01'").window(60_000).agg(n=wr.count()),
        lambda s: s.where("x > 1.5").window(60_000).agg(n=wr.count()),
        lambda s: s.window(60_000).agg(n=wr.count()).where("n > 1"),
        lambda s: s.landmark(60_000).agg(n=wr.count()),
    ],
)
def test_whatever_could_differ_runs_by_our_operators(spark, shape):
    s = wr.stream(to_dataframe(spark, rows().drop("ts")), progress="t", name="s")
    query = shape(s)
    assert not applies(query.plan(), {n: s.data for n, s in query.sources.items()})


def test_rows_from_a_clock_far_ahead_are_left_to_our_operators(spark):
    """Spark's own aggregation knows no bad rows."""
    stamps = [EPOCH, EPOCH + dt.timedelta(hours=5)]
    here = pl.DataFrame({"ts": stamps, "came": [EPOCH, EPOCH]}).cast(pl.Datetime("us", "UTC"))
    data = to_dataframe(spark, here)
    counted = wr.stream(data, "ts", arrival="came", ahead="1 hour", name="s").window("1 minute").agg(n=wr.count())
    assert not applies(counted.plan(), {"s": data})
    assert counted.collect().height == 1
