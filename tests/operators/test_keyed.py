"""Keys: joins and numbers for which NULL, NaN and the two zeros are what groups take them for."""

import math

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.operators.state.keyed import matched, numbered

CHECK = settings(deadline=None, derandomize=True, max_examples=100)
KEYS = st.sampled_from([None, math.nan, 0.0, -0.0, 1.5])
ROWS = st.lists(st.tuples(KEYS, st.sampled_from(["a", None])), min_size=1, max_size=8)


def plain(key):
    """A key as groups take it: the zeros are one, and NaN is one."""
    return tuple("nan" if v != v else 0.0 if v == 0 else v for v in key)


def frame(rows, **more):
    found = pl.DataFrame(rows, schema={"x": pl.Float64, "k": pl.String}, orient="row")
    return found.with_columns(pl.Series(name, values, dtype=pl.Int64) for name, values in more.items())


@CHECK
@given(ROWS, st.sampled_from([("x",), ("k",), ("x", "k")]))
def test_equal_keys_have_the_same_number_and_numbers_count_up(rows, by):
    numbers = numbered(frame(rows), by)["@group"].to_list()
    keys = [plain([row[("x", "k").index(c)] for c in by]) for row in rows]
    first = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    assert numbers == [first[key] for key in keys]


def test_without_keys_there_is_one_group():
    assert numbered(frame([(1.0, "a"), (2.0, "b")]), ())["@group"].to_list() == [0, 0]


@CHECK
@given(ROWS, ROWS, st.sampled_from([("x",), ("k",), ("x", "k")]), st.sampled_from(["inner", "left", "semi", "anti"]))
def test_joins_beside_a_model(left, right, by, how):
    of = lambda row: plain([row[("x", "k").index(c)] for c in by])  # noqa: E731
    distinct = list({of(row): row for row in right}.items())  # one row per key, as every caller has it
    places = {key: i for i, (key, _) in enumerate(distinct)}
    other = frame([row for _, row in distinct], b=range(len(distinct))).select(*by, "b")
    found = matched(frame(left, a=range(len(left))), other, by, how)
    partner = [places.get(of(row)) for row in left]
    wanted = {
        "inner": [(i, p) for i, p in enumerate(partner) if p is not None],
        "left": list(enumerate(partner)),
        "semi": [(i,) for i, p in enumerate(partner) if p is not None],
        "anti": [(i,) for i, p in enumerate(partner) if p is None],
    }[how]
    assert found.select("a", *(["b"] if how in ("inner", "left") else [])).rows() == wanted, "in the order of the left"


@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
def test_no_trace_of_how_it_is_done_is_left(how):
    found = matched(frame([(math.nan, "a")]), frame([(math.nan, "a")]).select("x"), ["x"], how)
    assert found.columns == ["x", "k"]
