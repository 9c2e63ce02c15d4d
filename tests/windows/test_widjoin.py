"""Window joins by window ids: the extents of Eqs. 5.19 to 5.22 give the pairs that the bands say."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.windows import Tuple
from windrow.windows.pairing import SameWindow, Within
from windrow.windows.widjoin import (
    extents_of,
    match_left,
    match_right,
    matched,
    result,
    sliding_extents,
    tumbling_extents,
    widjoin,
)

CHECK = settings(deadline=None, derandomize=True, max_examples=60)
TIMES = st.lists(st.integers(-40, 40), max_size=8)
RANGES = st.integers(1, 30)


def tuples(times):
    return [Tuple(t, i) for i, t in enumerate(times)]


def by_window(left, right, window):
    return {(a, b) for a in left for b in right if window.near(a.a, b.a)}


@CHECK
@given(TIMES, TIMES, RANGES, RANGES)
def test_extents_that_advance_with_every_unit_make_the_pairs_of_the_band(left, right, a, b):
    left, right = tuples(left), tuples(right)
    extents = sliding_extents(a, b)
    found = result(left, right, extents)
    assert found == by_window(left, right, Within(-(b - 1), a - 1))
    assert found == {(x, y) for x in left for y in right if -b < y.a - x.a < a}
    assert found == {(x, y) for x in left for y in right if matched(x, y, extents)}


@CHECK
@given(TIMES, TIMES, RANGES, st.integers(-50, 50))
def test_tumbling_extents_make_the_pairs_of_the_same_window(left, right, length, origin):
    left, right = tuples(left), tuples(right)
    extents = tumbling_extents(length, origin)
    found = result(left, right, extents)
    assert found == by_window(left, right, SameWindow(length, origin))
    assert found == {(x, y) for x in left for y in right if matched(x, y, extents)}


@pytest.mark.parametrize(("a", "b"), [(50, 5), (5, 50), (1, 10), (10, 1), (1, 1)])
def test_the_bounds_of_both_sides_with_ranges_a_factor_of_ten_apart(a, b):
    extents, band = sliding_extents(a, b), Within(-(b - 1), a - 1)
    for distance, joins in ((-b - 1, False), (-b, False), (1 - b, True), (0, True), (a - 1, True), (a, False)):
        left, right = Tuple(1000), Tuple(1000 + distance)
        assert (result([left], [right], extents) != set()) is joins
        assert matched(left, right, extents) is joins
        assert band.near(left.a, right.a) is joins


@CHECK
@given(TIMES, TIMES, RANGES, RANGES)
def test_match_is_widjoin_as_one_tuple_sees_it(left, right, a, b):
    """A tuple matches extent w if it belongs to some extent v with (v, w) in widjoin."""
    left, right = tuples(left), tuples(right)
    mine, others = extents = sliding_extents(a, b)
    every = widjoin(range(-80, 80), range(-80, 80))
    for t in left:
        assert set(match_left(t, extents)) == {w for v, w in every if t in mine.extent(v, [t])}
    for t in right:
        assert set(match_right(t, extents)) == {v for v, w in every if t in others.extent(w, [t])}
    found = result(left, right, extents)
    assert found == {(x, y) for x in left for w in match_left(x, extents) for y in others.extent(w, right)}
    assert found == {(x, y) for y in right for w in match_right(y, extents) for x in mine.extent(w, left)}


def test_a_pair_that_is_in_many_extents_counts_once_and_equal_tuples_are_two():
    left, right = [Tuple(5, 0), Tuple(5, 1)], [Tuple(5, 0), Tuple(6, 1)]
    assert len(result(left, right, sliding_extents(10, 10))) == 4


def test_a_predicate_is_over_the_tuples_of_a_pair():
    left, right = [Tuple(1, 0, "a"), Tuple(2, 1, "b")], [Tuple(1, 0, "b")]
    assert result(left, right, sliding_extents(5, 5), lambda x, y: x.p == y.p) == {(left[1], right[0])}


def test_every_window_of_a_join_has_extents_but_a_band_that_does_not_hold_zero():
    assert extents_of(Within(-2, 3)) == sliding_extents(4, 3)
    assert extents_of(Within(0, 0)) == sliding_extents(1, 1)
    assert extents_of(SameWindow(10, 3)) == tumbling_extents(10, 3)
    assert extents_of(Within(1, 3)) is None
    assert extents_of(Within(-3, -1)) is None


# -- what the thesis prints ----------------------------------------------------------------------------------------
def printed_match(a, length, unit):
    """Eqs. 5.21 and 5.22 as printed: a - 1 < w <= ceil((a + RANGE) / UNIT) - 1."""
    return {w for w in range(-50, 200) if a - 1 < w <= -(-(a + length) // unit) - 1}


def by_extent(a, length, unit):
    """The definition: the windows [RANGE length, SLIDE unit] that hold the tuple."""
    return {w for w in range(-50, 200) if (w + 1) * unit - length <= a < (w + 1) * unit}


def put_right(a, length, unit):
    return set(range(a // unit, (a + length) // unit))


def test_eqs_5_21_and_5_22_are_right_where_the_unit_is_one():
    assert all(printed_match(a, r, 1) == by_extent(a, r, 1) for a in range(30) for r in range(1, 20))


def test_eqs_5_21_and_5_22_divide_only_one_of_the_two_bounds_by_the_unit():
    """Times in seconds, a unit of ten of them: window ids count units, and the lower bound is in seconds."""
    assert by_extent(100, 30, 10) == {10, 11, 12}
    assert printed_match(100, 30, 10) == set()  # 99 < w <= 12
    assert put_right(100, 30, 10) == by_extent(100, 30, 10)


def test_eqs_5_21_and_5_22_print_a_ceiling_that_leaves_the_extent():
    """With the lower bound put right, a tuple between two units still matches a window that begins after it."""
    a, length, unit = 5, 30, 10
    with_ceiling = set(range(a // unit, -(-(a + length) // unit)))
    assert with_ceiling == {0, 1, 2, 3}
    assert by_extent(a, length, unit) == {0, 1, 2}  # window 3 is 10 <= ts < 40


@CHECK
@given(st.integers(0, 80), st.integers(1, 100), st.integers(1, 20))
def test_with_floors_of_both_bounds_match_is_the_definition(a, length, unit):
    assert put_right(a, length, unit) == by_extent(a, length, unit)


def test_5_2_1_includes_a_distance_that_its_window_ids_leave_out():
    """Q5-8: the text says r.ts >= l.ts - 2 minutes; with Eq. 5.20 a tuple of R is held less than 2 minutes."""
    left, right = Tuple(120), Tuple(0)
    printed = right.a >= left.a - 120 and left.a > right.a - 180
    assert printed
    assert result([left], [right], sliding_extents(180, 120)) == set()
