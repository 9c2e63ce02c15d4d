"""What every aggregate over sliding windows owes: results, lateness, promises, state and wake-up against the model.

AdaptWID and AdaptPaned are checked against it in their own files, where groups are forced to change sides.
"""

import datetime as dt

import polars as pl
import pytest
from harness import (
    COUNTS,
    KEYS,
    KINDS,
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

from windrow.progress import END
from windrow.windows import Sliding

CHECK = settings(deadline=None, derandomize=True, max_examples=60)
settled = pytest.mark.parametrize("kind", ["wid", "paned", "buffering"])
every = pytest.mark.parametrize("kind", KINDS)


def row(t, x=1):
    return {"@t": t, "k": "a", "x": x, "f": None}


@settled
@CHECK
@given(window=WINDOWS, steps=truthful())
def test_true_promises_release_what_recalc_says_each_window_once_and_in_time(kind, window, steps):
    assert check_replay(kind, window, steps) == 0


@settled
@CHECK
@given(window=WINDOWS, steps=careless())
def test_rows_in_a_released_window_are_counted_as_late_and_change_nothing(kind, window, steps):
    check_replay(kind, window, steps)


@settled
@settings(CHECK, max_examples=15)
@given(window=WINDOWS, steps=careless())
def test_without_keys_there_is_one_group(kind, window, steps):
    check_replay(kind, window, steps, keys=())


@settled
@CHECK
@given(window=WINDOWS, steps=truthful())
def test_the_promise_on_window_ends_is_true_and_the_strongest(kind, window, steps):
    check_promises(kind, window, steps)


@settled
@CHECK
@given(window=WINDOWS, steps=truthful())
def test_waits_for_is_the_smallest_promise_that_releases_something(kind, window, steps):
    check_waits(kind, window, steps)


@settled
@pytest.mark.parametrize(("dtype", "keys"), KEYS)
def test_keys_of_any_type_null_and_nan_are_groups(kind, dtype, keys):
    check_keys(kind, dtype, keys)


@every
def test_a_row_is_dropped_from_all_of_its_windows_if_one_of_them_is_released(kind):
    run = Run(kind, Sliding(10, 5), specs=COUNTS)
    run.promise(5)
    assert run.take([row(4)]) == 1  # in [-5, 5), released, and in [0, 10), open
    assert run.results(END) == {}


@every
def test_a_row_in_a_gap_is_neither_late_nor_kept(kind):
    run = Run(kind, Sliding(2, 5), specs=COUNTS)
    run.promise(10)
    assert run.take([row(1), row(11)]) == 0
    assert run.operator.state_bytes() == 0


@every
def test_a_promise_about_one_group_releases_nothing(kind):
    run = Run(kind, Sliding(5, 5), specs=COUNTS)
    run.take([row(1)])
    assert run.promise(100, group=("a",)) == (None, None)
    assert run.results(5) == {(0, ("a",)): {"n": 1, "s": 1}}


@every
def test_a_promise_that_says_nothing_new_gives_nothing(kind):
    run = Run(kind, Sliding(5, 5), specs=COUNTS)
    assert run.promise(5) == (None, 10)
    assert run.promise(5) == run.promise(9) == run.promise(-3) == (None, None)


@every
def test_an_empty_batch_is_nothing(kind):
    run = Run(kind, Sliding(5, 5), specs=COUNTS)
    assert run.take([]) == 0
    assert run.operator.changes() == {}


@every
@pytest.mark.parametrize(
    ("dtype", "day"),
    [(pl.Date(), 1), (pl.Datetime("us"), 86_400_000_000), (pl.Datetime("us", "UTC"), 86_400_000_000)],
)
def test_window_bounds_have_the_type_of_the_progressing_column(kind, dtype, day):
    run = Run(kind, Sliding(2 * day, day), specs=COUNTS, dtype=dtype)
    run.take([row(-1)])
    frame, _ = run.promise(0)
    assert frame.schema["window_start"] == frame.schema["window_end"] == dtype
    assert [str(b)[:10] for b in frame.select("window_start", "window_end").row(0)] == ["1969-12-30", "1970-01-01"]
    assert frame["window_start"].cast(pl.Date).to_list() == [dt.date(1969, 12, 30)]
    assert frame["window_end"].cast(pl.Date).to_list() == [dt.date(1970, 1, 1)]


@every
def test_windows_of_a_hundred_thousand_with_a_few_rows(kind):
    rows = [row(t) for t in (-1, 0, 99_999, 100_000, 10**12)]
    tumbling = Run(kind, Sliding(100_000, 100_000), specs=COUNTS)
    tumbling.take(rows)
    found = tumbling.results(END)
    assert {wid: r["n"] for (wid, _), r in found.items()} == {-1: 1, 0: 2, 1: 1, 10**7: 1}
    hopping = Run(kind, Sliding(1, 100_000), specs=COUNTS)
    hopping.take(rows)
    assert {wid: r["n"] for (wid, _), r in hopping.results(END).items()} == {-1: 1, 0: 1}


@every
def test_many_windows_per_row_and_long_gaps(kind):
    run = Run(kind, Sliding(300, 1), specs=COUNTS)
    run.take([row(t, t) for t in (0, 10**15)])
    found = run.results(END)
    assert sorted(wid for wid, _ in found) == [*range(300), *range(10**15, 10**15 + 300)]
