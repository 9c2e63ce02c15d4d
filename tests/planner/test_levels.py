"""Levels: which stages run in the same shards. Results are the same on any number of shards."""

import random
from dataclasses import replace

import polars as pl
import pytest

import windrow as wr
from windrow.planner.levels import Levels
from windrow.testing import compare, oracle
from windrow.testing.simulated import SimulatedSpark

SCHEMA = {"t": pl.Int64(), "k": pl.Int64(), "j": pl.String(), "x": pl.Int64()}


def stream(name="s"):
    return wr.stream(pl.DataFrame(schema=SCHEMA), "t", slack=5, name=name)


def counted(source, size=10, *keys, **named):
    return source.window(size).group_by(*keys, **named).agg(n=wr.count())


def again(source, *keys, **named):
    """Longer windows over other results."""
    return source.window(60).group_by(*keys, **named).agg(total=wr.count())


def levels(query, shards=2):
    """The level of each stage by its number."""
    found = Levels(query.plan(), shards)
    assert sorted(stage.number for level in range(found.depth) for stage in found.stages(level)) == sorted(
        stage.number for stage in found.of
    )
    return {stage.number: level for stage, level in sorted(found.of.items(), key=lambda of: of[0].number)}


INNER = counted(stream(), 10, "k")
BY_TWO = counted(stream(), 10, "k", "j")
FUSED = {
    "the same key": again(INNER, "k"),
    "more keys": again(INNER, "k", "n"),
    "under another name": again(INNER.select("window_end", key="k"), "key"),
    "renamed twice, names exchanged": again(
        BY_TWO.select("window_end", j="k", k="j").select("window_end", a="k", b="j"), "b", "a"
    ),
    "a key that is computed beside": again(INNER, "k", m="n % 2"),
    "behind a filter": again(INNER.where("n > 1"), "k"),
    "behind a new column": again(INNER.apply(y="n + 1"), "k", "y"),
    "behind a function of another column": again(INNER.apply(n=wr.udf(lambda n: n + 1, "BIGINT", "n")), "k", "n"),
    "after all in one group": again(counted(stream()), "n"),
    "one group after one group": again(counted(stream())),
    "distinct rows with the key": INNER.distinct(),
    "windows over distinct rows, by all columns": counted(stream().select("t", "k").distinct(), 10, "t", "k"),
    "top of one group": counted(stream()).top(1, by="n"),
    "windows over the top, by their end": again(counted(stream()).top(1, by="n"), e="window_end"),
}
APART = {
    "no key": again(INNER),
    "another key": again(INNER, "n"),
    "one key of two": again(BY_TWO, "j"),
    "the name of the key for another column": again(INNER.select("window_end", k="n"), "k"),
    "a computed key": again(INNER, m="k + 1"),
    "a key that a projection computes": again(INNER.select("window_end", k="k + 0"), "k"),
    "a key that a function computes": again(INNER.apply(k=wr.udf(lambda k: 0, "BIGINT", "k")), "k"),
    "a key behind two branches": again(
        INNER.split("n > 1", lambda s: s.select("window_end", "k"), lambda s: s.select("window_end", k="0 * k")),
        "k",
    ),
    "an order": INNER.order_by("window_end"),
    "distinct rows without the key": INNER.select("window_end", "n").distinct(),
    "top of all groups": INNER.top(1, by="n"),
    "windows by key over distinct rows": counted(stream().select("t", "k").distinct(), 10, "k"),
}


@pytest.mark.parametrize("name", FUSED)
def test_a_stage_is_fused_if_its_keys_contain_those_before_it(name):
    found = levels(FUSED[name])
    assert set(found.values()) == {0}
    assert len(found) > 1


@pytest.mark.parametrize("name", APART)
def test_a_stage_is_not_fused_if_rows_that_must_meet_are_apart(name):
    assert sorted(levels(APART[name]).values()) == [0, 1]


@pytest.mark.parametrize("name", [*FUSED, *APART])
def test_one_shard_fuses_everything(name):
    assert set(levels({**FUSED, **APART}[name], shards=1).values()) == {0}


def test_after_an_order_everything_is_apart():
    query = counted(stream().order_by("t"), 10, "k")
    assert levels(query) == {0: 0, 1: 1}


def test_stages_of_one_depth_share_a_level_and_what_takes_two_is_never_fused():
    a, b = counted(stream("a"), 10, "k"), counted(stream("b"), 10, "k")
    assert levels(a.union(b)) == {0: 0, 1: 0}
    assert levels(again(a.union(b), "k")) == {0: 0, 1: 0, 2: 1}
    assert levels(a.join(b, on="k", within=(0, 0))) == {0: 0, 1: 0, 2: 1}
    assert levels(a.join(a, on="k", within=(0, 0))) == {0: 0, 1: 1}
    assert levels(a.join(stream("c"), on="k", within=(0, 0))) == {0: 0, 1: 1}


def test_windows_over_a_join_have_a_level_of_their_own():
    """Slices of time spread the rows of a key over all shards; where both sides are outer, a key can be NULL."""
    for how in ("inner", "left"):
        pairs = stream("a").join(stream("b"), on=["k", "j"], within=(0, 5), how=how)
        assert levels(counted(pairs, 10, "k", "j", "x")) == {0: 0, 1: 1}
    assert levels(counted(pairs, 10, "k", "j"), shards=1) == {0: 0, 1: 0}


def test_a_stage_comes_after_the_deepest_of_those_before_it():
    deep = counted(counted(stream("a"), 10, "k"), 20)
    assert levels(deep.union(counted(stream("b"), 10))) == {0: 0, 1: 1, 2: 0}
    both = again(deep.union(counted(stream("b"), 10)))
    assert levels(both) == {0: 0, 1: 1, 2: 0, 3: 2}
    assert Levels(both.plan(), 2).depth == 3
    assert levels(both, shards=1) == dict.fromkeys(range(4), 0)


def test_a_query_without_state_has_no_levels():
    found = Levels(stream().where("x > 1").plan(), 2)
    assert (found.depth, found.of) == (0, {})


# -- results do not depend on the number of shards ---------------------------------------------------------------------
def data(rng, count=40):
    rows = [
        (rng.randrange(60), rng.choice([None, 0, 1, 2, 3]), rng.choice("ab"), rng.randrange(5)) for _ in range(count)
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def drawn(rng, sources, depth):
    """A random stream with columns t, k, j and x."""
    kinds = ["source"] if not depth else ["window", "window", "join", "union", "distinct", "top", "rows", "split"]
    kind = rng.choice(kinds)
    if kind == "source":
        return rng.choice(sources)
    given = drawn(rng, sources, depth - 1)
    match kind:
        case "window":
            keys = rng.choice([("k",), ("j", "k"), ("j",), ()])
            missing = {"k": "CAST(s AS BIGINT)", "j": "'c'"}
            size = rng.choice([5, 10, 20])
            found = given.window(size, rng.choice([size, 5])).group_by(*keys).agg(n=wr.count(), s=wr.sum("x"))
            columns = {c: c if c in keys else by for c, by in missing.items()}
            return found.select(t="window_time", **columns, x="n")
        case "join":
            other = drawn(rng, sources, rng.randrange(depth))
            low = rng.choice([-4, 0])
            found = given.join(other, on=rng.choice(["k", ["k", "j"]]), within=(low, 3))
            time = rng.choice(["t", "t_right", "greatest(t, t_right)", "least(t, t_right)"])
            return found.select(t=time, k=rng.choice(["k", "k_right"]), j="j_right", x="x % 3 + x_right % 3")
        case "union":
            return given.union(drawn(rng, sources, rng.randrange(depth)))
        case "distinct":
            return given.distinct()
        case "top":
            top = given.window(10).group_by("k").agg(n=wr.count()).top(2, by=rng.choice(["n", "k"]))
            return top.select(t="window_time", k="k", j="'t'", x="n")
        case "split":
            return given.split("x > 1", otherwise=lambda s: s.apply(x="x + 1").where("x > 0"))
    return given.where(rng.choice(["x > 0", "k < 3"])).select("t", k=rng.choice(["k", "k + 1", "x"]), j="j", x="x")


def over(query, sources):
    """The same query over the sources of the simulated Spark."""
    given = {name: replace(query.sources[name], data=data, spark=True) for name, data in sources.items()}
    return replace(query, sources=given)


@pytest.mark.parametrize("seed", range(20))
def test_random_trees_give_the_same_results_on_any_number_of_shards(seed):
    rng = random.Random(seed)
    sources = [wr.stream(data(rng), "t", slack=60, name=name) for name in "ab"]
    query = drawn(rng, sources, rng.choice([2, 2, 3]))
    expected = oracle(query)
    compare(query.collect(), expected, "in process")
    for shards in (1, 2, 3):
        spark = SimulatedSpark(shards, seed=seed)
        given = {name: spark.frame([s.data[::2], s.data[1::2]]) for name, s in query.sources.items()}
        found = spark.collect(over(query, given))
        compare(found, expected, f"{shards} shards")


@pytest.mark.parametrize("seed", range(6))
def test_random_trees_release_in_every_micro_batch_what_one_process_releases(seed):
    rng = random.Random(f"streams {seed}")
    sources = [wr.stream(data(rng).sort("t"), "t", slack=0, name=name) for name in "ab"]
    query = drawn(rng, sources, rng.choice([1, 2, 2]))
    run, expected = query.run(), []
    for at in range(0, 40, 10):
        for name, source in query.sources.items():
            run.push(name, source.data[at : at + 10])
        expected.append(run.results())
    for shards in (1, 3):
        spark = SimulatedSpark(shards, seed=seed)
        running = spark.start(over(query, {name: spark.stream(SCHEMA) for name in query.sources}))
        for number, at in enumerate(range(0, 40, 10)):
            given = {name: source.data[at : at + 10] for name, source in query.sources.items()}
            batch = running.push({name: [rows[:3], rows[3:]] for name, rows in given.items()})
            compare(batch.results, expected[number], f"{shards} shards, micro-batch {number}")
            assert batch.counts["rows_late"] == 0
