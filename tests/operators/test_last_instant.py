"""LastInstant and Shift: the progress of results, and its end, over restarts."""

import polars as pl
import pytest

from windrow.operators import LastInstant, Shift
from windrow.progress import END, Punctuation


def fed(operator, *ends):
    for end in ends:
        operator.on_batch(0, pl.DataFrame({"window_end": [end]}))
    return operator


@pytest.mark.parametrize("restored", [False, True])
def test_the_end_says_how_far_results_came(restored):
    operator = fed(LastInstant(pl.col("window_end"), 1), 20, 10)
    if restored:
        state = operator.snapshot()
        assert operator.changes().keys() == state.keys()
        assert operator.changes() == {}
        operator = LastInstant(pl.col("window_end"), 1)
        operator.restore(state)
    [end] = operator.on_punctuation(0, Punctuation(END, reached=3))
    assert (end.value, end.reached) == (END, 19)


def test_what_was_promised_about_results_counts_as_far_too():
    operator = fed(LastInstant(pl.col("window_end"), 1), 10)
    assert operator.on_punctuation(0, Punctuation(31)) == [Punctuation(30)]
    [end] = operator.on_punctuation(0, Punctuation(END))
    assert end.reached == 30


def test_nothing_read_means_no_end():
    [end] = LastInstant(pl.col("window_end"), 1).on_punctuation(0, Punctuation(END))
    assert end.reached is None


def test_promises_about_groups_move_too():
    assert Shift(1).on_punctuation(0, Punctuation(4, ("a",))) == [Punctuation(5, ("a",))]
    [end] = Shift(1).on_punctuation(0, Punctuation(END, reached=7))
    assert (end.value, end.reached) == (END, 8)
