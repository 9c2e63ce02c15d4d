"""WID: every window as an accumulator; results, lateness, promises, state and wake-up against the model."""

import datetime as dt

import polars as pl
import pytest
from harness import COUNTS, KEYS, WINDOWS, Run, careless, check_keys, check_promises, check_replay, check_wake, truthful
from hypothesis import given, settings

from windrow.operators.released import clipped
from windrow.progress import END, START
from windrow.windows import Sliding

CHECK = settings(deadline=None, derandomize=True, max_examples=60)


@CHECK
@given(WINDOWS, truthful())
def test_true_promises_release_what_recalc_says_each_window_once_and_in_time(window, steps):
    assert check_replay("wid", window, steps) == 0


@CHECK
@given(WINDOWS, careless())
def test_rows_in_a_released_window_are_counted_as_late_and_change_nothing(window, steps):
    check_replay("wid", window, steps)


@settings(CHECK, max_examples=15)
@given(WINDOWS, careless())
def test_without_keys_there_is_one_group(window, steps):
    check_replay("wid", window, steps, keys=())


@CHECK
@given(WINDOWS, truthful())
def test_the_promise_on_window_ends_is_true_and_the_strongest(window, steps):
    check_promises("wid", window, steps)


@CHECK
@given(WINDOWS, truthful())
def test_wake_at_is_the_smallest_promise_that_releases_something(window, steps):
    check_wake("wid", window, steps)


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


@pytest.mark.parametrize(("dtype", "keys"), KEYS)
def test_keys_of_any_type_null_and_nan_are_groups(dtype, keys):
    check_keys("wid", dtype, keys)


def test_a_row_is_dropped_from_all_of_its_windows_if_one_of_them_is_released():
    run = Run("wid", Sliding(10, 5), specs=COUNTS)
    run.promise(5)
    assert run.take([{"@t": 4, "k": "a", "x": 1, "f": None}]) == 1  # in [-5, 5), released, and in [0, 10), open
    assert run.results(END) == {}


def test_a_row_in_a_gap_is_neither_late_nor_kept():
    run = Run("wid", Sliding(2, 5), specs=COUNTS)
    run.promise(10)
    assert run.take([{"@t": 1, "k": "a", "x": 1, "f": None}, {"@t": 11, "k": "a", "x": 1, "f": None}]) == 0
    assert run.operator.state_bytes() == 0


def test_a_promise_about_one_group_releases_nothing():
    run = Run("wid", Sliding(5, 5), specs=COUNTS)
    run.take([{"@t": 1, "k": "a", "x": 1, "f": None}])
    assert run.promise(100, group=("a",)) == (None, None)
    assert run.results(5) == {(0, ("a",)): {"n": 1, "s": 1}}


def test_a_promise_that_says_nothing_new_gives_nothing():
    run = Run("wid", Sliding(5, 5), specs=COUNTS)
    assert run.promise(5) == (None, 10)
    assert run.promise(5) == run.promise(9) == run.promise(-3) == (None, None)


def test_an_empty_batch_is_nothing():
    run = Run("wid", Sliding(5, 5), specs=COUNTS)
    assert run.take([]) == 0
    assert run.operator.changes() == {}


@pytest.mark.parametrize(
    ("dtype", "day"),
    [(pl.Date(), 1), (pl.Datetime("us"), 86_400_000_000), (pl.Datetime("us", "UTC"), 86_400_000_000)],
)
def test_window_bounds_have_the_type_of_the_progressing_column(dtype, day):
    run = Run("wid", Sliding(2 * day, day), specs=COUNTS, dtype=dtype)
    run.take([{"@t": -1, "k": "a", "x": 1, "f": None}])
    frame, _ = run.promise(0)
    assert frame.schema["window_start"] == frame.schema["window_end"] == dtype
    assert [str(b)[:10] for b in frame.select("window_start", "window_end").row(0)] == ["1969-12-30", "1970-01-01"]
    assert frame["window_end"].cast(pl.Date).to_list() == [dt.date(1970, 1, 1)]


def test_windows_of_a_hundred_thousand_with_a_few_rows():
    rows = [{"@t": t, "k": "a", "x": 1, "f": None} for t in (-1, 0, 99_999, 100_000, 10**12)]
    tumbling = Run("wid", Sliding(100_000, 100_000), specs=COUNTS)
    tumbling.take(rows)
    found = tumbling.results(END)
    assert {wid: r["n"] for (wid, _), r in found.items()} == {-1: 1, 0: 2, 1: 1, 10**7: 1}
    hopping = Run("wid", Sliding(1, 100_000), specs=COUNTS)
    hopping.take(rows)
    assert {wid: r["n"] for (wid, _), r in hopping.results(END).items()} == {-1: 1, 0: 1}


def test_many_windows_per_row_and_long_gaps():
    run = Run("wid", Sliding(300, 1), specs=COUNTS)
    run.take([{"@t": t, "k": "a", "x": t, "f": None} for t in (0, 10**15)])
    found = run.results(END)
    assert sorted(wid for wid, _ in found) == [*range(300), *range(10**15, 10**15 + 300)]


@pytest.mark.parametrize("value", [START, END, START * 7, END * 7, 0, -5])
def test_products_of_the_ends_of_time_are_brought_back_into_64_bits(value):
    assert clipped(value) == max(-(2**62), min(2**62, value))
