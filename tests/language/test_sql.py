"""SQL: every spelling of the window clause, and errors that point into the text."""

from datetime import datetime, timedelta

import pytest

import windrow as wr
from windrow.logical.nodes import WindowAggregate
from windrow.windows import Sliding

START = datetime(2024, 1, 1)
ROWS = [{"ts": START + timedelta(minutes=i), "srcIP": "ab"[i % 2], "len": i} for i in range(10)]
MINUTE = 60_000_000


@pytest.fixture
def tables():
    names = ("Main1", "Main2", "Control")
    return {n: wr.stream(ROWS, progress="ts", slack="3 seconds", name=n) for n in names}


def window(query, tables):
    node = wr.sql(query, **tables).node
    while not isinstance(node, WindowAggregate):
        node = node.input
    return node.window


@pytest.mark.parametrize(
    "query",
    [
        "SELECT srcIP, count(*) [RANGE 10 minutes, SLIDE 1 minute, WA ts] FROM Main1 GROUP BY srcIP",
        "Select srcIP, count(*) [RANGE 10 minutes, SLIDE 1 minute, WATTR ts] From Main1 Group By srcIP",
        "SELECT srcIP, count(*) FROM Main1 [RANGE 10 MINUTES, SLIDE 1 MINUTE, WA ts] GROUP BY srcIP",
        "SELECT srcIP, count(*) FROM Main1 AS m [RANGE 10 MINUTES, SLIDE 1 MINUTE, WA ts] GROUP BY m.srcIP",
        "SELECT srcIP, count(*) FROM Main1 [RANGE 600 s, SLIDE 60 SECONDS] AS m GROUP BY srcIP",
        "SELECT srcIP, count(*) FROM Main1 [SLIDE '1 minute', RANGE '10 minutes'] GROUP BY srcIP",
        "SELECT srcIP, count(*) FROM Main1 [RANGE INTERVAL '10' MINUTE, SLIDE INTERVAL 1 MINUTE] GROUP BY srcIP",
    ],
)
def test_every_spelling_of_q1_1_is_the_same_window(query, tables):
    assert window(query, tables) == Sliding(10 * MINUTE, MINUTE)


def test_tumbling_and_a_missing_slide_are_tumbling(tables):
    for clause in ("[TUMBLING 5 MINUTES, WA ts]", "[RANGE 5 MINUTES]"):
        assert window(f"SELECT count(*) FROM Main1 {clause}", tables) == Sliding(5 * MINUTE, 5 * MINUTE)


@pytest.mark.parametrize(
    ("clause", "kind"),
    [
        ("[RANGE 1000 rows, SLIDE 10 rows, WA row-num, PA srcIP]", "Partitioned"),
        ("[RANGE 1000 rows, SLIDE 10 rows, WA row_num]", "RowSliding"),
        ("[ROWS 1000, SLIDE 10 ROWS]", "RowSliding"),
        ("[RANGE ALL, SLIDE 1 minute, WA ts]", "Landmark"),
        ("[RANGE 5 minutes, RATTR ts, SLIDE 1 row, SATTR row-num]", "SlideByTuple"),
        ("[RANGE 5 minutes, RATTR ts, SLIDE 5 rows, SATTR rank(ts)]", "SlideByTuple"),
        ("[SESSION 5 minutes, WA ts]", "Session"),
    ],
)
def test_the_whole_clause_is_understood_and_missing_operators_are_named(clause, kind, tables):
    with pytest.raises(wr.PlanError, match=f"{kind} windows have no operator yet"):
        wr.sql(f"SELECT max(len) {clause} FROM Main1", **tables)


def test_the_thesis_union_is_a_bag_of_all_links(tables):
    query = "SELECT count (*) [RANGE 1 minute, SLIDE 1 minute, WA ts] FROM Control union Main1 union Main2"
    assert wr.sql(query, **tables).collect()["count"].to_list() == [3] * 10


def test_union_all_of_queries(tables):
    query = "SELECT ts, len FROM Main1 WHERE len < 2 UNION ALL SELECT ts, len FROM Main2 WHERE len > 8"
    assert sorted(wr.sql(query, **tables).collect()["len"]) == [0, 1, 9]


def test_expressions_over_aggregates_aliases_and_having(tables):
    query = """
      SELECT upper(srcIP) AS ip, sum(len) / count(*) AS mean, max(len) - min(len) AS spread
      FROM Main1 [TUMBLING 10 minutes] GROUP BY upper(srcIP) HAVING count(*) > 1 AND spread > 2"""
    found = wr.sql(query, **tables).collect()
    assert found.columns == ["ip", "window_start", "window_end", "mean", "spread"]
    assert found.select("ip", "mean", "spread").rows() == [("A", 4.0, 8), ("B", 5.0, 8)]


def test_aggregates_and_functions_that_sqlglot_has_no_class_for(tables):
    query = "SELECT mean(len) AS m, std(len) AS s, var(len) AS v, max(year(ts)) AS y FROM Main1 [TUMBLING 10 minutes]"
    found = wr.sql(query, **tables).collect().select("m", "s", "v", "y").rows()[0]
    assert found == pytest.approx((4.5, 55**0.5 / 6**0.5, 55 / 6, 2024))


def test_columns_come_as_listed_when_the_window_bounds_are_listed(tables):
    query = "SELECT count(*) AS n, window_end, srcIP AS ip FROM Main1 [TUMBLING 10 minutes] GROUP BY srcIP"
    assert wr.sql(query, **tables).collect().columns == ["n", "window_end", "ip"]


def test_names_match_without_regard_to_case_if_that_is_clear(tables):
    query = "select SRCIP, COUNT(*) as n from main1 [tumbling 10 minutes, wa TS] group by srcip"
    assert wr.sql(query, **tables).collect()["n"].to_list() == [5, 5]


def test_a_window_over_windows(tables):
    inner = "SELECT srcIP, count(*) AS n FROM Main1 [TUMBLING 2 minutes] GROUP BY srcIP"
    query = f"SELECT max(n) AS busiest FROM ({inner}) [TUMBLING 10 minutes, WA window_end]"
    assert wr.sql(query, **tables).collect()["busiest"].to_list() == [1, 1]


@pytest.mark.parametrize(
    ("query", "message", "underlined"),
    [
        (
            "SELECT nope, count(*) FROM Main1 [RANGE 1 minute]",
            "unknown column 'nope'; there are: len, srcIP, ts",
            "nope",
        ),
        ("SELECT len, count(*) FROM Main1 [RANGE 1 minute]", "neither grouped nor aggregated", "len"),
        ("SELECT count(*) FROM Nope [RANGE 1 minute]", "unknown table 'Nope'; there are: Control, Main1", "Nope"),
        ("SELECT count(*) FROM Main1 [RANGE 0 minutes]", "RANGE must be positive", "0 minutes"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, SLIDE -1 minute]", "SLIDE must be positive", "-1 minute"),
        ("SELECT count(*) FROM Main1 [RANGE 1 month]", "months and years have no fixed length", "1 month"),
        ("SELECT count(*) FROM Main1 [RANGE 5]", "needs a unit of time", "5"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, WA srcIP]", "srcIP is of type String", "srcIP"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, WA len]", "makes promises on ts", "len"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, WA nope]", "unknown column 'nope'", "nope"),
        ("SELECT sum(srcIP) FROM Main1 [RANGE 1 minute]", "sum() needs a number", "srcIP"),
        ("SELECT median(len) FROM Main1 [RANGE 1 minute]", "'median' has no operator yet", "median(len"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, PA srcIP]", "PA needs a window of ROWS", "srcIP"),
        ("SELECT count(*) FROM Main1 [RANGE 5 rows, SLIDE 1 row, WA ts]", "slides over row_num", "ts"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, FOO 3]", "Unknown window parameter FOO", "FOO"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, RANGE 2 minutes]", "RANGE is given twice", "RANGE"),
        ("SELECT count(*) FROM Main1", "needs a window, or it would never end", "count(*"),
        (
            "SELECT count(*) FROM Main1 [RANGE 1 minute] WHERE count(*) > 2",
            "WHERE cannot contain aggregates",
            "count(*",
        ),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute] WHERE srcIP > 3", "do not fit", "srcIP > 3"),
        ("SELECT count(* FROM Main1", "Expecting )", "FROM"),
        ("SELECT * FROM Main1 [RANGE 1 minute]", "SELECT * has no meaning over groups", "*"),
    ],
)
def test_errors_underline_the_text(query, message, underlined, tables):
    with pytest.raises(wr.QueryError) as error:
        wr.sql(query, **tables)
    said, line, carets = str(error.value).split("\n")
    assert message in said
    assert line.strip() == query
    start = carets.index("^")
    assert line[start : start + carets.count("^")].startswith(underlined)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT a.ts FROM Main1 a, Main2 b", "joins"),
        ("SELECT ts FROM Main1 ORDER BY ts", "ORDER BY"),
        ("SELECT ts FROM Main1 LIMIT 3", "LIMIT"),
        ("SELECT ts FROM Main1 UNION SELECT ts FROM Main2", "UNION ALL"),
        ("SELECT count(DISTINCT len) FROM Main1 [RANGE 1 minute]", "DISTINCT"),
    ],
)
def test_what_has_no_operator_yet_says_so(query, message, tables):
    with pytest.raises(wr.WindrowError, match=message):
        wr.sql(query, **tables)


def test_one_query_is_expected(tables):
    for query in ("", "SELECT ts FROM Main1; SELECT ts FROM Main2", "DROP TABLE Main1"):
        with pytest.raises(wr.QueryError):
            wr.sql(query, **tables)


def test_explain_names_map_side_exchange_and_shard(tables):
    text = wr.sql("SELECT srcIP, count(*) AS n FROM Main1 [RANGE 2 MINUTES, SLIDE 1 MINUTE] GROUP BY srcIP", **tables)
    assert "WindowAggregate [RANGE 2 minutes, SLIDE 1 minute, WA ts] by srcIP: count(*) AS n" in text.explain()
    assert "promises 3 seconds behind the greatest ts" in text.explain()
