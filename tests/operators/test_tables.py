"""Bags of windows by entering and leaving tables, against the concatenation of all tables of every window."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.aggregates.bags import Bag
from windrow.operators.kernels import bag_tables as tables

CHECK = settings(deadline=None, derandomize=True, max_examples=150)
VALUES = {
    pl.String(): ["a", "b", "c"],
    pl.Int64(): [-5, 0, 7],
    pl.Float64(): [math.nan, 0.0, 1.5],
    pl.Date(): [None, 1, 2],
}


def concatenated(part, partials, low, high):
    """The slow way: every table of every range again."""
    frames = [partials[a:b].with_columns(pl.lit(i).alias("@q")) for i, (a, b) in enumerate(zip(low, high, strict=True))]
    combined = pl.concat(frames).group_by("@q").agg(part.combine())
    return part.finish(combined, False).sort("@q").select(part.columns)


def as_sets(frame):
    """Lists without their order, which means nothing; NaN as text, for it does not equal itself."""
    return [{(str(v), n) for v, n in zip(*row, strict=True)} for row in frame.rows()]


@st.composite
def cases(draw):
    dtype = draw(st.sampled_from(list(VALUES)))
    bag = st.dictionaries(st.sampled_from(VALUES[dtype]), st.integers(1, 9), max_size=3)
    bags = [{v: n for v, n in b.items() if v is not None} for b in draw(st.lists(bag, min_size=1, max_size=12))]
    partials = pl.DataFrame(
        [
            pl.Series("values:x", [list(b) for b in bags], dtype=pl.List(pl.Int32 if dtype == pl.Date else dtype)),
            pl.Series("counts:x", [list(b.values()) for b in bags], dtype=pl.List(pl.Int64)),
        ]
    ).cast({"values:x": pl.List(dtype)})
    steps = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=14))
    low, high, ranges = 0, 1, []
    for more_low, more_high in steps:
        high = min(high + more_high, len(bags))
        low = min(low + more_low, high - 1)
        ranges.append((low, high))
    low, high = (np.array(side) for side in zip(*ranges, strict=True))
    return Bag("x", dtype), partials, low, high


@CHECK
@given(case=cases(), values=st.integers(1, 40), windows=st.integers(1, 5))
def test_entering_and_leaving_tables_give_what_all_tables_together_give(case, values, windows):
    part, partials, low, high = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "VALUES", values)
        patch.setattr(tables, "WINDOWS", windows)
        found = pl.DataFrame(tables.slid(part, partials, low, high))
    assert found.schema == dict(zip(part.columns, part.dtypes, strict=True))
    assert as_sets(found) == as_sets(concatenated(part, partials, low, high))
    assert found["values:x"].list.len().to_list() == [len(s) for s in as_sets(found)]  # no value twice


def test_the_work_does_not_grow_with_the_panes_of_a_window(monkeypatch):
    """One place per window and value, however many of its panes have the value."""
    places = []
    cumsum = np.cumsum

    def counting(array, *rest, **named):
        places.append(len(array))
        return cumsum(array, *rest, **named)

    panes = 400
    lists = {"values:x": [["a"]] * panes, "counts:x": [[1]] * panes}
    partials = pl.DataFrame(lists, schema={"values:x": pl.List(pl.String), "counts:x": pl.List(pl.Int64)})
    monkeypatch.setattr(tables.np, "cumsum", counting)
    for length in (1, 10, 200):
        places.clear()
        low = np.arange(panes - length + 1)
        tables.slid(Bag("x", pl.String()), partials, low, low + length)
        assert max(places) <= panes + 1
