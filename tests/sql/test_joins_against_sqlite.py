"""Joins in SQL give what SQLite gives for the same text, in process and as Spark drives them. Issue 13.

Window clauses are written out for SQLite.
"""

import random
import sqlite3
from contextlib import closing

import polars as pl
import pytest

import windrow as wr
from windrow.testing import oracle
from windrow.testing.simulated import SimulatedSpark

COLUMNS = {"L": "x", "R": "v", "C": "w", "H": "h"}
STATIC = "H"  # a table that does not change
BAND = "R.ts BETWEEN L.ts - 5 AND L.ts + 3"
HALF = "SELECT L.ts, L.k, x FROM L WHERE {} (SELECT 1 FROM R WHERE {})"
RANGES = "R.ts - L.ts < 7 AND L.ts - R.ts < 5 AND C.ts - L.ts < 7 AND L.ts - C.ts < 3"
RANGES += " AND C.ts - R.ts < 5 AND R.ts - C.ts < 3"
LEFT = f"SELECT x, v, w FROM L LEFT JOIN R ON L.k = R.k AND {BAND}"


def same(*queries):
    return [(query, query) for query in queries]


QUERIES = [
    *same(
        "SELECT L.ts, L.k, x, h FROM L JOIN H ON L.k = H.k AND h > 1 AND x <> h",
        "SELECT L.ts, h, x FROM H JOIN L ON L.k = H.k WHERE x > 0 AND h < 5",
        "SELECT L.ts, L.k, x, h FROM L LEFT JOIN H ON L.k = H.k AND h > 3 AND x < 5 WHERE h IS NULL OR x < h",
        "SELECT L.ts, x, h FROM H RIGHT JOIN L USING (k)",
        "SELECT L.ts, x, h FROM L, H WHERE x + h > 7",
        f"SELECT x, v, h FROM L JOIN H ON L.k = H.k JOIN R ON R.k = h AND {BAND}",
        f"SELECT x, v, h FROM L JOIN R ON L.k = R.k AND {BAND} LEFT JOIN H ON v = h AND H.ts > L.ts",
        f"SELECT x, v, h FROM L LEFT JOIN (R JOIN H ON R.k = H.k AND h < 4) ON L.k = R.k AND {BAND}",
        f"SELECT L.ts, R.ts AS r, x, v FROM L JOIN R ON L.k = R.k AND {BAND} AND x < 4 AND x <> v",
        f"SELECT L.ts, R.ts AS r, x, v FROM L LEFT JOIN R ON L.k = R.k AND {BAND} AND x < 4 AND v > 1",
        f"SELECT L.ts, R.ts AS r, x, v FROM L LEFT JOIN R ON L.k = R.k AND {BAND} WHERE v IS NULL OR v > x",
        f"SELECT L.ts, R.ts AS r, x, v FROM L RIGHT JOIN R ON L.k = R.k AND {BAND} AND x < 4 AND v > 1 WHERE R.ts > 3",
        f"SELECT L.ts, R.ts AS r, x, v FROM L FULL JOIN R ON L.k = R.k AND {BAND} AND x < 4 AND v > 1",
        f"SELECT L.ts, R.ts AS r, x, v FROM L FULL JOIN R ON x + 1 < v AND {BAND}",
        f"SELECT L.ts, R.ts AS r, x, v FROM L, R WHERE x + 1 < v AND {BAND}",
        "SELECT k, ts, L.k AS a, R.k AS b, x, v FROM L FULL JOIN R USING (k, ts)",
        "SELECT k, ts, x, v FROM L RIGHT JOIN R USING (k, ts) WHERE k > 0",
        "SELECT a.ts, b.ts AS b, b.x FROM L AS a LEFT JOIN L AS b ON a.k = b.k AND b.ts > a.ts AND b.ts < a.ts + 4",
        f"SELECT x, v, w FROM L JOIN R ON L.k = R.k AND {BAND} JOIN C ON C.ts BETWEEN R.ts AND L.ts + 6",
        f"SELECT x, v, w FROM L, R, C WHERE L.k = R.k AND R.k = C.k AND {BAND} AND C.ts - R.ts BETWEEN -4 AND 4",
        "SELECT x, v, w FROM L, R, C WHERE C.ts = R.ts AND C.ts BETWEEN L.ts AND L.ts + 2",
        f"{LEFT} LEFT JOIN C ON C.k = R.k AND C.ts BETWEEN L.ts AND L.ts + 9",
        f"{LEFT} JOIN C ON C.ts BETWEEN L.ts AND L.ts + 9 WHERE v > w",
        f"SELECT x, v, w FROM L LEFT JOIN (R JOIN C ON R.ts = C.ts) ON L.k = R.k AND {BAND}",
        f"SELECT x, v, w FROM (L JOIN R ON {BAND}) JOIN C ON C.ts BETWEEN R.ts AND R.ts + 2 AND x < w",
        f"SELECT j.t, w FROM (SELECT L.ts AS l, R.ts AS t FROM L JOIN R ON {BAND}) AS j JOIN C ON C.ts = j.t AND l < 9",
    ),
    (
        f"SELECT * FROM L LEFT SEMI JOIN R ON L.k = R.k AND {BAND} AND x < v AND x > 0",
        HALF.format("EXISTS", f"L.k = R.k AND {BAND} AND x < v AND x > 0"),
    ),
    (
        f"SELECT ts, k, x FROM L ANTI JOIN R ON {BAND} AND x < v AND x > 0 WHERE x < 4",
        HALF.format("x < 4 AND NOT EXISTS", f"{BAND} AND x < v AND x > 0"),
    ),
    (
        "SELECT * FROM L SEMI JOIN H ON L.k = H.k AND x < h",
        "SELECT * FROM L WHERE EXISTS (SELECT 1 FROM H WHERE L.k = H.k AND x < h)",
    ),
    (
        "SELECT * FROM L ANTI JOIN H ON L.k = H.k AND x < h AND x > 1",
        "SELECT * FROM L WHERE NOT EXISTS (SELECT 1 FROM H WHERE L.k = H.k AND x < h AND x > 1)",
    ),
    (
        "SELECT H.k, count(*) AS n [TUMBLING 10, WA L.ts] FROM L JOIN H ON L.k = H.k GROUP BY H.k",
        "SELECT H.k, L.ts / 10 * 10, L.ts / 10 * 10 + 10, count(*) FROM L, H WHERE L.k = H.k GROUP BY H.k, L.ts / 10",
    ),
    (
        "SELECT x, v FROM L [RANGE 7, WA ts] LEFT JOIN R [RANGE 5, WA ts] ON L.k = R.k",
        "SELECT x, v FROM L LEFT JOIN R ON L.k = R.k AND R.ts - L.ts < 7 AND L.ts - R.ts < 5",
    ),
    (
        "SELECT x, v FROM L, R [RANGE TUMBLING 7, WA ts, ORIGIN 3] WHERE L.k = R.k AND R.ts > L.ts",
        "SELECT x, v FROM L, R WHERE L.k = R.k AND (L.ts + 4) / 7 = (R.ts + 4) / 7 AND R.ts > L.ts",
    ),
    (
        "SELECT x, v, w FROM L, R, C [TUMBLING 9, WA ts] WHERE x <> w",
        "SELECT x, v, w FROM L, R, C WHERE L.ts / 9 = R.ts / 9 AND R.ts / 9 = C.ts / 9 AND x <> w",
    ),
    (
        "SELECT x, v, w FROM L [RANGE 7], R [RANGE 5], C [RANGE 3] WHERE L.k = R.k",
        f"SELECT x, v, w FROM L, R, C WHERE L.k = R.k AND {RANGES}",
    ),
    (
        "SELECT x, v, w FROM L [RANGE 7] LEFT JOIN R [RANGE 5] ON L.k = R.k JOIN C [RANGE 3] ON L.k = C.k",
        "SELECT x, v, w FROM L LEFT JOIN R ON L.k = R.k AND R.ts - L.ts < 7 AND L.ts - R.ts < 5 JOIN C ON L.k = C.k "
        "AND C.ts - L.ts < 7 AND L.ts - C.ts < 3 AND (R.ts IS NULL OR (C.ts - R.ts < 5 AND R.ts - C.ts < 3))",
    ),
    (
        "SELECT R.k, count(*) AS n, max(L.ts) AS t [TUMBLING 10, WA R.ts] FROM L [RANGE 3], R [RANGE 3] "
        "WHERE L.k = R.k GROUP BY R.k HAVING count(x) > 1",
        "SELECT R.k, R.ts / 10 * 10, R.ts / 10 * 10 + 10, count(*), max(L.ts) FROM L, R WHERE L.k = R.k "
        "AND R.ts - L.ts < 3 AND L.ts - R.ts < 3 GROUP BY R.k, R.ts / 10 HAVING count(x) > 1",
    ),
]


def rows(chance, count):
    return [(chance.randrange(40), chance.choice([0, 1, 2, None]), chance.randrange(6)) for _ in range(count)]


def in_order(frame):
    return sorted(frame.rows(), key=repr)


@pytest.mark.parametrize(("query", "written"), QUERIES)
def test_a_join_gives_what_sqlite_gives(query, written):
    chance = random.Random(query)
    given = {table: rows(chance, 12 if table in "CH" else 25) for table in COLUMNS}
    with closing(sqlite3.connect(":memory:")) as memory:
        for table, column in COLUMNS.items():
            memory.execute(f"CREATE TABLE {table} (ts INTEGER, k INTEGER, {column} INTEGER)")
            memory.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", given[table])
        expected = memory.execute(written).fetchall()
    names = {table: ("ts", "k", column) for table, column in COLUMNS.items()}
    frames = {table: pl.DataFrame(given[table], dict.fromkeys(names[table], pl.Int64), orient="row") for table in names}
    static, spark = wr.table(frames.pop(STATIC)), SimulatedSpark()
    here = {table: wr.stream(frame, "ts", slack=40) for table, frame in frames.items()}
    halves = {table: spark.frame([frame[::2], frame[1::2]]) for table, frame in frames.items()}
    there = {table: wr.stream(halves[table], "ts", slack=40, name=table) for table in frames}
    stream = wr.sql(query, **here, H=static)
    found = in_order(stream.collect())
    assert expected, "the test says nothing"
    assert found == sorted(expected, key=repr)
    assert found == in_order(oracle(stream))
    assert found == in_order(spark.collect(wr.sql(query, **there, H=static)))
