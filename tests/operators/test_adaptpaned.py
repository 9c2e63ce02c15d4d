"""AdaptPaned: panes as rows or as partials; the results are those of the model whichever it is."""

from contextlib import contextmanager

import pytest
from harness import (
    COUNTS,
    KEYS,
    LONG,
    WINDOWS,
    Run,
    careless,
    check_keys,
    check_promises,
    check_replay,
    check_waits,
    truthful,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.operators.windows import adaptpaned
from windrow.progress import END
from windrow.windows import Sliding

CHECK = settings(deadline=None, derandomize=True, max_examples=60)
PARTIAL = st.sampled_from([0.0, 60.0, 150.0])  # bytes of a partial, as rows of 25: so small panes become one, too


@contextmanager
def sized(size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adaptpaned, "partial_bytes", lambda *_: size)
        yield


@CHECK
@given(WINDOWS, truthful(), PARTIAL)
def test_true_promises_release_what_recalc_says_each_window_once_and_in_time(window, steps, size):
    with sized(size):
        assert check_replay("adaptpaned", window, steps) == 0


@CHECK
@given(WINDOWS, careless(), PARTIAL)
def test_rows_in_a_released_window_are_counted_as_late_and_change_nothing(window, steps, size):
    with sized(size):
        check_replay("adaptpaned", window, steps)


@settings(CHECK, max_examples=20)
@given(WINDOWS, careless(), PARTIAL)
def test_without_keys_there_is_one_group(window, steps, size):
    with sized(size):
        check_replay("adaptpaned", window, steps, keys=())


@CHECK
@given(WINDOWS, truthful(), PARTIAL)
def test_the_promise_on_window_ends_is_true_and_the_strongest(window, steps, size):
    with sized(size):
        check_promises("adaptpaned", window, steps)


@CHECK
@given(WINDOWS, truthful(), PARTIAL)
def test_waits_for_is_the_smallest_promise_that_releases_something(window, steps, size):
    with sized(size):
        check_waits("adaptpaned", window, steps)


@CHECK
@given(LONG, truthful(), PARTIAL)
def test_with_slices_of_several_panes(window, steps, size):
    with sized(size):
        check_replay("adaptpaned", window, steps)
        check_waits("adaptpaned", window, steps)


@pytest.mark.parametrize("size", [0.0, 1000.0])
@pytest.mark.parametrize(("dtype", "keys"), KEYS)
def test_keys_of_any_type_null_and_nan_are_groups(dtype, keys, size):
    with sized(size):
        check_keys("adaptpaned", dtype, keys)


def rows(times, key="a"):
    return [{"@t": t, "k": key, "x": 1, "f": None} for t in times]


def test_a_pane_is_a_partial_once_its_rows_take_more_and_takes_all_further_rows():
    run = Run("adaptpaned", Sliding(10, 5), specs=COUNTS)
    run.take(rows([0]) + rows([7]) + rows([0], "b"))  # a row of 25 bytes, a partial of 41
    assert (run.operator.rows.height, run.operator.chunks.height()) == (3, 0)
    run.take(rows([1]))
    assert (run.operator.rows.height, run.operator.chunks.height()) == (2, 1)
    run.restart()
    run.take(rows([2, 3]))
    assert (run.operator.rows.height, run.operator.chunks.height()) == (2, 1)
    found = run.results(END)
    assert {at: r["n"] for at, r in found.items()} == {
        (0, ("a",)): 4,
        (1, ("a",)): 5,
        (2, ("a",)): 1,
        (0, ("b",)): 1,
        (1, ("b",)): 1,
    }
