"""The Python API: data it takes, plans it builds, arguments it refuses."""

from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import windrow as wr
from windrow.planner import ALGORITHMS

ROWS = [{"t": 1, "k": "a", "x": 5}, {"t": 2, "k": "b", "x": None}, {"t": 7, "k": "a", "x": 1}]


def totals(data, **options):
    return wr.stream(data, progress="t", **options).window(range=5).group_by("k").agg(n=wr.count("x")).collect().rows()


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        iter(ROWS),
        pl.DataFrame(ROWS),
        pl.DataFrame(ROWS).lazy(),
        pa.Table.from_pylist(ROWS),
        pa.RecordBatch.from_pylist(ROWS),
        pd.DataFrame({"t": [1, 2, 7], "k": ["a", "b", "a"], "x": pd.array([5, None, 1], dtype="Int64")}),
    ],
    ids=["rows", "iterator", "polars", "lazy", "arrow table", "arrow batch", "pandas"],
)
def test_rows_arrow_pandas_and_polars_give_the_same(data):
    assert totals(data) == [("a", 0, 5, 1), ("b", 0, 5, 0), ("a", 5, 10, 1)]


def test_output_columns_are_keys_window_bounds_aggregates():
    query = (
        wr.stream(ROWS, progress="t").window(range=5).group_by("k", odd="t % 2 = 1").agg(n=wr.count(), m=wr.max("x"))
    )
    assert list(query.schema) == ["k", "odd", "window_start", "window_end", "n", "m"]


def test_sql_and_python_build_the_same_plan():
    packets = wr.stream(ROWS, progress="t", slack=3, name="packets")
    fluent = packets.where("x > 0").window(range=10, slide=5).group_by("k").agg(n=wr.count(), m=wr.max("x + 1"))
    text = """SELECT k, count(*) AS n, max(x + 1) AS m FROM packets [RANGE 10, SLIDE 5, WA t]
              WHERE x > 0 GROUP BY k"""
    assert wr.sql(text, packets=packets).node == fluent.node


def test_having_and_selection_after_a_window_match_sql():
    packets = wr.stream(ROWS, progress="t", name="packets")
    fluent = packets.window(range=5).group_by("k").agg(n=wr.count()).where("n > 0")
    assert wr.sql("SELECT k, count(*) AS n FROM packets [RANGE 5] GROUP BY k HAVING n > 0", packets=packets).node == (
        fluent.node
    )


def test_lengths_as_text_timedelta_or_number():
    stamps = wr.stream([{"t": datetime(2024, 1, 1), "k": "a"}], progress="t")
    days = wr.stream([{"t": date(2024, 1, 1), "k": "a"}], progress="t")
    expected = stamps.window(range="90 seconds", slide="0.5 minutes").shape
    assert stamps.window(range=timedelta(seconds=90), slide=timedelta(seconds=30)).shape == expected
    assert days.window(range="1 week", slide=timedelta(days=1)).shape.range == 7


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wr.stream(ROWS, progress="ts"), r"progress='ts' is not a column; available: k, t, x"),
        (lambda: wr.stream(ROWS, progress="k"), r"progress='k' must be a timestamp, date or integer, not String"),
        (lambda: wr.stream(ROWS, progress="t", slack=-1), r"slack must be zero or more"),
        (lambda: wr.stream(ROWS, progress="t", slack="3 seconds"), r"slack '3 seconds' has a unit of time"),
        (lambda: wr.stream(ROWS, progress="t", punctuation="p"), r"punctuation='p' is not a column"),
        (lambda: wr.stream(ROWS, progress="t", punctuation="k"), r"punctuation='k' is of type String"),
        (lambda: wr.stream(ROWS, progress="t", slack=1, punctuation="x"), r"either slack or punctuation"),
        (lambda: wr.stream(ROWS, progress="t", parse="iso8601"), r"parse='iso8601' needs strings"),
        (lambda: totals(ROWS, slack=0) and wr.stream(ROWS, progress="t").window(range=0), r"range must be positive"),
        (lambda: wr.stream(ROWS, progress="t").window(range=5, slide=-2), r"slide must be positive, not -2"),
        (lambda: wr.stream(ROWS, progress="t").window(range="x"), r"range 'x' is not a length"),
        (
            lambda: wr.stream(ROWS, progress="t").where("len > 0"),
            r"unknown column 'len'; available: k, t, x\n  len > 0",
        ),
        (lambda: wr.stream(ROWS, progress="t").where("x"), r"a condition must be true or false"),
        (lambda: wr.stream(ROWS, progress="t").where("x >"), r"cannot read 'x >'"),
        (lambda: wr.stream(ROWS, progress="t").window(range=5).agg(), r"needs at least one aggregate"),
        (lambda: wr.stream(ROWS, progress="t").window(range=5).agg(n="count"), r"is not an aggregate"),
        (lambda: wr.stream(ROWS, progress="t").window(range=5).agg(n=wr.sum("k")), r"sum\(\) needs a number"),
        (lambda: wr.stream(ROWS, progress="t").window(range=5).group_by("q"), r"unknown column 'q'"),
        (lambda: wr.stream(ROWS, progress="t").window(range=5).group_by("k").agg(k=wr.count()), r"given twice: k"),
        (
            lambda: wr.stream(ROWS, progress="t").select("k").window(range=5),
            r"column, which was not selected",
        ),
        (lambda: wr.stream([{"@t": 1}], progress="@t"), r"reserved"),
        (lambda: wr.stream(3, progress="t"), r"cannot read a int as a stream"),
        (lambda: wr.stream([1, 2], progress="t"), r"rows must be dicts"),
    ],
)
def test_refusals_name_the_argument_and_what_exists(call, message):
    with pytest.raises(wr.WindrowError, match=message):
        call()


def test_an_unknown_algorithm_is_refused_with_the_ones_there_are():
    with pytest.raises(wr.QueryError, match="available: paned, wid"):
        wr.stream(ROWS, progress="t").window(range=5, using="magic")


def test_every_algorithm_can_be_forced_and_gives_the_same():
    for using in ALGORITHMS:
        query = wr.stream(ROWS, progress="t").window(range=4, slide=2, using=using).group_by("k").agg(n=wr.count())
        assert using in query.explain()
        assert query.collect().height == 6


def test_windows_of_rows_take_an_algorithm_and_partitions_do_not():
    numbered = wr.stream([{"t": t, "n": t, "k": "a"} for t in range(9)], progress="t", row_num="n")
    wanted = numbered.rows(4, 2).agg(n=wr.count()).collect().sort("window_end")
    for using in ALGORITHMS:
        query = numbered.rows(4, 2, using=using).agg(n=wr.count())
        assert using in query.explain()
        assert query.collect().sort("window_end").equals(wanted)
    with pytest.raises(wr.QueryError, match="only one algorithm"):
        numbered.rows(4, 2, partition_by="k", using="wid")


def test_values_that_are_no_progress_values_are_set_aside_with_a_reason():
    rows = [{"t": 1}, {"t": "broken"}, {"t": None}, {"t": 2}]
    stream = wr.stream(rows, progress="t")
    assert stream.window(range=5).agg(n=wr.count()).collect()["n"].to_list() == [2]
    assert sorted(stream.bad_rows()["reason"]) == ["the progress value cannot be parsed", "the progress value is NULL"]


def test_nanoseconds_are_floored_to_microseconds():
    data = pd.DataFrame({"t": np.array([-1, 999], "datetime64[ns]")})
    found = wr.stream(data, progress="t").window(range="1 microsecond").agg(n=wr.count()).collect()
    assert found["window_start"].to_list() == [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(1970, 1, 1)]


def test_a_union_of_two_sources_with_one_name_is_refused():
    with pytest.raises(wr.QueryError, match="two different sources are called 'stream'"):
        wr.stream(ROWS, progress="t").union(wr.stream(ROWS, progress="t"))


def test_a_union_of_different_columns_is_refused_and_named():
    other = wr.stream([{"t": 1, "k": 2}], progress="t", name="other")
    with pytest.raises(wr.QueryError, match=r"these differ: k \(String and Int64\), x"):
        wr.stream(ROWS, progress="t").union(other)


def test_in_process_data_cannot_go_to_spark():
    with pytest.raises(wr.PlanError, match="no Spark source"):
        wr.stream(ROWS, progress="t").to_spark()
