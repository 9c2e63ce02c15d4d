"""Queries with words left out, doubled, exchanged or replaced: only our errors come out, with the place (issue 11)."""

import random

import pytest

import windrow as wr
from windrow.sql.dialect import Windrow

ROWS = [{"t": t, "k": "ab"[t % 2], "x": t, "n": t} for t in range(20)]
QUERIES = [
    "SELECT t, x FROM s WHERE x > 1",
    "SELECT k, sum(x) AS total FROM s [TUMBLING 10, WA t] WHERE x > 1 GROUP BY k HAVING total > 3",
    "SELECT k, count(*) AS c FROM s AS z [RANGE 6, SLIDE 3] GROUP BY k ORDER BY c DESC LIMIT 2",
    "SELECT t FROM (s UNION o) UNION ALL SELECT t FROM s ORDER BY t",
    "SELECT /*+ USING(paned) */ k, sum(x) AS a, count(DISTINCT n) AS b FROM s PUNCTUATED BY slack(3) "
    "[RANGE 10, SLIDE 5, WA t, ORIGIN 3, LATE REVISE FOR 10] WHERE x BETWEEN 1 AND 15 GROUP BY k EMIT EARLY EVERY 5",
    "SELECT max(c) AS m FROM (SELECT k, count(*) AS c FROM s [TUMBLING 2] GROUP BY k) [TUMBLING 10]",
    "SELECT t, upper(k) || 'O''B' AS u, CASE WHEN x > 3 THEN 1 ELSE x % 3 END y FROM s WHERE k LIKE 'a%' OR x IN (1)",
    "SELECT DISTINCT t DIV 10 AS ten, k FROM s ORDER BY ten",
    "SELECT count(*) FILTER (WHERE x > 3) AS c, quantile(x, 0.5) AS q, first(x) AS f "
    "FROM s [RANGE 5, RATTR t, SLIDE 2 ROWS, SATTR rank(t), PA k]",
    "SELECT a, CAST(c AS DOUBLE) / 2 AS y, substring(b, 1, 2) AS z FROM s AS q(a, b, c, d)",
    "SELECT k, avg(x) AS a FROM s [SESSION 3, LATE SIDE] GROUP BY 1 HAVING a > 1",
    "SELECT s.k, o.x AS y FROM s [RANGE 5, WA s.t, LATE SIDE] LEFT JOIN o [RANGE 3, WA t] ON s.k = o.k AND s.x < o.x",
    "SELECT k, t, s.* EXCEPT (k, t) FROM s FULL OUTER JOIN o USING (k, t) WHERE k > 'a' ORDER BY t",
    "SELECT count(*) AS c [TUMBLING 5, WA a.t] FROM s AS a, (o AS b JOIN s AS c ON b.t = c.t), o AS d "
    "WHERE a.k = b.k AND c.t BETWEEN a.t - 2 AND a.t + 2 AND d.t - b.t BETWEEN 0 AND 3 AND a.x + b.x < d.x",
    "SELECT * FROM s LEFT ANTI JOIN (SELECT k AS j, t AS u FROM o) AS z ON k = j AND u = t WHERE x > 3",
    "SELECT M.k, N.x FROM s UNION o AS M, o AS N [RANGE TUMBLING 4, WA t, ORIGIN 1] WHERE M.k = N.k",
    "SELECT s.t, s.x, o.x AS y FROM s LEFT ASOF JOIN o [LATE SIDE] MATCH_CONDITION (s.t >= o.t + 1) ON s.k = o.k "
    "AND o.x > 1 AND o.t >= s.t - 5 WITHIN 4 KEYS 3 WHERE s.x > 2",
    "SELECT s.t, o.x AS y FROM s LEFT FOLLOWING CHRONICLE o ON s.k = o.k AND s.x > o.x WITHIN 4",
    "SELECT a.k, c.t - a.t AS took, sum(b.x) / count(b.*) AS y FROM SEQ(s a, NOT o x, o+ b, s c) RECENT WITHIN 8 "
    "ON a.k = b.k AND b.k = c.k AND c.k = x.k AND c.x > a.x + 1 AND a.x > 1 AFTER MATCH SKIP PAST LAST ROW "
    "WHERE first(b.x) > 2",
    "SELECT k, count(*) AS n [TUMBLING 5, WA b.t] FROM SEQ(s a, o b) KEYS 9 USING (k) GROUP BY k",
    "SELECT /*+ USING(oa) */ a.t, b.x FROM s AS a [RANGE 3 ROWS, WA row_num] JOIN s AS b [RANGE 2 ROWS] ON a.k = b.k",
]
WORDS = [
    "'",
    '"',
    "`",
    "''",
    "--",
    "/*",
    "*/",
    "[",
    "]",
    "(",
    ")",
    ",",
    ",,",
    ";",
    ".",
    "::",
    "=>",
    "0",
    "-1",
    "1.5",
    "1e999",
    "99999999999999999999",
    "NULL",
    "TRUE",
    "ALL",
    "ROWS",
    "SECONDS",
    "AS",
    "OF",
    "WITH",
    "ROLLUP",
    "ASOF",
    "FOLLOWING",
    "RECENT",
    "SEQ",
    "NOT",
    "+",
    "WITHIN",
    "KEYS",
    "OVER",
    "DISTINCT",
    "window_start",
    "`@rows`",
    "count(*)",
    "s.*",
    "nope.k",
    "é",
    "'x",
]


def mutated(query, draw):
    words = [query[t.start : t.end + 1] for t in Windrow().tokenize(query)]
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        at, other = draw.randrange(len(words)), draw.randrange(len(words))
        match draw.choice(["leave out", "double", "add", "replace", "exchange"]):
            case "leave out" if len(words) > 1:
                del words[at]
            case "double":
                words.insert(at, words[at])
            case "add":
                words.insert(at, draw.choice(WORDS))
            case "replace":
                words[at] = draw.choice(WORDS)
            case _:
                words[at], words[other] = words[other], words[at]
    return " ".join(words)


def said_of(query, tables):
    """What is said against a query, if anything is."""
    try:
        found = wr.sql(query, **tables)
        found.explain()
        found.collect()
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("query", QUERIES)
def test_only_our_errors_come_out_of_odd_queries(query):
    tables = {n: wr.stream(ROWS, progress="t", row_num="n", name=n) for n in ("s", "o")}
    assert said_of(query, tables) is None
    draw = random.Random(query)
    for text in (mutated(query, draw) for _ in range(60)):
        error = said_of(text, tables)
        assert error is None or isinstance(error, wr.WindrowError), f"{error!r}: {text}"
        assert not isinstance(error, wr.InternalError), text
        assert "<class" not in str(error), text
