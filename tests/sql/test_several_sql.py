"""Joins of three and more tables in SQL: one multi-way join where that is what they mean, else joins of two."""

from datetime import datetime, timedelta

import pytest
from join_queries import MINUTE, check_refused, joins_of, planned

import windrow as wr
from windrow.logical.nodes import MultiJoin
from windrow.testing import compare, oracle, replay

RANGES = "L [RANGE 3 MINUTES], R [RANGE 2 MINUTES], C [RANGE 1 MINUTE]"


def several_of(query):
    """The multi-way join of a query; None if it has none."""
    return next((node for node in planned(query).walk() if isinstance(node, MultiJoin)), None)


def keys(node):
    return [tuple(tree.sql("spark") for tree in key) for key in node.keys]


@pytest.mark.parametrize(
    "where",
    ["L.k = R.k AND R.k = C.k", "L.k = R.k AND L.k = C.k", "C.k = R.k AND C.k = L.k AND L.k = R.k"],
)
def test_a_key_that_follows_for_all_tables_makes_one_join(where):
    node = several_of(f"SELECT w FROM {RANGES} WHERE {where}")
    assert node.ranges.lengths == (3 * MINUTE, 2 * MINUTE, MINUTE)
    assert (keys(node), node.where, joins_of(f"SELECT w FROM {RANGES} WHERE {where}")) == ([("k", "k", "k")], None, [])


def test_join_and_on_say_the_same():
    tables = "L [RANGE 3 MINUTES] JOIN R [RANGE 2 MINUTES] USING (k) JOIN C [RANGE 1 MINUTE] USING (k)"
    node = several_of(f"SELECT w FROM {tables}")
    assert (keys(node), node.ranges.lengths[0]) == ([("k", "k", "k")], 3 * MINUTE)


def test_expressions_are_keys_and_other_conditions_stay():
    where = "L.k + 1 = R.k AND R.k = C.k AND x < v AND w > 1 AND L.src = R.dst"
    node = several_of(f"SELECT w FROM {RANGES} WHERE {where}")
    assert keys(node) == [("k + 1", "k", "k")]
    assert node.where.sql("spark").replace("`", "") == "x < v AND src = dst"
    assert type(node.members[2]).__name__ == "Filter"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT w FROM {RANGES} WHERE L.k = R.k",  # C has no key
        f"SELECT w FROM {RANGES}",
        f"SELECT w FROM {RANGES} WHERE L.k = R.k AND R.k = C.k AND C.ts <= R.ts",  # this says more than the windows
        f"SELECT w FROM {RANGES} WHERE L.x = R.k AND R.k = C.k",  # a double equals integers that are not equal
        "SELECT w FROM L, R, C [TUMBLING 1 MINUTE, WA ts] WHERE L.k = R.k AND R.k = C.k",
        "SELECT w FROM L [RANGE 3 MINUTES] LEFT JOIN R [RANGE 2 MINUTES] ON L.k = R.k "
        "JOIN C [RANGE 1 MINUTE] ON L.k = C.k",
        f"SELECT /*+ USING(oa) */ w FROM {RANGES} WHERE L.k = R.k AND R.k = C.k",
    ],
)
def test_other_joins_are_of_two(query):
    assert several_of(query) is None
    assert len(joins_of(query)) == 2


def test_a_hint_chooses_the_way():
    query = "SELECT /*+ USING({}) */ w FROM {} WHERE L.k = R.k AND R.k = C.k"
    for using in ("multi", "pipeline"):
        assert several_of(query.format(using, RANGES)).using == using
    check_refused(
        f"SELECT /*+ USING(multi) */ w FROM {RANGES} WHERE L.k = R.k",
        "USING(multi) is about a join of three or more tables",
        "USING(multi)",
    )
    check_refused(
        "SELECT /*+ USING(pipeline) */ v FROM L [RANGE 1 MINUTE], R [RANGE 1 MINUTE] WHERE L.k = R.k",
        "USING(pipeline) is about a join of three or more tables",
        "USING(pipeline)",
    )


def frames():
    at = datetime(2024, 1, 1)
    seconds = [(0, 25, 31, 60, 61, 130), (3, 30, 90, 91, 180), (5, 29, 60, 89, 120, 179)]
    for name, value, times in zip("LRC", "xvw", seconds, strict=True):
        yield name, [{"ts": at + timedelta(seconds=t), "k": t % 2, value: t} for t in times]


@pytest.mark.parametrize(
    "select", ["x, v, w", "L.ts, x, w", "R.ts AS a, C.ts AS b", "greatest(L.ts, R.ts, C.ts) AS t, v"]
)
def test_it_gives_what_the_joins_of_two_give(select):
    streams = {name: wr.stream(rows, "ts", slack="1 minute", name=name) for name, rows in frames()}
    query = "SELECT {} {} FROM {} WHERE L.k = R.k AND R.k = C.k AND x <> w"
    several = wr.sql(query.format("", select, RANGES), **streams)
    tree = wr.sql(query.format("/*+ USING(oa) */", select, RANGES), **streams)
    assert oracle(several).height > 5
    compare(oracle(several), oracle(tree))
    replay(several, runs=2)


@pytest.mark.parametrize("time", "LRC")
def test_a_window_progresses_on_the_time_that_it_names(time):
    streams = {name: wr.stream(rows, "ts", slack="1 minute", name=name) for name, rows in frames()}
    query = f"SELECT count(*) AS n [TUMBLING 1 MINUTE, WA {time}.ts] FROM {RANGES} WHERE L.k = R.k AND R.k = C.k"
    replay(wr.sql(query, **streams), runs=2)
