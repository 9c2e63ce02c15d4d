"""Nothing in a query is accepted and silently not done: each part has an effect, or is refused (issue 11)."""

import pytest
from sqlglot import exp

import windrow as wr
from windrow.hosts.spark.native import _is_native
from windrow.logical.consumed import EXPRESSIONS, OPERANDS
from windrow.logical.scalar.tables import HANDLERS
from windrow.sql.consumed import STATEMENT, WORDS
from windrow.sql.dialect import Windrow

ROWS = [{"t": t, "k": "ab"[t % 2], "x": t, "n": t} for t in range(20)]
PLAIN = "SELECT t, x FROM s WHERE x > 1"
GROUPED = "SELECT k, sum(x) AS total FROM s [TUMBLING 10, WA t] WHERE x > 1 GROUP BY k HAVING total > 3"
RANKED = "SELECT k, count(*) AS c FROM s AS z [RANGE 6, SLIDE 3] GROUP BY k ORDER BY c DESC LIMIT 2"
UNITED = "SELECT t FROM (s UNION o) UNION ALL SELECT t FROM s ORDER BY t"
NEAREST = "SELECT s.x FROM s LEFT ASOF JOIN o MATCH_CONDITION (s.t >= o.t) USING (k) WITHIN 5"
FOLLOWED = "SELECT s.x FROM s FOLLOWING CHRONICLE o ON s.k = o.k WITHIN 5"
SEQUENCE = "SELECT a.x, sum(b.x) AS y FROM SEQ(s a, o+ b, NOT s c) CHRONICLE WITHIN 5 USING (k)"
QUERIES = {"plain": PLAIN, "grouped": GROUPED, "ranked": RANKED, "united": UNITED}
QUERIES |= {"nearest": NEAREST, "followed": FOLLOWED, "sequence": SEQUENCE}

# Whatever Spark SQL and its relatives can say, put between any two words of a query.
CLAUSES = [
    "WITH ROLLUP",
    "WITH CUBE",
    "WITH TOTALS",
    "ROLLUP (k)",
    "GROUPING SETS ((k), ())",
    "TABLESAMPLE (10 PERCENT)",
    "TABLESAMPLE (5 ROWS) REPEATABLE (3)",
    "PIVOT (sum(x) FOR k IN ('a', 'b'))",
    "UNPIVOT (v FOR w IN (x, n))",
    "INTO other",
    "VERSION AS OF 1",
    "TIMESTAMP AS OF '2024-01-01'",
    "FOR SYSTEM_TIME AS OF '2024-01-01'",
    "EXCEPT (x)",
    "REPLACE (1 AS x)",
    "FOR UPDATE",
    "FOR SHARE",
    "CLUSTER BY x",
    "DISTRIBUTE BY x",
    "SORT BY x",
    "LATERAL VIEW explode(array(1)) e AS y",
    "QUALIFY row_number() OVER (ORDER BY t) = 1",
    "WINDOW w AS (PARTITION BY k)",
    "OVER (PARTITION BY k)",
    "OVER w",
    "GROUP BY ALL",
    "GROUP BY DISTINCT x",
    "ORDER BY ALL",
    "LIMIT ALL",
    "LIMIT 1 + 1",
    "LIMIT 3 BY k",
    "LIMIT 10 PERCENT",
    "LIMIT 1, 2",
    "OFFSET 3",
    "FETCH FIRST 2 ROWS ONLY",
    "NULLS LAST",
    "DISTINCT ON (k)",
    "TOP 3",
    "AS STRUCT",
    "MINUS SELECT t FROM s",
    "EXCEPT SELECT t, x FROM s",
    "INTERSECT ALL SELECT t, x FROM s",
    "BY NAME",
    ", o",
    "JOIN o ON s.t = o.t",
    "LEFT JOIN o USING (t)",
    "CROSS JOIN o",
    "LEFT SEMI JOIN o ON true",
    "NATURAL JOIN o",
    "ASOF JOIN o MATCH_CONDITION (s.t >= o.t)",
    "MATCH_CONDITION (s.t >= o.t)",
    "FOLLOWING RECENT o",
    "LEFT FOLLOWING CHRONICLE o AS p USING (k) WITHIN 3",
    "WITHIN 3",
    "KEYS 5",
    "CHRONICLE",
    "AFTER MATCH SKIP PAST LAST ROW",
    "SEQ(s, o) WITHIN 5",
    "IN (SELECT x FROM o)",
    "AND EXISTS (SELECT 1 FROM o)",
    "IN (1, 2,)",
    "IGNORE NULLS",
    "RESPECT NULLS",
    "WITHIN GROUP (ORDER BY x)",
    "COLLATE UTF8_LCASE",
    "AT TIME ZONE 'UTC'",
    "START WITH x = 1 CONNECT BY x = 2",
    "MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS x > 1)",
    "FOR XML PATH",
    "OPTION (RECOMPILE)",
    "WITH (NOLOCK)",
    "WITH ORDINALITY",
    "SETTINGS a = 1",
    "@v1",
    "?",
    ":name",
    "{name}",
    "$1",
    "$",
    ",",
    ",,",
    ";",
    "FORMAT 'x'",
    "ESCAPE '!'",
    "/*+ BROADCAST(s) */",
    "/*+ REPARTITION(3) */",
    "/*+ USING(nonsense) */",
    "/*+ */",
    "EMIT EARLY",
    "WA t",
    "[ROWS 5]",
    "[0]",
    ".a",
    "db.",
    "nope.",
    "(a, b)",
    "'O''Brien'",
    "INTERVAL 1 DAY",
    "NOT",
    "ANY",
]
# What may stand somewhere and leave the plan as it was, with the reason.
NO_EFFECT = {
    "ALL": "SELECT ALL, count(ALL x) and FROM a UNION ALL b are what they are without it",
    "-- a comment\n": "a comment",
    "/* a comment */": "a comment",
    ";": "the end of the query, at its end",
    "AS STRUCT": "the alias of a table, which says how columns can be named",
    "ANY": "another alias",
    "CHRONICLE": "another alias",
    "NULLS LAST": "where NULLs are with DESC anyway",
}


def tables():
    return {n: wr.stream(ROWS, progress="t", slack=1, row_num="n", name=n) for n in ("s", "o")}


def gaps(query):
    """The query cut between each two of its words."""
    ends = [0, *(token.end + 1 for token in Windrow().tokenize(query))]
    return [(query[:end], query[end:]) for end in ends]


def outcome(query, given):
    """Its plan, or what is said against it."""
    try:
        return wr.sql(query, **given).node
    except wr.WindrowError as error:
        return str(error)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_clause_anywhere_has_an_effect_or_is_refused(query):
    given = tables()
    before = wr.sql(query, **given).node
    texts = {f"{left} {clause} {right}": clause for left, right in gaps(query) for clause in [*CLAUSES, *NO_EFFECT]}
    found = {text: outcome(text, given) for text in texts}
    assert not [f for f in found.values() if isinstance(f, str) and "<class" in f]
    assert not [text for text, clause in texts.items() if found[text] == before and clause not in NO_EFFECT]


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_word_that_is_left_out_has_an_effect_or_is_missed(query):
    given = tables()
    before = wr.sql(query, **given).node
    noise = ("AS", "WA", "t", "z", ",", "ALL", "(", ")")  # WA t is the default; names of tables do not stay in a plan
    for token in Windrow().tokenize(query):
        text = query[: token.start] + query[token.end + 1 :]
        assert outcome(text, given) != before or token.text in noise, f"{token.text} has no effect: {text}"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * EXCEPT (x, N) FROM s WHERE t < 2", [(0, "a"), (1, "b")]),
        ("SELECT s.* EXCEPT (x, n), x + 1 AS y FROM s WHERE t < 2", [(0, "a", 1), (1, "b", 2)]),
        ("SELECT z.t FROM s AS z WHERE z.x < 2", [(0,), (1,)]),
        ("SELECT `z`.`t` FROM `s` `z` WHERE Z.x < 2", [(0,), (1,)]),
        ("SELECT z.t FROM (SELECT t, x FROM s) z WHERE z.x < 2", [(0,), (1,)]),
        ("SELECT z.t FROM (s UNION o) z WHERE z.x < 1", [(0,), (0,)]),
        ("SELECT a, d FROM s AS z(a, b, c, d) WHERE z.c < 2", [(0, 0), (1, 1)]),
        (
            "SELECT z.b, count(*) AS c FROM s z(a, b, c, d) [TUMBLING 20, WA a] GROUP BY z.b",
            [("a", 0, 20, 10), ("b", 0, 20, 10)],
        ),
        (
            "SELECT z.k, count(*) AS c FROM s UNION o [TUMBLING 20] AS z GROUP BY z.k",
            [("a", 0, 20, 20), ("b", 0, 20, 20)],
        ),
        ("SELECT count(x, k) AS c FROM s [TUMBLING 20]", [(0, 20, 20)]),
        ("SELECT count(nullif(x, 3), nullif(t, 4)) AS c FROM s [TUMBLING 20]", [(0, 20, 18)]),
        ("SELECT k, count(*) AS c FROM s [TUMBLING 20] GROUP BY (k)", [("a", 0, 20, 10), ("b", 0, 20, 10)]),
        ("SELECT count(*) AS c FROM s [TUMBLING 20] GROUP BY 'k'", [(0, 20, 20)]),
        ("SELECT first(x, true) AS c FROM s [TUMBLING 20]", [(0, 20, 0)]),
        ("SELECT last(x) IGNORE NULLS AS c FROM s [TUMBLING 20]", [(0, 20, 19)]),
        ("SELECT t FROM s WHERE k = 'a' 'b' OR t = 0", [(0,)]),
        ("FROM s SELECT t WHERE t < 1", [(0,)]),
    ],
)
def test_what_works(query, expected):
    assert wr.sql(query, **tables()).collect().rows() == expected


@pytest.mark.parametrize(
    ("query", "message", "underlined"),
    [
        ("SELECT k, count(*) FROM s [RANGE 5] GROUP BY k WITH ROLLUP", "WITH ROLLUP is not supported", "WITH ROLLUP"),
        ("SELECT k, count(*) FROM s [RANGE 5] GROUP BY k WITH  cube", "WITH CUBE is not supported", "WITH  cube"),
        ("SELECT k, count(*) FROM s [RANGE 5] GROUP BY ROLLUP(k)", "ROLLUP is not supported", "ROLLUP(k"),
        ("SELECT 'WITH ROLLUP', count(*) FROM s [RANGE 5] GROUP BY k WITH ROLLUP", "WITH ROLLUP", "WITH ROLLUP"),
        ("SELECT t FROM s TABLESAMPLE (10 PERCENT)", "TABLESAMPLE is not supported", "TABLESAMPLE (10"),
        ("SELECT t FROM s PIVOT (sum(x) FOR k IN ('a'))", "PIVOT is not supported", "PIVOT (sum(x) FOR k"),
        ("SELECT t INTO z FROM s", "INTO is not supported", "INTO z"),
        ("SELECT t FROM s VERSION AS OF 1", "VERSION AS OF is not supported", "VERSION AS OF 1"),
        ("SELECT * REPLACE (1 AS x) FROM s", "REPLACE is not supported", "REPLACE (1 AS x"),
        ("SELECT * EXCEPT (nope) FROM s", "unknown column 'nope'; available: k, n, t, x", "nope"),
        ("SELECT t FROM s FOR UPDATE", "FOR UPDATE is not supported", "FOR UPDATE"),
        ("WITH z AS (SELECT t FROM s) SELECT t FROM z", "WITH is not supported", "WITH z"),
        ("SELECT s.t FROM s LEFT JOIN o ON s.k = o.k", "must bound how far apart the times are", "o ON s.k = o.k"),
        ("SELECT percentile(x, 0.5, 2) FROM s [RANGE 5]", "This argument is not supported", "2"),
        ("SELECT collect_list(x, t) FROM s [RANGE 5]", "This argument is not supported", "t"),
        ("SELECT first(x, false) FROM s [RANGE 5]", "This argument is not supported", "false"),
        ("SELECT max(x, t) FROM s [RANGE 5]", "t is not supported in max(x, t)", "t"),
        ("SELECT approx_count_distinct(x, 0.1) FROM s [RANGE 5]", "0.1 is not supported in approx_count_d", "0.1"),
        ("SELECT count() FROM s [RANGE 5]", "count() needs an argument", "count()"),
        ("SELECT count(s.*) FROM s [RANGE 5]", "s.* is supported in a select list only", "s.*"),
        ("SELECT first(x ORDER BY t) FROM s [RANGE 5]", "ORDER BY is not supported", "ORDER BY"),
        (
            "SELECT sum(x) IGNORE NULLS FROM s [RANGE 5]",
            "IGNORE NULLS is for first() and last()",
            "sum(x) IGNORE NULLS",
        ),
        ("SELECT t, nope.k FROM s", "unknown table 'nope' in nope.k; available: s", "nope"),
        ("SELECT t, s.k FROM s AS z", "unknown table 's' in s.k; available: z", "s"),
        ("SELECT t FROM s WHERE a.b.k = 'a'", "unknown table 'a.b' in a.b.k", "b"),
        ("SELECT t, s.k FROM s UNION o", "unknown table 's' in s.k; what follows FROM has no name", "s"),
        ("SELECT k, count(*) AS c FROM s [RANGE 5] GROUP BY k HAVING nope.k = 'a'", "unknown table 'nope'", "nope"),
        ("SELECT t FROM s UNION SELECT t FROM o ORDER BY s.t", "unknown table 's' in s.t", "s"),
        ("SELECT t, k.a FROM s", "k.a: fields of a column are not supported", "k.a"),
        ("SELECT t FROM db.s", "unknown table 'db.s'; available: o, s", "db.s"),
        ("SELECT a FROM s AS z(a, b)", "2 names for 4 columns: t, k, x, n", "z(a, b"),
        ("SELECT a FROM s AS z(a, b, b, c)", "given twice: b", "b"),
        ("SELECT t,, x FROM s", "Nothing stands before or after this comma", ","),
        ("SELECT t, x, FROM s", "Nothing stands before or after this comma", ","),
        ("SELECT t, greatest(x, t,) FROM s", "Nothing stands before or after this comma", ","),
        ("SELECT t FROM s,", "Expected a table after the comma", ","),
        ("SELECT t FROM s WHERE NULL", "a condition must be true or false, and this is always NULL", "NULL"),
        ("SELECT t, t FROM s", "output columns need different names; given twice: t", "t"),
        ("SELECT *, k FROM s", "output columns need different names; given twice: k", "k"),
        ("SELECT t, x AS t FROM s", "output columns need different names; given twice: t", "x AS t"),
        ("SELECT max(x) AS a, min(x) AS a FROM s [RANGE 5]", "given twice: a", "min(x) AS a"),
        ("SELECT count(*) FROM s [RANGE 9223372036854775808]", "RANGE '9223372036854775808' is beyond 64", "92233"),
        ("SELECT count(*) FROM s [ROWS 99999999999999999999]", "beyond 64 bits", "99999999999999999999"),
        ("SELECT count(*) FROM s [RANGE 5, ORIGIN 9223372036854775808]", "beyond 64 bits", "9223372036854775808"),
        ("SELECT t FROM s WHERE x < 9223372036854775808", "beyond 64 bits", "9223372036854775808"),
        ("SELECT k, count(*) FROM s [RANGE 5] GROUP BY 2", "GROUP BY 2, which is count(*): keys cannot", "2"),
        ("SELECT k, count(*) FROM s [RANGE 5] GROUP BY 3", "GROUP BY 3: the select list has 2 items", "3"),
        ("SELECT t FROM s ORDER BY 2", "ORDER BY 2: the select list has 1 item", "2"),
        ("SELECT k, count(*) AS c FROM s [RANGE 5] GROUP BY k ORDER BY 3 LIMIT 1", "the select list has 2", "3"),
        ("SELECT k, sum(x) AS c FROM s [RANGE 5] GROUP BY k HAVING cc > 1", "available: c, k, n, t, window_end,", "cc"),
        ("SELECT t, date_format(t, 'y') FROM s", "'date_format' is not supported in expressions", "date_format(t"),
        ("SELECT t, x[0] FROM s", "'x[0]' is not supported in expressions", "x[0]"),
        ("SELECT max_by(x, t) FROM s [RANGE 5]", "aggregate 'max_by' is not supported", "max_by(x, t)"),
        ("SELECT t, :a FROM s", "':a' is not supported in expressions", ":a"),
        ("SELECT t, abs() FROM s", "Something is missing here", ")"),
        ("SELECT t FROM s WHERE x > (SELECT 1 FROM s)", "a query inside an expression is not", "(SELECT 1 FROM s"),
        ("SELECT t, CAST(x AS STRING FORMAT 'a') FROM s", "FORMAT is not supported", "FORMAT 'a'"),
        ("SELECT count(*) FROM (s [RANGE 5])", "the window clause must follow the closing parenthesis", "[RANGE 5]"),
        ("SELECT t FROM s ORDER BY ALL", "ALL is not supported here", "ORDER BY ALL"),
        ("SELECT t FROM s EXCEPT SELECT t FROM o", "EXCEPT of queries is not supported", "SELECT t FROM s EXCEPT"[7:]),
    ],
)
def test_what_nothing_consumes_is_underlined(query, message, underlined):
    with pytest.raises(wr.WindrowError) as error:
        wr.sql(query, **tables()).collect()
    said, line, carets = str(error.value).split("\n")
    assert message in said
    assert line.strip() == query
    start = carets.index("^")
    assert line[start : start + carets.count("^")].startswith(underlined)


WINDOWS = {
    "landmark": "[RANGE ALL, SLIDE 5]",
    "session": "[SESSION 5]",
    "partitioned": "[ROWS 5, PA k]",
    "slide-by-tuple": "[RANGE 5, RATTR t, SLIDE 2 ROWS, SATTR rank(t)]",
}


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("hint", ["USING(nonsense)", "USING(paned)", "MEMORY('1 MB')", "USING()", "USING"])
def test_a_hint_that_could_do_nothing_is_underlined(window, hint):
    query = f"SELECT /*+ {hint} */ count(*) AS c FROM s {window}"
    with pytest.raises(wr.QueryError) as error:
        wr.sql(query, **tables())
    assert str(error.value).split("\n")[1:] == [f"  {query}", f"  {' ' * query.index(hint)}{'^' * len(hint)}"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT /*+ USING(wid), MEMORY('1 MB') */ count(*) FROM s [RANGE 5]", "leave out one of them"),
        ("SELECT /*+ USING(wid), USING(paned) */ count(*) FROM s [RANGE 5]", "USING is given twice"),
        ("SELECT /*+ MEMORY(much) */ count(*) FROM s [RANGE 5]", "'much' is not a size"),
        ("SELECT /*+ USING(wid) FAST */ count(*) FROM s [RANGE 5]", "unknown hint FAST"),
        ("SELECT /*+ */ count(*) FROM s [RANGE 5]", "the hint is empty"),
        ("SELECT /*+ USING(wid) */ t FROM s", "a hint needs a window"),
        ("SELECT count(*) FROM s [RANGE 5] WHERE /*+ USING(wid) */ x > 1", "A hint stands right after SELECT"),
        ("SELECT count(*) /* a */ /*+ USING(wid) */ FROM s [RANGE 5]", "A hint stands right after SELECT"),
    ],
)
def test_hints_that_mean_nothing(query, message):
    with pytest.raises(wr.QueryError, match=message) as error:
        wr.sql(query, **tables())
    assert str(error.value).split("\n")[1] == f"  {query}"


def test_hints_of_python_that_could_do_nothing():
    s = tables()["s"]
    for call in (
        lambda: s.window(5, using="nonsense"),
        lambda: s.window(5, using="wid", memory="1 MB"),
        lambda: s.window(5, using="wid", flush="lazy"),
        lambda: s.rows(5, using="nonsense"),
        lambda: s.rows(5, partition_by="k", using="paned"),
        lambda: s.each_row(5, using="paned"),
    ):
        with pytest.raises(wr.QueryError):
            call()
    assert not _is_native(s.window(5, memory="1 MB").agg(n=wr.count()).node)
    shared = {"a": s.window(5, memory="1 MB").agg(n=wr.count()), "b": s.window(10).agg(n=wr.count())}
    assert [stage.algorithm for stage in wr.together(**shared).plan().stages()] == ["paned", "paned"]  # no shared panes


def test_every_argument_of_a_translated_node_is_known_or_refused():
    translated = set(HANDLERS)
    unlisted = {c.__name__ for c in translated if not set(c.arg_types) <= OPERANDS and c not in EXPRESSIONS}
    assert not unlisted, f"say in EXPRESSIONS which arguments the translation of these consumes: {unlisted}"


def test_every_argument_of_a_statement_has_words():
    spoken = {name if isinstance(name, str) else name[1] for name in WORDS}
    for kind in (exp.Select, exp.Union, exp.Subquery, exp.Table, exp.Group, exp.Ordered, exp.Limit, exp.Star):
        silent = set(kind.arg_types) - set(STATEMENT[kind]) - spoken
        assert silent <= {"joins", "this", "where", "group", "having"}, f"{kind.__name__}: {silent}"
