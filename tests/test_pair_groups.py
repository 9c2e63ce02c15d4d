"""Groups by both times of a join, end to end: in process and as Spark drives them, against the oracle."""

import datetime as dt
import random
from dataclasses import replace

import polars as pl
import pytest

import windrow as wr
from windrow.api.stream import Stream
from windrow.errors import QueryError
from windrow.logical.nodes import LATER, LEFT, RIGHT, PairAggregate, WindowAggregate
from windrow.sinks.parquet import read_committed
from windrow.testing import compare, oracle, replay
from windrow.testing.disturbed import disturbed
from windrow.testing.simulated import SimulatedSpark

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def rows(rng, name, count=40, span=60):
    data = [(rng.randrange(span), rng.choice([1, 2, None]), rng.choice([None, *range(9)])) for _ in range(count)]
    frame = pl.DataFrame(data, schema={"t": pl.Int64(), "k": pl.Int64(), name: pl.Int64()}, orient="row")
    at = [t + rng.random() * 5 for t in frame["t"]]
    return frame[sorted(range(frame.height), key=at.__getitem__)]


def drawn(seed):
    rng = random.Random(seed)
    left = wr.stream(rows(rng, "x"), "t", slack=5, name="l")
    right = wr.stream(rows(rng, "y"), "t", slack=5, name="r")
    near = {"within": (low := rng.choice([-9, -2, 0, 3]), low + rng.choice([0, 4, 15]))}
    if rng.random() < 0.3:
        near = {"tumbling": rng.choice([1, 7, 20])}
    how = rng.choice(["inner", "inner", "left", "right", "full"])
    pairs = left.join(right, on="k", how=how, **near)
    match rng.choice(["nothing", "where", "select", "apply", "lookup"]):
        case "lookup":
            names = pl.DataFrame({"y": [None, 2, 3, 3, 5], "name": ["n", "a", "b", "c", "d"]})
            pairs = pairs.join(wr.table(names, name="names"), on="y", how=rng.choice(["inner", "left", "anti"]))
        case "where":
            pairs = pairs.where("x is null or x > 2")
        case "select":
            pairs = pairs.select("t", "t_right", "k", y="y + 1", x="x")
        case "apply":
            pairs = pairs.apply(y=wr.udf(lambda y: None if y is None else y * 2, "BIGINT", "y"))
    times = rng.choice([("t", "t_right"), ("t", "t_right"), ("t div 10", "t_right div 10"), ("t div 10", "t_right")])
    keys = {"a": times[0], "b": times[1], **rng.choice([{}, {"k": "k"}, {"x": "x"}])}
    groups = pairs.group_by(**keys).agg(n=wr.count(), s=wr.sum("y"), m=wr.max("y"), d=wr.first("y"))
    return after(rng, groups)


def after(rng, groups):
    """What can follow: windows on any time of the groups, an order, and groups by both times again."""
    node = groups.node
    choices = ["nothing", "nothing"]
    choices += ["left", "order", "empty"] if node.times.get("a") else []
    choices += ["right"] if node.times.get("b") else []
    choices += ["later", "earlier", "again"] if node.pair_times else []
    match rng.choice(choices):
        case "left":
            return groups.window(20, on="a").agg(n=wr.sum("n"))
        case "order":
            return groups.select("a", "b", "n").order_by("a", "b", "n")
        case "empty":
            return groups.window(3, on="a").with_empty().agg(n=wr.sum("n"))
        case "right":
            return groups.window(20, on="b").agg(n=wr.sum("n"))
        case "later":
            return groups.select("n", u="greatest(a, b)").window(4).agg(n=wr.sum("n"))
        case "earlier":
            return groups.select("n", u="least(a, b)").window(4).with_empty().agg(n=wr.sum("n"))
        case "again":
            return groups.group_by(c="a div 3", d="b div 3").agg(n=wr.sum("n"))
    return groups


@pytest.mark.parametrize("seed", range(40))
def test_random_groups_equal_the_oracle_under_any_arrival(seed):
    replay(drawn(seed), runs=3, seed=seed)


@pytest.mark.parametrize("seed", range(10))
def test_random_groups_as_spark_drives_them(seed):
    query = drawn(seed)
    given = {name: source.data for name, source in query.sources.items()}
    expected = oracle(query)
    parts = [{name: [data[i : i + 8], data[i + 8 : i + 14]] for name, data in given.items()} for i in range(0, 40, 14)]

    def streaming(spark):
        return with_sources(query, {name: spark.stream(data.schema) for name, data in given.items()})

    released = pl.concat([batch.results for batch in disturbed(streaming, parts)])
    spark = SimulatedSpark(shards=3, seed=seed)
    whole = spark.collect(with_sources(query, {n: spark.frame([d[::2], d[1::2]]) for n, d in given.items()}))
    compare(whole, expected, f"batch, seed {seed}")
    assert released.join(expected, on=list(expected.columns), how="anti", nulls_equal=True).height == 0


def with_sources(query, sources):
    return Stream(
        query.node, {name: replace(query.sources[name], data=data, spark=True) for name, data in sources.items()}
    )


# -- early release -----------------------------------------------------------------------------------------------------
SCHEMA = {"t": pl.Int64(), "k": pl.Int64()}
Q7_1 = """
SELECT S0.t AS t0, S1.t AS t1, count(*) AS n FROM S0 JOIN S1 ON S0.k = S1.k AND S1.t BETWEEN S0.t - 2 AND S0.t + 2
GROUP BY S0.t, S1.t
"""


def marked(times, promise):
    return pl.DataFrame([(t, 1, None) for t in times] + [(None, None, promise)], schema=MARKED, orient="row")


MARKED = {"t": pl.Int64(), "k": pl.Int64(), "m": pl.Int64()}
# Figure 7-5, in order of arrival: p1 and p2 on S0, p3 on S1, p4 on S0, p5 on S1.
FIGURE = [("S0", [0], 1), ("S0", [], 2), ("S1", [1], 2), ("S0", [], 3), ("S1", [], 3)]


def sources(stream):
    return {name: wr.stream(stream(MARKED), "t", punctuation="m", name=name) for name in ("S0", "S1")}


def individually(S0, S1):  # noqa: N803 (the names of the thesis)
    return S0.join(S1, on="k", within=(-2, 2)).window(1, on="t").group_by("t_right").agg(n=wr.count())


def test_q7_1_comes_out_with_p3_and_with_individual_promises_only_with_p5():
    def released(query):
        run = query.run()
        return [run.push(name, marked(times, promise)).results().height for name, times, promise in FIGURE]

    given = sources(lambda schema: pl.DataFrame(schema=schema))
    assert released(wr.sql(Q7_1, **given)) == [0, 0, 1, 0, 0]
    assert released(individually(**given)) == [0, 0, 0, 0, 1]


def test_joint_promises_cross_the_exchange():
    """The groups are not by the key of the join: they are in other shards, and its promises come by the exchange."""

    def released(query):
        spark = SimulatedSpark(shards=3)
        running = spark.start(query(**sources(spark.stream)))
        empty = pl.DataFrame(schema=MARKED)
        pushed = [{"S0": empty, "S1": empty, name: marked(times, promise)} for name, times, promise in FIGURE]
        return [running.push(each).results.height for each in pushed]

    assert released(lambda **given: wr.sql(Q7_1, **given)) == [0, 0, 1, 0, 0]
    assert released(individually) == [0, 0, 0, 0, 1]


# -- plans -------------------------------------------------------------------------------------------------------------
def streams():
    return {name: wr.stream(pl.DataFrame(schema=SCHEMA), "t", slack=0, name=name) for name in ("S0", "S1")}


def test_sql_and_python_give_the_same_plan():
    given = streams()
    pairs = given["S0"].join(given["S1"], on="k", within=(-2, 2))
    built = pairs.group_by(t0="t", t1="t_right").agg(n=wr.count())
    asked = wr.sql(Q7_1, **given)
    assert isinstance(built.node, PairAggregate)
    assert isinstance(asked.node, PairAggregate)
    assert list(asked.node.schema) == ["t0", "t1", "n"]
    assert {c: t.of for c, t in asked.node.times.items()} == {"t0": LEFT, "t1": RIGHT}
    assert built.select(u="greatest(t0, t1)").node.times["u"].of == LATER


def test_explain_says_how_groups_are_released():
    text = wr.sql(Q7_1, **streams()).explain()
    assert "progress on the left time, and on both" in text
    assert "pair-aggregate: groups by both times, released by joint promises" in text
    assert "PairAggregate by `S0.t` AS t0, `S1.t` AS t1, complete when t0 and t1 are: count(*) AS n" in text


def test_a_join_without_such_a_consumer_makes_no_joint_promises():
    assert "and on both" not in individually(**streams()).explain()


@pytest.mark.parametrize(
    "group", ["S0.t, S1.t", "t0, t1", "1, 2", "t1, t0", "S0.t, S1.t, S0.k", "t0, S1.t HAVING count(*) > 1"]
)
def test_sql_may_name_both_times_in_any_way(group):
    text = f"SELECT S0.t AS t0, S1.t AS t1, count(*) AS n FROM S0 [RANGE 3, WA t], S1 [RANGE 3, WA t] GROUP BY {group}"
    assert any(isinstance(node, PairAggregate) for node in wr.sql(text, **streams()).node.walk())


def test_one_time_alone_is_a_window_of_length_one():
    text = "SELECT S0.t AS t0, count(*) AS n FROM S0 [RANGE 3, WA t], S1 [RANGE 3, WA t] GROUP BY S0.t"
    assert any(isinstance(node, WindowAggregate) for node in wr.sql(text, **streams()).node.walk())


def test_groups_by_both_times_of_ordered_pairs_wait_for_one_time():
    """An order holds rows back, and passes no joint promises on."""
    given = streams()
    pairs = given["S0"].join(given["S1"], on="k", within=(-2, 2)).order_by("t")
    with pytest.raises(QueryError, match="both times of a join"):
        pairs.group_by("t", "t_right")
    text = Q7_1.replace("FROM S0 JOIN", "FROM (SELECT * FROM S0 ORDER BY t) AS S0 JOIN")
    assert any(isinstance(node, PairAggregate) for node in wr.sql(text, **given).node.walk())


@pytest.mark.parametrize("by", [{"a": "t"}, {"a": "t", "k": "k"}, {"a": "t", "b": "- t_right"}])
def test_other_groups_need_a_window(by):
    given = streams()
    with pytest.raises(QueryError, match="groups of a stream need a window"):
        given["S0"].join(given["S1"], on="k", within=(-2, 2)).group_by(**by)
    with pytest.raises(QueryError, match="groups of a stream need a window"):
        given["S0"].group_by("t")


@pytest.mark.parametrize("hint", ["USING(wid)", "MEMORY('1 MB')"])
def test_a_hint_about_windows_has_no_effect_here(hint):
    with pytest.raises(QueryError, match="has no effect on groups by both times") as error:
        wr.sql(Q7_1.replace("SELECT", f"SELECT /*+ {hint} */"), **streams())
    assert "^" * len(hint) in str(error.value)


def test_groups_by_the_minute_of_both_times():
    def stream(name, seconds):
        data = [{"ts": START + dt.timedelta(seconds=s), "k": 1} for s in seconds]
        return wr.stream(data, "ts", slack="0 seconds", name=name)

    given = {"S0": stream("S0", [5, 50, 59, 61, 190]), "S1": stream("S1", [7, 60, 62, 119, 191])}
    query = wr.sql(
        """
        SELECT date_trunc('minute', S0.ts) AS m0, date_trunc('minute', S1.ts) AS m1, count(*) AS n
        FROM S0 JOIN S1 ON S0.k = S1.k AND S1.ts BETWEEN S0.ts - INTERVAL 10 SECONDS AND S0.ts + INTERVAL 10 SECONDS
        GROUP BY m0, m1
        """,
        **given,
    )
    assert any(isinstance(node, PairAggregate) for node in query.node.walk())
    found = {((a - START).seconds // 60, (b - START).seconds // 60): n for a, b, n in query.collect().rows()}
    assert found == {(0, 0): 1, (0, 1): 3, (1, 1): 2, (3, 3): 1}
    replay(query, runs=4)


@pytest.mark.spark
def test_on_spark_a_group_comes_out_by_a_joint_promise_over_a_restart(spark, tmp_path):
    """p1 to p3 of Figure 7-5, then p4 and p5, with another group of which a row came before the restart."""
    runs = [{"S0": ([0, 2], 2), "S1": ([1], 2)}, {"S0": ([], 4), "S1": ([3], 4)}]
    expected = [[(0, 1, 1)], [(0, 1, 1), (2, 1, 1), (2, 3, 1)]]
    for number, (given, wanted) in enumerate(zip(runs, expected, strict=True)):
        for name, (times, promise) in given.items():
            (tmp_path / name).mkdir(exist_ok=True)
            marked(times, promise).write_parquet(tmp_path / name / f"{number}.parquet")
        streams = {
            name: wr.read_parquet(tmp_path / name, progress="t", punctuation="m", name=name, streaming=True)
            for name in given
        }
        writer = wr.sql(Q7_1, **streams).to_spark().writeStream.trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / "state"))
        writer.format("parquet").option("path", str(tmp_path / "out")).start().awaitTermination()
        assert sorted(read_committed(tmp_path / "out").rows()) == wanted
