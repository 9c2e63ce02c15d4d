"""Prune columns: a join keeps what somebody uses behind it, and nothing else."""

import random

import polars as pl
import pytest

import windrow as wr
from windrow.logical.nodes import Join
from windrow.planner.rules import rewritten
from windrow.planner.rules.prune_columns import prune_columns
from windrow.testing import compare, oracle

SCHEMA = {"t": pl.Int64(), "k": pl.Int64(), "x": pl.Int64(), "y": pl.Int64()}


def stream(name):
    return wr.stream(pl.DataFrame(schema=SCHEMA), "t", slack=0, name=name)


def joined(left="l", right="r"):
    return stream(left).join(stream(right), on="k", within=(-3, 5))


def kept(query):
    """The columns of each join, inner ones first."""
    return [[name for name, _, _ in n.columns] for n in prune_columns(query.node).walk() if isinstance(n, Join)]


CASES = {
    "all of them are the result": (lambda: joined(), ["t", "k", "x", "y", "t_right", "k_right", "x_right", "y_right"]),
    "a projection": (lambda: joined().select("x", z="y_right + 1"), ["x", "y_right"]),
    "a filter, too": (lambda: joined().where("x > y_right").select("k"), ["k", "x", "y_right"]),
    "the time of a window and its keys": (
        lambda: joined().window(5).group_by("x_right").agg(n=wr.sum("y")),
        ["t", "y", "x_right"],
    ),
    "the later time": (
        lambda: joined().select("x", u="greatest(t, t_right)").window(5).agg(n=wr.count()),
        ["t", "x", "t_right"],
    ),
    "distinct rows are made of all": (lambda: joined().select("t", "x").distinct(), ["t", "x"]),
    "an order": (lambda: joined().order_by("t", "y").select("x"), ["t", "x", "y"]),
    "a union": (lambda: joined().select("t", "x").union(stream("u").select("t", "x")), ["t", "x"]),
}


@pytest.mark.parametrize("name", CASES)
def test_only_columns_that_are_used_leave_a_join(name):
    make, expected = CASES[name]
    query = make()
    assert kept(query) == [expected]
    pruned = prune_columns(query.node)
    assert pruned.schema == query.node.schema


def test_a_join_of_which_nothing_can_go_is_the_same_object():
    node = joined().node
    assert prune_columns(node) is node


def test_two_consumers_of_one_join_keep_what_either_uses_and_still_share_it():
    pairs = joined()
    query = pairs.select("t", z="x").union(pairs.select("t", z="y"))
    node = prune_columns(query.node)
    joins = [each for each in node.walk() if isinstance(each, Join)]
    assert [[name for name, _, _ in join.columns] for join in joins] == [["t", "x", "y"]]
    assert len(query.plan().stages()) == 1


def test_a_join_of_a_join_asks_for_its_keys_and_its_time():
    inner = joined().select("t", "k", "x", "y")
    query = inner.join(stream("third"), on="k", within=(0, 5)).select("y_right")
    assert kept(query) == [["t", "k", "x", "y"], ["y_right"]]


def test_the_condition_of_a_join_keeps_its_columns():
    text = "SELECT l.x FROM l, r WHERE l.k = r.k AND r.t BETWEEN l.t - 3 AND l.t + 5 AND l.y < r.y"
    node = rewritten(wr.sql(text, l=stream("l"), r=stream("r")).node)
    [join] = [each for each in node.walk() if isinstance(each, Join)]
    used = {(side, column) for _, side, column in join.columns}
    assert used == {(0, "x"), (0, "y"), (1, "y")}


@pytest.mark.parametrize("seed", range(12))
def test_pruned_joins_mean_the_same(seed):
    rng = random.Random(seed)

    def rows():
        data = [(rng.randrange(30), rng.randrange(3), rng.randrange(5), rng.randrange(5)) for _ in range(25)]
        return pl.DataFrame(data, schema=SCHEMA, orient="row")

    left, right = (wr.stream(rows(), "t", slack=30, name=name) for name in "lr")
    pairs = left.join(right, on=rng.choice(["k", ["k", "x"]]), within=(-2, 4))
    columns = [c for c in pairs.schema if rng.random() < 0.4] or ["x"]
    query = pairs.select(*columns)
    if rng.random() < 0.5 and query.node.times:
        query = query.distinct()
    compare(query.collect(), oracle(query), f"seed {seed}")
