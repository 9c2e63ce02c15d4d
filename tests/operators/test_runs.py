"""Runs: rows leave in order, are written a few times, and come back from what a checkpoint holds."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.operators.state.runs import Runs

CHECK = settings(deadline=None, derandomize=True, max_examples=120)
STEPS = st.lists(
    st.one_of(st.lists(st.integers(0, 40), max_size=6), st.integers(0, 45), st.none()), max_size=25
)  # rows, a limit below which they leave, or a restart


class Stored:
    """Runs beside a disk, as an operator uses them: it remembers how far rows have left."""

    def __init__(self):
        self.runs, self.disk, self.left = Runs(), {}, 0

    def restart(self):
        for name, frame in self.runs.changes().items():
            if frame is None:
                del self.disk[name]
            else:
                self.disk[name] = frame
        assert self.runs.changes() == {}
        self.runs = Runs()
        self.runs.restore(dict(self.disk))
        self.runs.take(self.left)


@CHECK
@given(STEPS)
def test_beside_a_sorted_list_with_restarts(steps):
    stored, held = Stored(), []
    for step in steps:
        if step is None:
            stored.restart()
        elif isinstance(step, list):
            rows = [t for t in step if t >= stored.left]
            stored.runs.push(pl.DataFrame({"@t": rows}, schema={"@t": pl.Int64}))
            held += rows
        else:
            stored.left = max(stored.left, step)
            out = stored.runs.take(step)
            due = sorted(t for t in held if t < step)
            held = [t for t in held if t >= step]
            assert (out["@t"].to_list() if out is not None else []) == due
        assert stored.runs.height == len(held)
        assert stored.runs.first() == min(held, default=None)
        between = [t for part in stored.runs.between(10, 20) for t in part["@t"].to_list()]
        assert sorted(between) == sorted(t for t in held if 10 <= t <= 20)
        sizes = [run.height for run in stored.runs.runs]
        assert all(run["@t"].is_sorted() for run in stored.runs.runs)
        assert len(sizes) <= 1 + len(held).bit_length() + 5, "a log of runs, not one per batch"


def test_equal_times_leave_in_the_order_of_arrival():
    runs = Runs()
    for x in range(6):
        runs.push(pl.DataFrame({"@t": [1, 0], "x": [x, x]}))
    assert runs.take(5)["x"].to_list() == [*range(6), *range(6)]
    assert (runs.take(5), runs.first(), runs.state_bytes()) == (None, None, 0)


def test_a_row_is_written_a_few_times_however_many_batches_come():
    runs, written = Runs(), 0
    for t in range(512):
        runs.push(pl.DataFrame({"@t": [t]}))
        written += sum(frame.height for frame in runs.changes().values() if frame is not None)
    assert written <= 512 * 10, "about log2 of their number, and not all of them with each batch"


def test_what_leaves_is_written_only_when_half_of_a_run_is_gone():
    runs = Runs()
    runs.push(pl.DataFrame({"@t": list(range(10))}))
    runs.changes()
    runs.take(5)
    assert runs.changes() == {}
    runs.take(6)
    assert [frame.height for frame in runs.changes().values()] == [4]
    runs.take(10)
    assert runs.changes() == {"0": None}
