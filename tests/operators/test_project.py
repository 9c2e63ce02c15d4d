"""Project computes columns, one row out for each row in."""

import datetime as dt

import polars as pl
import pytest

from windrow.operators import Project
from windrow.progress import Punctuation

LITERALS = [1, 1.5, "a", True, None, dt.date(2020, 1, 1), dt.datetime(2020, 1, 1), dt.timedelta(seconds=1)]


def test_columns_are_computed_from_the_old_ones_in_the_order_given():
    project = Project([(pl.col("x") * 2).alias("double"), pl.col("y")])
    (found,) = project.on_batch(0, pl.DataFrame({"x": [1, None], "y": ["a", "b"]}))
    assert found.columns == ["double", "y"]
    assert found.rows() == [(2, "a"), (None, "b")]


@pytest.mark.parametrize("value", LITERALS)
@pytest.mark.parametrize("height", [0, 1, 3])
def test_literals_alone_give_as_many_rows_as_come_in(value, height):
    frame = pl.DataFrame({"x": list(range(height))}, schema={"x": pl.Int64})
    (found,) = Project([pl.lit(value).alias("v"), pl.lit(7).alias("w")]).on_batch(0, frame)
    assert found.rows() == [(value, 7)] * height


@pytest.mark.parametrize("height", [0, 1, 3])
def test_a_literal_beside_a_column_is_repeated(height):
    frame = pl.DataFrame({"x": list(range(height))}, schema={"x": pl.Int64})
    (found,) = Project([pl.lit("a").alias("v"), pl.col("x")]).on_batch(0, frame)
    assert found.rows() == [("a", i) for i in range(height)]


def test_promises_pass_unchanged_and_nothing_is_remembered():
    project = Project([pl.col("x")])
    assert project.on_punctuation(0, Punctuation(5, "a")) == [Punctuation(5, "a")]
    assert (project.snapshot(), project.changes(), project.state_bytes(), project.waits_for()) == ({}, {}, 0, [])
