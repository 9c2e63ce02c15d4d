"""WID alone: what it holds. What all sliding aggregates have in common is in test_sliding_aggregates.py."""

import pytest
from harness import COUNTS, WINDOWS, Run, careless
from hypothesis import given, settings

from windrow.operators.state.limits import LIMIT, clipped
from windrow.progress import END, START

CHECK = settings(deadline=None, derandomize=True, max_examples=60)


@settings(CHECK, max_examples=25)
@given(WINDOWS, careless())
def test_only_open_windows_are_held(window, steps):
    run = Run("wid", window, specs=COUNTS)
    promised = START
    for step, _ in steps:
        if isinstance(step, list):
            run.take(step)
        else:
            run.promise(step)
            promised = max(promised, step)
        held = {int(name.split(".")[0]) for name in run.operator.snapshot() if name != "closed"}
        assert all(window.end(w) > promised for w in held)


@pytest.mark.parametrize("value", [START, END, START * 7, END * 7, 0, -5])
def test_products_of_the_ends_of_time_are_brought_back_into_64_bits(value):
    assert clipped(value) == max(-LIMIT, min(LIMIT, value))
    assert 2**62 + 2**61 <= LIMIT < 2**63 - 2**60  # values less their origin, and room for one more length
