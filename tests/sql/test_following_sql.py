"""``b FOLLOWING RECENT a`` and ``b FOLLOWING CHRONICLE a`` in SQL (Bai et al., section 5). Issue 14."""

import pytest
from join_queries import MINUTE, SECOND, check_refused, filters, keys, planned, where

import windrow as wr
from windrow.logical.nodes import AsOf, Sequence


def node_of(query, kind):
    (found,) = [node for node in planned(query).walk() if isinstance(node, kind)]
    return found


def conditions(node):
    return [
        (c.left_step, c.left.sql("spark"), c.comparison, c.right_step, c.right.sql("spark")) for c in node.conditions
    ]


@pytest.mark.parametrize(("kind", "how"), [("", "inner"), ("LEFT ", "left"), ("LEFT OUTER ", "left")])
def test_recent_is_an_as_of_join(kind, how):
    node = node_of(f"SELECT x, v FROM L {kind}FOLLOWING RECENT R USING (k) KEYS 5", AsOf)
    assert (node.strategy, node.exact, node.shift, node.how, node.most_keys) == ("backward", True, 0, how, 5)
    assert (keys(node), node.left.progress) == ([("k", "k")], "ts")
    on = "L.k = R.k AND dst = 'a' AND R.ts >= L.ts - INTERVAL 5 SECONDS AND v > x"
    other = node_of(f"SELECT x, v FROM L {kind}FOLLOWING RECENT R ON {on} WITHIN 1 MINUTE", AsOf)
    assert (other.tolerance, filters(other), where(other)) == (5 * SECOND, [None, "dst = 'a'"], "v > x")


@pytest.mark.parametrize(("kind", "outer"), [("", False), ("LEFT ", True)])
def test_chronicle_is_a_sequence_of_two_steps(kind, outer):
    node = node_of(f"SELECT x, v FROM L {kind}FOLLOWING CHRONICLE R [LATE SIDE] USING (k) WITHIN 1 MINUTE", Sequence)
    assert [tuple(step) for step in node.steps] == [("R", False, False), ("L", False, False)]
    assert (node.matching, node.within, node.outer, node.late) == ("chronicle", MINUTE, outer, ("side", "drop"))
    assert [tuple(key.sql() for key in each) for each in node.on] == [("k", "k")]
    assert node.progress == "L.ts"
    assert {(m.name, m.step, m.column) for m in node.measures if m.column == "ts"} == {
        ("L.ts", 1, "ts"),
        ("R.ts", 0, "ts"),
    }


def test_conditions_of_chronicle():
    band = "L.ts - R.ts BETWEEN INTERVAL 2 SECONDS AND INTERVAL 1 MINUTE"
    on = f"L.k = R.k AND dst = 'a' AND x > 3 AND x < v + 1 AND {band}"
    inner = node_of(f"SELECT x, v FROM L FOLLOWING CHRONICLE R ON {on}", Sequence)
    assert (filters(inner), inner.within) == (["dst = 'a'", "x > 3"], MINUTE)
    least, most = (f"ts {sign} INTERVAL '{number}' MICROSECOND" for sign, number in (("-", 2000000), ("+", 60000000)))
    assert conditions(inner) == [(0, "v + 1", ">", 1, "x"), (0, "ts", "<=", 1, least), (0, most, ">=", 1, "ts")]
    left = node_of(f"SELECT x, v FROM L LEFT FOLLOWING CHRONICLE R ON {on}", Sequence)
    assert (filters(left), conditions(left)[0]) == (["dst = 'a'", None], (0, "TRUE", "=", 1, "x > 3"))


def test_of_joins_and_queries():
    inner = "(SELECT a.k, a.ts, v FROM L a FOLLOWING RECENT R b ON a.k = b.k KEYS 3)"
    node = planned(f"SELECT z.k, w, z.ts FROM {inner} z LEFT FOLLOWING CHRONICLE C ON z.k = C.k WITHIN 5 SECONDS")
    assert [type(each).__name__ for each in node.walk()].count("AsOf") == 1
    assert (list(node.schema), set(node.times)) == (["k", "w", "ts"], {"ts"})
    chained = planned(
        "SELECT x, v, w FROM L FOLLOWING RECENT R USING (k) KEYS 3 FOLLOWING CHRONICLE C WITHIN 5 SECONDS"
    )
    assert [type(each).__name__ for each in chained.walk()][-2:] == ["Sequence", "Project"]


def test_a_join_above_bounds_one_below_only_where_left_rows_do_not_compete():
    text = "SELECT L.x, v FROM L JOIN C ON L.k = C.k {} WITHIN 5 SECONDS JOIN L AS z ON z.ts = L.ts AND z.ts = C.ts"
    (below,) = [j for j in planned(text.format("FOLLOWING RECENT R")).walk() if type(j).__name__ == "Join"][:1]
    assert (below.window.low, below.window.high) == (0, 0)
    with pytest.raises(wr.QueryError, match="must bound how far apart the times are"):
        planned(text.format("FOLLOWING CHRONICLE R"))


PRODUCTS = [(3, 1, 1.5), (6, 1, 2.0), (7, 2, 5.0), (7, 1, 4.0), (8, None, 1.0)]
CASES = [(1, 1, 3), (2, 2, 5), (4, 1, 8)]


def rows(query):
    products = wr.stream([{"ts": t, "k": k, "x": x} for t, k, x in PRODUCTS], progress="ts", slack=3, name="products")
    cases = wr.stream([{"ts": t, "k": k, "v": v} for t, k, v in CASES], progress="ts", slack=3, name="cases")
    return sorted(wr.sql(query, p=products, c=cases).collect().rows(), key=str)


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("FOLLOWING RECENT c USING (k) KEYS 5", [(3, 3), (6, 8), (7, 5), (7, 8)]),
        ("LEFT FOLLOWING RECENT c USING (k) WITHIN 2", [(3, 3), (6, 8), (7, None), (7, None), (8, None)]),
        ("FOLLOWING CHRONICLE c USING (k) WITHIN 9", [(3, 3), (6, 8), (7, 5)]),
        ("LEFT FOLLOWING CHRONICLE c USING (k) WITHIN 9", [(3, 3), (6, 8), (7, 5), (7, None), (8, None)]),
        ("FOLLOWING CHRONICLE c ON p.k = c.k AND x > v WITHIN 9", [(7, 3)]),
        (
            "LEFT FOLLOWING CHRONICLE c ON p.k = c.k AND x > 1.6 WITHIN 9",
            [(3, None), (6, 3), (7, 5), (7, 8), (8, None)],
        ),
        ("FOLLOWING CHRONICLE c ON p.k = c.k AND p.ts - c.ts BETWEEN 3 AND 9", [(6, 3), (7, 5), (7, 8)]),
        ("FOLLOWING CHRONICLE c WITHIN 9", [(3, 3), (6, 5), (7, 8)]),
        ("FOLLOWING CHRONICLE c WITHIN 9 WHERE x > 1.6", [(6, 5), (7, 8)]),
    ],
)
def test_results(rest, expected):
    assert rows(f"SELECT p.ts, v FROM p {rest}") == sorted(expected, key=str)


@pytest.mark.parametrize(
    ("query", "message", "underlined"),
    [
        ("SELECT x FROM L FOLLOWING LATEST R", "FOLLOWING needs RECENT or CHRONICLE", "LATEST"),
        ("SELECT x FROM L FOLLOWING R", "FOLLOWING needs RECENT or CHRONICLE", "R"),
        ("SELECT x FROM L LEFT FOLLOWING ANY R", "FOLLOWING needs RECENT or CHRONICLE", "ANY"),
        ("SELECT x FROM L LEFT FOLLOWING", "This is not expected here", "LEFT"),
        ("SELECT x FROM L RIGHT FOLLOWING RECENT R", "not supported: RIGHT FOLLOWING RECENT", "RIGHT FOLLOWING"),
        ("SELECT x FROM L SEMI FOLLOWING CHRONICLE R", "not supported: SEMI FOLLOWING CHRONICLE", "SEMI FOLLOWING"),
        ("SELECT x FROM L FOLLOWING RECENT", "Expected table name", "RECENT"),
        (
            "SELECT x FROM L FOLLOWING RECENT R USING (k)",
            "What can: a greatest distance",
            "FOLLOWING RECENT R USING (k)",
        ),
        (
            "SELECT x FROM L FOLLOWING CHRONICLE R",
            "What can: a greatest distance (WITHIN); promises of all streams",
            "FOLLOWING CHRONICLE R",
        ),
        (
            "SELECT x FROM L FOLLOWING CHRONICLE R WITHIN 5 SECONDS KEYS 5",
            "a number of keys bounds nothing",
            "FOLLOWING CHRONICLE R WITHIN 5 SECONDS KEYS 5",
        ),
        ("SELECT x FROM L FOLLOWING CHRONICLE R WITHIN 5", "needs a unit of time", "5"),
        ("SELECT a.t FROM N a FOLLOWING RECENT N b WITHIN 5 MINUTES", "its attribute is of type Int64", "5 MINUTES"),
        (
            "SELECT x FROM L FOLLOWING RECENT N WITHIN 5 SECONDS",
            "times must be of one type",
            "FOLLOWING RECENT N WITHIN 5 SECONDS",
        ),
        ("SELECT x FROM L FOLLOWING RECENT R USING (src)", "the right side has no column 'src'", "src"),
        (
            "SELECT x FROM L FOLLOWING CHRONICLE R ON L.k = R.k OR x = v WITHIN 5 SECONDS",
            "a sequence cannot test this between steps",
            "L.k = R.k OR x = v",
        ),
        (
            "SELECT x FROM L FOLLOWING CHRONICLE R ON x - v > 3 WITHIN 5 SECONDS",
            "each with one step on each side",
            "x - v > 3",
        ),
        (
            "SELECT x FROM L FOLLOWING CHRONICLE R ON R.ts > L.ts WITHIN 5 SECONDS",
            "no rows are like this",
            "R.ts > L.ts",
        ),
        ("SELECT x FROM L [RANGE 5 SECONDS] FOLLOWING RECENT R", "has no windows", "[RANGE 5 SECONDS]"),
        ("SELECT x FROM L FOLLOWING RECENT L WITHIN 5 SECONDS", "both tables are called L", "L"),
    ],
)
def test_what_cannot_be_is_underlined(query, message, underlined):
    check_refused(query, message, underlined)
