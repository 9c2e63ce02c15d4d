"""Partitioned row windows: sliding windows over the rank of a tuple inside its partition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.windows import Partitioned, Sliding, Tuple
from windrow.windows.partitioned import rank_array

CHECK = settings(deadline=None, derandomize=True, max_examples=40)
WINDOWS = st.builds(Partitioned, range=st.integers(1, 8), slide=st.integers(1, 8))
PARTITIONS = ["x", "y", None]


@st.composite
def streams(draw):
    """Tuples with distinct row numbers (not contiguous), in any order."""
    row_nums = draw(st.lists(st.integers(0, 100), unique=True, max_size=15))
    return [Tuple(draw(st.integers(-9, 9)), n, draw(st.sampled_from(PARTITIONS))) for n in row_nums]


def ranks(tuples):
    """The definition: how many tuples of the same partition arrived before."""
    return {t: sum(u.p == t.p and u.row_num < t.row_num for u in tuples) for t in tuples}


@CHECK
@given(WINDOWS, streams())
def test_a_tuple_is_in_the_extent_of_exactly_its_wids(window, tuples):
    for t in tuples:
        for w in [(n, p) for n in range(-9, 25) for p in PARTITIONS]:
            assert (t in window.extent(w, tuples)) == (w in window.wids(t, tuples))


@CHECK
@given(WINDOWS, streams())
def test_the_extent_is_a_sliding_window_over_the_rank(window, tuples):
    over, rank = Sliding(window.range, window.slide), ranks(tuples)
    for w in window.windows(tuples):
        number, p = w
        expected = {t for t in tuples if t.p == p and over.start(number) <= rank[t] < over.end(number)}
        assert set(window.extent(w, tuples)) == expected != set()


@CHECK
@given(WINDOWS, streams())
def test_windows_are_those_with_a_tuple_in_their_extent(window, tuples):
    candidates = {(n, p) for n in range(-9, 25) for p in PARTITIONS}
    assert window.windows(tuples) == {w for w in candidates if window.extent(w, tuples)}


@CHECK
@given(WINDOWS, streams(), st.randoms(use_true_random=False))
def test_the_order_in_which_tuples_are_listed_means_nothing(window, tuples, random):
    shuffled = random.sample(tuples, len(tuples))
    assert window.windows(shuffled) == window.windows(tuples)
    assert all(window.wids(t, shuffled) == window.wids(t, tuples) for t in tuples)


@CHECK
@given(WINDOWS, streams())
def test_vectorised_functions_equal_the_scalar_ones(window, tuples):
    row_num = np.array([t.row_num for t in tuples], np.int64)
    codes = np.array([PARTITIONS.index(t.p) for t in tuples], np.int64)
    rank = ranks(tuples)
    assert rank_array(row_num, codes).tolist() == [rank[t] for t in tuples]
    first, last = window.wids_array(row_num, codes)
    found = [{(w, t.p) for w in range(f, e)} for t, f, e in zip(tuples, first, last, strict=True)]
    assert found == [window.wids(t, tuples) for t in tuples]


def test_each_partition_advances_by_its_own_rows():
    rows = [Tuple(0, 0, "x"), Tuple(0, 1, "y"), Tuple(0, 2, "x"), Tuple(0, 3, "x"), Tuple(0, 4, "y")]
    window = Partitioned(2, 1)
    assert [t.row_num for t in window.extent((2, "x"), rows)] == [2, 3]
    assert [t.row_num for t in window.extent((1, "y"), rows)] == [1, 4]
    assert window.extent((9, "y"), rows) == []


@pytest.mark.parametrize(
    ("range", "slide", "said"), [(0, 1, "RANGE"), (-1, 1, "RANGE"), (1, 0, "SLIDE"), (1, -5, "SLIDE")]
)
def test_lengths_that_are_not_positive_are_refused(range, slide, said):
    with pytest.raises(ValueError, match=f"{said} must be positive"):
        Partitioned(range, slide)
