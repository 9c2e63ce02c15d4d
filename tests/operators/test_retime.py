"""Retime: progress on an expression of the progressing attribute that never gives less for more."""

import datetime as dt

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.logical.expressions import dtype_of, parse, translate
from windrow.logical.monotone import monotone
from windrow.operators import Retime
from windrow.progress import END, Punctuation
from windrow.testing import replay

CHECK = settings(deadline=None, derandomize=True, max_examples=60)
INTEGERS = [
    "t + 5",
    "5 + t",
    "t - 3",
    "t * 2",
    "3 * t",
    "t div 7",
    "(t div 10) * 10 - 1",
    "CAST(t AS BIGINT)",
    "floor(t)",
]
TIMES = [
    "ts + INTERVAL 5 MINUTES",
    "ts - INTERVAL 1 DAY",
    "date_trunc('hour', ts)",
    "CAST(ts AS DATE)",
    "date_trunc('week', ts + INTERVAL 2 HOURS)",
]
REFUSED = ["5 - t", "-t", "t * 0", "t * -2", "t % 5", "t + x", "abs(t)", "CAST(t AS STRING)", "t div x", "x", "t * t"]


@pytest.mark.parametrize("text", INTEGERS)
@CHECK
@given(st.integers(-100, 100), st.integers(0, 50))
def test_expressions_that_count_as_monotone_are(text, value, more):
    assert monotone(parse(text), "t")
    frame = pl.DataFrame({"t": [value, value + more]})
    low, high = frame.select(translate(parse(text), {"t": pl.Int64()}).alias("y"))["y"]
    assert low <= high


@pytest.mark.parametrize("text", TIMES)
@CHECK
@given(st.datetimes(dt.datetime(1990, 1, 1), dt.datetime(2040, 1, 1)), st.integers(0, 10**12))
def test_expressions_of_time_that_count_as_monotone_are(text, value, more):
    assert monotone(parse(text), "ts")
    stamps = pl.Series("ts", [value, value + dt.timedelta(microseconds=more)], dtype=pl.Datetime("us", "UTC"))
    low, high = stamps.to_frame().select(translate(parse(text), {"ts": stamps.dtype}).alias("y"))["y"]
    assert low <= high


def test_a_promise_for_which_the_expression_has_no_value_says_nothing():
    """It would otherwise stop a query none of whose rows overflows (issue 11)."""
    tree, schema = parse("t * 9"), {"t": pl.Int64()}
    retime = Retime("t", pl.Int64(), translate(tree, schema), dtype_of(tree, schema))
    assert retime.on_punctuation(0, Punctuation(-(2**61))) == []
    assert retime.on_punctuation(0, Punctuation(7)) == [Punctuation(63)]


@pytest.mark.parametrize("text", REFUSED)
def test_other_expressions_do_not_count(text):
    assert not monotone(parse(text), "t")


@pytest.mark.parametrize("text", INTEGERS)
@CHECK
@given(st.lists(st.integers(-50, 50), max_size=6))
def test_promises_are_those_of_the_expression_and_none_comes_twice(text, promises):
    tree, schema = parse(text), {"t": pl.Int64()}
    retime = Retime("t", pl.Int64(), translate(tree, schema), dtype_of(tree, schema))
    told = []
    for value in sorted(promises):
        told += [p.value for p in retime.on_punctuation(0, Punctuation(value))]
        at = retime.on_batch(0, pl.DataFrame({"t": [value], "@t": [value]}))[0]["@t"][0]
        assert told[-1] == at, "a row at the promised value lies exactly at what is promised for it"
    assert told == sorted(set(told))
    assert retime.on_punctuation(0, Punctuation(END)) == [Punctuation(END)]


ROWS = st.lists(st.fixed_dictionaries({"t": st.integers(0, 60), "x": st.integers(0, 2)}), max_size=25)


@settings(deadline=None, derandomize=True, max_examples=12)
@given(ROWS, st.integers(0, 99))
def test_windows_over_a_computed_attribute_give_what_they_mean(rows, seed):
    s = wr.stream(pl.DataFrame(rows, schema={"t": pl.Int64, "x": pl.Int64}), "t", slack=5, name="s")
    query = "SELECT x, count(*) AS n FROM (SELECT t div 10 AS m, x FROM s) [RANGE 3, SLIDE 1, WA m] GROUP BY x"
    replay(wr.sql(query, s=s), runs=2, seed=seed)
    replay(wr.sql("SELECT DISTINCT (t div 10) * 10 AS m, x FROM s ORDER BY m, x", s=s), runs=2, seed=seed)


def test_the_attribute_itself_goes_first():
    s = wr.stream([{"t": 7}], "t")
    assert s.select(m="t div 10", t="t").node.progress == "t"
    assert s.select(m="t div 10").node.progress == "m"
    assert s.select(m="-t").node.progress is None


def test_a_row_whose_expression_is_null_is_bad():
    retime = Retime("t", pl.Int64(), pl.when(pl.col("t") != 2).then(pl.col("t")), pl.Int64())
    good, bad = retime.on_batch(0, pl.DataFrame({"t": [1, 2], "@t": [1, 2]}))
    assert good["@t"].to_list() == [1]
    assert bad.rows.rows() == [(2, "the progress value is NULL")]
