"""Joins spread over nodes end to end: in process and as Spark drives them, whatever the way, the nodes and the rows."""

import random
from functools import cache

import polars as pl
import pytest

import windrow as wr
from how_many import EXAMPLES
from random_multi_joins import drawn
from test_joins import check_among, micro_batches, with_sources
from windrow.errors import PlanError, QueryError
from windrow.operators.ring.way import WAYS
from windrow.planner import plan
from windrow.planner.choice import Given
from windrow.testing import compare, oracle, replay
from windrow.testing.disturbed import disturbed
from windrow.testing.simulated import Checkpoint, SimulatedSpark

SEEDS = range(int(60 * max(1, EXAMPLES)))


def options(seed):
    """How it is spread over nodes."""
    rng = random.Random(f"ring {seed}")
    given = wr.RingOptions(
        smoothing=rng.choice(["count", "time"]),
        relocation=rng.choice(["passive", "aggressive"]),
        objective=rng.choice(["latency", "output"]),
        flight=rng.choice([1, 3, 2048]),
        copies=rng.choice([1, 2, 3]),
    )
    return {"nodes": rng.choice([None, 1, 2, 3]), "options": given}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_ring_equals_the_oracle_under_any_arrival(seed):
    replay(drawn(seed, "ring", **options(seed)), runs=1, seed=seed)


@pytest.mark.parametrize("seed", SEEDS[::3])
def test_the_other_ways_do_too(seed):
    replay(drawn(seed, ("atr", "ctr")[seed // 3 % 2], segments=True, **options(seed)), runs=1, seed=seed)


@pytest.mark.parametrize("seed", SEEDS[::4])
def test_nodes_as_tasks_of_spark(seed):
    """In micro-batches that fail and restart on other workers, and over finite sources; results equal the oracle's."""
    rng = random.Random(seed)
    query = drawn(seed, rng.choice(["ring", "ring", *WAYS]), **options(seed))
    given = {name: source.data for name, source in query.sources.items()}
    expected = oracle(query)

    def streaming(spark):
        return with_sources(query, {name: spark.stream(data.schema) for name, data in given.items()})

    out = disturbed(streaming, micro_batches(given, rng), seed, shards=rng.choice([3, 4, 5]))
    assert sum(batch.counts["rows_late"] for batch in out) == 0
    check_among(pl.concat([batch.results for batch in out]), expected, f"streaming, seed {seed}")
    spark = SimulatedSpark(shards=3, seed=seed)
    whole = spark.collect(with_sources(query, {n: spark.frame([d[::2], d[1::2]]) for n, d in given.items()}))
    compare(whole, expected, f"batch, seed {seed}")


# -- what a user writes ------------------------------------------------------------------------------------------------
def cameras(slack=0):
    rows = {
        "one": [{"t": 1, "img": 10}, {"t": 5, "img": 20}, {"t": 5, "img": 21}],
        "two": [{"t": 2, "img": 11}, {"t": 6, "img": 30}],
        "three": [{"t": 3, "img": 12}, {"t": 4, "img": 31}],
    }
    return [wr.stream(each, "t", slack=slack, name=name) for name, each in rows.items()]


def near(a, b):
    return abs(a - b) < 3


WRITTEN = {
    "rows of all streams": lambda a, b, c: near(a.img, b.img) and near(b.img, c["img"]),
    "rows of streams by their names": [
        lambda one, two: near(one.img, two.img),
        lambda three, two: near(three.img, two.img),
    ],
    "functions of columns": [
        wr.udf(near, "BOOLEAN", "img", "img_two"),
        wr.udf(lambda x, y: (x - y).abs() < 3, "BOOLEAN", "img_two", "img_three", vectorized=True),
    ],
    "SQL": "abs(img - img_two) < 3 AND abs(img_two - img_three) < 3",
    "SQL and functions": ["abs(img - img_two) < 3", lambda two, three: near(two.img, three.img)],
}


@pytest.mark.parametrize("using", ["ring", "multi", "pipeline", None])
@pytest.mark.parametrize("written", WRITTEN)
def test_conditions_can_be_written_in_many_ways(written, using):
    found = wr.multi_join(*cameras(), within=10, where=WRITTEN[written], using=using)
    assert found.select("t", "t_two", "t_three").collect().rows() == [(1, 2, 3)]


def test_windows_of_the_last_rows_differ_from_stream_to_stream():
    """A row of stream one meets the last two rows of stream two before it; equal times go by columns."""
    one = wr.stream([{"t": 9, "x": 1}, {"t": 20, "x": 2}], "t", slack=0, name="one")
    two = wr.stream([{"t": t, "y": y} for t, y in [(1, 5), (2, 6), (3, 9), (3, 8)]], "t", slack=5, name="two")
    found = wr.multi_join(one, two, within={"one": 4, "two": "2 rows"}).select("x", "y")
    assert sorted(found.collect().rows()) == [(1, 8), (1, 9), (2, 8), (2, 9)]
    found = wr.multi_join(one, two, within={"one": 4, "two": "1 row"}).select("x", "y")
    assert sorted(found.collect().rows()) == [(1, 9), (2, 9)]  # whether y is selected or not
    assert wr.multi_join(one, two, within={"one": 4, "two": "1 row"}, where="y > 8").select("x").collect().height == 2
    assert found.where("y < 9").collect().height == 0  # it is about results, not about which rows are the last ones


def test_rows_without_a_key_are_among_the_last_rows():
    """NULL equals nothing, but a row with it is a row of its stream."""
    one = wr.stream([{"t": 9, "k": 1}], "t", slack=0, name="one")
    two = wr.stream([{"t": 1, "k": 1}, {"t": 2, "k": 1}, {"t": 3, "k": None}], "t", slack=0, name="two")
    found = wr.multi_join(one, two, on="k", within={"one": 10, "two": "2 rows"})
    assert found.select("t", "t_two").collect().rows() == [(9, 2)]


def test_explain_shows_what_nodes_cost():
    found = wr.multi_join(*cameras(), within=10, where=WRITTEN["rows of all streams"], nodes=4).explain()
    assert "join as ring: as asked for" in found
    assert "4 nodes (4, 4, 4 by input)" in found
    assert "asked for" in next(line for line in found.splitlines() if "4 nodes" in line)


def test_on_spark_functions_without_a_key_are_spread_over_nodes():
    """One operator would try them all in one shard."""
    spark = SimulatedSpark()
    streams = [
        wr.stream(spark.stream({"t": pl.Int64(), "img": pl.Int64(), "k": pl.Int64()}), "t", slack=0, name=name)
        for name in ("one", "two", "three")
    ]
    test = WRITTEN["rows of all streams"]
    [stage] = wr.multi_join(*streams, within=10, where=test).plan().stages()
    assert stage.algorithm == "ring"
    [stage] = wr.multi_join(*streams, within=10, where=test, on="k").plan().stages()
    assert stage.algorithm == "multi"
    assert wr.multi_join(*cameras(), within=10, where=test).plan().stages()[0].algorithm == "multi"


REFUSED = {
    "how long rows of three are held": {"within": {"one": 1, "two": 2}},
    "within must be positive, not 0": {"within": 0},
    "within must be positive, not -1": {"within": -1},
    "must be 1 row or more, not 0 rows": {"within": "0 rows"},
    "nodes=0 must be a whole number, 1 or more, or 'auto'": {"nodes": 0},
    "nodes='all' must be a whole number": {"nodes": "all"},
    "nodes= is about joins that are spread over nodes": {"nodes": 2, "using": "multi"},
    "options= is about joins that are spread over nodes": {"options": wr.RingOptions(), "using": "pipeline"},
    "options={} must be wr.RingOptions": {"options": {}},
    "flight=0 must be a whole number": {"options": wr.RingOptions(flight=0)},
    "smoothing='size' must be 'count' or 'time'": {"options": wr.RingOptions(smoothing="size")},
    "using='multi' holds rows for a time": {"within": "5 rows", "using": "multi"},
    "takes one row of each of 3 streams, or rows of streams by their names": {"where": lambda a, b: True},
    "must be a SQL expression, a wr.udf, a function of rows": {"where": [7]},
    "is a condition and must return BOOLEAN": {"where": wr.udf(near, "BIGINT", "img", "img_two")},
    "which the pairs do not have": {"where": wr.udf(near, "BOOLEAN", "img", "other")},
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_is_refused(message):
    with pytest.raises((QueryError, PlanError)) as error:
        wr.multi_join(*cameras(), **{"within": 10, "using": None, **REFUSED[message]}).explain()
    assert message in str(error.value)


def test_a_condition_that_raises_is_a_bad_row_and_one_of_the_wrong_length_too():
    def odd(x, y):
        return 1 // (x - 20) > -9

    run = wr.multi_join(*cameras(), within=10, where=wr.udf(odd, "BOOLEAN", "img", "img_two"), nodes=2).run()
    for name, rows in {s.node.name: s.sources[s.node.name].data for s in cameras()}.items():
        run.push(name, rows)
    found = run.end().results()
    assert 20 not in found["img"].to_list()
    assert found.height == 8
    bad = run.bad_rows()
    assert bad["reason"].unique().to_list() == [
        f"{odd.__qualname__} failed: ZeroDivisionError: integer division or modulo by zero"
    ]
    short = wr.udf(lambda x, y: x[:1] == y[:1], "BOOLEAN", "img", "img_two", vectorized=True)
    run = wr.multi_join(*cameras(), within=10, where=short, nodes=2).run()
    for name, rows in {s.node.name: s.sources[s.node.name].data for s in cameras()}.items():
        run.push(name, rows[:1] if name == "three" else rows)
    run.end()
    assert run.counts["rows_bad"] == 0  # alone each pair has as many values as rows


def test_more_nodes_than_slots_are_refused_before_anything_starts():
    spark = SimulatedSpark(shards=2)
    streams = [
        wr.stream(spark.stream({"t": pl.Int64(), "img": pl.Int64()}), "t", slack=0, name=name) for name in ("a", "b")
    ]
    query = wr.multi_join(*streams, within=10, nodes=3)
    with pytest.raises(PlanError, match="nodes=3 needs 3 tasks at the same time, and this Spark has 2 slots"):
        spark.start(query)
    with pytest.raises(PlanError, match=r"asks for 3 nodes, and shards=2 gives the query 2 tasks"):
        spark.start(query, shards=2)


def test_explain_says_where_nodes_run():
    spark = SimulatedSpark()
    streams = [
        wr.stream(spark.stream({"t": pl.Int64(), "img": pl.Int64()}), "t", slack=0, name=name) for name in ("a", "b")
    ]
    found = wr.multi_join(*streams, within=10, nodes=2).explain()
    assert "exchange to the first node, as Arrow blobs; promises go to every node" in found
    assert "node (a task of a barrier stage, state in files beside the checkpoint), stage 0" in found


def test_a_session_on_spark_has_no_tasks_for_nodes():
    """A join of last rows runs in one shard there; one that asks for nodes is refused."""
    node = wr.multi_join(*cameras(), within="5 rows", where=WRITTEN["rows of all streams"]).node
    [stage] = plan(node, Given({}, True, spread=False)).stages()
    assert stage.algorithm == "ring"
    node = wr.multi_join(*cameras(), within=10, where=WRITTEN["rows of all streams"]).node
    [stage] = plan(node, Given({}, True, spread=False)).stages()
    assert stage.algorithm == "multi"
    with pytest.raises(PlanError, match="nodes=2 needs a task for each node"):
        plan(wr.multi_join(*cameras(), within=10, nodes=2).node, Given({}, True, spread=False))


def matched(sources, **options):
    streams = [wr.stream(sources[name], "t", slack=0, name=name) for name in "abc"]
    where = [wr.udf(lambda x, y: (x + y) % 5 == 0, "BOOLEAN", "x", "x_b"), "x_b < x_c"]
    return wr.multi_join(*streams, within=20, where=where, **options)


@cache
def rows_to_match():
    """Three streams, and the results of their join."""
    rng = random.Random(7)
    data = {
        name: pl.DataFrame({"t": sorted(rng.randrange(200) for _ in range(80)), "x": [*range(80)]}) for name in "abc"
    }
    return data, oracle(matched(data))


@pytest.mark.parametrize("relocation", ["passive", "aggressive"])
@pytest.mark.parametrize("using", sorted(WAYS))
def test_nodes_come_and_go_with_a_restart(using, relocation):
    """The tasks are those of the first start; how many of them hold state may change."""
    data, expected = rows_to_match()
    checkpoint, found = Checkpoint(), []
    for number, nodes in enumerate([1, 3, 2, None]):
        spark = SimulatedSpark(shards=3, seed=number)
        frames = {name: spark.stream(frame.schema) for name, frame in data.items()}
        how = {"using": using, "nodes": nodes, "options": wr.RingOptions(relocation=relocation)}
        running = spark.start(matched(frames, **how), checkpoint)
        given = {name: frame[20 * number : 20 * number + 20] for name, frame in data.items()}
        found.append(running.push(given).results)
    promised = min(frame["t"].max() for frame in data.values())
    closed = expected.filter(pl.max_horizontal("t", "t_b", "t_c") < promised)
    assert closed.height > 50
    compare(pl.concat(found), closed, using)
