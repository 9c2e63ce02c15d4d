"""Slide-by-tuple windows: one window for every n-th tuple, with RANGE over the progressing attribute."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.windows import SlideByTuple, Tuple

CHECK = settings(deadline=None, derandomize=True, max_examples=50)
WINDOWS = st.builds(
    SlideByTuple, range=st.integers(1, 15), slide=st.integers(1, 5), by=st.sampled_from(["row_num", "rank"])
)


@st.composite
def streams(draw):
    """Tuples in arrival order, out of order in ``a``, with ties."""
    times = draw(st.lists(st.integers(-15, 15), max_size=14))
    return [Tuple(a, i) for i, a in enumerate(times)]


def nth(window, tuples):
    """The definition: tuples whose position, from 0, is a multiple of n."""
    order = (lambda t: t.row_num) if window.by == "row_num" else (lambda t: (t.a, t.row_num))
    return [t for i, t in enumerate(sorted(tuples, key=order)) if i % window.slide == 0]


@CHECK
@given(WINDOWS, streams())
def test_a_tuple_is_in_the_extent_of_exactly_its_wids(window, tuples):
    for t in tuples:
        for w in window.windows(tuples):
            assert (t in window.extent(w, tuples)) == (w in window.wids(t, tuples))


@CHECK
@given(WINDOWS, streams())
def test_every_nth_tuple_gives_a_window_that_ends_with_it(window, tuples):
    assert window.windows(tuples) == {t.a for t in nth(window, tuples)}
    for t in nth(window, tuples):
        expected = {u for u in tuples if t.a - window.range < u.a <= t.a}
        assert set(window.extent(t.a, tuples)) == expected
        assert t in expected


@CHECK
@given(WINDOWS, streams())
def test_vectorised_functions_equal_the_scalar_ones(window, tuples):
    a = np.array([t.a for t in tuples], np.int64)
    row_num = np.array([t.row_num for t in tuples], np.int64)
    ids = window.windows_array(a, row_num)
    assert ids.tolist() == sorted(window.windows(tuples))
    first, last = window.wids_array(a, row_num)
    found = [set(ids[f:e].tolist()) for f, e in zip(first, last, strict=True)]
    assert found == [window.wids(t, tuples) for t in tuples]
    for w in ids.tolist():
        mask = window.extent_mask(w, a)
        assert [t for t, inside in zip(tuples, mask, strict=True) if inside] == window.extent(w, tuples)


@CHECK
@given(st.integers(1, 15), st.integers(1, 5), streams(), st.randoms(use_true_random=False))
def test_by_rank_the_order_of_arrival_means_nothing(range, slide, tuples, random):
    window = SlideByTuple(range, slide, by="rank")
    shuffled = [Tuple(t.a, i) for i, t in enumerate(random.sample(tuples, len(tuples)))]
    assert window.windows(shuffled) == window.windows(tuples)


def test_tuples_with_equal_times_are_peers_and_see_each_other():
    peers = [Tuple(5, 0), Tuple(5, 1), Tuple(5, 2)]
    window = SlideByTuple(1)
    assert window.windows(peers) == {5}
    assert window.extent(5, peers) == peers
    assert all(window.wids(t, peers) == {5} for t in peers)


def test_the_range_is_open_at_its_old_end_and_closed_at_the_new_one():
    rows = [Tuple(-5, 0), Tuple(-4, 1), Tuple(0, 2), Tuple(1, 3)]
    assert SlideByTuple(5).extent(0, rows) == [Tuple(-4, 1), Tuple(0, 2)]
    assert SlideByTuple(5).wids(Tuple(-5, 0), rows) == {-5, -4}


@pytest.mark.parametrize(
    ("range", "slide", "said"), [(0, 1, "RANGE"), (-1, 1, "RANGE"), (1, 0, "SLIDE"), (1, -5, "SLIDE")]
)
def test_lengths_that_are_not_positive_are_refused(range, slide, said):
    with pytest.raises(ValueError, match=f"{said} must be positive"):
        SlideByTuple(range, slide)
