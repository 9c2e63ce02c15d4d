"""Gate: which rows are late, what is said of them, and which go on."""

import polars as pl
import pytest

from windrow.operators import Gate, Options, Side
from windrow.progress import Punctuation
from windrow.spec.names import ROW
from windrow.windows import Landmark, Session, SlideByTuple, Sliding

SIDE, GENEROUS = Options(late="side"), Options(late="side", generous=True)


def batch(*values):
    frame = pl.DataFrame({"@t": values}, schema={"@t": pl.Int64})
    return frame.with_columns(pl.struct(pl.col("@t").alias("t")).alias(ROW))


def judged(window, options, promise, *values):
    gate = Gate(window, pl.Int64(), options)
    gate.on_punctuation(0, Punctuation(promise))
    again = Gate(window, pl.Int64(), options)
    again.restore(gate.snapshot())
    going_on, *side = again.on_batch(0, batch(*values))
    assert ROW not in going_on.columns
    late = side[0].rows.drop("rows").rows() if side else []
    assert all(isinstance(s, Side) and s.count == s.rows.height for s in side)
    return going_on["@t"].to_list(), late


def test_a_row_is_late_if_one_of_its_windows_is_released():
    # Promise 7 has released windows that end at 5 or before.
    assert judged(Sliding(10, 5), SIDE, 7, 6, 5, 4, -8) == ([6, 5], [(4, -5, 5, 2, 3), (-8, -15, -5, 2, 15)])


def test_under_generous_slack_rows_with_open_windows_go_on_as_well():
    going_on, late = judged(Sliding(10, 5), GENEROUS, 7, 6, 5, 4, -8)
    assert going_on == [6, 5, 4]
    assert late == [(4, -5, 5, 1, 3), (-8, -15, -5, 2, 15)]


def test_rows_in_gaps_are_in_no_window_and_never_late():
    assert judged(Sliding(2, 5), SIDE, 20, 1, 4) == ([1], [(4, 3, 5, 1, 16)])


@pytest.mark.parametrize(
    ("window", "late"),
    [
        (Landmark(5), [(4, None, 5, 1, 3)]),
        (SlideByTuple(10), [(4, -6, 4, 1, 3), (6, -4, 6, 1, 1)]),
        (Session(10), [(4, 4, 14, 1, 3), (6, 6, 16, 1, 1)]),
    ],
)
def test_every_window_type_says_which_window_was_missed(window, late):
    going_on, found = judged(window, SIDE, 7, 4, 6, 7)
    assert found == late
    assert going_on == [t for t in (4, 6, 7) if t not in {row[0] for row in late}]


def test_without_promises_nothing_is_late_and_state_is_told_once():
    gate = Gate(Sliding(5, 5), pl.Int64(), SIDE)
    assert len(gate.on_batch(0, batch(-100))) == 1
    assert gate.changes() == {}
    gate.on_punctuation(0, Punctuation(3))
    assert set(gate.changes()) == {"promises"}
    assert gate.changes() == {}
