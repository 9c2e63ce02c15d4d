"""Bucket tags rows with their window ids, and translates promises on values into promises on ids."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.operators import Bucket, Panes
from windrow.operators.windows.bucket import FIRST, LAST, on_window_ids
from windrow.progress import END, Punctuation
from windrow.windows import Sliding, Tuple

CHECK = settings(deadline=None, derandomize=True, max_examples=60)
WINDOWS = st.builds(Sliding, range=st.integers(1, 20), slide=st.integers(1, 25), origin=st.integers(-5, 5))
TIMES = st.integers(-60, 60)


@CHECK
@given(WINDOWS, st.lists(TIMES, max_size=8))
def test_every_row_gets_the_range_of_its_wids_and_keeps_its_columns(window, times):
    frame = pl.DataFrame({"@t": times, "x": times}, schema={"@t": pl.Int64, "x": pl.Int64})
    (tagged,) = Bucket(window).on_batch(0, frame)
    assert tagged.select("@t", "x").equals(frame)
    assert tagged.schema[FIRST] == tagged.schema[LAST] == pl.Int64
    found = [range(first, last) for first, last in tagged.select(FIRST, LAST).rows()]
    assert found == [window.wids(Tuple(t)) for t in times]


@CHECK
@given(WINDOWS, TIMES)
def test_a_promise_on_values_becomes_the_strongest_that_is_true_on_ids(window, value):
    (promise,) = Bucket(window).on_punctuation(0, Punctuation(value))
    later = [w for a in range(value, value + 2 * window.slide + window.range) for w in window.wids(Tuple(a))]
    assert min(later) >= promise.value
    assert window.end(promise.value - 1) <= value < window.end(promise.value)


@CHECK
@given(WINDOWS, TIMES, TIMES)
def test_promises_on_ids_are_monotonic(window, a, b):
    low, high = (on_window_ids(window, Punctuation(v)).value for v in sorted((a, b)))
    assert low <= high


def test_the_end_stays_the_end_and_the_group_stays():
    window = Sliding(10, 5)
    assert Bucket(window).on_punctuation(0, Punctuation(END)) == [Punctuation(END)]
    assert Bucket(window).on_punctuation(0, Punctuation(END, "a")) == [Punctuation(END, "a")]
    assert Bucket(window).on_punctuation(0, Punctuation(12, ("a", None))) == [Punctuation(2, ("a", None))]


def test_panes_speak_of_the_same_ids():
    window = Sliding(10, 4)
    assert Panes(window, [], None).on_punctuation(0, Punctuation(9, "a")) == [Punctuation(2, "a")]


def test_nothing_is_remembered():
    bucket = Bucket(Sliding(10, 5))
    bucket.on_batch(0, pl.DataFrame({"@t": [1]}))
    assert (bucket.snapshot(), bucket.changes(), bucket.state_bytes(), bucket.waits_for()) == ({}, {}, 0, [])
