"""Every error a user can cause is ours: whatever a parameter of the public API is given, only a WindrowError comes out.

Each parameter of each call gets each odd value; what is accepted must also run (issue 11).
"""

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import windrow as wr

ROWS = [{"t": i, "n": i, "k": "ab"[i % 2], "x": i * 3, "f": i / 2, "mark": None} for i in range(6)]
ODD = [
    None,
    True,
    0,
    -1,
    3,
    2**63,
    -(2**70),
    1.5,
    math.nan,
    math.inf,
    Decimal("1.5"),
    "",
    " ",
    "k",
    "t",
    "nope",
    "x +",
    "x > 1",
    "count(*)",
    "SELECT 1",
    "'",
    "`",
    "NULL",
    "10 seconds",
    "99999999999999999999999",
    "1e400 days",
    b"t",
    (),
    [],
    ["k", 3],
    {},
    {"t": 1},
    {1: 2},
    [{1: 2}],
    [[1, 2]],
    object(),
    lambda *_: 1,
    timedelta(seconds=1),
    timedelta(days=10**6),
    datetime(2024, 1, 1),
    datetime(2024, 1, 1, tzinfo=UTC),
    date(2024, 1, 1),
    np.int64(3),
    np.array([1, 2]),
    np.array([[1, 2], [3, 4]]),
    np.array([(1, 2)], dtype=[("t", "i8"), ("x", "i8")]),
    pd.Series([1, 2]),
    pl.Series([1, 2]),
    pl.col("x"),
    pl.DataFrame({"t": [1]}),
    wr.count(),
]


def plain():
    return wr.stream(ROWS, progress="t", slack=1, row_num="n", name="s")


def windowed():
    return plain().window(4, 2)


def results():
    return windowed().group_by("k").agg(n=wr.count(), top=wr.max("x"))


RESULTS = results()


def aggregates():
    of = {f: getattr(wr, f) for f in ("count", "sum", "avg", "min", "first", "collect_list", "median", "mode", "var")}
    return {f"wr.{n}": (lambda argument, f=f: windowed().agg(v=f(argument)), {"argument": "x"}) for n, f in of.items()}


def shares():
    of = {f: getattr(wr, f) for f in ("quantile", "heavy_hitters", "approx_quantile", "approx_heavy_hitters")}
    return {f"wr.{n}": (lambda a, p, f=f: windowed().agg(v=f(a, p)), {"a": "x", "p": 0.5}) for n, f in of.items()}


def user(**given):
    parts = {"name": "longest", "lift": int, "combine": max, "lower": int, "state": "BIGINT", "result": "BIGINT"}
    return windowed().agg(v=wr.aggregate(**{**parts, **given})("x"))


CALLS = {  # a call by its name, with parameters that are fine
    "stream": (
        lambda **g: wr.stream(**g),
        {
            "data": ROWS,
            "progress": "t",
            "slack": 1,
            "punctuation": None,
            "punctuation_by": (),
            "parse": None,
            "row_num": "n",
            "row_slack": 0,
            "arrival": None,
            "ahead": None,
            "statistics": None,
            "name": "s",
        },
    ),
    "stream, markers": (
        lambda **g: wr.stream(ROWS, "t", **g).window(2).agg(n=wr.count()),
        {"punctuation": "mark", "punctuation_by": ("k",)},
    ),
    "stream, ahead": (lambda **g: wr.stream(ROWS, "t", **g), {"arrival": "x", "ahead": 5}),
    "where": (lambda **g: plain().where(**g), {"condition": "x > 1"}),
    "select": (lambda a, b: plain().select(a, named=b), {"a": "t", "b": "x"}),
    "apply": (lambda a: plain().apply(y=a), {"a": "x"}),
    "split": (lambda **g: plain().split(**g), {"condition": "x > 1", "then": None, "otherwise": lambda s: s}),
    "order_by": (lambda a, b: plain().order_by(a, b), {"a": "t", "b": "x DESC"}),
    "union": (lambda a: plain().union(a), {"a": wr.stream(ROWS, "t", slack=1, row_num="n", name="other")}),
    "window": (
        lambda **g: plain().window(**g).agg(n=wr.count()),
        {
            "range": 4,
            "slide": 2,
            "origin": None,
            "time_zone": None,
            "using": None,
            "memory": None,
            "flush": None,
        },
    ),
    "window, two levels": (
        lambda **g: plain().window(4, using="two-level", **g).agg(n=wr.count()),
        {"memory": "1 MB", "flush": "lazy"},
    ),
    "landmark": (
        lambda **g: plain().landmark(**g).agg(n=wr.count()),
        {"slide": 2, "origin": None, "time_zone": None},
    ),
    "rows": (
        lambda **g: plain().rows(**g).agg(n=wr.count()),
        {"range": 3, "slide": 1, "partition_by": (), "using": None},
    ),
    "each_row": (
        lambda **g: plain().each_row(**g).agg(n=wr.count()),
        {"range": 3, "every": 1, "by": "rank", "partition_by": (), "using": None},
    ),
    "session": (lambda **g: plain().session(**g).agg(n=wr.count()), {"gap": 2}),
    "top": (lambda **g: results().top(**g), {"limit": 1, "by": "n", "descending": True}),
    "group_by": (lambda a, b: windowed().group_by(a, named=b).agg(n=wr.count()), {"a": "k", "b": "x"}),
    "late": (
        lambda **g: windowed().late(**g).agg(n=wr.count()),
        {"policy": "revise", "generous": False, "keep": 3},
    ),
    "emit_early": (lambda **g: windowed().emit_early(**g).agg(n=wr.count()), {"every": 2}),
    "agg": (lambda a: windowed().agg(n=a), {"a": wr.count()}),
    "filter": (lambda a: windowed().agg(n=wr.sum("x").filter(a)), {"a": "x > 1"}),
    "top_k": (lambda a, k: windowed().agg(v=wr.top_k(a, k)), {"a": "x", "k": 2}),
    **aggregates(),
    **shares(),
    "aggregate": (
        user,
        {
            "name": "longest",
            "lift": int,
            "combine": max,
            "lower": int,
            "state": "INT",
            "result": "INT",
            "inverse": None,
        },
    ),
    "udf": (
        lambda call, returns, column: plain().apply(y=wr.udf(call, returns, column)),
        {"call": lambda x: x, "returns": "BIGINT", "column": "x"},
    ),
    "sql": (lambda query, s: wr.sql(query, s=s), {"query": "SELECT t FROM s", "s": plain()}),
    "sql, functions": (
        lambda f: wr.sql("SELECT t FROM s", f, s=plain()),
        {"f": wr.promise.function(lambda seen: None, "mine")},
    ),
    "together": (lambda a: wr.together(a=a, b=RESULTS), {"a": RESULTS}),
    "promise.slack": (lambda a: wr.stream(ROWS, "t", punctuation=wr.promise.slack(a)), {"a": 3}),
    "promise.rows": (lambda a: wr.stream(ROWS, "t", punctuation=wr.promise.rows(a)), {"a": 3}),
    "promise.partitions": (
        lambda **g: wr.stream(ROWS, "t", punctuation=wr.promise.partitions(**g)),
        {"column": "k", "count": 2, "slack": 1},
    ),
    "promise.markers": (
        lambda **g: wr.stream(ROWS, "t", punctuation=wr.promise.markers(**g)),
        {"column": "mark", "by": "k"},
    ),
    "promise.heartbeats": (
        lambda **g: wr.stream(ROWS, "t", punctuation=wr.promise.heartbeats(**g)),
        {"column": "mark", "skew": 1},
    ),
    "promise.estimated": (
        lambda **g: wr.stream(ROWS, "t", punctuation=wr.promise.estimated(**g)),
        {"initial": 3, "quantile": 0.9},
    ),
    "promise.function": (
        lambda **g: wr.stream(ROWS, "t", punctuation=wr.promise.function(**g)),
        {"says": lambda seen: None, "name": "mine"},
    ),
    "run.promise": (lambda **g: RESULTS.run().promise(**g), {"source": "s", "at": 3}),
    "Statistics": (
        lambda **g: wr.stream(ROWS, "t", statistics=wr.Statistics(**g)).window(2).agg(n=wr.count()),
        {"rate": 10.0, "groups": 2.0},
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_calls_as_they_are_meant_run(call):
    function, given = CALLS[call]
    found = function(**given)
    assert not isinstance(found, wr.Stream) or found.collect() is not None


def outcome(function, given):
    """The error of a call, if it has one."""
    try:
        found = function(**given)
        if isinstance(found, wr.Stream):
            found.explain()
            found.collect()
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize(("call", "parameter"), [(call, p) for call, (_, given) in CALLS.items() for p in given])
def test_only_our_errors_come_out_of_odd_calls(call, parameter):
    function, given = CALLS[call]
    for odd in ODD:
        error = outcome(function, {**given, parameter: odd})
        said = f"{parameter}={odd!r}: {error!r}"
        assert error is None or (isinstance(error, wr.WindrowError) and not isinstance(error, wr.InternalError)), said
        own = isinstance(error, wr.ResultError)  # of a function that the user has given
        assert own or "<class" not in str(error) or repr(odd) in str(error), said
        assert own or "Error:" not in str(error), said


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame([[1, 2]], columns=["t", "t"]),
        pa.table([pa.array([1]), pa.array([2])], names=["t", "t"]),
        pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["t", "t"]),
        np.array([1, 2]),
        np.array([{"t": 1}]).reshape(1, 1),
        [0],
        pd.Series([1]),
    ],
    ids=["pandas", "arrow table", "arrow batch", "numpy", "numpy of objects", "falsy row", "series"],
)
def test_data_that_is_no_table_is_refused(data):
    with pytest.raises(wr.DataError):
        wr.stream(data, progress="t")


@pytest.mark.parametrize("odd", [0, None, "", False, [], (), 0.0])
def test_a_falsy_value_among_dicts_is_refused_like_any_other(odd):
    with pytest.raises(wr.DataError, match="rows must be dicts, and row 1, counted from 0, is a"):
        wr.stream([{"t": 1}, odd, {"t": 2}], progress="t")
    run = wr.stream([{"t": 1}], progress="t", name="s").run()
    with pytest.raises(wr.DataError, match="rows must be dicts, and row 1, counted from 0, is a"):
        run.push("s", [{"t": 1}, odd])


@pytest.mark.parametrize("odd", [0, "", False, [], 5])
def test_a_value_among_the_dicts_of_a_column_is_refused_and_never_read_as_null(odd):
    with pytest.raises(wr.DataError):
        wr.stream([{"t": 1, "s": {"a": 1}}, {"t": 2, "s": odd}], progress="t")
    missing = wr.stream([{"t": 1, "s": {"a": 1}}, {"t": 2, "s": None}, {"t": 3}], progress="t")
    assert missing.collect().rows() == [(1, {"a": 1}), (2, None), (3, None)]
