"""As-of joins of Polars and DuckDB on sorted rows, as opinions on what the oracle and the engine give.

Spark's own is in tests/hosts/spark/test_asof_opinion.py.
"""

import random

import duckdb
import polars as pl
import pytest
from sqlglot import exp

import windrow as wr
from windrow.api.query import merged
from windrow.api.stream import Stream
from windrow.logical.checked_sequence import as_of
from windrow.testing import compare, oracle

NAN = float("nan")
LEFT = {"x": pl.Int64(), "t": pl.Int64(), "k": pl.Float64()}
RIGHT = {"z": pl.Float64(), "t": pl.Int64(), "k": pl.Float64(), "y": pl.Int64()}
STRATEGIES = ["backward", "forward", "nearest"]
OPERATORS = {("backward", True): ">=", ("backward", False): ">", ("forward", True): "<=", ("forward", False): "<"}
KEYS = [1.0, 2.0, 0.0, -0.0, NAN, None]


def rows(rng, schema, count, span):
    """Few times and few values: most rows have others of their key and time, some are equal in all columns."""
    values = {
        "t": range(span),
        "k": KEYS,
        "x": range(5),
        "y": [None, 1, 2],
        "z": [None, -1.5, 2.0, NAN],
    }
    data = [[rng.choice(values[name]) for name in schema] for _ in range(count)]
    return pl.DataFrame(data, schema=schema, orient="row")


def given(seed):
    rng = random.Random(seed)
    span = rng.choice([4, 15, 60])
    return rows(rng, LEFT, 30, span), rows(rng, RIGHT, rng.choice([0, 5, 40]), span)


def query(left, right, **options):
    """The as-of join of ours, over streams that may be as late as they like."""
    ours = [wr.stream(data, "t", slack=1000, name=name) for data, name in ((left, "l"), (right, "r"))]
    keys = [(exp.column("k"), exp.column("k"))]
    columns = (*((c, 0, c) for c in LEFT), ("z", 1, "z"), ("u", 1, "t"), ("y", 1, "y"))
    bound = {"most_keys": 100} if options.get("strategy", "backward") == "backward" else {}
    options = {**bound, **options} if options.get("tolerance") is None else options
    return Stream(as_of(*(s.node for s in ours), keys, columns, **options), merged(ours))


def answers(left, right, **options):
    """The oracle's, and those of the engine."""
    asked = query(left, right, **options)
    return {"oracle": oracle(asked), "engine": asked.collect()}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("exact", [True, False])
def test_polars(strategy, exact, seed):
    """All of it, ties included: rows are sorted by time and then by all columns."""
    left, right = given(seed)
    sorted_right = right.sort("t", *RIGHT).with_columns(u="t")
    for tolerance in (0, 7, 10_000):
        found = left.sort("t").join_asof(
            sorted_right,
            on="t",
            by="k",
            strategy=strategy,
            tolerance=tolerance,
            allow_exact_matches=exact,
            check_sortedness=False,
        )
        whole = found.select(*LEFT, "z", "u", "y")
        for how in ("left", "inner"):
            expected = whole if how == "left" else whole.filter(pl.col("u").is_not_null())
            options = {"strategy": strategy, "exact": exact, "tolerance": tolerance, "how": how}
            for who, answer in answers(left, right, **options).items():
                compare(answer, expected, f"{who}, {options}")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("strategy", "exact"), OPERATORS)
def test_duckdb(strategy, exact, seed):
    """Which of several rows with equal times DuckDB takes is not defined (its issue 25536: "expected behavior"), so the
    time of the partner is its opinion, and that the row is one of those. It has no nearest and no greatest distance:
    what is too far is taken away from its answer."""
    left, right = given(seed)
    operator = OPERATORS[strategy, exact]
    with duckdb.connect() as connection:
        connection.register("l", left.to_arrow())
        connection.register("r", right.rename({"t": "u"}).to_arrow())
        text = f"SELECT x, t, l.k, u, z, y FROM l ASOF LEFT JOIN r ON l.k = r.k AND t {operator} u"
        theirs = connection.sql(text).pl()
    assert_among(theirs, right)
    for tolerance in (0, 7, 10_000):
        far = (pl.col("u") - pl.col("t")).abs() > tolerance
        times = theirs.select(*LEFT, u=pl.when(far).then(None).otherwise("u"))
        for how in ("left", "inner"):
            expected = times if how == "left" else times.filter(pl.col("u").is_not_null())
            options = {"strategy": strategy, "exact": exact, "tolerance": tolerance, "how": how}
            for who, answer in answers(left, right, **options).items():
                compare(answer.select(*LEFT, "u"), expected, f"{who}, {options}")
                assert_among(answer, right)


def assert_among(answer, right):
    """The partner of each row is one of the right rows."""
    pairs = answer.filter(pl.col("u").is_not_null()).select("k", "u", "z", "y")
    partners = right.select("k", u="t", z="z", y="y")
    assert pairs.join(partners, on=["k", "u", "z", "y"], how="anti", nulls_equal=True).is_empty()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("how", ["left", "inner"])
def test_the_latest_row_with_no_bound_on_the_distance(how, seed):
    left, right = given(seed)
    found = left.sort("t").join_asof(
        right.sort("t", *RIGHT).with_columns(u="t"), on="t", by="k", check_sortedness=False
    )
    expected = found.select(*LEFT, "z", "u", "y")
    expected = expected if how == "left" else expected.filter(pl.col("u").is_not_null())
    for who, answer in answers(left, right, how=how).items():
        compare(answer, expected, who)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("shift", [-9, 4])
def test_right_times_are_moved_before_they_are_compared(shift, strategy):
    left, right = given(11)
    moved = right.with_columns(pl.col("t") + shift)
    for exact in (True, False):
        options = {"strategy": strategy, "exact": exact, "tolerance": 6}
        for who, answer in answers(left, right, shift=shift, **options).items():
            expected = oracle(query(left, moved, **options)).with_columns(pl.col("u") - shift)
            compare(answer, expected, f"{who}, {options}")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_condition_leaves_the_nearest_of_those_for_which_it_is_true(strategy):
    """Polars has none: it gets, for each left row, the right rows for which the condition is true."""
    left, right = given(12)
    condition = exp.maybe_parse("x < y + 2", dialect="spark")
    whole = []
    for row in left.iter_slices(1):
        possible = right.filter(pl.col("y") > row["x"][0] - 2).sort("t", *RIGHT).with_columns(u="t")
        whole.append(row.join_asof(possible, on="t", by="k", strategy=strategy, tolerance=9, check_sortedness=False))
    expected = pl.concat(whole).select(*LEFT, "z", "u", "y")
    found = answers(left, right, strategy=strategy, tolerance=9, how="left", where=condition)
    for who, answer in found.items():
        compare(answer, expected, who)
