"""Users' aggregates that raise: the row leaves with the reason, or the query stops and says where."""

import polars as pl
import pytest

import windrow as wr
from windrow.aggregates import UserAggregate
from windrow.operators import Lift, Side


def strict(name="inverse", lift=lambda x: 1 / x, combine=lambda a, b: a + b, lower=lambda s: s, **options):
    return wr.aggregate(name, lift, combine, lower, state="DOUBLE", result="DOUBLE", **options)


def boom(*_):
    raise ValueError("no such thing")


ROWS = [
    {"t": 1, "k": "a", "x": 2},
    {"t": 2, "k": "a", "x": 0},
    {"t": 3, "k": "b", "x": 4},
    {"t": 11, "k": "b", "x": None},
]


def query(aggregate, policy="drop"):
    s = wr.stream(ROWS, progress="t", name="s")
    return s.window(10).late(policy).group_by("k").agg(r=aggregate("x"), n=wr.count())


@pytest.mark.parametrize("policy", ["drop", "side"])
def test_a_row_that_cannot_be_lifted_is_bad_and_leaves_all_aggregates(policy):
    built = query(strict(), policy)
    assert built.collect().rows() == [("a", 0, 10, 0.5, 1), ("b", 0, 10, 0.25, 1), ("b", 10, 20, None, 1)]
    bad = built.bad_rows()
    assert bad.select("t", "k", "x").rows() == [(2, "a", 0)]
    assert bad["reason"].to_list() == ["aggregate 'inverse' failed in lift: ZeroDivisionError: division by zero"]


def test_under_error_the_query_stops_and_names_aggregate_group_and_window():
    with pytest.raises(
        wr.ResultError, match=r"'inverse' failed in lift: ZeroDivisionError.* at {'k': 'a', 'window': \(0, 10\)}"
    ):
        query(strict(), "error").collect()


def test_combine_that_raises_names_aggregate_group_and_window():
    rows = [{"t": t, "k": "a", "x": 1} for t in (1, 2, 12)]
    built = wr.stream(rows, progress="t").window(20, 10).group_by("k").agg(r=strict("broken", combine=boom)("x"))
    with pytest.raises(
        wr.ResultError, match=r"'broken' failed in combine: ValueError: no such thing.*'k': 'a'.*window"
    ):
        built.collect()


def test_lower_that_raises_names_aggregate_group_and_window():
    with pytest.raises(
        wr.ResultError, match=r"failed in lower: ValueError.*'k': '.', 'window_start': 0, 'window_end': 10"
    ):
        query(strict("broken", lift=float, lower=boom)).collect()


def test_an_inverse_is_used_and_an_inverse_that_raises_is_named():
    calls = []

    def inverse(a, b):
        calls.append((a, b))
        return a - b

    rows = [{"t": t, "x": t} for t in range(50)]
    s = wr.stream(rows, progress="t")
    with_inverse = s.window(10, 1).agg(r=strict(lift=float, inverse=inverse)("x")).collect()
    assert with_inverse.equals(s.window(10, 1).agg(r=strict(lift=float)("x")).collect())
    assert calls
    with pytest.raises(wr.ResultError, match="failed in inverse"):
        s.window(10, 1).agg(r=strict(lift=float, inverse=boom)("x")).collect()


def test_a_state_of_another_type_than_declared_is_an_error_that_says_so():
    with pytest.raises(wr.ResultError, match="lift returned a state that is not Float64"):
        query(strict(lift=lambda x: {"x": x})).collect()


def test_each_row_is_lifted_once():
    seen = []
    user = UserAggregate("u", lambda v: seen.append(v) or v, max, int, pl.Int64(), pl.Int64())
    items = Lift([("x", user)]).on_batch(0, pl.DataFrame({"x": [1, None, 3]}))
    assert seen == [1, 3]
    assert not any(isinstance(i, Side) for i in items)
