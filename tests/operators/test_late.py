"""Lateness: who is late by the definition of each window type, and what each policy does and counts."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.aggregates import ROWS
from windrow.errors import LateError
from windrow.operators import Options
from windrow.operators.state.late import Lateness, Spans, on_time
from windrow.progress import END, START
from windrow.spec.time import Bounds
from windrow.windows import Landmark, Partitioned, Session, SlideByTuple, Sliding, Tuple

CHECK = settings(deadline=None, derandomize=True, max_examples=150)
LENGTHS = st.integers(1, 12)
TIMES = st.lists(st.integers(-30, 30), min_size=1, max_size=12)
PROMISES = st.one_of(st.integers(-35, 35), st.sampled_from([START, END]))


def lateness(window, kept=0, **options):
    return Lateness(window, Options(**options), Bounds(pl.Int64()), ("k",), kept)


def spans(window, times, promise):
    at = np.array(times, np.int64)
    return Spans(*window.numbers_array(at), window.released_array(np.full(len(at), promise)))


# -- who is late -------------------------------------------------------------------------------------------------------
@CHECK
@given(st.builds(Sliding, LENGTHS, LENGTHS, st.integers(-5, 5)), TIMES, PROMISES)
def test_a_row_of_sliding_windows_is_late_if_one_of_them_is_released(window, times, promise):
    ends = [[window.end(w) for w in window.wids(Tuple(t))] for t in times]
    found = spans(window, times, promise)
    late = lateness(window).late_for(found)
    assert late.tolist() == [any(end <= promise for end in each) for each in ends]
    consistent, generous = lateness(window), lateness(window, generous=True)
    for i, each in enumerate(ends):
        if not each:
            continue  # in a gap: neither late nor kept
        released = sum(end <= promise for end in each)
        assert consistent.open_for(found)[i] == (released == 0)
        assert generous.open_for(found)[i] == (released < len(each))
        if released:
            assert consistent.missed(found)[i] == len(each)
            assert generous.missed(found)[i] == released


@CHECK
@given(st.builds(Landmark, LENGTHS, st.integers(-5, 5)), TIMES, st.integers(-35, 35))
def test_a_row_of_landmark_windows_misses_those_that_are_released(window, times, promise):
    found = spans(window, times, promise)
    firsts = [window.wids(Tuple(t))[0] for t in times]
    released = [sum(window.end(w) <= promise for w in range(first, first + 80)) for first in firsts]
    late = lateness(window).late_for(found)
    assert late.tolist() == [n > 0 for n in released]
    assert lateness(window).missed(found)[late].tolist() == [n for n in released if n]
    assert lateness(window, generous=True).open_for(found).all(), "there is always a later window"


@CHECK
@given(st.sampled_from([SlideByTuple(5), Session(4), Partitioned(3, 2)]), TIMES, PROMISES)
def test_where_windows_depend_on_rows_a_row_is_late_if_it_breaks_a_promise(window, times, promise):
    found = spans(window, times, promise)
    late = lateness(window).late_for(found)
    assert late.tolist() == [t < promise for t in times]
    assert (lateness(window).open_for(found) == ~late).all()
    assert lateness(window).missed(found).tolist() == [1] * len(times)
    reach = window.range - 1 if isinstance(window, SlideByTuple) else 0
    assert lateness(window, generous=True).open_for(found).tolist() == [t + reach >= promise for t in times]


# -- what happens to them ----------------------------------------------------------------------------------------------
TUMBLING = Sliding(5, 5)
PARTIALS = pl.DataFrame({"k": ["a", "a", "b"], ROWS: [2, 3, 4], "@first": [0, 4, 2], "@last": [1, 5, 3]})


def sifted(rows=PARTIALS, closed=3, **options):
    found = lateness(TUMBLING, **options)
    return found.sift(rows, Spans(rows["@first"].to_numpy(), rows["@last"].to_numpy(), np.int64(closed)))


def test_drop_leaves_late_rows_out_and_counts_them():
    kept, [side] = sifted(late="drop")
    assert kept[ROWS].to_list() == [3]
    assert (side.kind, side.count) == ("late", 6)
    assert side.rows.rows() == [("a", 0, 5, 1, None, 2), ("b", 10, 15, 1, None, 4)]


def test_rows_of_the_same_group_and_window_are_one_record():
    rows = pl.DataFrame({"k": ["a", "a", "b"], "@first": [0, 0, 4], "@last": [1, 1, 5]})
    kept, [side] = sifted(rows, late="drop")
    assert (kept["k"].to_list(), side.count, side.rows.rows()) == (["b"], 2, [("a", 0, 5, 1, None, 2)])


def test_nobody_late_costs_nothing():
    kept, items = sifted(closed=0, late="error")
    assert kept is PARTIALS
    assert items == []


def test_side_counts_nothing_because_the_gate_did():
    kept, items = sifted(late="side")
    assert (kept[ROWS].to_list(), items) == ([3], [])


def test_error_names_the_first_group_and_window():
    with pytest.raises(LateError, match=r"6 late rows, the first of \{'k': 'a'\} in the released window \[0, 5\)"):
        sifted(late="error")
    ends = lateness(Landmark(5), late="error")
    with pytest.raises(LateError, match="in the released window that ends at 5"):
        ends.sift(PARTIALS, Spans(np.zeros(3, np.int64), np.full(3, 9), np.int64(1)))


def test_revise_takes_rows_while_their_windows_are_kept():
    kept, items = sifted(late="revise", kept=1)
    assert kept[ROWS].to_list() == [3, 4], "window 2 is kept, window 0 no longer"
    assert [(side.kind, side.count) for side in items] == [("late", 2), ("late", 4), ("revised", 4)]


def test_only_revise_keeps_released_windows():
    assert lateness(TUMBLING, late="drop", kept=7).kept == 0


def test_operators_that_keep_rows_take_none_below_the_promise():
    rows = pl.DataFrame({"@t": [4, 5, 3], "x": [1, 2, 3], "@times": [2, 1, 1]})
    kept, [side] = on_time(rows, 5, "drop")
    assert kept["x"].to_list() == [2]
    assert (side.count, side.rows.rows()) == (3, [(1, 1, 2), (3, 2, 1)])
    assert on_time(rows, 3, "error")[1] == []
    with pytest.raises(LateError, match="no more would come below 5, the first is 1 late: "):
        on_time(rows, 5, "error")
