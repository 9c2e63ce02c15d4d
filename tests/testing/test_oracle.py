"""The oracle by itself: what it admits, and what it makes of joins, splits and functions, by hand."""

import datetime as dt
from collections import Counter

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.api.stream import Stream
from windrow.errors import QueryError, ResultError
from windrow.spec.time import from_wall_clock, shown, wall_promise
from windrow.testing import oracle
from windrow.testing.oracle import bad_rows, clock
from windrow.testing.oracle.admission import read

TEXTS = ["2024-01-01T10:00:00Z", "2024-01-01 10:00", "2024-01-01", " 2024-02-30", "2024-01-01T10:00:00.123456789+0530"]
FORMATTED = [
    "31/12/2024 23:59",
    "1/2/2024 3:04",
    "2024-01-02 12:00:00.25 am",
    "2024-01-02 12:00:00 PM",
    "03 Mar 69",
    "x",
]
FORMATTED += ["31/02/2024 10:00", "2024-01-02T03:04:05+0130", "2024-01-02T03:04:05-01:30", "4 Xyz 70", "03 Mar 69"]
TEXTS += ["soon", "", None, "2024-01-01T25:00:00", "1969-12-31T23:59:59.5-01:00", "2024-01-01T10:00:00+02"]


def reasons(query, rows, name="s"):
    """What the query itself says about bad rows."""
    run = query.run().push(name, rows)
    return Counter(run.bad_rows()["reason"].to_list() if run.counts["rows_bad"] else [])


# -- admission ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (pl.Int64(), [1, None, 2**62, -(2**62), 2**62 - 1]),
        (pl.UInt64(), [1, None, 2**64 - 1]),
        (pl.Date(), [0, None, 2**30, -(2**30) + 1]),
        (pl.Datetime("us", "UTC"), [0, None, 2**62, -(2**62) + 1]),
    ],
)
def test_the_oracle_and_a_run_find_the_same_rows_bad_for_the_same_reasons(dtype, values):
    frame = pl.DataFrame({"t": pl.Series(values, dtype=pl.Int128).cast(dtype if dtype.is_integer() else pl.Int64)})
    frame = frame.cast({"t": pl.Int32}).cast({"t": dtype}) if dtype == pl.Date else frame.cast({"t": dtype})
    query = wr.stream(frame, "t", name="s").select("t")
    assert bad_rows(query) == reasons(query, frame)
    assert sum(bad_rows(query).values()) + oracle(query).height == len(values)


def test_texts_are_read_one_by_one():
    rows = [{"t": text, "x": i} for i, text in enumerate(TEXTS)]
    query = wr.stream(rows, "t", parse="iso8601", name="s").select("t", "x")
    assert bad_rows(query) == reasons(query, rows)
    assert oracle(query).rows() == query.collect().rows()


@pytest.mark.parametrize("parse", ["%d/%m/%Y %H:%M", "%Y-%m-%d %I:%M:%S%.f %p", "%d %b %y", "%FT%T%z"])
@pytest.mark.parametrize(
    "text",
    FORMATTED,
)
def test_formats_are_read_as_a_query_reads_them(parse, text):
    rows = [{"t": text}, {"t": None}]
    found = wr.stream(pl.DataFrame(rows, schema={"t": pl.String()}), "t", parse=parse).select("t").collect()
    value = read(text, parse)
    assert found["t"].to_physical().to_list() == ([] if value is None else [value])


def test_a_format_that_the_oracle_does_not_know_is_refused():
    with pytest.raises(QueryError, match="%j"):
        read("2024 60", "%Y %j")


def test_rows_ahead_of_their_arrival_are_bad():
    rows = [{"t": 10, "a": 5}, {"t": 11, "a": None}, {"t": 30, "a": 5}, {"t": None, "a": 5}]
    query = wr.stream(rows, "t", slack=0, arrival="a", ahead=5, name="s").select("t")
    assert oracle(query).rows() == [(10,)]
    assert bad_rows(query) == reasons(query, rows)
    assert len(bad_rows(query)) == 3


def test_markers_are_no_rows_and_those_that_say_nothing_are_bad():
    schema = {"t": pl.Int64(), "k": pl.String(), "j": pl.Int64(), "m": pl.Int64()}
    rows = [
        (1, "a", 1, None),
        (None, "a", 1, 5),
        (None, "a", None, 6),
        (None, None, None, 2**62),
        (None, None, 1, None),
    ]
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    query = wr.stream(frame, "t", punctuation="m", punctuation_by=["k", "j"], name="s").select("t", "k")
    assert oracle(query).rows() == [(1, "a")]
    assert bad_rows(query) == reasons(query, frame)
    assert sorted(bad_rows(query).values()) == [1, 1, 1]


def test_a_window_that_counts_by_row_numbers_needs_them():
    rows = [{"t": 1, "n": 0}, {"t": 2, "n": None}, {"t": 3, "n": 1}]
    every, second = (
        wr.stream(rows, "t", row_num="n", name="s").each_row(5, n, by="row_num").agg(c=wr.count()) for n in (1, 2)
    )
    assert bad_rows(second) == {"the row number n is NULL": 1} == reasons(second, rows)
    assert oracle(second).rows() == second.collect().rows()
    assert not bad_rows(every)
    assert sorted(oracle(every)["c"]) == [1, 2, 3]


# -- nodes -------------------------------------------------------------------------------------------------------------
LEFT = [{"a": t, "k": k} for t, k in ((0, 1), (5, 1), (10, 2), (20, None))]
RIGHT = [{"b": t, "j": j, "x": t} for t, j in ((3, 1.0), (5, 1.0), (9, 1.0), (10, 2.0), (20, None))]


def test_a_function_that_fails_makes_a_row_bad_and_an_expression_stops_the_query():
    rows = [{"t": t} for t in range(3)]
    s = wr.stream(rows, "t", name="s")
    query = s.apply(y=wr.udf(lambda t: 6 // t, "BIGINT", "t"))
    assert oracle(query).rows() == [(1, 6), (2, 3)]
    assert bad_rows(query) == reasons(query, rows)
    with pytest.raises(ResultError):
        oracle(s.select("t", y="6 DIV t"))


def test_a_row_without_a_new_progress_value_is_bad():
    rows = [{"t": t} for t in (2**60, 5, -(2**60))]
    query = wr.stream(rows, "t", name="s").select(at="t * 4")
    assert oracle(query).rows() == [(20,)]
    assert bad_rows(query) == reasons(query, rows)


def test_an_order_has_null_first_and_last_where_it_descends():
    rows = [{"t": 1, "x": x} for x in (2.0, None, float("nan"), -1.0)]
    found = [
        [str(x) for x in oracle(wr.sql(f"SELECT * FROM s ORDER BY t, x {how}", s=wr.stream(rows, "t")))["x"]]
        for how in ("", "DESC")
    ]
    assert found == [["None", "-1.0", "2.0", "nan"], ["nan", "2.0", "-1.0", "None"]]


def test_a_sum_beyond_64_bits_stops_the_oracle_as_it_stops_the_query():
    rows = [{"t": 0, "x": 2**62}, {"t": 1, "x": 2**62}]
    query = wr.stream(rows, "t").window(5).agg(s=wr.sum("x"))
    for run in (oracle, Stream.collect):
        with pytest.raises(ResultError):
            run(query)


# -- the clock ---------------------------------------------------------------------------------------------------------
ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Casablanca"]


@settings(deadline=None, derandomize=True, max_examples=150)
@given(st.sampled_from(ZONES), st.datetimes(dt.datetime(1980, 1, 1), dt.datetime(2037, 1, 1)))
def test_both_clocks_show_the_same(zone, at):
    micros = (at - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    assert clock.shown(micros, zone) == shown(micros, zone)
    assert clock.least_shown(micros, zone) == wall_promise(micros, zone)
    assert clock.first_shown(micros, zone) == from_wall_clock(pl.Series([micros]), zone).to_physical()[0]


@pytest.mark.parametrize("hour", range(5))
def test_both_clocks_agree_around_a_change(hour):
    for day in (dt.datetime(2024, 3, 31), dt.datetime(2024, 10, 27)):
        wall = (day + dt.timedelta(hours=hour, minutes=30) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
        again = from_wall_clock(pl.Series([wall]), "Europe/Berlin").to_physical()[0]
        assert clock.first_shown(wall, "Europe/Berlin") == again
        assert clock.least_shown(wall, "Europe/Berlin") == wall_promise(wall, "Europe/Berlin")
