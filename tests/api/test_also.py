"""A stream that progresses on several attributes, of which each window takes one (Li, chapter 4)."""

import polars as pl
import pytest

import windrow as wr
from windrow.testing.simulated import SimulatedSpark

FLOWS = [
    {"start": 0, "end": 9, "n": 1},
    {"start": 8, "end": 11, "n": 2},
    {"start": 3, "end": 12, "n": 4},
    {"start": 14, "end": 25, "n": 8},
    {"start": 21, "end": 26, "n": 16},
    {"start": None, "end": 27, "n": 32},
]


def flows(data=FLOWS, **more):
    return wr.stream(data, "end", **{"slack": 0, **more}, also={"start": 10}, name="flows")


def totals(source, on):
    return source.window(10, on=on).agg(n=wr.sum("n"))


def test_each_window_takes_the_attribute_that_it_names():
    assert totals(flows(), "end").collect().rows() == [(0, 10, 1), (10, 20, 6), (20, 30, 56)]
    assert totals(flows(), "start").collect().rows() == [(0, 10, 7), (10, 20, 8), (20, 30, 16)]
    by_sql = wr.sql("SELECT sum(n) AS n FROM flows [TUMBLING 10, WA start]", flows=flows())
    assert by_sql.collect()["n"].to_list() == [7, 8, 16]


@pytest.mark.parametrize(("on", "expected"), [("end", [(0, 10, 1), (10, 20, 6)]), ("start", [(0, 10, 7)])])
def test_promises_about_one_attribute_close_windows_over_it_only(on, expected):
    run = totals(flows(), on).run().push("flows", FLOWS)
    assert run.results().rows() == expected
    assert run.counts["rows_bad"] == (on == "start")


def test_both_at_once_read_the_stream_once():
    source = flows()
    both = wr.together(by_end=totals(source, "end"), by_start=totals(source, "start"))
    found = both.collect()
    assert found["by_end"].rows() == [(0, 10, 1), (10, 20, 6), (20, 30, 56)]
    assert found["by_start"].rows() == [(0, 10, 7), (10, 20, 8), (20, 30, 16)]
    spark = SimulatedSpark()
    source = flows(spark.stream(pl.DataFrame(FLOWS).schema))
    running = spark.start(wr.together(by_end=totals(source, "end"), by_start=totals(source, "start")))
    batch = running.push({"flows": pl.DataFrame(FLOWS)})
    assert batch.counts["rows_in"] == len(FLOWS)
    assert batch.counts["rows_out"] == 3


def test_what_cannot_progress_is_refused():
    with pytest.raises(wr.QueryError, match="'stop' is not a column; available: end, n, start"):
        wr.stream(FLOWS, "end", also={"stop": 0})
    with pytest.raises(wr.QueryError, match="progress column already"):
        wr.stream(FLOWS, "end", also={"end": 0})
    with pytest.raises(wr.QueryError, match="must be a dict"):
        wr.stream(FLOWS, "end", also=["start"])
