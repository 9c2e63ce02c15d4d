"""Punctuate promises the greatest value seen minus the slack, never less than before."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.operators import Punctuate, Side
from windrow.progress import END, Punctuation

CHECK = settings(deadline=None, derandomize=True, max_examples=80)
BATCHES = st.lists(st.integers(-50, 50), max_size=5)
STEPS = st.lists(st.tuples(st.one_of(BATCHES, st.integers(-50, 50)), st.booleans()), max_size=12)


def batch(times):
    return pl.DataFrame({"@t": times}, schema={"@t": pl.Int64})


@CHECK
@given(st.integers(0, 9), STEPS)
def test_after_each_call_the_strongest_promise_is_known_and_said_once_across_restores(slack, steps):
    operator, disk, best = Punctuate(slack), {}, None
    for step, restore in steps:
        if restore:
            disk.update(operator.changes())
            operator = Punctuate(slack)
            operator.restore(dict(disk))
        if isinstance(step, list):
            first, *rest = operator.on_batch(0, batch(step))
            assert first["@t"].to_list() == step
            now = max(step) - slack if step else None
        else:
            rest, now = operator.on_punctuation(0, Punctuation(step)), step
        news = now is not None and (best is None or now > best)
        back = not isinstance(step, list) and best is not None and now < best
        assert rest == ([Punctuation(now)] if news else [Side("ignored", 1)] if back else [])
        best = now if news else best


def test_a_slack_of_zero_promises_the_greatest_value_itself():
    assert Punctuate(0).on_batch(0, batch([3, 9, 4]))[1:] == [Punctuation(9)]


def test_the_rows_come_before_the_promise_so_none_of_them_breaks_it():
    first, second = Punctuate(2).on_batch(0, batch([10, 1]))
    assert first["@t"].to_list() == [10, 1]
    assert second == Punctuation(8)


def test_an_empty_batch_says_nothing():
    (only,) = Punctuate(2).on_batch(0, batch([]))
    assert only.height == 0


def test_values_before_1970_and_the_end():
    operator = Punctuate(5)
    assert operator.on_batch(0, batch([-100]))[1:] == [Punctuation(-105)]
    # Before the end it says how far the stream came: some windows have no other end.
    assert operator.on_punctuation(0, Punctuation(END)) == [Punctuation(-100), Punctuation(END)]
    assert operator.on_batch(0, batch([10**15]))[1:] == []


def test_promises_about_groups_pass():
    operator = Punctuate(0)
    operator.on_batch(0, batch([10]))
    assert operator.on_punctuation(0, Punctuation(15, "a")) == [Punctuation(15, "a")]
    assert operator.on_punctuation(0, Punctuation(5, "a")) == [Side("ignored", 1)]  # everyone is promised more
    assert operator.promised == 10


def test_changes_are_told_once_and_restore_forgets_what_was_there():
    operator = Punctuate(1)
    assert operator.changes() == {}
    operator.on_batch(0, batch([7]))
    assert operator.changes()["promised"]["value"].to_list() == [6]
    assert operator.changes() == {}
    assert operator.snapshot()["promised"]["value"].to_list() == [6]
    operator.restore({})
    assert operator.on_batch(0, batch([3]))[1:] == [Punctuation(2)]


@pytest.mark.parametrize("values", [[5], [5, 5]])
def test_the_same_value_again_is_no_news(values):
    operator = Punctuate(0)
    operator.on_batch(0, batch([5]))
    assert len(operator.on_batch(0, batch(values))) == 1
