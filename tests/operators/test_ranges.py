"""Merges of ranges of partials, against a loop over each range."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.aggregates.parts import Fold
from windrow.operators.kernels.ranges import _difference, _tree

CHECK = settings(deadline=None, derandomize=True, max_examples=80)
SUM = Fold("s", None, "sum")
RANGES = st.lists(st.tuples(st.integers(0, 11), st.integers(1, 6)), min_size=1, max_size=9)
NUMBERS = st.lists(st.sampled_from([0, 1, -7, 2**62, -(2**62)]), min_size=12, max_size=12)


@pytest.mark.parametrize("of_ranges", [_difference, _tree])
@CHECK
@given(numbers=NUMBERS, ranges=RANGES)
def test_sums_equal_the_loop_modulo_two_to_the_64(of_ranges, numbers, ranges):
    state = np.array(numbers)
    low = np.array([a for a, _ in ranges])
    high = np.minimum(low + [n for _, n in ranges], 12)
    (found,) = of_ranges(SUM, [state], low, high)
    exact = [sum(numbers[a:b]) for a, b in zip(low, high, strict=True)]
    assert [(int(f) - e) % 2**64 for f, e in zip(found, exact, strict=True)] == [0] * len(ranges)


@CHECK
@given(numbers=NUMBERS, ranges=RANGES)
def test_maxima_equal_the_loop(numbers, ranges):
    state = np.array(numbers)
    low = np.array([a for a, _ in ranges])
    high = np.minimum(low + [n for _, n in ranges], 12)
    (found,) = _tree(Fold("m", None, "max", -(2**63)), [state], low, high)
    assert found.tolist() == [reduce(max, numbers[a:b]) for a, b in zip(low, high, strict=True)]
