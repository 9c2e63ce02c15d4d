"""HAVING over versions."""

import polars as pl

from windrow.operators import Retract
from windrow.progress import Punctuation

ROWS = pl.DataFrame({"n": [1, 5, 1, None], "version": [1, 1, 3, 2], "status": ["early", "early", "final", "revised"]})


def test_a_first_version_that_fails_was_never_there_and_a_later_one_is_taken_back():
    (found,) = Retract(pl.col("n") > 3).on_batch(0, ROWS)
    assert found.rows() == [(5, 1, "early"), (1, 3, "retracted"), (None, 2, "retracted")]


def test_promises_pass():
    assert Retract(pl.lit(True)).on_punctuation(0, Punctuation(3)) == [Punctuation(3)]
