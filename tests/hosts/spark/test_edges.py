"""Odd inputs on a real Spark: time zones, daylight saving, text timestamps, nothing at all, one instant."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

import windrow as wr
from windrow.hosts.spark.schema import to_dataframe
from windrow.testing import compare, oracle

pytestmark = pytest.mark.spark


def both(spark, frame, build):
    """The same query in process and on Spark; returns what Spark gave."""
    found = build(wr.stream(to_dataframe(spark, frame), progress="ts")).collect()
    local = build(wr.stream(frame, progress="ts"))
    compare(found, local.collect(), "Spark and in process")
    compare(found, oracle(local), "Spark and the oracle")
    return found


def per_window(stream):
    return stream.window(range="1 day", slide="12 hours").group_by("k").agg(n=wr.count(), last=wr.max("ts"))


def test_a_daylight_saving_day_has_no_hole_and_no_double_hour(spark):
    # New York, the session's zone, falls back on 2024-11-03; instants go on evenly.
    start = datetime(2024, 11, 2, tzinfo=UTC)
    ts = [start + timedelta(hours=h) for h in range(72)]
    frame = pl.DataFrame({"ts": ts, "k": ["x"] * 72}, schema={"ts": pl.Datetime("us", "UTC"), "k": pl.String})
    found = both(spark, frame, per_window)
    full = found.filter(pl.col("window_start").is_between(ts[0], ts[-24]))
    assert full["n"].unique().to_list() == [24]


def test_wall_clock_timestamps_before_1970(spark):
    ts = [datetime(1969, 12, 31, 11, 59, 59, 999_999), datetime(1969, 12, 31, 12), datetime(1900, 1, 1)]
    frame = pl.DataFrame({"ts": ts, "k": ["a", "a", None]}, schema={"ts": pl.Datetime("us"), "k": pl.String})
    found = both(spark, frame, per_window)
    assert found.schema["window_start"] == pl.Datetime("us")
    assert None in found["k"].to_list()


@pytest.mark.parametrize("rows", [0, 1, 500])
def test_nothing_one_row_and_all_rows_at_one_instant(spark, rows):
    ts = [datetime(2024, 1, 1, 12, tzinfo=UTC)] * rows
    frame = pl.DataFrame({"ts": ts, "k": ["a"] * rows}, schema={"ts": pl.Datetime("us", "UTC"), "k": pl.String})
    found = both(spark, frame, per_window)
    assert found["n"].to_list() == ([] if rows == 0 else [rows, rows])


def test_text_timestamps_that_cannot_be_read_go_to_the_side_with_their_reason(spark):
    texts = ["2024-01-01T10:00:00Z", "2024-01-01 10:00:30", "yesterday", None, "2024-01-01T12:00:10+02:00"]
    frame = pl.DataFrame({"ts": texts, "x": [1, 2, 3, 4, 5]})
    spark_rows = wr.stream(to_dataframe(spark, frame), progress="ts", parse="iso8601")
    local_rows = wr.stream(frame, progress="ts", parse="iso8601")
    for stream in (spark_rows, local_rows):
        found = stream.window(range="1 minute").agg(total=wr.sum("x")).collect()
        assert found["total"].to_list() == [8]
    bad = sorted(r.asDict()["reason"] for r in spark_rows.bad_rows().collect())
    assert bad == ["the progress value cannot be parsed", "the progress value is NULL"]
    assert sorted(local_rows.bad_rows()["reason"]) == bad


def test_a_stream_without_promises_is_refused_before_it_starts(spark):
    source = spark.readStream.format("rate").load()
    query = wr.stream(source, progress="timestamp").window(range="1 minute").agg(n=wr.count())
    with pytest.raises(wr.PlanError, match=r"makes no promises.*slack"):
        query.to_spark()


def test_the_refusal_names_all_ways_to_make_promises(tmp_path):
    pl.DataFrame({"t": [1]}).write_parquet(tmp_path / "1.parquet")
    source = wr.read_parquet(tmp_path, "t", streaming=True, name="s")
    ways = [n for n, f in vars(wr.promise).items() if getattr(f, "__annotations__", {}).get("return") == "Promise"]
    assert len(ways) == 9
    for query in (
        source.window(range=10).agg(n=wr.count()),
        wr.sql("SELECT count(*) AS n FROM s [RANGE 10, WA t]", s=source),
        wr.sql("SELECT count(*) AS n FROM s PUNCTUATED BY ordered() [RANGE 10, WA t]", s=source).union(
            wr.read_parquet(tmp_path, "t", streaming=True, name="q").window(range=10).agg(n=wr.count())
        ),
    ):
        with pytest.raises(wr.PlanError, match="makes no promises") as caught:
            query.to_spark()
        for way in (*ways, "slack=", "punctuation=", "PUNCTUATED BY slack(", "--slack", "--punctuation"):
            assert way in str(caught.value)


def test_an_integer_sum_beyond_64_bits_is_an_error_that_names_it(spark):
    frame = pl.DataFrame({"ts": [1, 2], "k": ["a", "a"], "x": [2**62, 2**62]})
    query = wr.stream(to_dataframe(spark, frame), progress="ts").window(range=10).group_by("k").agg(s=wr.sum("x"))
    with pytest.raises(Exception, match="does not fit into 64 bits"):
        query.collect()


@pytest.mark.parametrize("shape", ["landmark", "empty"])
def test_a_finite_union_ends_with_the_last_row_of_its_longest_member(spark, shape):
    """Whatever the condition keeps, and in whatever order members stand (issue 11)."""
    data = {
        "short": pl.DataFrame({"t": [5, 7], "k": ["a", "b"]}),
        "long": pl.DataFrame({"t": [5, 34], "k": ["a", "x"]}),
        "none": pl.DataFrame(schema={"t": pl.Int64, "k": pl.String}),
    }

    def built(order, convert):
        streams = [wr.stream(convert(data[name]), progress="t", name=name) for name in order]
        kept = streams[0].union(*streams[1:]).where("k <> 'x'")
        windows = kept.landmark(10) if shape == "landmark" else kept.window(10).with_empty()
        return windows.group_by("k").agg(n=wr.count())

    local = built(["short", "long"], lambda frame: frame)
    expected = oracle(local)
    assert expected["window_end"].max() == (40 if shape == "landmark" else 30)
    compare(local.collect(), expected, "in process")
    for order in (["long", "none", "short"], ["short", "long"]):
        compare(built(order, lambda frame: to_dataframe(spark, frame)).collect(), expected, f"on Spark, {order}")
