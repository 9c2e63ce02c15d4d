"""One partial per progress value and group."""

import polars as pl

from windrow.aggregates import Partials, make
from windrow.operators import Instants
from windrow.progress import Punctuation


def test_rows_of_the_same_instant_and_group_are_one_partial_and_promises_pass():
    instants = Instants(["k"], Partials([make("max", "top", "x", pl.Int64())]))
    rows = pl.DataFrame({"@t": [1, 1, 1, 2], "k": ["a", "a", None, "a"], "x": [5, 7, None, 1]})
    (found,) = instants.on_batch(0, rows)
    assert sorted(found.select("@t", "k", "@rows", "n:x").rows(), key=repr) == [
        (1, "a", 2, 2),
        (1, None, 1, 0),
        (2, "a", 1, 1),
    ]
    assert instants.on_punctuation(0, Punctuation(4)) == [Punctuation(4)]
