"""Meld passes rows at once, and promises what its slowest input promises."""

import datetime as dt

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.operators import Meld, Wait
from windrow.progress import END, START, Combined, Punctuation

CHECK = settings(deadline=None, derandomize=True, max_examples=60)
GROUPS = [None, None, ("a",), ("b", 3), (None, True), "text", 7]
STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.builds(Punctuation, st.integers(-5, 9), st.sampled_from(GROUPS)), st.booleans()),
    max_size=25,
)


def test_rows_pass_at_once_from_every_input():
    meld, frame = Meld(2), pl.DataFrame({"@t": [3, 1]})
    meld.on_punctuation(0, Punctuation(100))
    for port in (0, 1):
        (passed,) = meld.on_batch(port, frame)
        assert passed.equals(frame)


@CHECK
@given(STEPS)
def test_promises_are_those_of_the_union_across_restores(steps):
    meld, disk, expected = Meld(3), {}, Combined(3)
    for port, promise, restore in steps:
        if restore:
            disk.update(meld.changes())
            meld = Meld(3)
            meld.restore(dict(disk))
        assert meld.on_punctuation(port, promise) == expected.give(port, promise)


@CHECK
@given(STEPS)
def test_a_snapshot_is_all_there_is_to_know(steps):
    meld = Meld(3)
    for port, promise, _ in steps:
        meld.on_punctuation(port, promise)
        copy = Meld(3)
        copy.restore(meld.snapshot())
        assert copy.snapshot()["promises"].sort(pl.all()).equals(meld.snapshot()["promises"].sort(pl.all()))
        assert copy.waits_for() == meld.waits_for()
        assert copy.state_bytes() == meld.state_bytes()


def test_the_union_waits_for_its_slowest_input():
    meld = Meld(3)
    assert [w.port for w in meld.waits_for()] == [0, 1, 2]
    assert meld.on_punctuation(0, Punctuation(9)) == meld.on_punctuation(2, Punctuation(7)) == []
    assert meld.waits_for() == [Wait(1, START + 1, START, "promises", 2, meld.state_bytes())]
    assert meld.on_punctuation(1, Punctuation(7)) == [Punctuation(7)]
    assert meld.waits_for() == [Wait(port, 8, 7, "promises", 1, meld.state_bytes()) for port in (1, 2)]


def test_a_group_moves_on_when_every_input_has_promised_it():
    meld = Meld(2)
    assert meld.on_punctuation(0, Punctuation(9, ("a",))) == []
    assert meld.on_punctuation(1, Punctuation(8, ("a",))) == [Punctuation(8, ("a",))]
    assert meld.on_punctuation(1, Punctuation(5)) == []
    assert meld.on_punctuation(0, Punctuation(6)) == [Punctuation(5)]
    assert meld.on_punctuation(1, Punctuation(20)) == [Punctuation(6), Punctuation(9, ("a",))]


def test_a_null_in_a_group_key_is_a_key_like_any_other():
    meld = Meld(2)
    meld.on_punctuation(0, Punctuation(9, (None,)))
    copy = Meld(2)
    copy.restore(meld.snapshot())
    assert copy.on_punctuation(1, Punctuation(8, (None,))) == [Punctuation(8, (None,))]
    assert copy.on_punctuation(1, Punctuation(3)) == []  # input 0 has promised nothing for everyone


def test_a_group_key_may_be_a_date():
    meld = Meld(2)
    group = (dt.date(2020, 1, 1), "a")
    meld.on_punctuation(0, Punctuation(9, group))
    copy = Meld(2)
    copy.restore(meld.snapshot())
    assert copy.on_punctuation(1, Punctuation(8, group)) == [Punctuation(8, group)]


def test_state_shrinks_when_everyone_passes_the_groups():
    meld = Meld(2)
    empty = meld.state_bytes()
    for i in range(50):
        meld.on_punctuation(0, Punctuation(i + 1, f"group {i}"))
    assert meld.state_bytes() > empty
    meld.on_punctuation(0, Punctuation(60))
    assert meld.state_bytes() == empty
    assert meld.snapshot()["promises"]["group"].null_count() == 3  # the union and two inputs, no group


def test_a_union_of_one_input_or_one_that_has_ended_waits_for_nobody():
    assert Meld(1).waits_for() == []
    meld = Meld(2)
    meld.on_punctuation(0, Punctuation(END))
    assert [w.port for w in meld.waits_for()] == [1]
    meld.on_punctuation(1, Punctuation(END))
    assert meld.waits_for() == []


def test_changes_are_told_once():
    meld = Meld(2)
    assert meld.changes() == {}
    meld.on_punctuation(0, Punctuation(5))
    assert meld.changes()["promises"].equals(meld.snapshot()["promises"])
    assert meld.changes() == {}


def test_a_promise_that_says_nothing_new_is_no_change():
    meld = Meld(2)
    meld.on_punctuation(0, Punctuation(5))
    meld.changes()
    meld.on_punctuation(0, Punctuation(5))
    assert meld.changes() == {}


@pytest.mark.parametrize("state", [{}, None])
def test_restoring_nothing_starts_anew(state):
    meld = Meld(1)
    meld.on_punctuation(0, Punctuation(5))
    meld.restore(state if state is not None else Meld(1).snapshot())
    assert meld.on_punctuation(0, Punctuation(3)) == [Punctuation(3)]


@CHECK
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6), st.integers(0, 6), st.booleans()), max_size=15))
def test_joint_promises_pass_across_restores(steps):
    meld, disk, expected = Meld(2), {}, Combined(2)
    for port, left, right, restore in steps:
        if restore:
            disk.update(meld.changes())
            meld = Meld(2)
            meld.restore(dict(disk))
        promise = Punctuation(min(left, right), boxes=((left, END), (left, right)))
        assert meld.on_punctuation(port, promise) == expected.give(port, promise)
