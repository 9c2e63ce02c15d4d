"""Admit: progress values as integers, markers as promises, unreadable rows to the side with the reason."""

import datetime as dt

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.operators import Admit, Side
from windrow.operators.progress.admit import NULL_PROGRESS, UNPARSABLE
from windrow.progress import Punctuation
from windrow.spec.time import physical
from windrow.testing import oracle

UTC = pl.Datetime("us", "UTC")
SECOND = 1_000_000


def micros(text):
    """Microseconds since 1970 of an ISO timestamp in UTC, by Python's own reader."""
    moment = dt.datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


def admit(values, dtype=UTC, parse=None, column=None):
    """The progress values that were read, and the rows put aside as (value, reason)."""
    frame = pl.DataFrame({"t": pl.Series("t", values, column or dtype)})
    kept, *rest = Admit("t", dtype, parse).on_batch(0, frame)
    aside = [row for item in rest for row in item.rows.rows()]
    assert sum(item.count for item in rest) == len(aside)
    assert all(isinstance(item, Side) and item.kind == "bad" for item in rest)
    assert kept.schema == {"t": dtype, "@t": pl.Int64}
    return kept["@t"].to_list(), aside


def read(values, parse):
    return admit(values, UTC, parse, pl.String())


# -- numbers, dates, timestamps --------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [pl.Int64(), pl.Int32(), pl.Int8(), pl.UInt32(), pl.UInt64()])
def test_integers_are_themselves(dtype):
    assert admit([3, 0, 7], dtype) == ([3, 0, 7], [])


def test_null_progress_goes_to_the_side_with_its_row_and_the_rest_stays():
    frame = pl.DataFrame({"t": [3, None, 5], "x": ["a", "b", "c"]})
    kept, side = Admit("t", pl.Int64()).on_batch(0, frame)
    assert kept.rows() == [(3, "a", 3), (5, "c", 5)]
    assert side == Side("bad", 1)
    assert side.rows.rows(named=True) == [{"t": None, "x": "b", "reason": NULL_PROGRESS}]


def test_an_integer_too_far_from_zero_goes_to_the_side():
    far = "the progress value is out of range: it must be between -2^62 and 2^62"
    bad = [2**62, 2**63 - 1, 2**63, 2**64 - 1]
    assert admit([2**62 - 1, *bad], pl.UInt64()) == ([2**62 - 1], [(value, far) for value in bad])
    ends = [-(2**62), -(2**63), 2**62]
    assert admit([1 - 2**62, *ends], pl.Int64()) == ([1 - 2**62], [(value, far) for value in ends])


def test_dates_are_days_since_1970():
    days = [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2020, 2, 29)]
    assert admit(days, pl.Date())[0] == [-1, 0, 18321]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_timestamps_are_microseconds_whatever_their_unit(unit):
    moments = [dt.datetime(1960, 1, 1), dt.datetime(1970, 1, 1), dt.datetime(2020, 1, 1, 0, 0, 0, 5000)]
    values, aside = admit(moments, pl.Datetime(unit))
    assert values == [micros(str(m)) for m in moments]
    assert aside == []


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.lists(st.one_of(st.integers(-5000, 5000), st.integers(-(2**63) + 1, 2**63 - 1)), max_size=6))
def test_nanoseconds_are_floored_before_1970_too(values):
    dtype = pl.Datetime("ns")
    frame = pl.DataFrame({"t": pl.Series(values, dtype=pl.Int64).cast(dtype)})
    assert frame.select(physical(pl.col("t"), dtype)).to_series().to_list() == [v // 1000 for v in values]


def test_an_empty_batch_stays_one():
    assert admit([], pl.Int64()) == ([], [])
    assert read([], "iso8601") == ([], [])


# -- text ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text",
    [
        "2020-01-02T03:04:05Z",
        "2020-01-02T03:04:05+00:00",
        "2020-01-02T03:04:05+02:00",
        "2020-01-02T03:04:05-11:30",
        "2020-01-02T03:04:05.678901Z",
        "2020-01-02T03:04:05",
        "2020-01-02T03:04:05.5",
        "2020-01-02 03:04:05",
        "2020-01-02T03:04",
        "2020-01-02",
        "1969-12-31T23:59:59.999999Z",
        "1969-12-31T23:59:59.999999",
        "1900-01-01T00:00:00",
    ],
)
def test_iso8601_is_read_with_or_without_a_zone_and_means_utc_without(text):
    assert read([text], "iso8601") == ([micros(text)], [])


MIXED = ["2020-01-01T00:00:00", "2020-01-01T00:00:01Z", "2020-01-01T02:00:02+02:00", "2020-01-01T00:00:03.250"]


@pytest.mark.parametrize("turn", range(len(MIXED)))
def test_iso8601_texts_of_several_shapes_may_be_mixed_in_any_order(turn):
    values = MIXED[turn:] + MIXED[:turn]
    assert read(values, "iso8601") == ([micros(v) for v in values], [])


def test_what_a_text_means_does_not_depend_on_the_others_of_its_batch():
    odd = "01/02/2020 10:00:00"  # not ISO 8601
    alone, together = read([odd], "iso8601"), read(["2020-01-01T00:00:00", odd], "iso8601")
    assert alone[1] == together[1] == [(odd, UNPARSABLE)]


def test_nanoseconds_in_text_are_floored():
    texts = ["2020-01-01T00:00:00.123456789Z", "1969-12-31T23:59:59.999999999Z", "1969-12-31T23:59:59.999999999"]
    assert read(texts[:1], "iso8601")[0] == [micros("2020-01-01T00:00:00.123456Z")]
    assert read(texts[1:2], "iso8601")[0] == read(texts[2:], "iso8601")[0] == [-1]


def test_unparsable_text_goes_to_the_side_as_it_was():
    values, aside = read(["yesterday", None, "2020-01-01T00:00:00Z", "2020-02-30T00:00:00Z", ""], "iso8601")
    assert values == [micros("2020-01-01")]
    assert aside == [
        ("yesterday", UNPARSABLE),
        (None, NULL_PROGRESS),
        ("2020-02-30T00:00:00Z", UNPARSABLE),
        ("", UNPARSABLE),
    ]


@pytest.mark.parametrize("values", [["yesterday"], [None], ["yesterday", None]])
def test_a_batch_with_nothing_readable_leaves_no_row(values):
    assert read(values, "iso8601")[0] == read(values, "%Y")[0] == []


@pytest.mark.parametrize(
    ("format", "text", "means"),
    [
        ("%d.%m.%Y %H:%M:%S", "02.01.2020 03:04:05", "2020-01-02T03:04:05"),
        ("%d.%m.%Y", "31.12.1969", "1969-12-31"),
        ("%Y/%m/%d %H:%M:%S%.f", "1969/12/31 23:59:59.5", "1969-12-31T23:59:59.5"),
        ("%Y-%m-%d %H:%M:%S %z", "2020-01-02 03:04:05 +0200", "2020-01-02T01:04:05"),
        ("%Y-%m-%d %H:%M:%S%:z", "2020-01-02 03:04:05-05:00", "2020-01-02T08:04:05"),
    ],
)
def test_strptime_formats(format, text, means):
    values, aside = read([text, "nonsense", None], format)
    assert values == [micros(means)]
    assert aside == [("nonsense", UNPARSABLE), (None, NULL_PROGRESS)]


# -- markers ---------------------------------------------------------------------------------------------------------
def marked(rows, dtype=UTC):
    frame = pl.DataFrame(rows, schema={"t": dtype, "m": dtype, "x": pl.Int64}, orient="row")
    return Admit("t", dtype, marker="m").on_batch(0, frame)


def test_a_marker_becomes_a_promise_after_the_rows_and_is_no_row():
    kept, promise = marked([(1, None, 10), (None, 5, None), (7, None, 20)], pl.Int64())
    assert kept.rows(named=True) == [{"t": 1, "x": 10, "@t": 1}, {"t": 7, "x": 20, "@t": 7}]
    assert promise == Punctuation(5)


def test_the_strongest_of_several_markers_counts_and_their_own_progress_does_not():
    kept, side, promise = marked([(1, 9, 0), (None, -3, 0)], pl.Int64())
    assert kept.height == 0
    assert side == Side("ignored", 1)
    assert promise == Punctuation(9)


def test_no_marker_no_promise():
    assert len(marked([(1, None, 0)], pl.Int64())) == 1


def test_bad_rows_come_beside_markers():
    kept, side, promise = marked([(None, None, 1), (2, None, 2), (None, 1, 3)], pl.Int64())
    assert (kept.height, side.count, promise) == (1, 1, Punctuation(1))
    assert side.rows.rows(named=True) == [{"t": None, "x": 1, "reason": NULL_PROGRESS}]


def test_a_marker_is_in_the_unit_of_the_progress_value_and_may_lie_before_1970():
    moment = dt.datetime(1969, 12, 31, 23, 59, 59)
    assert marked([(None, moment, 0)], pl.Datetime("ms"))[1] == Punctuation(-SECOND)
    assert marked([(None, moment.date(), 0)], pl.Date())[1] == Punctuation(-1)


def test_a_marker_in_nanoseconds_promises_no_more_than_it_says():
    dtype = pl.Datetime("ns")
    frame = pl.DataFrame({"t": pl.Series([None], dtype=dtype), "m": pl.Series([-1], dtype=pl.Int64).cast(dtype)})
    assert Admit("t", dtype, marker="m").on_batch(0, frame)[1] == Punctuation(-1)


def test_promises_pass():
    assert Admit("t", pl.Int64()).on_punctuation(0, Punctuation(5, "a")) == [Punctuation(5, "a")]


# -- windows of rows ---------------------------------------------------------------------------------------------------
def test_windows_of_rows_need_the_row_number_and_not_the_progress_value():
    """Issue 11: a NULL row number was called a NULL progress value, and what a text progress value means was lost."""
    rows = [
        {"t": "2024-01-01 10:00", "n": 0},
        {"t": "soon", "n": 1},
        {"t": None, "n": 2},
        {"t": "2024-01-01", "n": None},
        {"t": None, "n": 2**63 - 1},
    ]
    s = wr.stream(rows, "t", parse="iso8601", row_num="n", name="s")
    query = s.rows(3).agg(n=wr.count(), last=wr.max("t"))
    run = query.run().push("s", rows)
    far = "the row number n is out of range: it must be between -2^62 and 2^62"
    assert run.bad_rows()["reason"].to_list() == ["the row number n is NULL", far]
    found = run.end().results()
    assert found["n"].to_list() == [3]
    assert found["last"].to_list() == [dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)]
    assert found.equals(oracle(query).select(found.columns))
    assert s.window("1 hour").agg(n=wr.count()).run().push("s", rows).counts["rows_bad"] == 3


def test_a_source_partition_or_a_position_that_is_null_is_named():
    rows = [{"t": 1, "p": p, "o": o, "k": "a"} for p, o in ((None, 0), (1, None), (1, 0))]
    s = wr.stream(rows, "t", row_num=("p", "o"), name="s")
    run = s.rows(2, partition_by="k").agg(n=wr.count()).run().push("s", rows)
    assert run.bad_rows()["reason"].to_list() == ["the row number p is NULL", "the row number o is NULL"]
    assert run.end().results()["n"].to_list() == [1]
