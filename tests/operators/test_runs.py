"""Rows in sorted runs: what leaves, in which order, and what a checkpoint writes of the rest."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.operators.state.runs import Runs

CHECK = settings(deadline=None, derandomize=True, max_examples=150)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.lists(st.integers(0, 60), max_size=12)),
        st.tuples(st.sampled_from(["take", "free"]), st.integers(0, 70)),
    ),
    max_size=15,
)


def frame(*times, start=0):
    return pl.DataFrame({"@t": times, "x": range(start, start + len(times))}, schema={"@t": pl.Int64, "x": pl.Int64})


def held(runs):
    return sorted(row for run in runs.runs for row in run.rows())


def written(store, runs):
    """The store after one more checkpoint."""
    changes = runs.changes()
    left = {name: f for name, f in store.items() if changes.get(name, f) is not None}
    return left | {name: f for name, f in changes.items() if f is not None}


@CHECK
@given(STEPS)
def test_runs_hold_what_a_sorted_list_would_and_a_restored_copy_no_less(steps):
    runs, model, store, passed, number = Runs(), [], {}, 0, 0
    for what, given_ in steps:
        if what == "push":
            times = [t for t in given_ if t >= passed]  # an operator keeps no row that progress has passed
            rows = frame(*times, start=number)
            number += len(times)
            model += rows.rows()
            runs.push(rows)
        else:
            passed = max(passed, given_)
            gone = sorted(row for row in model if row[0] < given_)
            model = [row for row in model if row[0] >= given_]
            if what == "take":
                taken = runs.take(given_)
                assert ([] if taken is None else sorted(taken.rows())) == gone
                assert taken is None or taken["@t"].is_sorted()
            else:
                runs.free(given_)
        assert held(runs) == sorted(model)
        assert runs.height == len(model)
        assert runs.first() == min((t for t, _ in model), default=None)
        assert all(run["@t"].is_sorted() for run in runs.runs)
        store = written(store, runs)
        again = Runs()
        again.restore(store)
        again.free(passed)  # what had left when it was last written is still there
        assert held(again) == sorted(model)


def test_equal_times_leave_in_the_order_they_came():
    runs = Runs()
    runs.push(frame(5, 5, start=0))
    runs.push(frame(5, start=2))
    found = runs.take(6)
    assert found is not None
    assert found["x"].to_list() == [0, 1, 2]
    assert runs.take(6) is None


def test_a_row_is_written_again_a_logarithmic_number_of_times():
    runs, rows = Runs(), 0
    for number in range(512):
        runs.push(frame(number))
        rows += sum(f.height for f in runs.changes().values() if f is not None)
    assert len(runs.runs) <= 10
    assert rows <= 512 * 10


def test_a_checkpoint_writes_what_is_new_and_forgets_runs_that_are_gone():
    runs = Runs()
    runs.push(frame(*range(100)))
    assert list(runs.changes()) == ["0"]
    assert runs.changes() == {}
    runs.push(frame(200))
    assert {name: f.height for name, f in runs.changes().items()} == {"1": 1}
    runs.free(30)
    assert runs.changes() == {}  # less than half of the run has left
    runs.free(60)
    assert {name: f.height for name, f in runs.changes().items()} == {"0": 40}
    runs.free(150)
    changes = runs.changes()
    assert changes["0"].height == 1
    assert changes["1"] is None


def test_between_has_both_ends_and_takes_nothing():
    runs = Runs()
    runs.push(frame(*range(10)))
    runs.push(frame(4))
    assert sorted(t for part in runs.between(3, 5) for t in part["@t"]) == [3, 4, 4, 5]
    assert runs.between(50, 60) == []
    assert runs.height == 11


def test_nothing_pushed_is_no_run():
    runs = Runs()
    runs.push(frame())
    assert runs.first() is None
    assert runs.changes() == {} == runs.snapshot()
    assert runs.state_bytes() == 0
