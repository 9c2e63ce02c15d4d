"""Landmark windows: all tuples from the beginning; a tuple is in every window from its first on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.windows import Landmark, Tuple

CHECK = settings(deadline=None, derandomize=True, max_examples=50)
WINDOWS = st.builds(Landmark, slide=st.integers(1, 30), origin=st.integers(-40, 40))
TIMES = st.integers(-200, 200)


@CHECK
@given(WINDOWS, TIMES, st.integers(-250, 250))
def test_a_tuple_is_in_the_extent_of_exactly_its_wids(window, a, w):
    t = Tuple(a)
    assert (t in window.extent(w, [t])) == (w in window.wids(t))


@CHECK
@given(WINDOWS, TIMES)
def test_the_first_window_of_a_tuple_is_the_one_whose_slide_it_lies_in(window, a):
    first = window.wids(Tuple(a))[0]
    assert window.end(first) - window.slide <= a < window.end(first)


@CHECK
@given(WINDOWS, st.lists(TIMES, max_size=12), st.integers(-50, 50))
def test_every_window_holds_all_of_the_one_before(window, times, w):
    tuples = [Tuple(a, i) for i, a in enumerate(times)]
    assert set(window.extent(w, tuples)) <= set(window.extent(w + 1, tuples))


@CHECK
@given(WINDOWS, st.lists(TIMES, max_size=12), st.integers(-50, 50))
def test_vectorised_functions_equal_the_scalar_ones(window, times, w):
    a = np.array(times, np.int64)
    tuples = [Tuple(t, i) for i, t in enumerate(times)]
    first, last = window.wids_array(a)
    assert [range(f, e) for f, e in zip(first, last, strict=True)] == [window.wids(t) for t in tuples]
    mask = window.extent_mask(w, a)
    assert [t for t, inside in zip(tuples, mask, strict=True) if inside] == window.extent(w, tuples)


@CHECK
@given(WINDOWS, st.lists(TIMES, min_size=1, max_size=12))
def test_the_windows_that_differ_go_from_the_first_tuple_to_the_last(window, times):
    tuples = [Tuple(a, i) for i, a in enumerate(times)]
    ids = sorted(window.windows(tuples))
    assert ids == list(range(ids[0], ids[-1] + 1))
    assert window.extent(ids[0], tuples)
    assert not window.extent(ids[0] - 1, tuples)
    assert len(window.extent(ids[-1], tuples)) == len(tuples)
    assert len(ids) == 1 or len(window.extent(ids[-1] - 1, tuples)) < len(tuples)


def test_no_tuples_no_windows():
    assert Landmark(5).windows([]) == set()


def test_boundaries_and_negative_times():
    window = Landmark(10)
    edges = [Tuple(-11), Tuple(-1), Tuple(0), Tuple(9), Tuple(10)]
    assert window.extent(-1, edges) == [Tuple(-11), Tuple(-1)]
    assert window.extent(0, edges) == edges[:4]
    assert window.wids(Tuple(-1))[0] == -1
    assert window.wids(Tuple(0))[0] == 0


def test_there_is_no_last_window():
    assert 10**18 in Landmark(1).wids(Tuple(-5))


@pytest.mark.parametrize("slide", [0, -1])
def test_a_slide_that_is_not_positive_is_refused(slide):
    with pytest.raises(ValueError, match="SLIDE must be positive"):
        Landmark(slide)
