"""Joins of more than two tables, in parentheses, and of queries: each is a join of two. Issue 13."""

import pytest
from join_queries import BAND, MINUTE, SECOND, check_refused, filters, joins_of, keys, planned, where

from windrow.windows.pairing import SameWindow, Within


def progress(join):
    return [side.progress for side in join.inputs]


def test_a_third_table_is_joined_by_the_time_that_its_condition_names():
    near = "C.ts BETWEEN {}.ts AND {}.ts + INTERVAL 3 SECONDS"
    for other in ("L", "R"):
        query = f"SELECT w FROM L JOIN R ON L.k = R.k AND {BAND} JOIN C ON C.k = L.k AND {near.format(other, other)}"
        below, above = joins_of(query)
        assert (below.window, keys(below)) == (Within(-5 * SECOND, 10 * SECOND), [("k", "k")])
        assert (above.window, keys(above)) == (Within(0, 3 * SECOND), [("`L.k`", "k")])
        assert progress(above) == [f"{other}.ts", "ts"]


def test_comma_tables_take_their_conditions_from_where():
    query = "SELECT w FROM L, R, C WHERE L.k = R.k AND R.k = C.k AND x > 1 AND v < w AND {} AND C.ts = R.ts"
    below, above = joins_of(query.format(BAND))
    assert (keys(below), where(below), filters(below)) == ([("k", "k")], None, ["x > 1", None])
    assert (keys(above), where(above)) == ([("`R.k`", "k"), ("`R.ts`", "ts")], "v < w")


def test_ranges_of_all_tables_bound_every_pair_of_times():
    below, above = joins_of("SELECT w FROM L [RANGE 3 MINUTES], R [RANGE 2 MINUTES], C [RANGE 1 MINUTE]")
    assert below.window == Within(1 - 2 * MINUTE, 3 * MINUTE - 1)
    assert (above.window, progress(above)) == (Within(1 - MINUTE, 2 * MINUTE - 1), ["R.ts", "ts"])
    assert where(above) == (
        "C.ts <= L.ts + INTERVAL '179999999' MICROSECOND AND L.ts <= C.ts + INTERVAL '59999999' MICROSECOND"
    )


def test_all_tables_are_in_one_tumbling_window():
    below, above = joins_of("SELECT w FROM L, R, C [TUMBLING 1 MINUTE, WA ts] WHERE L.k = R.k AND R.k = C.k")
    assert below.window == above.window == SameWindow(MINUTE)
    assert above.where is None
    for time in "LRC":
        counted = f"SELECT count(*) AS n [TUMBLING 1 MINUTE, WA {time}.ts] FROM L, R, C [TUMBLING 1 MINUTE, WA ts]"
        assert f"{time}.ts" in joins_of(counted)[-1].times


def test_bounds_follow_from_others():
    # C is bounded by two tables, one on each side.
    _, above = joins_of(f"SELECT w FROM L JOIN R ON {BAND} JOIN C ON C.ts BETWEEN R.ts AND L.ts + INTERVAL 9 SECONDS")
    assert (progress(above)[0], above.window) == ("L.ts", Within(-5 * SECOND, 9 * SECOND))
    assert where(above) == "C.ts BETWEEN R.ts AND L.ts + INTERVAL '9' SECONDS"
    # L and R are bounded by C only.
    below, above = joins_of(
        "SELECT w FROM L, R, C WHERE C.ts = R.ts AND C.ts BETWEEN L.ts AND L.ts + INTERVAL 5 SECONDS"
    )
    assert (below.window, keys(below)) == (Within(0, 5 * SECOND), [])
    assert where(above) == "C.ts BETWEEN L.ts AND L.ts + INTERVAL '5' SECONDS"
    # After the second join rows progress on a.ts and c.ts; b.ts is as far from d.ts as c.ts is.
    tables = "L AS a JOIN L AS b ON b.ts = a.ts JOIN L AS c ON c.ts = b.ts JOIN L AS d ON d.ts - b.ts BETWEEN"
    last = joins_of(f"SELECT a.k FROM {tables} INTERVAL 0 SECONDS AND INTERVAL 5 SECONDS")[-1]
    assert (progress(last), last.window) == (["a.ts", "ts"], Within(0, 5 * SECOND))


def test_a_tree_progresses_on_the_time_that_its_window_names():
    tables = f"L JOIN R ON {BAND} JOIN C ON C.ts - R.ts BETWEEN INTERVAL 0 SECONDS AND INTERVAL 1 SECOND"
    for time, window in (("L", Within(-5 * SECOND, 11 * SECOND)), ("R", Within(0, SECOND)), ("C", Within(0, SECOND))):
        last = joins_of(f"SELECT count(*) AS n [TUMBLING 1 MINUTE, WA {time}.ts] FROM {tables}")[-1]
        assert (f"{time}.ts" in last.times, last.window) == (True, window)
        assert joins_of(f"SELECT {time}.ts FROM {tables}")[-1].window == window
        counted = planned(f"SELECT count(*) AS n FROM ({tables}) [TUMBLING 1 MINUTE, WA {time}.ts]")
        assert counted.input.progress == f"{time}.ts"
    assert where(joins_of(f"SELECT L.ts FROM {tables}")[-1]).startswith("C.ts - R.ts BETWEEN")


def test_joins_in_parentheses_and_nested():
    for tables in (f"L JOIN (R JOIN C ON R.ts = C.ts) ON {BAND}", f"L JOIN R JOIN C ON R.ts = C.ts ON {BAND}"):
        inner, outer = joins_of(f"SELECT w FROM {tables}")
        assert (inner.window, outer.window) == (Within(0, 0), Within(-5 * SECOND, 10 * SECOND))
        assert outer.right is inner
    inner, outer = joins_of(f"SELECT w FROM ((L JOIN R ON {BAND}) LEFT JOIN C ON C.ts = L.ts)")
    assert (outer.how, outer.left) == ("left", inner)


def test_a_comma_binds_less_than_join():
    inner, outer = joins_of(f"SELECT w FROM L, R LEFT JOIN C ON R.ts = C.ts AND w > 1 WHERE {BAND} AND v > 2")
    assert (inner.how, filters(inner), outer.how) == ("left", [None, "w > 1"], "inner")
    assert outer.right.predicate.sql("spark") == "v > 2"  # over the results of the outer join
    assert outer.right.input is inner


def test_what_an_outer_join_leaves_out_is_near_everything():
    tables = "L [RANGE 3 MINUTES] LEFT JOIN R [RANGE 2 MINUTES] ON L.k = R.k JOIN C [RANGE 1 MINUTE] ON L.k = C.k"
    _, above = joins_of(f"SELECT w FROM {tables}")
    assert (progress(above)[0], above.window) == ("L.ts", Within(1 - MINUTE, 3 * MINUTE - 1))
    assert where(above) == (
        "COALESCE(C.ts <= R.ts + INTERVAL '119999999' MICROSECOND, TRUE) AND "
        "COALESCE(R.ts <= C.ts + INTERVAL '59999999' MICROSECOND, TRUE)"
    )


def test_queries_and_unions_are_joined():
    query = f"(SELECT L.ts AS a, R.ts AS b FROM L JOIN R ON {BAND}) AS j"
    for time, table in (("a", "L"), ("b", "R")):
        node = planned(f"SELECT w FROM {query} JOIN C ON C.ts = j.{time}").input
        assert progress(node)[0] == time, table
    node = planned("SELECT M1.k FROM L UNION L AS M1, L UNION L AS M2 [TUMBLING 1 MINUTE] WHERE M1.src = M2.src").input
    assert [type(side).__name__ for side in node.inputs] == ["Union", "Union"]
    node = planned("SELECT count(*) AS n FROM L UNION L AS M [TUMBLING 1 MINUTE, WA M.ts]")
    assert type(node.input).__name__ == "Union"


@pytest.mark.parametrize(
    ("query", "message", "underlined"),
    [
        ("SELECT w FROM L, R, C WHERE {B}", "add C.ts BETWEEN L.ts - INTERVAL", "C"),
        ("SELECT w FROM L, R JOIN C ON L.ts = C.ts", "ts of L cannot be named here: it is not part of this", "L.ts"),
        ("SELECT w FROM L, R JOIN C ON x = w", "x of L cannot be named here", "x"),
        ("SELECT w FROM L SEMI JOIN R ON {B} JOIN C ON R.ts = C.ts", "only the columns of the left side", "R.ts"),
        ("SELECT w FROM L LEFT JOIN R ON {B} JOIN C ON C.ts = R.ts", "not all rows have R.ts", "C ON C.ts = R.ts"),
        ("SELECT w FROM L FULL JOIN R ON {B} JOIN C ON C.ts = R.ts", "selects coalesce(L.ts, R.ts)", "R ON {B}"),
        ("SELECT w FROM L, R, L WHERE {B}", "both tables are called L: give one an alias", "L"),
        ("SELECT x FROM (L JOIN R ON {B}) AS z", "a name of a join in parentheses", "L JOIN R ON {B}) AS z"),
        ("SELECT x FROM (L JOIN R ON {B}) UNION C", "a union of a join in parentheses", "L JOIN R ON {B}) UNION C"),
        ("SELECT x FROM C UNION (L JOIN R ON {B})", "a join inside a union", "R ON {B}"),
        ("(SELECT k FROM L) JOIN R", "a join stands in the FROM of a query", "R"),
        (
            "SELECT 1 AS c FROM N AS a [RANGE 3 ROWS] LEFT JOIN N AS b [RANGE 3 ROWS] ON a.k = b.k, N AS c [RANGE 3 ROWS]",
            "a join over ROWS is of two tables",
            "N AS c [RANGE 3 ROWS",
        ),
    ],
)
def test_trees_that_cannot_be_are_underlined(query, message, underlined):
    check_refused(query.replace("{B}", BAND), message, underlined.replace("{B}", BAND))
