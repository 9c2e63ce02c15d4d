"""Select keeps the rows for which a predicate is true."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.operators import Select
from windrow.progress import Punctuation

VALUES = st.lists(st.one_of(st.none(), st.integers(-3, 3)), max_size=10)


def test_rows_for_which_the_predicate_is_null_or_false_go():
    frame = pl.DataFrame({"x": [1, 2, None, 3], "y": ["a", "b", "c", "d"]})
    (kept,) = Select(pl.col("x") > 1).on_batch(0, frame)
    assert kept.rows() == [(2, "b"), (3, "d")]
    for some in (frame[2:3], frame[1:3]):
        assert Select(pl.col("x") > 1).on_batch(0, some)[0].rows() == [r for r in some.rows() if r[0] is not None]


@settings(deadline=None, derandomize=True, max_examples=30)
@given(VALUES)
def test_a_row_stays_exactly_if_the_predicate_is_true_in_the_order_it_came(values):
    (kept,) = Select(pl.col("x") >= 0).on_batch(0, pl.DataFrame({"x": values}, schema={"x": pl.Int64}))
    assert kept["x"].to_list() == [v for v in values if v is not None and v >= 0]


def test_an_empty_batch_keeps_its_columns():
    (kept,) = Select(pl.col("x") > 1).on_batch(0, pl.DataFrame(schema={"x": pl.Int64, "y": pl.String}))
    assert kept.schema == {"x": pl.Int64, "y": pl.String}


def test_promises_pass_unchanged_and_nothing_is_remembered():
    select = Select(pl.col("x") > 1)
    for promise in (Punctuation(5), Punctuation(3), Punctuation(9, "a")):
        assert select.on_punctuation(0, promise) == [promise]
    select.on_batch(0, pl.DataFrame({"x": [1, 5]}))
    assert (select.snapshot(), select.changes(), select.state_bytes(), select.waits_for()) == ({}, {}, 0, [])
