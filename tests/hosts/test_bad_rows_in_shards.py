"""Bad rows that are found after a window or a join: they reach the side output with the reason, not only the count."""

import json

import polars as pl
import pytest

import windrow as wr
from windrow.testing.disturbed import disturbed
from windrow.testing.simulated import SimulatedSpark

SCHEMA = {"t": pl.Int64(), "k": pl.String(), "x": pl.Int64()}
ROWS = [(1, "a", 3), (2, "b", 0), (4, "a", 2), (12, "b", 4), (30, "a", 0)]
REASON = "share failed: ZeroDivisionError: integer division or modulo by zero"


def frame(rows):
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def query(source):
    def share(total):  # in here, so that workers of a real Spark get it by value
        return 100 // total

    share.__qualname__ = "share"
    s = wr.stream(source, "t", slack=0, name="s")
    totals = s.window(10).group_by("k").agg(total=wr.sum("x"))
    return totals.apply(share=wr.udf(share, "BIGINT", "total"))


def sorted_rows(found):
    return sorted(found.select("k", "window_end", "share").rows())


def test_a_function_after_a_window_that_fails_for_one_row_puts_it_at_the_side():
    spark = SimulatedSpark()
    found = spark.start(query(spark.stream(SCHEMA)), with_late=True).push({"s": frame(ROWS)})
    assert sorted_rows(found.results) == [("a", 10, 20), ("b", 20, 25)]
    [bad] = found.bad.to_dicts()
    assert (bad["source"], bad["reason"]) == ("stage 0", REASON)
    assert json.loads(bad["row"]) == {"k": "b", "window_start": 0, "window_end": 10, "total": 0}
    assert (found.counts["rows_bad"], found.counts["rows_out"], found.late.height) == (1, 2, 0)


def test_without_them_bad_rows_are_counted():
    spark = SimulatedSpark()
    found = spark.start(query(spark.stream(SCHEMA))).push({"s": frame(ROWS)})
    assert sorted_rows(found.results) == [("a", 10, 20), ("b", 20, 25)]
    assert (found.counts["rows_bad"], found.bad.width) == (1, 0)


def test_rows_that_are_bad_before_the_window_are_counted_and_not_repeated_here():
    spark = SimulatedSpark()
    rows = frame([*ROWS, (None, "c", 1)])
    found = spark.start(query(spark.stream(SCHEMA)), with_late=True).push({"s": rows})
    assert (found.counts["rows_bad"], found.bad.height) == (2, 1)


def test_the_stage_is_named_where_there_are_several():
    def joined(spark):
        s = wr.stream(spark.stream(SCHEMA), "t", slack=0, name="s")
        pairs = s.join(s, on="k", within=(1, 10)).apply(ratio=wr.udf(lambda a, b: a // b, "BIGINT", "x", "x_right"))
        return pairs.window(10).group_by("x").agg(n=wr.count())

    spark = SimulatedSpark()
    found = spark.start(joined(spark), with_late=True).push({"s": frame([(1, "a", 3), (2, "a", 0), (30, "a", 1)])})
    assert found.bad["source"].to_list() == ["stage 0"]
    assert json.loads(found.bad["row"][0]) == {"t": 1, "x": 3, "x_right": 0}  # nobody uses the other columns


def test_a_micro_batch_that_runs_again_finds_the_same_bad_rows():
    batches = [{"s": frame([row])} for row in ROWS]
    for seed in range(5):
        found = disturbed(lambda spark: query(spark.stream(SCHEMA)), batches, seed, with_late=True)
        assert [batch.bad.height for batch in found] == [0, 0, 0, 1, 0]


def test_in_process_they_are_among_the_others():
    bad = query(frame([*ROWS[:4], (None, "c", 1)])).bad_rows()
    assert sorted(bad["reason"].to_list()) == [REASON, "the progress value is NULL"]


@pytest.mark.spark
def test_they_leave_spark_with_the_results(spark):
    both = query(spark.createDataFrame(frame(ROWS[:4]).to_arrow())).to_spark(2, with_late=True)
    [bad] = wr.bad_rows(both).collect()
    assert (bad.source, bad.reason, json.loads(bad.row)["total"]) == ("stage 0", REASON, 0)
    assert sorted((row.k, row.share) for row in wr.results(both).collect()) == [("a", 20), ("b", 25)]
