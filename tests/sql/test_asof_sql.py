"""ASOF JOIN .. MATCH_CONDITION in SQL: what it plans, what it gives, what it refuses. Issue 14."""

import pytest
from join_queries import MINUTE, SECOND, check_refused, filters, keys, planned, tables, where

import windrow as wr
from windrow.logical.nodes import AsOf, Filter, Join

M = "MATCH_CONDITION (L.ts >= R.ts)"


def as_ofs(query):
    return [node for node in planned(query).walk() if isinstance(node, AsOf)]


def as_of(query):
    (found,) = as_ofs(query)
    return found


# -- MATCH_CONDITION ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("condition", "strategy", "exact", "shift"),
    [
        ("L.ts >= R.ts", "backward", True, 0),
        ("L.ts > R.ts", "backward", False, 0),
        ("L.ts <= R.ts", "forward", True, 0),
        ("L.ts < R.ts", "forward", False, 0),
        ("R.ts <= L.ts", "backward", True, 0),
        ("R.ts < L.ts", "backward", False, 0),
        ("R.ts >= L.ts", "forward", True, 0),
        ("R.ts > L.ts", "forward", False, 0),
        ("(L.ts >= (R.ts))", "backward", True, 0),
        ("L.ts >= R.ts + INTERVAL 5 SECONDS", "backward", True, 5 * SECOND),
        ("L.ts - INTERVAL '5' SECOND >= R.ts", "backward", True, 5 * SECOND),
        ("R.ts - INTERVAL 1 MINUTE > L.ts + INTERVAL 5 SECONDS", "forward", False, -65 * SECOND),
    ],
)
def test_the_condition_says_where_the_right_row_is(condition, strategy, exact, shift):
    node = as_of(f"SELECT x, v FROM L ASOF JOIN R MATCH_CONDITION ({condition}) WITHIN 1 HOUR")
    assert (node.strategy, node.exact, node.shift) == (strategy, exact, shift)
    assert (node.left.progress, node.right.progress, node.on) == ("ts", "ts", ())


@pytest.mark.parametrize(
    ("kind", "how"), [("", "inner"), ("INNER ", "inner"), ("LEFT ", "left"), ("LEFT OUTER ", "left"), ("left ", "left")]
)
def test_inner_and_left(kind, how):
    assert as_of(f"SELECT x, v FROM L {kind}ASOF JOIN R {M} ON L.k = R.k KEYS 10").how == how


def test_columns_and_times():
    node = planned(f"SELECT L.ts, x, R.ts AS rts, v FROM L LEFT ASOF JOIN R {M} ON L.k = R.k KEYS 10")
    assert (list(node.schema), set(node.times)) == (["ts", "x", "rts", "v"], {"ts"})
    found = as_of(f"SELECT L.ts FROM L ASOF JOIN R {M} USING (k) WITHIN 5 SECONDS KEYS 7")
    assert {name for name, _, _ in found.columns} == {"L.ts", "L.k", "src", "x", "R.ts", "R.k", "dst", "v"}
    assert (keys(found), found.tolerance, found.most_keys) == ([("k", "k")], 5 * SECOND, 7)
    merged = planned(f"SELECT k, x, v FROM L ASOF JOIN R {M} USING (k) WITHIN 5 SECONDS")
    assert list(merged.schema) == ["k", "x", "v"]


@pytest.mark.parametrize(
    "within", ["WITHIN 10 MINUTES", "WITHIN INTERVAL '10' MINUTE", "WITHIN INTERVAL 600 SECONDS", "WITHIN '10 minutes'"]
)
@pytest.mark.parametrize("order", ["{on} {within} {keys}", "{within} {on} {keys}", "{keys} {within} {on}"])
def test_the_greatest_distance_and_the_number_of_keys(within, order):
    rest = order.format(on="ON L.k = R.k", within=within, keys="KEYS 5")
    node = as_of(f"SELECT x, v FROM L ASOF JOIN R {M} {rest}")
    assert (node.tolerance, node.most_keys, keys(node)) == (10 * MINUTE, 5, [("k", "k")])


def test_lengths_of_whole_numbers():
    node = as_of("SELECT a.t FROM N a ASOF JOIN N b MATCH_CONDITION (a.t > b.t - 2) USING (k) WITHIN 5 KEYS 3")
    assert (node.tolerance, node.most_keys, node.shift, node.exact) == (5, 3, -2, False)


# -- ON ----------------------------------------------------------------------------------------------------------
def test_each_condition_is_where_it_means_what_it_says():
    on = "L.k + 1 = R.k AND dst = 'a' AND x > 3 AND v > x AND R.ts >= L.ts - INTERVAL 1 MINUTE"
    inner = as_of(f"SELECT x, v FROM L ASOF JOIN R {M} ON {on}")
    assert keys(inner) == [("k + 1", "k")]
    assert (filters(inner), where(inner), inner.tolerance) == (["x > 3", "dst = 'a'"], "v > x", MINUTE)
    left = as_of(f"SELECT x, v FROM L LEFT ASOF JOIN R {M} ON {on}")
    assert (filters(left), where(left), left.tolerance) == ([None, "dst = 'a'"], "x > 3 AND v > x", MINUTE)


def test_a_condition_on_left_rows_alone_keeps_no_right_rows():
    node = as_of(f"SELECT x, v FROM L LEFT ASOF JOIN R {M} ON L.k = R.k AND x > 3 KEYS 10")
    assert (keys(node), node.where, node.tolerance) == ([("CASE WHEN x > 3 THEN k END", "k")], None, None)


@pytest.mark.parametrize(
    ("condition", "on", "tolerance", "left"),
    [
        ("L.ts >= R.ts", "L.ts - R.ts <= INTERVAL 5 SECONDS", 5, None),
        ("L.ts >= R.ts", "R.ts > L.ts - INTERVAL 5 SECONDS AND R.ts <= L.ts", 5 - 1e-6, None),
        ("L.ts >= R.ts", "R.ts BETWEEN L.ts - INTERVAL 5 SECONDS AND L.ts", 5, None),
        ("L.ts > R.ts", "R.ts BETWEEN L.ts - INTERVAL 5 SECONDS AND L.ts", 5, None),
        ("L.ts <= R.ts", "R.ts <= L.ts + INTERVAL 5 SECONDS", 5, None),
        ("L.ts >= R.ts + INTERVAL 2 SECONDS", "R.ts >= L.ts - INTERVAL 5 SECONDS", 3, None),
        ("L.ts <= R.ts - INTERVAL 2 SECONDS", "R.ts <= L.ts + INTERVAL 5 SECONDS", 3, None),
        (
            "L.ts >= R.ts",
            "R.ts >= L.ts - INTERVAL 5 SECONDS AND R.ts < L.ts",
            5,
            "R.ts < L.ts",
        ),
    ],
)
def test_a_bound_of_both_times_is_a_tolerance(condition, on, tolerance, left):
    node = as_of(f"SELECT x, v FROM L ASOF JOIN R MATCH_CONDITION ({condition}) ON L.k = R.k AND {on}")
    assert (node.tolerance, where(node)) == (round(tolerance * SECOND), left)
    closer = as_of(
        f"SELECT x, v FROM L ASOF JOIN R MATCH_CONDITION ({condition}) ON L.k = R.k AND {on} WITHIN 1 SECOND"
    )
    assert closer.tolerance == SECOND


def test_where_is_over_the_results():
    node = planned(f"SELECT x, v FROM L ASOF JOIN R {M} WITHIN 5 SECONDS WHERE v > 3 AND x > 1")
    assert [type(each) for each in node.walk()][-3:-1] == [Filter, Filter]
    assert filters(as_of(f"SELECT x, v FROM L ASOF JOIN R {M} WITHIN 5 SECONDS WHERE v > 3 AND x > 1")) == [None, None]


def test_late_rows():
    node = as_of(f"SELECT x, v FROM L [LATE ERROR] ASOF JOIN R [LATE SIDE] {M} WITHIN 5 SECONDS")
    assert node.late == ("error", "side")
    node = as_of("SELECT x, v FROM L ASOF JOIN R AS z [LATE SIDE] MATCH_CONDITION (L.ts >= z.ts) WITHIN 5 SECONDS")
    assert node.late == ("drop", "side")


# -- trees -------------------------------------------------------------------------------------------------------
def test_as_of_joins_of_joins():
    first, second = as_ofs(
        f"SELECT x, v, w FROM L ASOF JOIN R {M} ON L.k = R.k KEYS 10 "
        "LEFT ASOF JOIN C MATCH_CONDITION (L.ts > C.ts) ON R.k = C.k KEYS 5"
    )
    assert (second.left, keys(second)) == (first, [("`R.k`", "k")])
    for query, side in (
        (f"SELECT x, v, w FROM L JOIN C ON C.ts = L.ts ASOF JOIN R {M} ON L.k = R.k KEYS 10", 0),
        (f"SELECT x, v, w FROM L ASOF JOIN (R JOIN C ON C.ts = R.ts) {M} ON L.k = R.k KEYS 10", 1),
    ):
        assert isinstance(as_of(query).inputs[side], Join)


def test_what_an_as_of_join_says_about_times_bounds_the_join_above():
    band = "C.ts BETWEEN R.ts AND R.ts + INTERVAL 3 SECONDS"
    query = f"SELECT x, v, w FROM L ASOF JOIN R {M} WITHIN 5 SECONDS JOIN C ON {band}"
    (join,) = [node for node in planned(query).walk() if isinstance(node, Join)]
    assert (join.window.low, join.window.high) == (-5 * SECOND, 3 * SECOND)
    assert "C.ts BETWEEN R.ts" in where(join)


def test_over_queries_unions_and_under_windows():
    query = "SELECT x, rv FROM (L UNION L) z ASOF JOIN (SELECT ts AS t, v AS rv FROM R) q MATCH_CONDITION (z.ts >= t)"
    assert as_of(query).right.progress == "t"
    node = planned(
        f"SELECT dst, count(*) AS n [TUMBLING 1 MINUTE, WA L.ts] FROM L ASOF JOIN R {M} USING (k) KEYS 5 GROUP BY dst"
    )
    assert list(node.schema) == ["dst", "window_start", "window_end", "n"]
    both = planned(f"SELECT L.ts, v FROM L ASOF JOIN R {M} USING (k) KEYS 5 UNION ALL SELECT ts, v FROM R ORDER BY ts")
    assert list(both.schema) == ["ts", "v"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT keys, within, recent, seq, asof, following, match_condition, chronicle, after FROM s",
        "SELECT recent.seq FROM s recent",
        "SELECT seq.keys FROM s AS seq",
        "SELECT following.keys FROM s following",
        "SELECT within.keys FROM s within, s AS keys WHERE keys.t = within.t",
        "SELECT match_condition.a FROM s match_condition(a, b, c, d, e, f, g, h, i, j)",
        "SELECT match_condition.keys FROM s LEFT ASOF JOIN s match_condition MATCH_CONDITION "
        "(s.t >= match_condition.t)",
        "SELECT following.keys FROM s x ASOF JOIN s following MATCH_CONDITION (x.t >= following.t)",
        "SELECT following.keys FROM s x FOLLOWING RECENT s following WITHIN 5",
        "SELECT within.keys FROM s within FOLLOWING RECENT s keys WITHIN 5",
        "SELECT seq FROM (SELECT seq FROM s AS after)",
    ],
)
def test_the_words_are_names_everywhere_else(query):
    names = ("keys", "within", "recent", "seq", "asof", "following", "match_condition", "chronicle", "after")
    s = wr.stream([{"t": 1, **dict.fromkeys(names, 2)}], progress="t")
    assert wr.sql(query, s=s).node.schema


# -- results -----------------------------------------------------------------------------------------------------
TRADES = [(3, 1, 1.5), (6, 1, 2.0), (7, 2, 5.0), (7, 1, 4.0), (8, None, 1.0)]
QUOTES = [(1, 1, 3), (2, 2, 5), (4, 1, 8), (4, 1, 9), (7, 1, 10)]


def rows(query):
    trades = wr.stream([{"ts": t, "k": k, "x": x} for t, k, x in TRADES], progress="ts", slack=3, name="trades")
    quotes = wr.stream([{"ts": t, "k": k, "v": v} for t, k, v in QUOTES], progress="ts", slack=3, name="quotes")
    return sorted(wr.sql(query, t=trades, q=quotes).collect().rows(), key=str)


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("ASOF JOIN q MATCH_CONDITION (t.ts >= q.ts) ON t.k = q.k KEYS 9", [(3, 3), (6, 9), (7, 10), (7, 5)]),
        ("ASOF JOIN q MATCH_CONDITION (t.ts > q.ts) ON t.k = q.k KEYS 9", [(3, 3), (6, 9), (7, 5), (7, 9)]),
        ("ASOF JOIN q MATCH_CONDITION (q.ts >= t.ts) ON t.k = q.k WITHIN 9", [(3, 8), (6, 10), (7, 10)]),
        (
            "LEFT ASOF JOIN q MATCH_CONDITION (t.ts >= q.ts) USING (k) WITHIN 2",
            [(3, 3), (6, 9), (7, 10), (7, None), (8, None)],
        ),
        (
            "LEFT ASOF JOIN q MATCH_CONDITION (t.ts >= q.ts + 2) USING (k) WITHIN 2",
            [(3, 3), (6, 9), (7, 9), (7, None), (8, None)],
        ),
        (
            "LEFT ASOF JOIN q MATCH_CONDITION (t.ts >= q.ts) ON t.k = q.k AND v < 9 AND x > 1.8 KEYS 9",
            [(3, None), (6, 8), (7, 5), (7, 8), (8, None)],
        ),
        (
            "LEFT ASOF JOIN q MATCH_CONDITION (t.ts >= q.ts) ON t.k = q.k AND v < x + 5 WITHIN 9",
            [(3, 3), (6, 3), (7, 5), (7, 8), (8, None)],
        ),
        ("ASOF JOIN q MATCH_CONDITION (t.ts >= q.ts) ON t.k = q.k KEYS 9 WHERE v < 9", [(3, 3), (7, 5)]),
        ("ASOF JOIN q MATCH_CONDITION (t.ts >= q.ts)", [(3, 5), (6, 9), (7, 10), (7, 10), (8, 10)]),
    ],
)
def test_results(rest, expected):
    assert rows(f"SELECT t.ts, v FROM t {rest}") == sorted(expected, key=str)


# -- errors ------------------------------------------------------------------------------------------------------
def with_table(query):
    return wr.sql(query, **tables(), S=wr.table([{"k": 1, "s": 1}])).node


@pytest.mark.parametrize(
    ("query", "message", "underlined"),
    [
        ("SELECT x FROM L ASOF JOIN R ON L.k = R.k", "an ASOF JOIN needs MATCH_CONDITION", "ASOF"),
        ("SELECT x FROM L ASOF JOIN R MATCH_CONDITION", "an ASOF JOIN needs MATCH_CONDITION", "ASOF"),
        ("SELECT x FROM L ASOF JOIN R AS z MATCH_CONDITION L.ts >= z.ts", "stands in parentheses", "L"),
        ("SELECT x FROM L ASOF JOIN R MATCH_CONDITION ()", "Expected a comparison of two times", "("),
        (f"SELECT x FROM L ASOF JOIN R ON L.k = R.k {M}", "stands right after the right table", "MATCH_CONDITION"),
        ("SELECT x FROM L ASOF JOIN R MATCH_CONDITION (L.ts = R.ts)", "with >=, >, <= or <", "L.ts = R.ts"),
        (
            "SELECT x FROM L ASOF JOIN R MATCH_CONDITION (L.ts >= R.ts AND x > 3)",
            "one comparison",
            "L.ts >= R.ts AND x > 3",
        ),
        ("SELECT x FROM L ASOF JOIN R MATCH_CONDITION (NOT L.ts < R.ts)", "one comparison", "NOT L.ts < R.ts"),
        ("SELECT x FROM L ASOF JOIN R MATCH_CONDITION (L.x >= R.ts)", "progresses on, here L.ts", "L.x"),
        ("SELECT x FROM L ASOF JOIN R MATCH_CONDITION (src >= dst)", "progresses on, here L.ts", "src"),
        ("SELECT x FROM L ASOF JOIN R MATCH_CONDITION (L.ts >= dst)", "progresses on, here R.ts", "dst"),
        (
            "SELECT x FROM L ASOF JOIN R MATCH_CONDITION (date_trunc('day', L.ts) >= R.ts)",
            "here L.ts",
            "date_trunc('day', L.ts)",
        ),
        ("SELECT x FROM L ASOF JOIN R MATCH_CONDITION (L.ts >= L.ts)", "of the same side", "L.ts >= L.ts"),
        ("SELECT x FROM L ASOF JOIN R MATCH_CONDITION (L.ts >= NULL)", "NULL is the same for all rows", "NULL"),
        ("SELECT x FROM L ASOF JOIN R MATCH_CONDITION (3 < R.ts)", "3 is the same for all rows", "3"),
        (
            "SELECT x FROM L ASOF JOIN R MATCH_CONDITION (L.ts - R.ts >= INTERVAL 5 SECONDS)",
            "columns of one side only",
            "L.ts - R.ts",
        ),
        ("SELECT x FROM L ASOF JOIN R MATCH_CONDITION (L.ts >= max(R.ts))", "cannot contain agg", "max(R.ts)"),
        ("SELECT x FROM L ASOF JOIN R MATCH_CONDITION (L.ts >= nope)", "unknown column 'nope'", "nope"),
        ("SELECT x FROM L ASOF JOIN R MATCH_CONDITION (ts >= R.ts)", "ambiguous: write L.ts or R.ts", "ts"),
        ("SELECT x FROM L ASOF JOIN N MATCH_CONDITION (L.ts >= t)", "of one type: L.ts is Datetime", "L.ts >= t"),
        (f"SELECT x FROM L RIGHT ASOF JOIN R {M}", "not supported: RIGHT ASOF JOIN", "RIGHT ASOF"),
        (f"SELECT x FROM L FULL OUTER ASOF JOIN R {M}", "not supported: FULL OUTER ASOF", "FULL OUTER ASOF"),
        (f"SELECT x FROM L LEFT SEMI ASOF JOIN R {M}", "not supported: LEFT SEMI ASOF JOIN", "LEFT SEMI ASOF"),
        (f"SELECT x FROM L ANTI ASOF JOIN R {M}", "not supported: ANTI ASOF JOIN", "ANTI ASOF"),
        (f"SELECT x FROM L CROSS ASOF JOIN R {M}", "not supported: CROSS ASOF JOIN", "CROSS ASOF"),
        (f"SELECT x FROM L ASOF LEFT JOIN R {M}", "not supported: ASOF LEFT JOIN; [INNER] ASOF", "ASOF LEFT"),
        (f"SELECT x FROM L NATURAL ASOF JOIN R {M}", "not supported: NATURAL ASOF JOIN", "NATURAL ASOF"),
        (f"SELECT x FROM L ASOF JOIN R {M} ON L.k = R.k WITHIN 5", "needs a unit of time", "5"),
        (f"SELECT x FROM L ASOF JOIN R {M} ON L.k = R.k WITHIN -5 SECONDS", "zero or more", "-5 SECONDS"),
        (f"SELECT x FROM L ASOF JOIN R {M} ON L.k = R.k WITHIN 5 ROWS", "a length of time", "5 ROWS"),
        (f"SELECT x FROM L ASOF JOIN R {M} WITHIN 5 SECONDS WITHIN 3 SECONDS", "WITHIN is given twice", "WITHIN"),
        (f"SELECT x FROM L ASOF JOIN R {M} USING (k) ON L.k = R.k", "ON or USING, not both", "ON"),
        (
            "SELECT a.t FROM N a ASOF JOIN N b MATCH_CONDITION (a.t >= b.t) USING (k) WITHIN 10 MINUTES",
            "has a unit of time, but its attribute is of type Int64",
            "10 MINUTES",
        ),
        (
            "SELECT a.t FROM N a ASOF JOIN N b MATCH_CONDITION (a.t >= b.t + INTERVAL 5 MINUTES) USING (k) KEYS 5",
            "has a unit of time, but",
            "INTERVAL 5 MINUTES",
        ),
        (f"SELECT x FROM L ASOF JOIN R {M} USING (src)", "the right side has no column 'src'", "src"),
        (f"SELECT x FROM L ASOF JOIN R {M} USING (dst)", "the left side has no column 'dst'", "dst"),
        (f"SELECT x FROM L ASOF JOIN R {M} ON L.k = nope", "unknown column 'nope'", "nope"),
        (f"SELECT x FROM L ASOF JOIN R {M} ON src = v", "cannot be equal: cast one of them", "v"),
        (
            f"SELECT x FROM L ASOF JOIN R {M} ON L.k = R.k",
            "What can: a greatest distance (tolerance=, in SQL WITHIN or a bound in ON); promises of the left stream",
            f"ASOF JOIN R {M} ON L.k = R.k",
        ),
        (
            "SELECT x FROM L ASOF JOIN R MATCH_CONDITION (L.ts <= R.ts)",
            "promises of the right stream about single keys",
            "ASOF JOIN R MATCH_CONDITION (L.ts <= R.ts)",
        ),
        (f"SELECT x FROM L ASOF JOIN R {M} ON x > v", "a condition on pairs needs a greatest distance", "x > v"),
        (f"SELECT x FROM L ASOF JOIN R {M} ON L.k = R.k AND R.ts > L.ts", "no rows are like this", "R.ts > L.ts"),
        (f"SELECT x FROM L ASOF JOIN R {M} KEYS 5", "there are no keys; leave it out", f"ASOF JOIN R {M} KEYS 5"),
        (
            f"SELECT x FROM L [RANGE 5 SECONDS] ASOF JOIN R [RANGE 5 SECONDS] {M}",
            "has no windows: WITHIN says",
            "[RANGE 5 SECONDS]",
        ),
        (f"SELECT x FROM L ASOF JOIN R [LATE REVISE] {M} KEYS 5", "cannot revise", "REVISE"),
        (f"SELECT x FROM L ASOF JOIN (SELECT k, v FROM R) R {M}", "needs the progressing column", "k, v FROM R) R"),
        ("SELECT x FROM L ASOF JOIN S MATCH_CONDITION (L.ts >= s)", "S is a static table", "S"),
        (f"SELECT /*+ USING(oa) */ x FROM L ASOF JOIN R {M}", "a hint is about the algorithm", f"ASOF JOIN R {M}"),
        (
            "SELECT x FROM L MATCH_RECOGNIZE (ORDER BY ts PATTERN (a b) DEFINE a AS x > 1)",
            "it takes rows of one table that stand directly behind each other. FROM SEQ(a, b, c) WITHIN ..",
            "MATCH_RECOGNIZE",
        ),
        (f"SELECT L.k, ts FROM L ASOF JOIN R {M}", "column 'ts' is ambiguous", "ts"),
    ],
)
def test_what_cannot_be_is_underlined(query, message, underlined):
    check_refused(query, message, underlined, with_table)
