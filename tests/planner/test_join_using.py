"""Joins that keep the order of their results, chosen by name: the same results as without, in order, or a refusal."""

import random
from dataclasses import replace

import polars as pl
import pytest

import windrow as wr
from how_many import EXAMPLES
from windrow.api.stream import Stream
from windrow.errors import PlanError
from windrow.spec.keeping import ALIKE
from windrow.testing import compare, oracle, replay
from windrow.testing.simulated import SimulatedSpark

USING = [*ALIKE, "opob", "opib", "iop"]
WINDOWS = [{"within": (-4, 7)}, {"within": (2, 2)}, {"tumbling": 10}]


def stream(rng, name, value, slack):
    rows = [(rng.randrange(60), rng.choice([0, 1, 2, None]), i) for i in range(40)]
    frame = pl.DataFrame(rows, schema={"t": pl.Int64(), "k": pl.Int64(), value: pl.Int64()}, orient="row")
    return wr.stream(frame.sort("t"), "t", slack=slack, name=name)


def sides(seed):
    rng = random.Random(seed)
    left = stream(rng, "l", "x", 5).union(stream(rng, "m", "x", 3))
    return left, stream(rng, "r", "y", 9)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("using", USING)
def test_every_physical_join_gives_what_the_query_means(using, window):
    first = USING.index(using) + WINDOWS.index(window)
    for seed in range(3) if EXAMPLES >= 1 else [first % 3]:
        left, right = sides(seed)
        pairs = left.join(right, on="k", using=using, **window)
        replay(pairs, runs=2, seed=seed)
        for time in ("t", "t_right", "greatest(t, t_right)"):
            timed = pairs.select("k", u=time).window(20, 10, on="u")
            replay(timed.group_by("k").agg(n=wr.count()), runs=1, seed=seed)


@pytest.mark.parametrize("how", ["left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize("using", ["opob", "iop", "hnj", "nhj-lazy"])
def test_outer_joins(using, how):
    left, right = sides(how)
    for window in WINDOWS:
        replay(left.join(right, on="k", using=using, how=how, **window), runs=2)


@pytest.mark.parametrize("using", ["opob", "opib", "iop"])
def test_results_come_in_the_order_of_the_time_that_they_progress_on(using):
    left, right = sides(7)
    query = left.join(right, on="k", within=(-4, 7), using=using)
    run = query.run()
    found = []
    for name, source in query.sources.items():
        for at in range(0, source.data.height, 7):
            found.append(run.push(name, source.data[at : at + 7]).results())
    found.append(run.end().results())
    times = pl.concat(found)["t"]
    assert times.len() > 0
    assert times.is_sorted()


@pytest.mark.parametrize(
    ("using", "algorithm", "more"),
    [
        (None, "oa-join", {}),
        ("oa", "oa-join", {"how": "full"}),
        ("hnj", "oa-join", {"how": "full"}),
        ("opob", "opob-join", {"how": "left"}),
        ("opib", "opib-join", {}),
        ("iop", "iop, opib-join", {}),
        ("iop", "iop, opob-join", {"how": "left"}),
    ],
)
def test_the_plan_names_the_join(using, algorithm, more):
    left, right = sides(1)
    query = left.join(right, on="k", within=(-4, 7), using=using, **more)
    [stage] = query.plan().stages()
    assert stage.algorithm == algorithm
    in_order = [arm.meeting.name for arm in stage.arms]
    assert in_order == (["merge", "merge"] if using == "iop" else ["meld", "meld"])
    assert ("merge of arm 0: union of 2 inputs; rows in order" in query.explain()) == (using == "iop")


def test_a_join_below_a_window_in_order_is_in_order_unless_it_says_otherwise():
    left, right = sides(1)
    for using, algorithm in ((None, "iop, opib-join"), ("oa", "oa-join")):
        pairs = left.join(right, on="k", within=(-4, 7), using=using)
        query = pairs.window(20, using="iop").agg(n=wr.count())
        assert query.plan().stages()[0].algorithm == algorithm
        replay(query, runs=2)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"using": "opib", "how": "left"}, "inner joins only: choose using='opob'"),
        ({"using": "iop", "late": "side"}, "late='side' needs the other plan"),
    ],
)
def test_what_a_join_in_order_cannot_do_is_refused(asked, why):
    left, right = sides(1)
    with pytest.raises(PlanError, match=why):
        left.join(right, on="k", within=(-4, 7), **asked).plan()


def test_opib_cannot_order_by_the_earlier_time():
    left, right = sides(1)
    pairs = left.join(right, on="k", within=(-4, 7), using="opib").select("k", u="least(t, t_right)")
    with pytest.raises(PlanError, match="by the earlier of their times: choose using='opob'"):
        pairs.window(20, on="u").agg(n=wr.count()).plan()


@pytest.mark.parametrize("using", ["opob", "opib", "iop", "hnj", "runs", "nnj-lazy"])
def test_joins_as_spark_drives_them(using):
    left, right = sides(5)
    query = left.join(right, on="k", within=(-4, 7), using=using)
    spark = SimulatedSpark(shards=3)
    data = {name: spark.frame([s.data[::2], s.data[1::2]]) for name, s in query.sources.items()}
    on_spark = Stream(query.node, {n: replace(s, data=data[n], spark=True) for n, s in query.sources.items()})
    compare(spark.collect(on_spark), oracle(query), using)
