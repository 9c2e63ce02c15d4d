"""Rows with equal times are in the order of their columns, of whatever types: NULL first, NaN last, 0.0 as -0.0."""

import datetime as dt
import random
from decimal import Decimal

import polars as pl
import pytest

import windrow as wr
from windrow.testing import compare, oracle, replay
from windrow.testing.simulated import SimulatedSpark

NAN = float("nan")
COLUMNS = {
    "boolean": (pl.Boolean(), [None, True, False]),
    "double": (pl.Float64(), [None, NAN, 0.0, -0.0, 1.5]),
    "float": (pl.Float32(), [None, NAN, 0.0, -0.0, 1.5]),
    "decimal": (pl.Decimal(10, 2), [None, Decimal("1.10"), Decimal("-2.00"), Decimal("10.00")]),
    "text": (pl.String(), [None, "", "a", "Z", "\u00e4", "\U0001f600", "\uffff"]),
    "category": (pl.Categorical(), [None, "b", "a", "c"]),
    "binary": (pl.Binary(), [None, b"", b"a", b"\xff", b"ab"]),
    "date": (pl.Date(), [None, dt.date(2020, 1, 1), dt.date(1960, 1, 1)]),
    "interval": (pl.Duration("us"), [None, dt.timedelta(1), dt.timedelta(-1)]),
    "array": (pl.List(pl.Int64()), [None, [], [1], [1, 2], [None], [1, None], [2]]),
    "array of doubles": (pl.List(pl.Float64()), [None, [], [NAN], [1.0, 2.0], [None], [0.0], [-0.0]]),
    "array of texts": (pl.List(pl.String()), [None, ["b"], ["a", "c"], ["a"], []]),
    "struct": (
        pl.Struct({"a": pl.Int64(), "b": pl.String()}),
        [None, {"a": 1, "b": "x"}, {"a": None, "b": "z"}, {"a": 1, "b": None}, {"a": 1, "b": "a"}],
    ),
}


def streams(rng, kind):
    dtype, values = COLUMNS[kind]
    schema = {"v": dtype, "t": pl.Int64(), "k": pl.Int64(), "n": pl.Int64()}
    for name in "ab":
        data = [(rng.choice(values), rng.randrange(4), rng.choice([1, 2]), rng.randrange(4)) for _ in range(25)]
        yield wr.stream(pl.DataFrame(data, schema=schema, orient="row"), "t", slack=5, name=name)


@pytest.mark.parametrize("kind", COLUMNS)
def test_as_of_joins(kind):
    for strategy in ("backward", "forward"):
        a, b = streams(random.Random(f"{kind}/{strategy}"), kind)
        replay(a.join_asof(b, by="k", strategy=strategy, tolerance=3), runs=1)


@pytest.mark.parametrize("kind", COLUMNS)
def test_sequences(kind):
    for matching in ("recent", "chronicle"):
        a, b = streams(random.Random(f"{kind}/{matching}"), kind)
        replay(wr.seq({"a": a, "b": wr.some(b)}, on="k", within=3, matching=matching), runs=1)


# -- keys of two types -------------------------------------------------------------------------------------------------
NUMBERS = [0, 1, 2, -3, 2**53, 2**53 + 1]


def asked(left, right, what):
    """Each key is at one time: what meets, meets by its key."""
    if what == "as-of":
        return left.join_asof(right, by="k", tolerance=0, coalesce=False, how="inner").select("t", "k", u="t_right")
    return wr.seq({"a": right, "b": left}, on="k", within=0, matching="chronicle", columns={"t": "b.t", "u": "a.t"})


@pytest.mark.parametrize("what", ["as-of", "sequence"])
def test_integers_meet_doubles_in_the_same_shard_and_nan_meets_nan(what):
    whole = pl.DataFrame({"t": range(len(NUMBERS)), "k": NUMBERS})
    floats = whole.with_columns(pl.col("k").cast(pl.Float64()))
    special = pl.DataFrame({"t": [7, 8, 9], "k": [NAN, -0.0, None]})
    other = pl.DataFrame({"t": [7, 8, 9], "k": [-NAN, 0.0, None]})
    for left, right, number in ((whole, floats, len(NUMBERS)), (floats, whole, len(NUMBERS)), (special, other, 2)):
        frames = [wr.stream(frame, "t", name=name) for frame, name in ((left, "l"), (right, "r"))]
        expected = oracle(asked(*frames, what))
        assert expected.height == number
        spark = SimulatedSpark(shards=4)
        sources = [wr.stream(spark.frame(frame), "t", name=name) for frame, name in ((left, "l"), (right, "r"))]
        compare(asked(*frames, what).collect(), expected, "in process")
        compare(spark.collect(asked(*sources, what)), expected, "on Spark")


# -- results of windows ------------------------------------------------------------------------------------------------
def counted(rng):
    data = [(rng.randrange(40), rng.choice([1, 2]), rng.randrange(5)) for _ in range(40)]
    rows = pl.DataFrame(data, schema={"t": pl.Int64(), "k": pl.Int64(), "x": pl.Int64()}, orient="row")
    s = wr.stream(rows, "t", slack=50, name="s")
    return s, s.window(5).group_by("k").agg(n=wr.count(), high=wr.max("x"))


@pytest.mark.parametrize("seed", range(2))
def test_rows_beside_the_results_of_windows(seed):
    s, windows = counted(random.Random(seed))
    replay(s.join_asof(windows, by="k", max_keys=10), runs=2)
    replay(windows.join_asof(s, by="k", strategy="forward", tolerance=9), runs=2)


@pytest.mark.parametrize("matching", ["recent", "chronicle"])
def test_results_of_windows_follow_each_other_and_never_themselves(matching):
    _, windows = counted(random.Random(7))
    query = wr.seq({"a": windows, "b": windows}, on="k", within=12, matching=matching, where="a.n < b.n")
    assert query.node.strict
    replay(query, runs=2)
    assert oracle(query).height > 0
