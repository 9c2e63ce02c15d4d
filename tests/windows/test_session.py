"""Session windows: maximal runs of a key's tuples whose neighbours are less than the gap apart."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.windows import Session, Tuple

CHECK = settings(deadline=None, derandomize=True, max_examples=50)
KEYS = ["x", "y", None]


@st.composite
def streams(draw):
    size = draw(st.integers(0, 14))
    return [Tuple(draw(st.integers(-30, 30)), i, draw(st.sampled_from(KEYS))) for i in range(size)]


GAPS = st.integers(1, 12)


def same_session(gap, t, u, tuples):
    """The definition: same key, and no two neighbours between them are the gap or more apart."""
    if t.p != u.p:
        return False
    low, high = sorted((t.a, u.a))
    run = sorted(v.a for v in tuples if v.p == t.p and low <= v.a <= high)
    return all(b - a < gap for a, b in pairwise(run))


@CHECK
@given(GAPS, streams())
def test_a_tuple_is_in_the_extent_of_exactly_its_wids(gap, tuples):
    window = Session(gap)
    for t in tuples:
        for w in window.windows(tuples):
            assert (t in window.extent(w, tuples)) == (w in window.wids(t, tuples))


@CHECK
@given(GAPS, streams())
def test_a_session_is_a_maximal_run_named_by_its_key_and_first_value(gap, tuples):
    window = Session(gap)
    for t in tuples:
        members = {u for u in tuples if same_session(gap, t, u, tuples)}
        (w,) = window.wids(t, tuples)
        assert w == (t.p, min(u.a for u in members))
        assert set(window.extent(w, tuples)) == members


@CHECK
@given(GAPS, streams())
def test_sessions_of_a_key_do_not_overlap(gap, tuples):
    window = Session(gap)
    spans = sorted(
        (repr(key), first, max(t.a for t in window.extent((key, first), tuples)) + gap)
        for key, first in window.windows(tuples)
    )
    for (key, _, end), (next_key, start, _) in pairwise(spans):
        assert key != next_key or end <= start


@CHECK
@given(GAPS, streams())
def test_vectorised_starts_equal_the_scalar_ones(gap, tuples):
    a = np.array([t.a for t in tuples], np.int64)
    codes = np.array([KEYS.index(t.p) for t in tuples], np.int64)
    starts = Session(gap).starts_array(a, codes)
    assert [{(t.p, s)} for t, s in zip(tuples, starts.tolist(), strict=True)] == [
        Session(gap).wids(t, tuples) for t in tuples
    ]


@CHECK
@given(GAPS, streams(), st.randoms(use_true_random=False))
def test_the_order_of_arrival_means_nothing(gap, tuples, random):
    shuffled = random.sample(tuples, len(tuples))
    assert Session(gap).windows(shuffled) == Session(gap).windows(tuples)


def test_a_distance_of_exactly_the_gap_starts_a_new_session():
    assert Session(5).windows([Tuple(-5), Tuple(-1), Tuple(3)]) == {(None, -5)}
    assert Session(5).windows([Tuple(-5), Tuple(0)]) == {(None, -5), (None, 0)}


def test_a_window_that_is_no_session_holds_nothing():
    assert Session(5).extent(("x", 1), [Tuple(0, 0, "x")]) == []


@pytest.mark.parametrize("gap", [0, -3])
def test_a_gap_that_is_not_positive_is_refused(gap):
    with pytest.raises(ValueError, match="GAP must be positive"):
        Session(gap)
