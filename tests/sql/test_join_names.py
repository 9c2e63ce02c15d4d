"""Names over several tables: USING, stars, qualified attributes of windows. Issue 13."""

import pytest
from join_queries import BAND, check_refused, joins_of, keys, planned

USING = "USING (k, ts)"


def columns(query):
    node = planned(query)
    return {name: tree.sql("spark").replace("`", "") for name, tree in node.columns}


@pytest.mark.parametrize(
    ("kind", "of_k"),
    [("", "L.k"), ("LEFT", "L.k"), ("RIGHT", "R.k"), ("FULL", "COALESCE(L.k, R.k)"), ("SEMI", "L.k"), ("ANTI", "L.k")],
)
def test_a_column_of_using_is_one_column(kind, of_k):
    query = f"SELECT k, x FROM L {kind} JOIN R {USING}"
    assert columns(query)["k"] == of_k
    (join,) = joins_of(query)
    assert (keys(join), join.window.low, join.window.high) == ([("k", "k"), ("ts", "ts")], 0, 0)


def test_what_using_makes_one_comes_first_in_a_star():
    assert list(columns(f"SELECT * FROM L JOIN R {USING}")) == ["k", "ts", "src", "x", "dst", "v"]
    assert list(columns(f"SELECT * FROM L SEMI JOIN R {USING}")) == ["ts", "k", "src", "x"]
    assert list(columns(f"SELECT * EXCEPT (ts, V) FROM L JOIN R {USING}")) == ["k", "src", "x", "dst"]
    assert list(columns(f"SELECT R.*, src FROM L JOIN R {USING}")) == ["ts", "k", "dst", "v", "src"]
    assert list(columns(f"SELECT L.* EXCEPT (ts), v FROM L JOIN R {USING}")) == ["k", "src", "x", "v"]
    assert columns(f"SELECT * FROM L JOIN R {USING} JOIN C {USING}")["w"] == "w"
    assert list(columns(f"SELECT * FROM L JOIN R {USING} JOIN C {USING}"))[:3] == ["k", "ts", "src"]


def test_both_columns_of_using_can_still_be_named():
    found = columns(f"SELECT k, L.k AS a, R.k AS b, k + 1 AS c FROM L FULL JOIN R {USING}")
    assert found == {"k": "COALESCE(L.k, R.k)", "a": "L.k", "b": "R.k", "c": "COALESCE(L.k, R.k) + 1"}


def test_a_chain_of_using_takes_what_the_last_one_made():
    _, above = joins_of(f"SELECT k FROM L RIGHT JOIN R {USING} JOIN C {USING}")
    assert keys(above) == [("`R.k`", "k"), ("`R.ts`", "ts")]


def test_the_time_of_a_full_join_is_the_one_that_is_there():
    node = planned(f"SELECT ts, k FROM L FULL JOIN R {USING} ORDER BY ts, k")
    assert (node.progress, [tree.sql("spark") for tree, _ in node.order]) == ("ts", ["`k`"])


def test_windows_and_groups_take_qualified_names():
    joined = f"FROM L JOIN R ON L.k = R.k AND {BAND}"
    node = planned(f"SELECT R.k, count(*) AS n [TUMBLING 1 MINUTE, WA R.ts] {joined} GROUP BY R.k HAVING max(L.x) > 1")
    assert list(node.schema) == ["k", "window_start", "window_end", "n"]
    assert "R.ts" in [each.on for each in node.walk() if type(each).__name__ == "Project"]
    assert planned("SELECT L.k, count(*) AS n FROM L [TUMBLING 1 MINUTE, WA L.ts] GROUP BY L.k").progress
    assert planned(
        "SELECT count(*) AS n FROM L AS z [RANGE 1 MINUTE, RATTR z.ts, SLIDE 1 ROW, SATTR rank(z.ts)]"
    ).progress
    merged = planned(
        f"SELECT k, count(*) AS n [TUMBLING 1 MINUTE, WA ts] FROM L LEFT JOIN R {USING} GROUP BY k ORDER BY k LIMIT 2"
    )
    assert list(merged.schema) == ["k", "window_start", "window_end", "n"]


@pytest.mark.parametrize(
    ("query", "message", "underlined"),
    [
        ("SELECT count(*) [TUMBLING 1 MINUTE, WA ts] FROM L JOIN R ON {B}", "ambiguous: write L.ts or R.ts", "ts"),
        ("SELECT count(*) [TUMBLING 1 MINUTE, WA z.ts] FROM L JOIN R ON {B}", "unknown table 'z' in z.ts", "z"),
        ("SELECT count(*) [TUMBLING 1 MINUTE, WA L.no] FROM L JOIN R ON {B}", "table L has no column 'no'", "L.no"),
        ("SELECT count(*) AS n FROM L AS z [TUMBLING 1 MINUTE, WA L.ts]", "unknown table 'L' in L.ts", "L"),
        ("SELECT count(*) [TUMBLING 1 MINUTE, WA ts] FROM L FULL JOIN R {U}", "ts is COALESCE(L.ts, R.ts) here", "ts"),
        ("SELECT count(*) [TUMBLING 1 MINUTE, WA L.ts] FROM L JOIN R ON {B} GROUP BY k", "write L.k or R.k", "k"),
        ("SELECT L.x FROM L JOIN R ON {B} ORDER BY ts", "ambiguous: write L.ts or R.ts", "ts"),
        ("SELECT k FROM L JOIN R {U} JOIN C ON C.ts = L.ts", "column 'k' is ambiguous: write C.k", "k"),
        ("SELECT x FROM L JOIN R USING (nope)", "the left side has no column 'nope'; available: k, src", "nope"),
        ("SELECT x FROM L JOIN R USING (x)", "the right side has no column 'x'; available: dst, k", "x"),
        ("SELECT x FROM L JOIN R ON {B} JOIN C USING (k)", "column 'k' is ambiguous: write L.k or R.k", "k"),
        ("SELECT x FROM L JOIN R USING (k)", "must bound how far apart the times are", "R USING (k"),
        ("SELECT * FROM L JOIN R USING (k) WHERE {B}", "both tables have columns ts", "*"),
        ("SELECT * EXCEPT (no) FROM L JOIN R {U}", "unknown column 'no'; available: dst, k", "no"),
        ("SELECT z.* FROM L JOIN R {U}", "unknown table 'z'", "z"),
        ("SELECT R.* FROM L SEMI JOIN R {U}", "only the columns of the left side come out", "R.*"),
    ],
)
def test_names_that_mean_nothing_or_too_much_are_underlined(query, message, underlined):
    check_refused(query.replace("{B}", BAND).replace("{U}", USING), message, underlined)
