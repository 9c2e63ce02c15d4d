"""WithKeys: rows with a NULL key are left out, and counted."""

import polars as pl

from windrow.operators import WithKeys
from windrow.progress import Punctuation


def test_a_row_is_left_out_if_any_key_is_null_and_nan_is_a_key():
    rows = pl.DataFrame({"a": [1.0, None, float("nan"), 2.0], "b": ["x", "y", "z", None]})
    kept, side = WithKeys(["a", "b"]).on_batch(0, rows)
    assert kept["b"].to_list() == ["x", "z"]
    assert (side.kind, side.count) == ("freed", 2)


def test_promises_pass_and_nothing_is_counted_where_nothing_is_left_out():
    step = WithKeys(["a"])
    assert step.on_punctuation(0, Punctuation(7)) == [Punctuation(7)]
    [kept] = step.on_batch(0, pl.DataFrame({"a": [1]}))
    assert kept.height == 1
