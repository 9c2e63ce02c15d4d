"""Joins in order: by name, by hints, and by an ORDER BY over them. The same results, in order, on every host."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import polars as pl
import pytest

import windrow as wr
from windrow.api.stream import Stream
from windrow.errors import PlanError, QueryError
from windrow.spec.in_order import MODES
from windrow.testing import compare, oracle, replay
from windrow.testing.disturbed import disturbed
from windrow.testing.simulated import SimulatedSpark

AT = datetime(2024, 1, 1, tzinfo=UTC)
LATER = "greatest(ts, ts_right)"
SECOND = timedelta(seconds=1)


def frame(seed, value, rows=60, behind=0, busy=()):
    """Rows of a minute; in the seconds that are ``busy`` there are ten times as many."""
    rng = random.Random(f"{seed}/{value}")
    often = [t for t in range(60) for _ in range(10 if t in busy else 1)]
    times = sorted((rng.choice(often) for _ in range(rows)), key=lambda t: t + rng.random() * behind)
    data = [(AT + t * SECOND, rng.choice([0, 1, 2, None]), n) for n, t in enumerate(times)]
    return pl.DataFrame(data, schema={"ts": pl.Datetime("us", "UTC"), "k": pl.Int64(), value: pl.Int64()}, orient="row")


def sides(left, right, slack=5):
    return (wr.stream(data, "ts", slack=slack * SECOND, name=name) for name, data in (("l", left), ("r", right)))


def joined(left, right, **more):
    left, right = sides(left, right)
    return left.join(right, on="k", within=(-4 * SECOND, 7 * SECOND), **more)


def pairs(**more):
    return joined(frame(1, "x", behind=5), frame(1, "y", behind=5), **more)


def integers(**more):
    one, other = (wr.stream([{"t": t, "k": t % 3} for t in range(30)], "t", slack=3, name=n) for n in "lr")
    return one.join(other, on="k", within=(-4, 7), **more)


ASKED = [{"using": mode} for mode in MODES] + [{"using": "adaptive", "alpha": 1e-12}]
ASKED += [{"using": "adaptive", "alpha": 0.2, "cost": 100.0}]


@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.parametrize("time", ["ts", "ts_right", LATER])
def test_a_join_by_name_gives_what_the_query_means_and_in_order(asked, time):
    query = pairs(**asked).select("k", "x", "y", u=time)
    replay(query, runs=2)
    run, found = query.run(), []
    for name, source in query.sources.items():
        for at in range(0, source.data.height, 7):
            found.append(run.push(name, source.data[at : at + 7]).results())
    times = pl.concat([*found, run.end().results()])["u"]
    assert times.len() > 0
    assert times.is_sorted()


# -- what an ORDER BY makes of a join ----------------------------------------------------------------------------------
def algorithms(query):
    return [stage.algorithm for stage in query.plan().stages()]


@pytest.mark.parametrize("time", ["ts", "ts_right", LATER])
def test_order_by_makes_the_join_an_adaptive_one(time):
    query = pairs().select("k", "x", "y", u=time).where("x > 3").order_by("u", "y DESC")
    assert algorithms(query) == ["adaptive-join", "merge"]
    replay(query, runs=2)


@pytest.mark.parametrize("using", ["oa", "opob", *MODES])
def test_a_join_that_is_named_stays(using):
    assert algorithms(pairs(using=using).order_by("ts")) == [f"{using}-join", "merge"]


def test_a_join_that_cannot_have_the_order_is_sorted_after_it():
    for query in (pairs().select("k", u="least(ts, ts_right)").order_by("u"), pairs(how="left").order_by("ts")):
        assert algorithms(query) == ["oa-join", "merge"]
        replay(query, runs=1)


def test_only_steps_on_single_rows_may_be_between():
    windowed = pairs().window(timedelta(seconds=10)).agg(n=wr.count())
    assert algorithms(windowed.order_by("window_end"))[0] == "oa-join"
    distinct = pairs().select("ts", "k").distinct()
    assert algorithms(distinct.order_by("ts"))[0] == "oa-join"


def test_integers_are_no_time_so_rows_wait_rather_than_results():
    query = integers().order_by("t")
    assert algorithms(query) == ["sync-filter-join", "merge"]
    assert "a unit of t is no time" in query.explain()
    assert "c is not known in units of t" in query.explain()
    assert algorithms(integers(using="adaptive", cost=0.1).order_by("t"))[0] == "adaptive-join"


def test_explain_has_the_rates_and_the_response_of_each_way():
    rates, slack = {"l": 100, "r": 2000}, 5 * SECOND
    given = {n: {"slack": slack, "statistics": wr.Statistics(rate=rate, groups=10)} for n, rate in rates.items()}
    left, right = (wr.stream(frame(1, n), "ts", name=n, **more) for n, more in given.items())
    query = left.join(right, on="k", within=(-60 * SECOND, 60 * SECOND)).select("k", u=LATER).order_by("u")
    said = query.explain()
    assert "join in order as adaptive: ORDER BY its time" in said
    assert "100 and 2,000 rows a second (declared), |w| = 60 seconds, c = 0.9 ns: c|w|l1 l2 = 0.0108, less than" in said
    assert "sync-filter: mean response 5,005.30" in said
    assert "filter-order: mean response 5,005.25" in said
    assert "latency: none but that of the join" in said


# -- SQL ---------------------------------------------------------------------------------------------------------------
FROM = "FROM l [RANGE 5 seconds, WA ts], r [RANGE 8 seconds, WA ts] WHERE l.k = r.k"


def sql(query):
    left, right = sides(frame(1, "x"), frame(1, "y"))
    return wr.sql(query, l=left, r=right)


@pytest.mark.parametrize(
    ("hint", "algorithm"),
    [
        ("", "adaptive-join"),
        ("/*+ USING(adaptive), ALPHA(0.2) COST(0.5) */", "adaptive-join"),
        ("/*+ USING(sync-filter) */", "sync-filter-join"),
        ("/*+ USING('filter-order') */", "filter-order-join"),
        ("/*+ using(filter_order) */", "filter-order-join"),
    ],
)
def test_hints_name_the_join(hint, algorithm):
    query = sql(f"SELECT {hint} l.k, x, y, greatest(l.ts, r.ts) AS u {FROM} ORDER BY u")
    assert algorithms(query) == [algorithm, "merge"]
    replay(query, runs=1)


def test_hints_have_numbers():
    query = sql(f"SELECT /*+ USING(adaptive), ALPHA(0.25), COST(0.5) */ x, l.ts {FROM}")
    [join] = [node for node in query.node.walk() if type(node).__name__ == "Join"]
    assert (join.using, join.alpha, join.cost) == ("adaptive", 0.25, 0.5)
    assert "using adaptive, alpha 0.25, a comparison takes 0.5" in query.explain()


# -- what is refused ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"using": "adaptive", "alpha": 1}, "at least 0 and less than 1"),
        ({"using": "adaptive", "alpha": -0.1}, "at least 0 and less than 1"),
        ({"using": "adaptive", "cost": 0}, "must be more than 0"),
        ({"alpha": 0.3}, "alpha= says when an adaptive join changes.*choose using='adaptive'"),
        ({"using": "sync-filter", "alpha": 0.3}, "this one never does.*choose using='adaptive'"),
        ({"using": "filter-order", "cost": 1.0}, "cost= says.*choose using='adaptive'"),
        ({"using": "adaptive", "how": "left"}, "inner joins only: choose using='opob'"),
        ({"using": "sync-filter", "how": "semi"}, "inner joins only"),
    ],
)
def test_what_has_no_effect_or_no_order_is_refused(asked, why):
    with pytest.raises(PlanError, match=why):
        pairs(**asked)


def test_other_types_are_refused_by_name():
    with pytest.raises(QueryError, match="alpha='x' must be a number"):
        pairs(using="adaptive", alpha="x")
    with pytest.raises(QueryError, match="using"):
        pairs(using="ordered")


def test_integers_need_a_cost():
    with pytest.raises(PlanError, match="a unit of t is no time: give cost="):
        integers(using="adaptive")


def test_rows_by_number_have_no_order_of_time():
    s = wr.stream([{"t": t, "k": 0, "n": t} for t in range(5)], "t", row_num="n", name="s")
    with pytest.raises(PlanError, match="pairs of a join over ROWS have none"):
        s.join(s, on="k", within=("-1 rows", "1 rows"), using="sync-filter")


def test_the_earlier_time_is_no_order():
    query = pairs(using="adaptive").select("k", u="least(ts, ts_right)").order_by("u")
    with pytest.raises(PlanError, match="using='adaptive' cannot order pairs by the earlier of their times"):
        query.plan()


def test_a_table_has_no_times():
    left, _ = sides(frame(1, "x"), frame(1, "y"))
    table = wr.table([{"k": 1, "z": 1}], name="names")
    for asked in ({"alpha": 0.3}, {"cost": 1.0}):
        with pytest.raises(QueryError, match=r"(alpha|cost)"):
            left.join(table, on="k", **asked)


@pytest.mark.parametrize(
    ("hint", "why"),
    [
        ("ALPHA(0.3)", "alpha= says when an adaptive join changes"),
        ("USING(adaptive), ALPHA(1)", "less than 1"),
        ("USING(adaptive), ALPHA(some)", "ALPHA takes a number, not 'some'"),
        ("USING(sideways)", "no join is called sideways"),
    ],
)
def test_hints_that_are_refused(hint, why):
    with pytest.raises(wr.WindrowError, match=why):
        sql(f"SELECT /*+ {hint} */ x, l.ts {FROM}")


@pytest.mark.parametrize("hint", ["ALPHA(0.3)", "COST(1)"])
def test_a_window_is_not_adaptive(hint):
    with pytest.raises(QueryError, match=r"is about joins, and this is a window\n"):
        sql(f"SELECT /*+ {hint} */ count(*) AS n FROM l [TUMBLING 10 seconds, WA ts]")


def test_a_join_with_limits_is_sorted_after_it():
    query = pairs(max_state=20).order_by("ts")
    assert algorithms(query) == ["limited-join", "merge"]
    with pytest.raises(PlanError):
        pairs(max_state=20, using="adaptive")


# -- Spark -------------------------------------------------------------------------------------------------------------
BUSY = range(20, 40)
SHARDED = {
    "filter": {"using": "adaptive", "alpha": 1e-12},
    "flips": {"using": "adaptive", "cost": 100_000.0},
    "by order": {},
}
SHARDED |= {mode: {"using": mode} for mode in MODES[:2]}


def batches(seed, size=15):
    left, right = (frame(seed, value, 90, 5, BUSY) for value in "xy")
    return [{"l": left[at : at + size], "r": right[at : at + size]} for at in range(0, left.height, size)]


@pytest.mark.parametrize("asked", SHARDED)
@pytest.mark.parametrize("seed", range(2))
def test_rows_are_in_order_over_shards_micro_batches_and_restarts(asked, seed):
    """A micro-batch that died runs again and puts out the same: what an adaptive join does follows from rows alone."""

    def query(spark):
        made = joined(*(spark.stream(frame(seed, value).schema) for value in "xy"), **SHARDED[asked])
        return made.select("k", "x", "y", u=LATER).order_by("u", "x")

    given = batches(seed)
    found = disturbed(query, given, seed, shards=3)
    out = pl.concat([batch.results for batch in found])
    rows = out.select("u", "x").rows()
    assert len([batch for batch in found if batch.results.height]) > 2
    assert all(a <= b for a, b in pairwise(rows))
    whole = joined(*(pl.concat([batch[name] for batch in given]) for name in "lr"))
    expected = oracle(whole.select("k", "x", "y", u=LATER))
    compare(out, expected.filter(pl.col("u") <= out["u"].max()), asked)
    assert out.height > expected.height // 2


@pytest.mark.parametrize("asked", SHARDED)
def test_finite_frames_come_out_in_order(asked):
    left, right = (frame(3, value, behind=5) for value in "xy")
    query = joined(left, right, **SHARDED[asked]).select("k", "x", "y", u=LATER).order_by("u", "y")
    spark = SimulatedSpark(shards=3)
    data = {name: spark.frame([s.data[::2], s.data[1::2]]) for name, s in query.sources.items()}
    on_spark = Stream(query.node, {n: replace(s, data=data[n], spark=True) for n, s in query.sources.items()})
    found = spark.collect(on_spark)
    compare(found, oracle(query), asked)
    assert found.select("u", "y").rows() == sorted(found.select("u", "y").rows())
