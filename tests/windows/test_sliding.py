"""Sliding windows: extent is the definition, wids is its inverse, the vectorised functions say the same."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.windows import Sliding, Tuple

CHECK = settings(deadline=None, derandomize=True, max_examples=50)
WINDOWS = st.builds(Sliding, range=st.integers(1, 30), slide=st.integers(1, 30), origin=st.integers(-40, 40))
TIMES = st.integers(-200, 200)


def around(window, a):
    """Window ids from well before to well after any that can hold ``a``."""
    middle = (a - window.origin) // window.slide
    reach = window.range // window.slide + 3
    return range(middle - reach, middle + reach + 1)


@CHECK
@given(WINDOWS, TIMES)
def test_a_tuple_is_in_the_extent_of_exactly_its_wids(window, a):
    t = Tuple(a)
    for w in around(window, a):
        assert (t in window.extent(w, [t])) == (w in window.wids(t))


@CHECK
@given(WINDOWS, TIMES)
def test_wids_are_a_run_whose_first_and_last_window_hold_the_tuple_and_their_neighbours_do_not(window, a):
    t = Tuple(a)
    ids = list(window.wids(t))
    if ids:
        assert window.extent(ids[0], [t]) == window.extent(ids[-1], [t]) == [t]
        assert window.extent(ids[0] - 1, [t]) == window.extent(ids[-1] + 1, [t]) == []


@CHECK
@given(WINDOWS, st.lists(TIMES, max_size=12))
def test_windows_are_those_with_a_tuple_in_their_extent(window, times):
    tuples = [Tuple(a, i) for i, a in enumerate(times)]
    candidates = {w for a in times for w in around(window, a)}
    assert window.windows(tuples) == {w for w in candidates if window.extent(w, tuples)}


@CHECK
@given(WINDOWS, st.lists(TIMES, max_size=12))
def test_vectorised_functions_equal_the_scalar_ones(window, times):
    a = np.array(times, np.int64)
    tuples = [Tuple(t, i) for i, t in enumerate(times)]
    first, last = window.wids_array(a)
    assert [range(f, e) for f, e in zip(first, last, strict=True)] == [window.wids(t) for t in tuples]
    for w in {w for t in times for w in around(window, t)}:
        mask = window.extent_mask(w, a)
        assert [t for t, inside in zip(tuples, mask, strict=True) if inside] == window.extent(w, tuples)


@CHECK
@given(WINDOWS, st.integers(-10, 10))
def test_a_window_holds_its_start_and_not_its_end(window, w):
    start, end = window.start(w), window.end(w)
    assert end - start == window.range
    assert window.end(w + 1) - end == window.slide
    edges = [Tuple(start - 1), Tuple(start), Tuple(end - 1), Tuple(end)]
    assert window.extent(w, edges) == [Tuple(start), Tuple(end - 1)]


@CHECK
@given(WINDOWS, TIMES)
def test_exactly_the_windows_that_end_by_the_promise_are_closed(window, promise):
    for w in around(window, promise):
        assert (w < window.closed_below(promise)) == (window.end(w) <= promise)


@CHECK
@given(WINDOWS, TIMES)
def test_tuples_of_one_pane_are_in_the_same_windows(window, a):
    pane = int(window.panes_array(np.array([a]))[0])
    begin = window.origin + pane * window.pane
    assert begin <= a < begin + window.pane
    assert window.range % window.pane == window.slide % window.pane == 0
    assert {tuple(window.wids(Tuple(x))) for x in range(begin, begin + window.pane)} == {tuple(window.wids(Tuple(a)))}


@CHECK
@given(WINDOWS)
def test_no_longer_pane_would_do(window):
    """A pane may have no window edge inside, so its length divides the distance of every edge from the origin."""
    edges = [edge - window.origin for w in range(-40, 40) for edge in (window.start(w), window.end(w))]
    assert window.pane == math.gcd(*edges)


def test_the_example_of_the_thesis():
    ten = 36_000
    assert list(Sliding(600, 60, ten).wids(Tuple(ten + 5))) == list(range(10))


def test_negative_times_lie_in_windows_with_negative_ids():
    window = Sliding(10, 10)
    assert list(window.wids(Tuple(-1))) == [-1]
    assert list(window.wids(Tuple(-10))) == [-1]
    assert list(window.wids(Tuple(-11))) == [-2]
    assert window.extent(-1, [Tuple(-11), Tuple(-10), Tuple(-1), Tuple(0)]) == [Tuple(-10), Tuple(-1)]


def test_tumbling_windows_hold_each_tuple_once():
    assert all(len(Sliding(7, 7, 3).wids(Tuple(a))) == 1 for a in range(-30, 30))


def test_between_hopping_windows_lie_gaps():
    window = Sliding(2, 5)
    assert [list(window.wids(Tuple(a))) for a in range(5)] == [[], [], [], [0], [0]]
    assert [bool(f < e) for f, e in zip(*window.wids_array(np.arange(5)), strict=True)] == [False] * 3 + [True] * 2


def test_the_origin_moves_all_windows():
    assert Sliding(10, 5, 3).wids(Tuple(3 + 12)) == Sliding(10, 5).wids(Tuple(12))


@pytest.mark.parametrize(
    ("range", "slide", "said"), [(0, 1, "RANGE"), (-1, 1, "RANGE"), (1, 0, "SLIDE"), (1, -5, "SLIDE")]
)
def test_lengths_that_are_not_positive_are_refused(range, slide, said):
    with pytest.raises(ValueError, match=f"{said} must be positive"):
        Sliding(range, slide)
