"""Push filters: what moves to a side of a join, what stays, and that nothing changes for the user."""

import random

import polars as pl
import pytest

import windrow as wr
from windrow.logical.nodes import Filter, Join
from windrow.planner.rules.push_filters import push_filters
from windrow.testing import compare, oracle
from windrow.testing.simulated import SimulatedSpark

SCHEMA = {"t": pl.Int64(), "k": pl.Int64(), "x": pl.Int64(), "f": pl.Float64(), "s": pl.String(), "b": pl.Boolean()}


def stream(name):
    return wr.stream(pl.DataFrame(schema=SCHEMA), "t", slack=0, name=name)


def joined():
    return stream("l").join(stream("r"), on="k", within=(-3, 5))


def sql(node):
    return node.predicate.sql("spark") if isinstance(node, Filter) else None


def pushed(condition, query=None):
    """The conditions over the join, on its left and on its right."""
    node = push_filters((query or joined()).where(condition).node)
    join = node.input if isinstance(node, Filter) else node
    assert isinstance(join, Join)
    return sql(node), sql(join.left), sql(join.right)


MOVED = [
    ("x > 1", (None, "x > 1", None)),
    ("x_right > 1", (None, None, "x > 1")),
    ("x > 1 AND x_right < 5", (None, "x > 1", "x < 5")),
    ("(x > 1 AND (x_right < 5 AND s = 'a'))", (None, "x > 1 AND s = 'a'", "x < 5")),
    ("x > 1 OR k IS NULL", (None, "x > 1 OR k IS NULL", None)),
    ("NOT b_right", (None, None, "NOT b")),
    ("f_right BETWEEN 1 AND 2.5", (None, None, "f BETWEEN 1 AND 2.5")),
    ("s IN ('a', 'b') AND x IN (1, 2)", (None, "s IN ('a', 'b') AND x IN (1, 2)", None)),
    ("t_right > 7", (None, None, "t > 7")),
    ("x > 1 AND x < x_right", ("x < x_right", "x > 1", None)),
]
KEPT = [
    "x > x_right",
    "x > 1 OR x_right > 1",
    "1 = 1",
    "x / x > 1",
    "x + 1 > 1",
    "CAST(s AS BIGINT) > 1",
    "LENGTH(s) > 1",
    "s > 5",  # a text is cast to a number
    "s_right IN (1, 2)",
    "s BETWEEN 1 AND 2",
    "NOT s = 1",
]


@pytest.mark.parametrize(("condition", "expected"), MOVED)
def test_a_condition_on_one_side_moves_there_under_the_names_of_that_side(condition, expected):
    assert pushed(condition) == expected


@pytest.mark.parametrize("condition", KEPT)
def test_conditions_on_both_sides_and_those_that_can_fail_stay(condition):
    assert pushed(condition) == (condition, None, None)


def test_one_filter_over_another_moves_if_the_lower_one_has_gone():
    assert pushed("x > 1", joined().where("x_right > 2")) == (None, "x > 1", "x > 2")


def test_nothing_moves_below_anything_else_than_a_join():
    for query in (
        stream("l").window(5).group_by("k").agg(n=wr.count()).where("n > 1 AND k = 2"),
        stream("l").window(5).emit_early(1).group_by("k").agg(n=wr.count()).where("n > 1"),
        stream("l").union(stream("r")).where("x > 1"),
        stream("l").select("t", "x").distinct().where("x > 1"),
    ):
        assert push_filters(query.node) is query.node


def test_a_join_without_a_filter_is_the_same_object():
    node = joined().node
    assert push_filters(node) is node


def test_a_side_that_is_used_elsewhere_keeps_all_its_rows():
    s = stream("s")
    query = s.join(s, on="k", within=(0, 5)).where("x > 1")
    node = push_filters(query.node)
    assert isinstance(node, Join)
    assert isinstance(node.left, Filter)
    assert node.left.input is node.right


@pytest.mark.parametrize("condition", ["w > 5", "w IN (5, 7)", "w BETWEEN 5 AND 9", "CAST(w AS BIGINT) > 5"])
def test_a_row_without_a_partner_does_not_stop_a_query(condition):
    left = wr.stream([{"t": 1, "k": 0}], "t", name="l")
    right = wr.stream([{"t": 1, "k": 0, "w": "7"}, {"t": 1, "k": 9, "w": "no number"}], "t", name="r")
    query = left.join(right, on="k", within=(0, 0)).where(condition)
    assert query.collect().height == 1
    compare(query.collect(), oracle(query), condition)


def rows(rng, count=30):
    data = [
        (
            rng.randrange(40),
            rng.choice([None, 0, 1, 2]),
            rng.choice([None, *range(5)]),
            rng.choice([None, 0.5, -0.0, float("nan")]),
            rng.choice([None, "a", "b"]),
            rng.choice([None, True, False]),
        )
        for _ in range(count)
    ]
    return pl.DataFrame(data, schema=SCHEMA, orient="row")


def condition(rng, depth=2):
    """A random condition over the columns of a join."""
    if depth and rng.random() < 0.6:
        a, b = condition(rng, depth - 1), condition(rng, depth - 1)
        return rng.choice([f"({a}) AND ({b})", f"({a}) AND ({b})", f"({a}) OR ({b})", f"NOT ({a})"])
    side, other = rng.choice([("", "_right"), ("_right", "")])
    return rng.choice(
        [
            f"x{side} {rng.choice(['<', '>=', '=', '<>'])} {rng.randrange(5)}",
            f"x{side} > x{other}",
            f"k{side} IS NULL",
            f"x{side} IS NOT NULL",
            f"s{side} IN ('a', NULL)",
            f"f{side} > 0",
            f"b{side}",
            f"x{side} + 1 > 2",
            f"t{side} BETWEEN 5 AND 20",
        ]
    )


@pytest.mark.parametrize("seed", range(25))
def test_random_joins_with_filters_mean_the_same(seed):
    """The oracle knows no rules."""
    rng = random.Random(seed)
    left, right = (wr.stream(rows(rng), "t", slack=40, name=name) for name in "lr")
    if rng.random() < 0.3:
        right = left
    query = left.join(right, on="k", within=(rng.choice([-5, 0]), 8)).where(condition(rng))
    if rng.random() < 0.5:
        query = query.where(condition(rng))
    if rng.random() < 0.5:
        query = query.select("t", "s_right", y="x_right")
    compare(query.collect(), oracle(query), f"seed {seed}")


def test_filters_on_both_sides_reach_the_map_side():
    """What is filtered before the exchange does not cross it."""
    spark = SimulatedSpark(shards=2)
    frame = pl.DataFrame({"t": [1, 2, 3, 4], "k": [1, 1, 1, 1], "x": [0, 1, 2, 3]})
    left, right = (wr.stream(spark.stream(frame.schema), "t", slack=0, name=name) for name in "lr")
    query = left.join(right, on="k", within=(-9, 9)).where("x > 2 AND x_right > 1")
    batch = spark.start(query).push({"l": frame, "r": frame})
    assert batch.counts["rows_sent"] - batch.counts["rows_copied"] == 3
    assert batch.results.height == 2
