"""Joins of streams with static tables end to end: in process and as Spark drives them, against the oracle."""

import random
from dataclasses import replace

import polars as pl
import pyarrow as pa
import pytest

import windrow as wr
from windrow.errors import DataError, PlanError, QueryError
from windrow.logical.nodes import Filter, Lookup
from windrow.planner.rules import rewritten
from windrow.testing import compare, oracle, replay
from windrow.testing.disturbed import disturbed
from windrow.testing.simulated import SimulatedSpark

NAN = float("nan")
KEYS = {
    "bigint": ([1, 2, 3, None], pl.Int64()),
    "double": ([1.0, -0.0, 0.0, NAN, None], pl.Float64()),
    "string": (["a", "", None], pl.String()),
}
NAMES = [{"k": 1, "name": "one"}, {"k": 2, "name": "two"}, {"k": 2, "name": "zwei"}, {"k": None, "name": "none"}]


def rows(rng, kind, count=40):
    values, dtype = KEYS[kind]
    data = [(rng.randrange(80), rng.choice(values), rng.choice([None, *range(9)])) for _ in range(count)]
    return pl.DataFrame(data, schema={"t": pl.Int64(), "k": dtype, "x": pl.Int64()}, orient="row")


def drawn(seed):
    """A join with a table, with what can be before and after it."""
    rng = random.Random(seed)
    kind = rng.choice(sorted(KEYS))
    other = {"bigint": "double", "double": "bigint"}.get(kind, kind) if rng.random() < 0.3 else kind
    given = rows(rng, kind).sort("t")
    stream = wr.stream(given, "t", slack=rng.choice([0, 9]), name="s")
    if rng.random() < 0.3:
        stream = stream.union(wr.stream(rows(rng, kind, 10).sort("t"), "t", slack=9, name="m"))
    if rng.random() < 0.2:
        stream = stream.join(stream.select("t", j="k"), left_on="k", right_on="j", within=(0, 5))
    looked_up = wr.table(rows(rng, other, rng.choice([0, 1, 12])).rename({"t": "low"}), name="names")
    where = rng.choice([None, "x < low", wr.udf(lambda x, low: 9 // x < low, "BOOLEAN", "x", "low")])
    how = rng.choice(["inner", "left", "semi", "anti"])
    keys = {} if rng.random() < 0.2 else {"on": "k"}
    query = stream.join(looked_up, **keys, how=how, where=where, suffix="2")
    if rng.random() < 0.3:
        query = query.where(rng.choice(["x > 2", "x IS NULL OR t < 50"]))
    if rng.random() < 0.5:
        value = "x2" if "x2" in query.schema else "x"
        query = query.window(20, 10).group_by(rng.choice(["k", "x"])).agg(n=wr.count(), s=wr.sum(value))
    return query


@pytest.mark.parametrize("seed", range(30))
def test_random_lookups_equal_the_oracle_under_any_arrival(seed):
    replay(drawn(seed), runs=2, seed=seed)


@pytest.mark.parametrize("seed", range(6))
def test_random_lookups_as_spark_drives_them(seed):
    query = drawn(seed)
    given = {name: source.data for name, source in query.sources.items()}
    expected = oracle(query)
    parts = [{name: [data[i::3][:7], data[i::3][7:]] for name, data in given.items()} for i in range(3)]
    disturbed(lambda spark: over(query, {n: spark.stream(d.schema) for n, d in given.items()}), parts)
    spark = SimulatedSpark(shards=3, seed=seed)
    compare(spark.collect(over(query, {n: spark.frame([d[::2], d[1::2]]) for n, d in given.items()})), expected)


def over(query, sources):
    """The same query over other sources."""
    return replace(query, sources={n: replace(query.sources[n], data=d, spark=True) for n, d in sources.items()})


def stream(**more):
    return wr.stream([{"t": 5, "k": 1}, {"t": 6, "k": 2}, {"t": 7, "k": 3}], "t", name="s", **more)


def names(**more):
    return wr.table(NAMES, name="names", **more)


@pytest.mark.parametrize(
    "data",
    [
        NAMES,
        pl.DataFrame(NAMES),
        pl.DataFrame(NAMES).lazy(),
        pa.Table.from_pylist(NAMES),
        pl.DataFrame(NAMES).to_pandas(),
    ],
    ids=["rows", "polars", "lazy", "arrow", "pandas"],
)
def test_a_table_can_be_of_any_kind(data):
    joined = stream().join(wr.table(data, name="names"), on="k")
    assert joined.collect().rows() == [(5, 1, 1, "one"), (6, 2, 2, "two"), (6, 2, 2, "zwei")]


def test_kinds_of_joins_with_a_table():
    found = {how: stream().join(names(), on="k", how=how).collect().rows() for how in ("left", "semi", "anti")}
    assert found["left"][-1] == (7, 3, None, None)
    assert found["semi"] == [(5, 1), (6, 2)]
    assert found["anti"] == [(7, 3)]


@pytest.mark.parametrize("how", ["right", "full"])
def test_rows_of_a_table_without_a_partner_would_wait_for_ever(how):
    with pytest.raises(QueryError, match="would have to wait until no row of the stream can come, and that is never"):
        stream().join(names(), on="k", how=how)


def test_what_is_about_two_streams_is_refused():
    with pytest.raises(QueryError, match=r"within: a join with a table has no times"):
        stream().join(names(), on="k", within=(0, 5))
    with pytest.raises(QueryError, match=r"late, using: a join with a table"):
        stream().join(names(), on="k", late="side", using="oa")
    with pytest.raises(QueryError, match=r"takes a stream or a table \(wr.table\), not"):
        stream().join(NAMES, on="k")
    with pytest.raises(QueryError, match="cannot be equal: cast one of them"):
        stream().join(names(), left_on="k", right_on="name")
    with pytest.raises(QueryError, match="a condition must be true or false"):
        stream().join(names(), on="k", where="t + 1")
    with pytest.raises(QueryError, match="nme"):
        stream().join(names(), left_on="k", right_on="nme")
    with pytest.raises(QueryError, match="both sides of the join have columns k"):
        stream().join(names(), on="k", suffix="")
    with pytest.raises(PlanError, match="results with versions with a table"):
        stream().window(5).late("revise", keep=5).agg(k=wr.count()).join(names(), on="k")


def test_tables_that_cannot_be_read_or_are_too_large():
    with pytest.raises(DataError, match="has no columns"):
        wr.table([])
    with pytest.raises(DataError, match=r"has [\d,]+ bytes, more than its limit of 10"):
        names(limit=10)
    with pytest.raises(DataError, match="cannot read a int"):
        wr.table(5)
    with pytest.raises(DataError, match="a streaming DataFrame: a stream is declared with"):
        wr.table(SimulatedSpark().stream({"k": pl.Int64()}))


def test_the_plan_names_the_table_and_its_columns_and_not_its_rows():
    text = stream().join(names(), on="k", how="left", where="name <> 'x'").explain()
    assert "Lookup left in table names (k bigint, name string) on k = k and name <> 'x': stream.t AS t" in text
    assert "zwei" not in text


def test_rows_of_a_lookup_progress_as_they_did():
    """A window, DISTINCT and ORDER BY behind it; what is from the table does not progress."""
    joined = stream(slack=0).join(names(), on="k")
    assert list(joined.node.times) == ["t"]
    assert joined.window(2).group_by("name").agg(n=wr.count()).collect().rows() == [
        ("one", 4, 6, 1),
        ("two", 6, 8, 1),
        ("zwei", 6, 8, 1),
    ]
    assert joined.select("t", "k").distinct().order_by("t").collect().rows() == [(5, 1), (6, 2)]
    run = joined.window(2).agg(n=wr.count()).run().push("s", [{"t": 5, "k": 1}, {"t": 9, "k": 9}])
    assert run.results().rows() == [(4, 6, 1)]  # a row without a partner still says how far the stream is


def test_rows_that_can_come_out_twice_have_no_numbers():
    numbered = wr.stream([{"t": 5, "k": 1, "n": 0}], "t", row_num="n")
    assert numbered.join(names(), on="k", how="semi").rows(2, 1).agg(c=wr.count()).collect().height
    with pytest.raises(PlanError, match="nothing numbers the rows"):
        numbered.join(names(), on="k").rows(2, 1).agg(c=wr.count())


def test_conditions_on_the_stream_are_tested_before_the_lookup():
    joined = stream().join(names(), on="k").where("t > 5 AND name <> 'zwei'")
    (lookup,) = [n for n in rewritten(joined.node).walk() if isinstance(n, Lookup)]
    assert isinstance(lookup.input, Filter)
    assert lookup.input.predicate.sql() == "t > 5"
    assert joined.collect().rows() == oracle(joined).rows() == [(6, 2, 2, "two")]


def test_a_condition_goes_through_a_lookup_to_a_join_below():
    other = wr.stream([{"u": 5, "j": 1}], "u", name="r")
    joined = stream().join(other, left_on="k", right_on="j", within=(0, 5)).join(names(), on="k").where("t < 6")
    filters = [n for n in rewritten(joined.node).walk() if isinstance(n, Filter)]
    assert [type(n.input).__name__ for n in filters] == ["Scan"]


def test_columns_of_the_table_that_nobody_uses_are_not_looked_up():
    joined = stream().join(names(), on="k").select("t", y="k + 1")
    (lookup,) = [n for n in rewritten(joined.node).walk() if isinstance(n, Lookup)]
    assert [name for name, _, _ in lookup.columns] == ["t", "k"]
    assert joined.collect().rows() == [(5, 2), (6, 3), (6, 3)]


def test_a_table_that_changed_is_used_after_a_restart():
    """The rows are not part of the state: a snapshot fits the same query over newer rows of the table."""

    def query(text):
        return stream(slack=0).join(wr.table([{"k": 1, "name": text}], name="names"), on="k").select("t", "name")

    run = query("old").run().push("s", [{"t": 1, "k": 1}])
    assert run.results().rows() == [(1, "old")]
    again = query("new").run().restore(run.snapshot()).push("s", [{"t": 2, "k": 1}])
    assert again.results().rows() == [(2, "new")]
