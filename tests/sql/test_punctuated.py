"""Ways to make promises in SQL and on the command line: the same plans as in Python, and errors that show the place."""

import polars as pl
import pytest

import windrow as wr
from windrow.api import promise
from windrow.sql import punctuated
from windrow.sql.punctuated import rule

EMPTY = pl.DataFrame(
    schema={
        "ts": pl.Datetime("us", "UTC"),
        "m": pl.Datetime("us", "UTC"),
        "partition": pl.Int64,
        "k": pl.String,
        "a b": pl.Int64,
    }
)


def my_rule(seen):
    return seen.all_greatest


WAYS = [
    ("ordered()", wr.promise.ordered()),
    ("slack('10 seconds')", wr.promise.slack("10 seconds")),
    ("SLACK(10 SECONDS)", wr.promise.slack("10 seconds")),
    ("slack(behind => INTERVAL 10 SECONDS)", wr.promise.slack("10 seconds")),
    ("delay('10 seconds')", wr.promise.delay("10 seconds")),
    ("delay(most => 2 MINUTES)", wr.promise.delay("2 minutes")),
    ("rows(100)", wr.promise.rows(100)),
    ("partitions(partition, 8, slack => '2 seconds')", wr.promise.partitions("partition", 8, slack="2 seconds")),
    ("partitions('a b', count => 8)", wr.promise.partitions("a b", 8)),
    ("partitions(`a b`, 8)", wr.promise.partitions("a b", 8)),
    ("markers(m)", wr.promise.markers("m")),
    ("markers(M, k)", wr.promise.markers("m", "k")),
    ("markers(m, by => (k, partition))", wr.promise.markers("m", by=("k", "partition"))),
    ("heartbeats(m, '2 seconds')", wr.promise.heartbeats("m", "2 seconds")),
    ("estimated('1 minute')", wr.promise.estimated("1 minute")),
    ("estimated('1 minute', quantile => 0.9)", wr.promise.estimated("1 minute", 0.9)),
]


def source(**options):
    return wr.stream(EMPTY, "ts", name="s", **options)


def query(text, *functions, **options):
    return wr.sql(text, *functions, s=source(**options))


def in_sql(text, *functions, **options):
    return query(f"SELECT count(*) AS n FROM s PUNCTUATED BY {text} [RANGE 10 SECONDS, WA ts]", *functions, **options)


@pytest.mark.parametrize(("text", "same"), WAYS)
def test_sql_python_and_the_command_line_make_one_plan(text, same):
    expected = source(punctuation=same)
    windows = expected.window("10 seconds").agg(n=wr.count())
    found = in_sql(text)
    assert found.node == windows.node
    assert found.node.input.source == expected.node.source  # type: ignore[union-attr]
    assert found.explain() == windows.explain()
    assert source(punctuation=rule(text)).node == expected.node


@pytest.mark.parametrize("text", ["slack('3 seconds')", "rows(2)", "markers(m)", "delay('1 minute')"])
def test_idle_after_follows_any_rule(text):
    expected = source(punctuation=rule(text), idle_after="30 seconds")
    assert expected.node.source.idle_after == 30_000_000
    for idle in ("'30 seconds'", "30 SECONDS", "INTERVAL 30 SECONDS"):
        assert in_sql(f"{text} IDLE AFTER {idle}").node.input.source == expected.node.source
        assert source(punctuation=rule(f"{text} IDLE AFTER {idle}")).node == expected.node
    assert "when it is empty promises" in expected.window("1 minute").agg(n=wr.count()).explain()


def test_every_way_of_python_is_one_of_sql():
    made = {n for n, f in vars(promise).items() if getattr(f, "__annotations__", {}).get("return") == "Promise"}
    assert made - {"function"} == set(punctuated.PROMISES)


def test_a_way_closes_windows():
    rows = [{"t": t} for t in (1, 3, 2, 5)]
    run = wr.sql("SELECT count(*) AS n FROM s PUNCTUATED BY rows(1) [RANGE 2, WA t]", s=wr.stream(rows, "t")).run()
    assert run.push("s", rows).results().rows() == [(0, 2, 1)]


def test_a_function_of_your_own_is_known_by_its_name():
    own = wr.promise.function(my_rule)
    assert in_sql("my_rule()", own).node == source(punctuation=own).window("10 seconds").agg(n=wr.count()).node
    named = wr.promise.function(lambda seen: seen.all_greatest, name="latest")
    assert "what the function latest says" in in_sql("LATEST()", named).explain()


@pytest.mark.parametrize(
    ("functions", "reason"),
    [
        ([wr.promise.slack("1 second")], "it knows the built-in ones"),
        ([wr.promise.function(lambda seen: None)], "needs a word, not '<lambda>'"),
        ([wr.promise.function(my_rule, name="rows")], "the promise rule 'rows' is built in"),
        ([my_rule], "is neither wr.aggregate"),
    ],
)
def test_a_function_that_sql_cannot_name_is_refused(functions, reason):
    with pytest.raises(wr.QueryError, match=reason):
        in_sql("ordered()", *functions)


def test_each_table_of_a_union_has_its_own_way_or_all_in_parentheses_one():
    b = wr.stream(EMPTY, "ts", name="b")
    clause = "[RANGE 10 SECONDS, WA ts]"

    def ways(tables):
        built = wr.sql(f"SELECT count(*) AS n FROM {tables} {clause}", s=source(), b=b)
        return [(scan.name, scan.source.slack, scan.source.rule) for scan in built.node.input.inputs]

    rule = promise.RowSlack(100)
    assert ways("s PUNCTUATED BY ordered() UNION b PUNCTUATED BY rows(100)") == [("s", 0, None), ("b", None, rule)]
    assert ways("s x PUNCTUATED BY ordered() UNION ALL (b PUNCTUATED BY rows(100) AS y)") == [
        ("s", 0, None),
        ("b", None, rule),
    ]
    assert ways("(s PUNCTUATED BY ordered() UNION b PUNCTUATED BY rows(100))") == [("s", 0, None), ("b", None, rule)]
    assert ways("(s UNION b) PUNCTUATED BY rows(100)") == [("s", None, rule), ("b", None, rule)]


def test_it_stands_in_subqueries_and_with_the_window_after_the_select_list():
    inner = query("SELECT count(*) AS n FROM (SELECT ts FROM s PUNCTUATED BY ordered()) q [RANGE 10 SECONDS, WA ts]")
    assert "promises 0 days behind" in inner.explain()
    before = query("SELECT count(*) AS n [RANGE 10 SECONDS, WA ts] FROM s PUNCTUATED BY ordered() WHERE k = 'x'")
    after = query("SELECT count(*) AS n FROM s PUNCTUATED BY ordered() [RANGE 10 SECONDS, WA ts] WHERE k = 'x'")
    assert before.node == after.node


ERRORS = [
    ("slak('3 seconds')", "unknown promise rule 'slak'; available: delay, estimated, heartbeats, markers, o", "slak"),
    ("function(f)", "unknown promise rule .*wr.promise.function and pass it to wr.sql", "function"),
    ("slack()", "slack.behind. needs behind", "slack()"),
    ("partitions(slack => 3)", "needs column and count", "partitions(slack => 3)"),
    ("slack('3 seconds', 4)", "takes at most 1", "4"),
    ("slack(far => '3 seconds')", "has no argument 'far'", "far"),
    ("slack(3)", "behind '3' needs a unit of time", "3"),
    ("slack(k)", "must be a length, such as", "k"),
    ("slack(-3 SECONDS)", "must be zero or more", "-3 SECONDS"),
    ("rows('x')", "behind of rows.. must be an integer", "'x'"),
    ("rows(1.5)", "must be an integer", "1.5"),
    ("rows(-1)", "zero or more, not -1", "rows(-1)"),
    ("markers(z)", "unknown column 'z'; available: a b, k, m, partition, ts", "z"),
    ("markers(3)", "column of markers.. must be a column", "3"),
    ("markers(m, (k, 3))", "by of markers.. must be a column", "3"),
    ("markers(k)", "punctuation='k' is of type String, 'ts' of type Datetime", "markers(k)"),
    ("markers(ts)", "'ts' is a column of markers, and cannot", "markers(ts)"),
    ("markers(m, by => m)", "'m' is a column of markers, and cannot", "markers(m, by => m)"),
    ("partitions(count => 8, k)", "cannot follow", "k"),
    ("partitions(k, 8, column => k)", "column is given twice", "column => k"),
    ("partitions(k, 0)", "at least one partition", "partitions(k, 0)"),
    ("estimated('1 minute', 1.5)", "above 0 and at most 1", "estimated('1 minute', 1.5)"),
    ("estimated('1 minute', 'x')", "quantile of estimated.. must be a number", "'x'"),
    ("delay(3)", "most '3' needs a unit of time", "3"),
    ("slack('3 seconds') IDLE AFTER k", "IDLE AFTER needs a length", "k"),
    ("slack('3 seconds') IDLE AFTER 3", "idle_after '3' needs a unit of time", "slack('3 seconds') IDLE AFTER 3"),
    ("slack", "Expected a promise rule", "slack"),
    ("slack('3 seconds' 4)", "Expected , or . after an argument of slack", "4"),
    ("rows(behind = 3)", "Expected , or . after an argument of rows", "="),
]


@pytest.mark.parametrize(("text", "reason", "place"), ERRORS)
def test_errors_show_the_place_in_the_query_and_in_the_option(text, reason, place):
    for call, ahead in ((lambda: in_sql(text), True), (lambda: source(punctuation=rule(text)), False)):
        with pytest.raises(wr.QueryError, match=reason) as caught:
            call()
        *_, line, carets = str(caught.value).split("\n")
        start = carets.index("^")
        shown = line[start : start + carets.count("^")]
        assert shown == place
        assert ("PUNCTUATED BY" in line) == ahead


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ("(SELECT * FROM s) PUNCTUATED BY rows(1)", "the results of a query progress as its sources do"),
        ("(s PUNCTUATED BY rows(1)) PUNCTUATED BY rows(2)", r"given twice, here and inside: rows\(\)"),
        ("s PUNCTUATED BY rows(1) UNION s", "'s' is in the query twice"),
        ("s PUNCTUATED BY rows(1) UNION s PUNCTUATED BY rows(2)", "'s' is in the query twice"),
        ("s [RANGE 1 SECOND, WA ts] PUNCTUATED BY rows(1)", "right after a table, before the window clause"),
    ],
)
def test_a_way_in_the_wrong_place_is_refused(tables, reason):
    clause = "" if "[" in tables else "[RANGE 1 SECOND, WA ts]"
    with pytest.raises(wr.QueryError, match=reason) as caught:
        query(f"SELECT count(*) AS n FROM {tables} {clause}")
    assert "^" in str(caught.value)


def test_only_a_source_can_be_given_a_way():
    text = "SELECT count(*) AS n FROM s PUNCTUATED BY rows(1) [RANGE 10 SECONDS, WA ts]"
    with pytest.raises(wr.QueryError, match="results of a query, as 's' is, progress as its sources do"):
        wr.sql(text, s=source().where("k = 'x'"))
    s = source()
    with pytest.raises(wr.QueryError, match="'s' is in the query twice"):
        wr.sql("SELECT ts FROM s PUNCTUATED BY rows(1) UNION ALL SELECT ts FROM t", s=s, t=s.where("k = 'x'"))


def test_a_stream_that_has_a_way_already_is_refused_and_both_are_named():
    for options, declared in (
        ({"slack": "3 seconds"}, "promises 3 seconds behind the greatest ts"),
        ({"punctuation": "m"}, "promises from column m"),
        ({"punctuation": wr.promise.rows(7)}, "all rows but the last 7"),
    ):
        with pytest.raises(wr.QueryError, match=declared + r".*PUNCTUATED BY rows\(100\) would be a second"):
            in_sql("rows(100)", **options)


def test_punctuated_alone_is_still_a_name():
    assert query("SELECT punctuated.k FROM s punctuated").schema == {"k": pl.String}


def test_markers_by_two_columns_at_once_are_refused():
    with pytest.raises(wr.QueryError, match="markers by k, but punctuation_by= names partition"):
        source(punctuation=wr.promise.markers("m", "k"), punctuation_by="partition")
    kept = source(punctuation=wr.promise.markers("m"), punctuation_by="k")
    assert kept.node == source(punctuation="m", punctuation_by="k").node


@pytest.mark.parametrize("text", ["rows(", "rows(behind =>", "rows(3", "rows(3,", "", "markers(m, (k", "[RANGE 1, WA"])
def test_a_query_that_ends_in_the_middle_is_refused(text):
    tables = text if text.startswith("[") else f"PUNCTUATED BY {text}"
    with pytest.raises(wr.QueryError, match="Expect"):
        query(f"SELECT count(*) AS n FROM s {tables}")
