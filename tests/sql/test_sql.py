"""SQL: every spelling of the window clause, and errors that point into the text."""

import datetime as dt
from datetime import datetime, timedelta

import pytest

import windrow as wr
from windrow.logical.nodes import WindowAggregate
from windrow.spec.options import Options
from windrow.windows import Sliding

START = datetime(2024, 1, 1)
ROWS = [{"ts": START + timedelta(minutes=i), "srcIP": "ab"[i % 2], "len": i} for i in range(10)]
MINUTE = 60_000_000
KT = [("b", 1), ("c", 2), ("a", 3), ("a", 3), ("a", 12)]


@pytest.fixture
def tables():
    names = ("Main1", "Main2", "Control")
    return {n: wr.stream(ROWS, progress="ts", slack="3 seconds", name=n) for n in names}


@pytest.fixture
def numbered():
    rows = [{**row, "n": i} for i, row in enumerate(ROWS)]
    return wr.stream(rows, progress="ts", slack="3 seconds", row_num="n", name="Main1")


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
def test_the_whole_clause_is_understood(clause, kind, numbered):
    query = f"SELECT max(len) {clause} FROM Main1"
    assert type(window(query, {"Main1": numbered})).__name__ == kind
    assert wr.sql(query, Main1=numbered).collect().height > 0


@pytest.mark.parametrize(
    "clause", ["[RANGE 5 ROWS, PA srcIP]", "[ROWS 5]", "[RANGE 1 minute, RATTR ts, SLIDE 2 ROWS, SATTR row_num]"]
)
def test_windows_of_rows_need_something_that_numbers_the_rows(clause, tables, numbered):
    assert wr.sql(f"SELECT count(*) FROM Main1 {clause}", **tables).collect().height > 0  # as they come
    with pytest.raises(wr.PlanError, match="nothing numbers the rows"):
        wr.sql(f"SELECT count(*) FROM Main1 UNION Main2 {clause}", **tables)
    with pytest.raises(wr.PlanError, match="nothing numbers the rows"):  # the number is not selected
        wr.sql(f"SELECT count(*) FROM (SELECT ts, srcIP FROM Main1) {clause}", Main1=numbered)


def test_source_partitions_number_the_rows_of_a_key_but_not_of_the_stream():
    rows = [{"ts": t, "k": "ab"[t % 2], "part": t % 2, "off": t // 2} for t in range(8)]
    s = wr.stream(rows, progress="ts", row_num=("part", "off"))
    found = wr.sql("SELECT k, count(*) AS n, max(ts) AS top FROM s [RANGE 2 ROWS, PA k]", s=s).collect()
    assert sorted(found.rows()) == [("a", 0, 2, 2, 2), ("a", 2, 4, 2, 6), ("b", 0, 2, 2, 3), ("b", 2, 4, 2, 7)]
    with pytest.raises(wr.PlanError, match="no common order"):
        wr.sql("SELECT count(*) FROM s [RANGE 2 ROWS]", s=s)


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
            "unknown column 'nope'; available: len, srcIP, ts",
            "nope",
        ),
        ("SELECT len, count(*) FROM Main1 [RANGE 1 minute]", "neither grouped nor aggregated", "len"),
        ("SELECT count(*) FROM Nope [RANGE 1 minute]", "unknown table 'Nope'; available: Control, Main1", "Nope"),
        ("SELECT count(*) FROM Main1 [RANGE 0 minutes]", "RANGE must be positive", "0 minutes"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, SLIDE -1 minute]", "SLIDE must be positive", "-1 minute"),
        ("SELECT count(*) FROM Main1 [RANGE 1 month]", "months and years have no fixed length", "1 month"),
        ("SELECT count(*) FROM Main1 [RANGE 5]", "needs a unit of time", "5"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, WA srcIP]", "srcIP is of type String", "srcIP"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, WA len]", "makes promises on ts", "len"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, WA nope]", "unknown column 'nope'", "nope"),
        ("SELECT sum(srcIP) FROM Main1 [RANGE 1 minute]", "sum() needs a number", "srcIP"),
        ("SELECT skewness(len) FROM Main1 [RANGE 1 minute]", "'skewness' is not supported", "skewness(len"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, PA srcIP]", "PA needs a window of ROWS", "srcIP"),
        ("SELECT count(*) FROM Main1 [RANGE 5 rows, SLIDE 1 row, WA ts]", "slides over row_num", "ts"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, FOO 3]", "Unknown window parameter FOO", "FOO"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, RANGE 2 minutes]", "RANGE is given twice", "RANGE"),
        ("SELECT count(*) FROM Main1", "needs a window, or it would never finish", "count(*"),
        (
            "SELECT count(*) FROM Main1 [RANGE 1 minute] WHERE count(*) > 2",
            "WHERE cannot contain aggregates",
            "count(*",
        ),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute] WHERE ts > 3", "do not fit", "ts > 3"),
        ("SELECT count(* FROM Main1", "Expecting )", "FROM"),
        ("SELECT * FROM Main1 [RANGE 1 minute]", "SELECT * is not supported over groups", "*"),
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
        ("SELECT a.ts FROM Main1 a, Main2 b", "a join of streams must bound how far apart the times are"),
        ("SELECT ts, len FROM Main1 ORDER BY len", "can only be ordered by what it progresses on: ORDER BY ts"),
        ("SELECT ts FROM Main1 ORDER BY ts DESC", "order ascending"),
        ("SELECT ts FROM Main1 ORDER BY ts LIMIT 3", "LIMIT needs a window"),
        ("SELECT DISTINCT len FROM Main1", "remember every row forever"),
        ("SELECT ts FROM Main1 UNION ALL SELECT ts FROM Main1 ORDER BY ts LIMIT 3", "LIMIT over a union"),
        ("SELECT ts, len FROM Main1 UNION SELECT ts, len FROM Main1 ORDER BY len", "ORDER BY ts first"),
        ("SELECT ts FROM Main1 LIMIT 3", "LIMIT"),
        ("SELECT len FROM Main1 UNION SELECT len FROM Main2", "remember every row forever"),
        ("SELECT median(DISTINCT len) FROM Main1 [RANGE 1 minute]", "DISTINCT is supported"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute] LIMIT 3", "needs an ORDER BY"),
        ("SELECT count(*) AS n FROM Main1 [RANGE 1 minute] ORDER BY n", "ORDER BY window_end first"),
        ("SELECT count(*) AS n FROM Main1 [RANGE 1 minute] ORDER BY n LIMIT 0", "LIMIT must be positive"),
        (
            "SELECT count(*) AS n FROM Main1 [RANGE 1 minute] ORDER BY n LIMIT 1 EMIT EARLY EVERY 1 second",
            "with versions",
        ),
        ("SELECT count(*) AS n FROM Main1 EMIT EARLY EVERY 1 second", "needs a window"),
        ("SELECT ts FROM Main1 EMIT EARLY EVERY 1 second", "EMIT EARLY needs a window"),
        ("SELECT count(*) FROM Main1 [RANGE ALL, RATTR ts, SLIDE 1 ROW, SATTR row_num]", "supported: "),
        ("SELECT count(*) FROM Main1 [SESSION 5 seconds, SLIDE 1 minute]", "supported: "),
        ("SELECT count(*) FROM Main1 [SESSION 5 seconds, ORIGIN '2024-01-01']", "ORIGIN is not supported"),
        ("SELECT count(*) FROM Main1 [SESSION 5 seconds, WITH EMPTY]", "WITH EMPTY: only supported for"),
        (
            "SELECT count(*) FROM Main1 [RANGE ALL, SLIDE 1 minute, LATE REVISE FOR 1 minute]",
            "LATE REVISE: only supported for",
        ),
        ("SELECT count(*) FROM Main1 [SESSION 5 seconds] EMIT EARLY EVERY 1 second", "EMIT EARLY.*only supported for"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, LATE REVISE]", "LATE REVISE FOR 1 HOUR"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, LATE MAYBE]", "LATE needs one of DROP, ERROR, SIDE, REVISE"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, TIME ZONE 'Mars/Base']", "unknown time zone"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, WITHOUT PARTIAL]", "ORIGIN"),
        ("SELECT count(*) FROM Main1 [SESSION 1 minute, WITHOUT PARTIAL]", "WITHOUT PARTIAL: only supported for"),
        (
            "SELECT count(*) FROM Main1 [RANGE ALL, SLIDE 1 minute, WITHOUT PARTIAL]",
            "WITHOUT PARTIAL: only supported for",
        ),
        (
            "SELECT count(*) FROM Main1 [SESSION 1 minute, GENEROUS]",
            "GENEROUS is not supported for windows of type Session",
        ),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, GENEROUS, CONSISTENT]", "not both"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, ORIGIN 'soon']", "does not fit"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, ORIGIN 1.5]", "invalid origin"),
        ("SELECT count(*) FROM Main1 [ROWS 2, ORIGIN 1]", "ORIGIN is not supported"),
        ("SELECT count(*) FROM Main1 [ROWS 2, LATE REVISE FOR 10 MINUTES]", "a number of ROWS"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute, TIME ZONE 'UTC', TIME ZONE 'UTC']", "given twice"),
        ("SELECT count(*) AS n FROM Main1 [RANGE 1 minute] ORDER BY n NULLS LAST LIMIT 1", "NULLs come first"),
        ("SELECT count(*) FROM Main1 [RANGE 1 minute] SORT BY count", "SORT BY"),
        (
            "SELECT approx_count_distinct(len, 0.05) FROM Main1 [RANGE 1 minute]",
            "0.05 is not supported in",
        ),
        ("SELECT quantile(len, 2) FROM Main1 [RANGE 1 minute]", "a share from 0 to 1"),
        ("SELECT top_k(len) FROM Main1 [RANGE 1 minute]", "a number of values"),
        ("SELECT heavy_hitters(len, srcIP) FROM Main1 [RANGE 1 minute]", "takes numbers after its argument"),
        ("SELECT count(*) FILTER (WHERE max(len) > 1) FROM Main1 [RANGE 1 minute]", "FILTER cannot contain aggregates"),
    ],
)
def test_what_is_not_supported_yet_says_so(query, message, tables):
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


# -- what a window has besides its shape -------------------------------------------------------------------------------
def plan_of(query, tables):
    node = wr.sql(query, **tables).node
    while not isinstance(node, WindowAggregate):
        node = node.input
    return node


def test_all_options_of_a_clause():
    tables = {"Main1": wr.stream([{"ts": dt.datetime(2024, 1, 1, tzinfo=dt.UTC)}], progress="ts")}
    clause = "[RANGE 2 minutes, SLIDE 1 minute, ORIGIN '2024-01-01 00:00:30', TIME ZONE 'Asia/Tokyo', WITHOUT PARTIAL, "
    node = plan_of(
        f"SELECT count(*) AS n FROM Main1 {clause} LATE REVISE FOR 1 hour, GENEROUS] EMIT EARLY EVERY 10 SECONDS",
        tables,
    )
    expected = Options("revise", True, 3600 * 10**6, False, False, 10 * 10**6, "Asia/Tokyo")
    assert node.options == expected
    assert node.window.origin == 1704067230 * 10**6
    assert list(node.schema) == ["window_start", "window_end", "n", "version", "status"]


def test_early_results_can_follow_any_part_of_a_query(tables):
    for query in (
        "SELECT count(*) [RANGE 1 minute] FROM Main1 EMIT EARLY EVERY 1 second",
        "SELECT count(*) FROM Main1 [RANGE 1 minute] EMIT EARLY EVERY 1 second",
        "SELECT count(*) FROM Main1 [RANGE 1 minute] WHERE len > 1 EMIT EARLY EVERY 1 second",
        "SELECT srcIP, count(*) FROM Main1 [RANGE 1 minute] GROUP BY srcIP EMIT EARLY EVERY 1 second",
        "SELECT count(*) FROM Main1 [RANGE 1 minute] GROUP BY srcIP HAVING count(*) > 1 EMIT EARLY EVERY 1 second",
    ):
        assert plan_of(query, tables).options == Options(early=10**6)


def test_plans_of_sql_and_python_are_the_same(tables, numbered):
    pairs = [
        ("[RANGE ALL, SLIDE 1 minute]", numbered.landmark("1 minute")),
        ("[RANGE 4 ROWS, SLIDE 2 ROWS, WITH EMPTY]", numbered.rows(4, 2).with_empty()),
        ("[RANGE 4 ROWS, PA srcIP]", numbered.rows(4, partition_by="srcIP")),
        ("[RANGE 5 s, RATTR ts, SLIDE 2 ROWS, SATTR rank(ts)]", numbered.each_row("5 seconds", 2)),
        ("[RANGE 5 s, RATTR ts, SLIDE 2 ROWS, SATTR row_num]", numbered.each_row("5 seconds", 2, by="row_num")),
        (
            "[RANGE 5 s, RATTR ts, SLIDE 1 ROW, SATTR rank(ts), PA srcIP]",
            numbered.each_row("5 s", partition_by="srcIP"),
        ),
        ("[SESSION 5 s, LATE SIDE]", numbered.session("5 seconds").late("side")),
        ("[TUMBLING 5 s, LATE ERROR]", numbered.window("5 seconds").late("error")),
        ("[TUMBLING 5 s, LATE REVISE FOR 1 m]", numbered.window("5 seconds").late("revise", keep="1 minute")),
    ]
    for clause, windowed in pairs:
        assert (
            plan_of(f"SELECT max(len) AS top FROM Main1 {clause}", {"Main1": numbered})
            == windowed.agg(top=wr.max("len")).node
        )


def test_groups_by_the_progressing_attribute_need_no_window():
    """Q2-1: ts is in minutes, and a promise closes each of its values."""
    rows = [{"srcIP": "a", "ts": 1}, {"srcIP": "a", "ts": 1}, {"srcIP": "b", "ts": 1}, {"srcIP": "a", "ts": 2}]
    main = wr.stream(rows, progress="ts")
    found = wr.sql("SELECT srcIP, ts, count(*) AS n FROM Main1 GROUP BY srcIP, ts HAVING ts < 3", Main1=main).collect()
    assert found.columns == ["srcIP", "ts", "n"]
    assert sorted(found.rows()) == [("a", 1, 2), ("a", 2, 1), ("b", 1, 1)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT t FROM s UNION SELECT t FROM s ORDER BY t", [(1,), (2,), (3,), (12,)]),
        ("SELECT k, t FROM s UNION ALL SELECT k, t FROM s ORDER BY 2, k", [(k, t) for k, t in KT for _ in range(2)]),
        ("(SELECT t FROM s) ORDER BY t", [(1,), (2,), (3,), (3,), (12,)]),
        ("SELECT DISTINCT window_end FROM s [TUMBLING 10]", [(10,), (20,)]),
        (
            "SELECT DISTINCT k, window_end FROM s [TUMBLING 10] ORDER BY window_end, k",
            [("a", 10), ("b", 10), ("c", 10), ("a", 20)],
        ),
        (
            "SELECT DISTINCT window_end, count(*) AS n FROM s [TUMBLING 10] GROUP BY k, t ORDER BY window_end, n DESC",
            [(10, 2), (10, 1), (20, 1)],
        ),
        (
            "SELECT DISTINCT window_start, window_end, count(*) AS n FROM s [TUMBLING 10] GROUP BY k, t "
            "ORDER BY n LIMIT 2",
            [(0, 10, 1), (0, 10, 2), (10, 20, 1)],
        ),
    ],
)
def test_an_order_comes_after_a_union_and_after_distinct(query, expected):
    s = wr.stream([{"t": t, "k": k} for k, t in KT[::-1]], "t")
    assert wr.sql(query, s=s).collect().rows() == expected


def test_top_talkers_of_each_window():
    rows = [{"t": t, "k": k} for k, count in (("a", 3), ("b", 2), ("c", 2), ("d", 1)) for t in range(count)]
    rows += [{"t": 10, "k": "d"}]
    query = "SELECT k, count(*) AS n FROM s [TUMBLING 10] GROUP BY k HAVING n > 0 ORDER BY n DESC, k DESC LIMIT 2"
    found = wr.sql(query, s=wr.stream(rows, progress="t")).collect()
    assert found.rows() == [("a", 0, 10, 3), ("c", 0, 10, 2), ("d", 10, 20, 1)]
    ties = wr.stream(rows, progress="t").window(10).group_by("k").agg(n=wr.count()).top(2, "n", descending=False)
    assert ties.collect().rows() == [("b", 0, 10, 2), ("d", 0, 10, 1), ("d", 10, 20, 1)]


def test_filter_distinct_and_expressions_over_aggregates():
    rows = [{"t": 0, "x": 1}, {"t": 1, "x": 1}, {"t": 2, "x": 4}, {"t": 3, "x": None}]
    query = """SELECT count(*) FILTER (WHERE x > 1) AS big, sum(x) FILTER (WHERE t > 0) AS later,
    count(DISTINCT x) AS kinds, sum(DISTINCT x) + max(x) AS mixed, avg(DISTINCT x) AS mean,
    first(x) || '-' || last(x, true) AS ends FROM s [TUMBLING 10]"""
    found = wr.sql(query, s=wr.stream(rows, progress="t")).collect().drop("window_start", "window_end")
    assert found.rows() == [(1, 5, 2, 9, 2.5, "1-4")]


def test_user_defined_aggregates_in_sql():
    longest = wr.aggregate("longest", lambda s: s, lambda a, b: max(a, b, key=len), len, state="STRING", result="INT")
    s = wr.stream([{"t": 0, "w": "ab"}, {"t": 1, "w": "abc"}, {"t": 7, "w": None}], progress="t")
    query = "SELECT longest(w) AS n, count(*) AS rows FROM s [TUMBLING 5]"
    assert wr.sql(query, longest, s=s).collect().rows() == [(0, 5, 3, 2), (5, 10, None, 1)]
    with pytest.raises(wr.QueryError, match="unknown function 'longest'"):
        wr.sql(query, s=s)
    with pytest.raises(wr.QueryError, match="the aggregate 'sum' is built in"):
        wr.aggregate("sum", int, min, int, state="INT", result="INT")


def test_a_share_under_a_filter_is_of_the_rows_that_pass():
    rows = [{"t": 0, "k": k} for k in "abcb"]
    query = "SELECT heavy_hitters(k, 0.5) FILTER (WHERE k < 'b') AS h, heavy_hitters(k, 0.5) AS g FROM s [TUMBLING 5]"
    found = wr.sql(query, s=wr.stream(rows, progress="t")).collect()
    assert found["h"].to_list() == [[{"value": "a", "count": 1}]]
    assert found["g"].to_list() == [[{"value": "b", "count": 2}]]


def test_integers_begin_at_0_unless_there_is_an_origin():
    """WITHOUT PARTIAL needs no ORIGIN over integers; windows with no beginning refuse it (issue 11)."""
    s = wr.stream([{"t": t, "n": t, "k": "a"} for t in (-1, 1, 6)], progress="t", row_num="n")
    query = "SELECT count(*) AS n FROM s [RANGE 10, SLIDE 5{}]"
    assert wr.sql(query.format(""), s=s).collect().rows() == [(-10, 0, 1), (-5, 5, 2), (0, 10, 2), (5, 15, 1)]
    assert wr.sql(query.format(", WITHOUT PARTIAL"), s=s).collect().rows() == [(0, 10, 2), (5, 15, 1)]
    assert wr.sql(query.format(", ORIGIN 5, WITHOUT PARTIAL"), s=s).collect().rows() == [(5, 15, 1)]
    assert s.window(10, 5).without_partial().agg(n=wr.count()).collect().rows() == [(0, 10, 2), (5, 15, 1)]
    for windowed in (s.session(5), s.landmark(5), s.landmark(5, origin=1), s.each_row(5)):
        with pytest.raises(wr.PlanError, match="WITHOUT PARTIAL: only supported for"):
            windowed.without_partial().agg(n=wr.count())


def test_generous_is_refused_where_it_could_do_nothing():
    s = wr.stream([{"t": t, "n": t, "k": "a"} for t in range(3)], progress="t", row_num="n")
    for windowed in (s.session(5), s.rows(2, partition_by="k")):
        with pytest.raises(wr.PlanError, match="GENEROUS is not supported for windows of type"):
            windowed.late("drop", generous=True).agg(n=wr.count())
