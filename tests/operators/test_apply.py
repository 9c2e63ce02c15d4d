"""Apply: a Python function over rows. A row that it fails for is bad, with the reason; the others go on."""

import datetime as dt

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.operators import Apply, Side
from windrow.spec.functions import Function
from windrow.testing import replay

CHECK = settings(deadline=None, derandomize=True, max_examples=60)


def inverse(x):
    """Fails for zero."""
    return 1 / x


@CHECK
@given(st.lists(st.sampled_from([None, 0, 1, 2, 4]), max_size=12), st.booleans())
def test_only_the_rows_it_fails_for_are_bad(values, vectorized):
    def whole(series):
        return [None if x is None else inverse(x) for x in series]

    def single(x):
        return None if x is None else inverse(x)

    call = whole if vectorized else single
    function = Function("inverse", call, ("x",), pl.Float64(), vectorized)
    frame = pl.DataFrame({"x": values, "@t": range(len(values))}, schema={"x": pl.Int64, "@t": pl.Int64})
    good, *sides = Apply("y", function).on_batch(0, frame)
    assert good.rows() == [(x, t, None if x is None else 1 / x) for t, x in enumerate(values) if x != 0]
    failed = [x for x in values if x == 0]
    assert sum(s.count for s in sides) == len(failed)
    for side in sides:
        assert isinstance(side, Side)
        assert side.rows["x"].to_list() == failed
        assert set(side.rows["reason"]) == {"inverse failed: ZeroDivisionError: division by zero"}
        assert side.rows.columns == ["x", "reason"], "columns of ours stay inside"


def test_a_vectorized_function_that_gives_too_few_values_fails_for_every_row_it_was_asked_for():
    function = Function("one", lambda x: pl.Series([1]), ("x",), pl.Int64(), True)
    good, *bad = Apply("y", function).on_batch(0, pl.DataFrame({"x": [1, 2, 3]}))
    assert good.height == 3, "asked for one row at a time it gives one"
    assert bad == []
    function = Function("none", lambda x: pl.Series([], dtype=pl.Int64), ("x",), pl.Int64(), True)
    good, side = Apply("y", function).on_batch(0, pl.DataFrame({"x": [1, 2, 3]}))
    assert (good.height, side.count) == (0, 3)
    assert side.rows["reason"][0] == "none failed: ValueError: gave 0 values for 1 rows"


def test_values_that_do_not_fit_the_declared_type_are_bad_rows():
    function = Function("text", lambda x: "text" if x == 2 else x, ("x",), pl.Int64())
    good, side = Apply("y", function).on_batch(0, pl.DataFrame({"x": [1, 2, 3]}))
    assert good["y"].to_list() == [1, 3]
    assert side.rows["x"].to_list() == [2]


ROWS = st.lists(st.fixed_dictionaries({"t": st.integers(0, 40), "x": st.integers(0, 5)}), max_size=25)
SCHEMA = {"t": pl.Int64, "x": pl.Int64}


@settings(deadline=None, derandomize=True, max_examples=30)
@given(ROWS, st.integers(0, 99))
def test_queries_with_functions_give_what_they_mean(rows, seed):
    s = wr.stream(pl.DataFrame(rows, schema=SCHEMA), "t", slack=4, name="s")
    third = wr.udf(lambda x: 1 / (x - 3), "DOUBLE", "x")
    replay(s.apply(y=third).window(10, 5).agg(n=wr.count(), y=wr.max("y")), runs=2, seed=seed)
    replay(
        s.where(wr.udf(lambda x: None if x == 1 else x % 2 == 0, "BOOLEAN", "x")).order_by("t", "x"), seed=seed, runs=2
    )
    tens = wr.udf(lambda t: t // 10 * 10, "BIGINT", "t", vectorized=True, monotone=True)
    replay(s.apply(t=tens).window(20, 10).group_by("t").agg(n=wr.count()), runs=2, seed=seed)


def test_bad_rows_are_in_the_side_output_with_the_reason():
    s = wr.stream([{"t": 1, "x": 0}, {"t": 2, "x": 1}], "t", name="s")
    query = s.apply(y=wr.udf(inverse, "DOUBLE", "x")).window(10).agg(n=wr.count())
    assert query.collect().rows() == [(0, 10, 1)]
    assert query.bad_rows().rows(named=True) == [
        {"t": 1, "x": 0, "reason": "inverse failed: ZeroDivisionError: division by zero"}
    ]


def test_a_function_that_may_change_the_order_ends_progress():
    s = wr.stream([{"t": 1}], "t")
    other = wr.udf(lambda t: -t, "BIGINT", "t")
    with pytest.raises(wr.PlanError, match="keep it"):
        s.apply(t=other).window(5)
    assert s.apply(u=other).window(5).agg(n=wr.count()).collect().height == 1


def test_a_monotone_function_that_has_no_progress_value_for_a_row_makes_it_bad_and_must_have_one_for_promises():
    def known(t):
        if t == 9:
            raise ValueError("not that one")
        return None if t == 4 else t

    s = wr.stream(pl.DataFrame(schema={"t": pl.Int64}), "t", slack=0, name="s")
    run = s.apply(t=wr.udf(known, "BIGINT", "t", monotone=True)).window(5).agg(n=wr.count()).run()
    run.push("s", [{"t": 1}, {"t": 4}, {"t": 6}])
    assert run.counts["rows_bad"] == 1
    assert run.results().rows() == [(0, 5, 1)]
    with pytest.raises(wr.ResultError, match="failed for the promise 9: ValueError: not that one"):
        run.promise("s", 9)


@pytest.mark.parametrize("using", [None, "iop"])
def test_a_plan_calls_no_function(using):
    """Measuring the stream for the optimizer would, on rows that the query then asks it for again."""
    called = []
    tested = wr.udf(lambda t: called.append(t) or True, "BOOLEAN", "t")
    s = wr.stream(pl.DataFrame({"t": range(2000)}), "t", slack=1, name="s")
    ways = s.split("t > 5", otherwise=lambda rest: rest.where(tested))
    query = ways.union(s.where("t > 0")).window(5, using=using).agg(n=wr.count())
    query.explain()
    assert called == []
    query.collect()
    assert called == [*range(6)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s: s.apply(y=wr.udf(len, "BIGINT")), "needs the columns that the function takes"),
        (lambda s: s.apply(y=3), "neither a SQL expression nor a wr.udf"),
        (lambda s: s.apply(y=wr.udf(len, "BIGINT", "z")), "z is not a column; there are: t"),
        (lambda s: wr.udf(len, "BIGINT", "a", "b", monotone=True), "takes one column, not 2"),
        (lambda s: wr.udf(len, "NONSENSE", "a"), "NONSENSE"),
        (lambda s: s.where(wr.udf(lambda t: t, "BIGINT", "t")), "must be true or false"),
    ],
)
def test_what_cannot_be_a_function_is_refused(make, message):
    with pytest.raises(wr.WindrowError, match=message):
        make(wr.stream([{"t": dt.date(2024, 1, 1)}], "t"))
