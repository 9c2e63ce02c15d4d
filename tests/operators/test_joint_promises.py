"""The promises of a join: each is true, and none could be stronger, by brute force over small times."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.operators.joins.promises import joint
from windrow.progress import END, START
from windrow.windows.pairing import SameWindow, Within

NEAR = range(-40, 41)  # promises are from -6 to 6, and no window is longer than 10
bands = st.builds(lambda low, width: Within(low, low + width), st.integers(-8, 8), st.integers(0, 8))
tumbling = st.builds(SameWindow, st.integers(1, 8), st.integers(-5, 5))
windows = bands | tumbling
times = st.integers(-6, 6) | st.just(END)
SIDES = [(), (0,), (1,), (0, 1)]
TIMES = {
    "left": lambda t, u: t,
    "right": lambda t, u: u,
    "later": lambda t, u: max(x for x in (t, u) if x is not None),
    "earlier": lambda t, u: min(x for x in (t, u) if x is not None),
    "first": lambda t, u: t if t is not None else u,
}


def to_come(window, left, right, unmatched=()):
    """The times of all results that can still come: of pairs with a row to come, and of rows that wait for one."""
    found = [(t, u) for t in NEAR for u in near(window, t) if t >= left or u >= right]
    for side in unmatched:
        own, other = (left, right)[side], (right, left)[side]
        rows = [t for t in NEAR if t >= own or last(window, side, t) >= other]
        found += [(t, None) if side == 0 else (None, t) for t in rows]
    return found


def near(window, time):
    return [u for u in NEAR if window.near(time, u)]


def last(window, side, time):
    return window.partners(side, time)[1]


@settings(deadline=None, max_examples=300)
@given(window=windows, left=times, right=times, unmatched=st.sampled_from(SIDES))
def test_each_promise_is_true_and_none_could_be_stronger(window, left, right, unmatched):
    promised = joint(window, left, right, unmatched)
    coming = to_come(window, left, right, unmatched)
    for name, of in TIMES.items():
        values = [of(t, u) for t, u in coming]
        assert getattr(promised, name) == min((v for v in values if v is not None), default=END), name


def inside(box, t, u):
    return all(bound == END or (x is not None and x < bound) for x, bound in zip((t, u), box, strict=True))


@settings(deadline=None, max_examples=300)
@given(window=windows, left=times, right=times, unmatched=st.sampled_from(SIDES))
def test_no_result_to_come_is_in_a_box_and_every_other_pair_is_in_one(window, left, right, unmatched):
    boxes = joint(window, left, right, unmatched).boxes
    coming = set(to_come(window, left, right, unmatched))
    assert not [pair for pair in coming if any(inside(box, *pair) for box in boxes)]
    finished = {(t, u) for t in NEAR for u in near(window, t)} - coming
    if END in (left, right):  # the times to come are those near the promises, not near the end
        return
    assert all(any(inside(box, *pair) for box in boxes) for pair in finished)


@settings(deadline=None, max_examples=200)
@given(window=windows, left=st.integers(-6, 6), right=st.integers(-6, 6))
def test_no_box_could_be_larger_in_any_direction(window, left, right):
    coming = to_come(window, left, right)
    on_left, on_right, _ = joint(window, left, right).boxes
    assert any(inside((on_left[0] + 1, END), *pair) for pair in coming)
    assert any(inside((END, on_right[1] + 1), *pair) for pair in coming)
    if useful(window, left, right):
        assert any(inside((left + 1, right), *pair) for pair in coming)
        assert any(inside((left, right + 1), *pair) for pair in coming)


def useful(window, left, right):
    """Whether the box of both promises covers a pair that the promises on one time do not cover."""
    on_left, on_right, corner = joint(window, left, right).boxes
    pairs = ((t, u) for t in NEAR for u in near(window, t))
    return any(inside(corner, *p) and not inside(on_left, *p) and not inside(on_right, *p) for p in pairs)


@pytest.mark.parametrize("window", [Within(-2, 3), SameWindow(5)])
@pytest.mark.parametrize("unmatched", SIDES)
def test_before_both_sides_promise_there_is_nothing_to_say_and_after_both_end_nothing_comes(window, unmatched):
    for left, right in ((START, 7), (7, START), (START, END), (START, START)):
        promised = joint(window, left, right, unmatched)
        assert set(promised[:5]) == {START}
        assert not any(inside(box, -40, -40) for box in promised.boxes)
    assert set(joint(window, END, END, unmatched)[:5]) == {END}
    assert joint(window, END, END).boxes == ((END, END),) * 3


# -- what the thesis prints otherwise ----------------------------------------------------------------------------------
def test_progress_on_the_maximum_needs_the_first_individual_promise_and_on_the_minimum_both():
    """Thesis 7.1 has it the other way round. Left and right promise 10: pairs at most 3 apart."""
    promised = joint(Within(-3, 3), 10, 10)
    assert (promised.left, promised.right) == (7, 7)
    assert promised.later == 10  # once the smaller of the two inputs' promises is known, whatever the window
    assert promised.earlier == min(promised.left, promised.right) == 7
    one_ahead = joint(Within(-3, 3), 100, 10)
    assert (one_ahead.left, one_ahead.right) == (7, 10)
    assert one_ahead.later == 10 == max(one_ahead.left, one_ahead.right)  # one of them is enough
    assert one_ahead.earlier == 7 == min(one_ahead.left, one_ahead.right)


def test_a_tumbling_join_promises_by_window_numbers():
    """Figure 7-2 prints a ceiling, which promises a whole window too much: in [10, 15) a right row at 13 is to come."""
    printed = -(-13 // 5) * 5
    assert (14, 14) in to_come(SameWindow(5), 20, 13)
    assert printed == 15 > joint(SameWindow(5), 20, 13).left == 10


@settings(deadline=None, max_examples=200)
@given(held=st.tuples(st.integers(1, 6), st.integers(1, 6)), left=st.integers(-6, 6), right=st.integers(-6, 6))
def test_the_condition_of_figure_7_3_is_an_and(held, left, right):
    """Pairs are at most ``held`` apart. As printed, with "or", the condition always holds; with "and" it holds wherever
    the box says more than the promises on one time.
    """
    own, other = left - right <= held[1], right - left <= held[0]
    assert own or other
    if useful(Within(-held[1], held[0]), left, right):
        assert own
        assert other


def test_boxes_outside_the_band_say_nothing_new():
    assert not useful(Within(-2, 2), 9, 1)
    assert useful(Within(-2, 2), 2, 1)
    assert not useful(Within(-2, 2), 1, 9)


@settings(deadline=None, max_examples=200)
@given(length=st.integers(1, 8), left=st.integers(-6, 6), right=st.integers(-6, 6))
def test_the_condition_of_figure_7_4_holds_wherever_the_box_says_more(length, left, right):
    if useful(SameWindow(length), left, right):
        assert left // length == right // length


def test_figure_7_5():
    """Q7-1: a band of two minutes. The group (0, 1) is in the box (2, 2), and in a promise on one time only later: when
    min(pL, pR - 2) > 0, or min(pR, pL - 2) > 1. The text prints the box (2, 1), which by its own words, "smaller than",
    covers right times below 1 only.
    """
    band = Within(-2, 2)
    p3, p5 = joint(band, 2, 2), joint(band, 3, 3)
    assert inside(p3.boxes[-1], 0, 1)
    assert not any(inside(box, 0, 1) for box in p3.boxes[:2])
    assert any(inside(box, 0, 1) for box in p5.boxes[:2])
    assert not inside((2, 1), 0, 1)
