"""slide() against a loop that merges every window from its panes."""

import math
from functools import reduce

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.aggregates import parts
from windrow.aggregates.parts import Fold, Moments
from windrow.operators.kernels import slide as sliding
from windrow.operators.kernels.slide import slide

CHECK = settings(deadline=None, derandomize=True, max_examples=80)
FOLDS = {
    "sum": Fold("s", None, "sum"),
    "min": Fold("s", None, "min", 2**63 - 1),
    "max": Fold("s", None, "max", -(2**63)),
}


@st.composite
def shapes(draw):
    """Panes, groups, length and step, with at least one window and panes left over at the end."""
    length, step = draw(st.integers(1, 9)), draw(st.integers(1, 12))
    panes = length + draw(st.integers(0, 30))
    return panes, draw(st.integers(1, 3)), length, step


def naive(part, state, length, step):
    starts = range(0, len(state[0]) - length + 1, step)
    return [reduce(part.merge, [[s[i] for s in state] for i in range(a, a + length)]) for a in starts]


@pytest.mark.parametrize("how", FOLDS)
@CHECK
@given(shape=shapes(), seed=st.integers(0, 2**32))
def test_folds_equal_the_loop(how, shape, seed):
    panes, groups, length, step = shape
    part = FOLDS[how]
    values = np.random.default_rng(seed).integers(-1000, 1000, (panes, groups))
    values[np.random.default_rng(seed + 1).random((panes, groups)) < 0.3] = part.empty
    (found,) = slide(part, [values], length, step)
    assert found.tolist() == [w[0].tolist() for w in naive(part, [values], length, step)]
    assert found.dtype == values.dtype


@pytest.mark.parametrize("how", FOLDS)
@settings(CHECK, max_examples=30)
@given(shape=shapes(), seed=st.integers(0, 2**32))
def test_running_merges_of_wide_rows_give_the_same(how, shape, seed):
    panes, groups, length, step = shape
    values = np.random.default_rng(seed).integers(-1000, 1000, (panes, groups))
    expected = slide(FOLDS[how], [values], length, step)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "WIDE", 1)
        assert slide(FOLDS[how], [values], length, step)[0].tolist() == expected.tolist()


@CHECK
@given(shape=shapes(), seed=st.integers(0, 2**32), cells=st.integers(1, 40))
def test_slabs_of_any_size_give_the_same(shape, seed, cells):
    panes, groups, length, step = shape
    values = np.random.default_rng(seed).integers(-1000, 1000, (panes, groups))
    expected = slide(FOLDS["max"], [values], length, step)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sliding, "SLAB", cells)
        assert slide(FOLDS["max"], [values], length, step)[0].tolist() == expected.tolist()


def test_a_running_sum_that_overflows_cancels():
    large = np.array([[2**62], [2**62 - 1], [-5], [2**62], [7]])
    assert slide(FOLDS["sum"], [large], 2, 1)[0].ravel().tolist() == [2**63 - 1, 2**62 - 6, 2**62 - 5, 2**62 + 7]


def test_sums_of_floats_are_not_subtracted():
    """A large value that has left the window must not have taken the small ones with it."""
    column = np.array([[1e300], [0.25], [0.5], [1.0]])
    part = Fold("s", None, "sum", 0.0, pl.Float64())
    assert slide(part, [column], 2, 1)[0].ravel().tolist() == [1e300, 0.75, 1.5]


@CHECK
@given(shape=shapes(), seed=st.integers(0, 2**32))
def test_moments_equal_the_loop(shape, seed):
    panes, groups, length, step = shape
    rng = np.random.default_rng(seed)
    n = rng.integers(0, 4, (panes, groups)).astype(float)
    state = [n, np.where(n > 0, rng.normal(5, 10, n.shape), 0.0), np.where(n > 1, rng.random(n.shape), 0.0)]
    found = slide(Moments("x"), state, length, step)
    expected = naive(Moments("x"), state, length, step)
    for i, column in enumerate(found):
        np.testing.assert_allclose(column, [w[i] for w in expected], rtol=1e-9, atol=1e-9)


@settings(CHECK, max_examples=40)
@given(shape=shapes(), seed=st.integers(0, 2**32))
def test_double_minima_with_infinities_equal_the_loop(shape, seed):
    panes, groups, length, step = shape
    part = Fold("m", None, "min", math.inf)
    values = np.random.default_rng(seed).choice([math.inf, -math.inf, 0.5, -1.5], (panes, groups))
    (found,) = slide(part, [values], length, step)
    assert found.tolist() == [w[0].tolist() for w in naive(part, [values], length, step)]


def test_the_number_of_windows_is_how_many_fit():
    column = np.ones((10, 1), np.int64)
    for length in range(1, 11):
        for step in range(1, 13):
            (found,) = slide(FOLDS["sum"], [column], length, step)
            assert found.tolist() == [[length]] * len(range(0, 10 - length + 1, step))


def test_fewer_panes_than_a_window_give_none():
    (found,) = slide(FOLDS["sum"], [np.ones((3, 2), np.int64)], 5, 1)
    assert found.shape == (0, 2)


def test_the_state_is_left_as_it_was():
    state = [np.arange(12.0).reshape(12, 1) for _ in range(3)]
    before = [s.copy() for s in state]
    slide(Moments("x"), state, 4, 1)
    assert all((s == b).all() for s, b in zip(state, before, strict=True))


def test_the_cost_per_pane_does_not_grow_with_the_length():
    """Counted in merges of whole rows, not in seconds."""

    class Counting(Fold):
        def accumulate(self, state, axis):
            merges.append(state[0].size)
            return super().accumulate(state, axis)

        def merge(self, a, b):
            merges.append(len(a[0]))
            return super().merge(a, b)

    for length in (2, 10, 100):
        merges = []
        slide(Counting("s", None, "sum"), [np.ones((1000, 1), np.int64)], length, 1)
        assert sum(merges) <= 3 * 1000 + 2 * length
