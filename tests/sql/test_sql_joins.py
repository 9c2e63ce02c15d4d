"""Joins in SQL: names have scope, and a band and equalities are found wherever they are written. Issue 12."""

import random
from collections import Counter
from datetime import datetime

import pytest

import windrow as wr

SECOND, MINUTE = 1_000_000, 60_000_000
AT = datetime(2024, 1, 1)
BAND = "R.ts BETWEEN L.ts - INTERVAL 5 SECONDS AND L.ts + INTERVAL 10 SECONDS"


def tables():
    return {
        "L": wr.stream([{"ts": AT, "k": 1, "src": "a", "x": 1.0}], progress="ts"),
        "R": wr.stream([{"ts": AT, "k": 1, "dst": "a", "v": 2}], progress="ts"),
    }


def planned(query):
    return wr.sql(query, **tables()).node


def join_of(query):
    return next(node for node in planned(query).walk() if type(node).__name__ == "Join")


def keys(join):
    return [(a.sql("spark"), b.sql("spark")) for a, b in join.on]


def test_qualified_names_are_two_columns():
    node = planned(f"SELECT L.k, L.ts AS lts, R.ts AS rts, v FROM L JOIN R ON L.k = R.k AND {BAND}")
    assert list(node.schema) == ["k", "lts", "rts", "v"]
    assert set(node.times) == {"lts", "rts"}
    join = node.input
    assert (join.window.low, join.window.high, keys(join)) == (-5 * SECOND, 10 * SECOND, [("k", "k")])
    assert {name for name, _, _ in join.columns} == {"L.ts", "L.k", "src", "x", "R.ts", "R.k", "dst", "v"}


@pytest.mark.parametrize(
    ("band", "low", "high"),
    [
        (BAND, -5 * SECOND, 10 * SECOND),
        ("R.ts >= L.ts - INTERVAL 5 SECONDS AND R.ts < L.ts + INTERVAL 10 SECONDS", -5 * SECOND, 10 * SECOND - 1),
        ("L.ts - INTERVAL '5' SECOND < R.ts AND L.ts + INTERVAL '1 minute' >= R.ts", 1 - 5 * SECOND, MINUTE),
        ("L.ts BETWEEN R.ts - INTERVAL 1 MINUTE AND R.ts + INTERVAL 5 SECONDS", -5 * SECOND, MINUTE),
        ("(R.ts) > (L.ts) AND R.ts - INTERVAL 1 MINUTE <= INTERVAL 1 SECOND + L.ts", 1, 61 * SECOND),
        ("R.ts = L.ts", 0, 0),
        (f"{BAND} AND R.ts > L.ts", 1, 10 * SECOND),
    ],
)
def test_a_band_is_found_however_it_is_written(band, low, high):
    for query in (f"FROM L JOIN R ON L.k = R.k AND {band}", f"FROM L, R WHERE {band} AND R.k = L.k"):
        join = join_of(f"SELECT L.k {query}")
        assert (join.window.low, join.window.high) == (low, high)
        assert keys(join)[0 if "ON" in query else -1] == ("k", "k")


def test_the_windows_of_two_tables_are_a_band_that_is_open_on_both_sides():
    join = join_of("SELECT src FROM L [RANGE 3 MINUTES, WA ts], R [RANGE 2 MINUTES, WA ts] WHERE L.src = R.dst")
    assert (join.window.low, join.window.high, keys(join)) == (1 - 2 * MINUTE, 3 * MINUTE - 1, [("src", "dst")])


def test_conditions_on_one_table_are_checked_before_the_join_and_those_on_both_after():
    join = join_of(f"SELECT L.k FROM L JOIN R ON L.k + 1 = R.k AND {BAND} AND x > 3 WHERE x < v AND R.v IN (1, 2)")
    assert [type(node).__name__ for node in join.inputs] == ["Filter", "Filter"]
    assert (join.where.sql("spark"), keys(join)) == ("x < v", [("k + 1", "k")])


def test_a_join_is_aggregated_by_another_key():
    inner = f"SELECT R.k AS k2, L.ts AS ts FROM L JOIN R ON src = dst AND {BAND}"
    windowed = f"SELECT k2, count(*) AS n FROM ({inner}) AS j [RANGE 1 MINUTE, SLIDE 1 MINUTE, WA ts] GROUP BY k2"
    assert list(planned(windowed).schema) == ["k2", "window_start", "window_end", "n"]
    own = f"SELECT R.k, sum(R.v) [TUMBLING 1 MINUTE] FROM L JOIN R ON src = dst AND {BAND} GROUP BY R.k"
    assert list(planned(own).schema) == ["k", "window_start", "window_end", "sum_v"]


def test_a_stream_joins_itself_and_the_columns_of_one_side_can_be_starred():
    query = "SELECT a.*, b.src AS other FROM L AS a JOIN L AS b ON a.k = b.k AND a.ts = b.ts"
    built = wr.sql(query, **tables())
    assert list(built.schema) == ["ts", "k", "src", "x", "other"]
    assert list(built.sources) == ["L"]


def test_the_same_join_in_python():
    left, right = (stream for stream in (wr.sql("SELECT * FROM L", **tables()), wr.sql("SELECT * FROM R", **tables())))
    join = left.join(right, on="k", within=("-5 seconds", "10 seconds")).node
    same = join_of(f"SELECT L.k FROM L JOIN R ON L.k = R.k AND {BAND}")
    assert (join.left, join.right, keys(join), join.window.low, join.window.high) == (
        same.left,
        same.right,
        keys(same),
        same.window.low,
        same.window.high,
    )


def pairs(left, right, low, high):
    return [(a, b) for a in left for b in right if a["k"] == b["k"] and low <= b["ts"] - a["ts"] <= high]


def test_results_are_the_pairs_of_the_definition():
    chance = random.Random(5)
    left = [{"ts": chance.randrange(60), "k": chance.randrange(3), "src": chance.choice("ab")} for _ in range(40)]
    right = [{"ts": chance.randrange(60), "k": chance.randrange(3), "v": chance.randrange(9)} for _ in range(40)]
    streams = {"L": wr.stream(left, "ts"), "R": wr.stream(right, "ts")}

    def found(query):
        return sorted(wr.sql(query, **streams).collect().rows())

    band = "SELECT L.k, L.ts AS lts, R.ts AS rts FROM L JOIN R ON L.k = R.k AND R.ts BETWEEN L.ts - 5 AND L.ts + 10"
    near = pairs(left, right, -5, 10)
    assert found(band) == sorted((a["k"], a["ts"], b["ts"]) for a, b in near)
    both = [(a["k"], a["ts"], b["ts"]) for a, b in near if b["v"] > 1 and a["ts"] < b["v"] * 10]
    assert found(f"{band} WHERE v > 1 AND L.ts < v * 10") == sorted(both)
    windows = "SELECT src, R.ts FROM L [RANGE 2, WA ts], R [RANGE 20, WA ts] WHERE L.k = R.k"
    held = [(a["src"], b["ts"]) for a, b in pairs(left, right, -19, 1)]
    assert found(windows) == sorted(held)
    counted = f"SELECT src, count(*) AS n FROM ({windows}) AS j [TUMBLING 20, WA ts] GROUP BY src"
    groups = Counter((src, ts // 20 * 20) for src, ts in held)
    assert found(counted) == sorted((src, at, at + 20, n) for (src, at), n in groups.items())
    itself = "SELECT a.ts, b.ts AS then FROM L AS a JOIN L AS b ON a.k = b.k AND b.ts > a.ts AND b.ts <= a.ts + 3"
    assert found(itself) == sorted((a["ts"], b["ts"]) for a, b in pairs(left, left, 1, 3))


def test_what_follows_a_join_may_name_both_tables():
    rows = [{"ts": t, "k": t % 2} for t in range(6)]
    streams = {"L": wr.stream(rows, "ts"), "R": wr.stream(rows, "ts")}
    joined = "FROM L JOIN R ON L.k = R.k AND R.ts BETWEEN L.ts AND L.ts + 2"

    def rows_of(query):
        return wr.sql(query, **streams).collect().rows()

    assert rows_of(f"SELECT L.ts, R.ts AS r {joined} ORDER BY L.ts, R.ts DESC")[:3] == [(0, 2), (0, 0), (1, 3)]
    grouped = f"SELECT R.k, max(R.ts) AS last [TUMBLING 10] {joined} GROUP BY R.k HAVING count(L.ts) > 1 ORDER BY R.k"
    assert rows_of(f"{grouped} LIMIT 1") == [(0, 0, 10, 4)]
    again = f"SELECT j.ts, R.ts AS r FROM (SELECT L.ts, L.k {joined}) AS j JOIN R ON j.k = R.k AND R.ts = j.ts"
    assert sorted(rows_of(again)) == [(0, 0), (0, 0), (1, 1), (1, 1), (2, 2), (2, 2), (3, 3), (3, 3), (4, 4), (5, 5)]


@pytest.mark.parametrize(
    ("query", "message", "underlined"),
    [
        (f"SELECT k FROM L JOIN R ON L.k = R.k AND {BAND}", "column 'k' is ambiguous: write L.k or R.k", "k"),
        (f"SELECT L.k FROM L JOIN R ON k = R.k AND {BAND}", "ambiguous: write L.k or R.k", "k"),
        (
            f"SELECT L.no FROM L JOIN R ON L.k = R.k AND {BAND}",
            "table L has no column 'no'; available: k, src,",
            "L.no",
        ),
        (f"SELECT no FROM L JOIN R ON L.k = R.k AND {BAND}", "unknown column 'no'", "no"),
        ("SELECT L.k FROM L JOIN R ON L.k = no", "unknown column 'no'; available: L.k, L.ts, R.k, R.ts, dst", "no"),
        ("SELECT z.k FROM L JOIN R ON L.k = R.k", "unknown table 'z' in z.k; available: L, R", "z"),
        ("SELECT L.k FROM L JOIN L ON L.k = L.k", "both tables are called L: give one an alias", "L"),
        (f"SELECT L.k, R.k FROM L JOIN R ON L.k = R.k AND {BAND}", "given twice: k", "R.k"),
        (f"SELECT * FROM L JOIN R ON L.k = R.k AND {BAND}", "both tables have columns k, ts", "*"),
        ("SELECT L.k FROM L JOIN R ON L.k = R.k", "must bound how far apart the times are", "R ON L.k = R.k"),
        ("SELECT L.k FROM L, R WHERE L.k = R.k AND R.ts > L.ts", "must bound the times on both sides", "R"),
        (f"SELECT L.k FROM L JOIN R ON L.src = R.v AND {BAND}", "cannot be equal: cast one", "R.v"),
        ("SELECT L.k FROM L NATURAL JOIN R", "not supported: NATURAL JOIN", "R"),
        ("SELECT L.k FROM L RIGHT SEMI JOIN R ON L.k = R.k", "not supported: RIGHT SEMI JOIN", "R ON L.k = R.k"),
        ("SELECT L.k FROM L JOIN R USING (k)", "must bound how far apart the times are", "R USING (k"),
        (f"SELECT L.k FROM L, R, L AS z WHERE {BAND}", "add z.ts BETWEEN L.ts - INTERVAL", "L AS z"),
        ("SELECT L.k FROM L JOIN R [RANGE 1 MINUTE] ON L.k = R.k", "a window after both tables, or", "RANGE 1 MINUTE"),
        ("SELECT L.k FROM L [RANGE 1 MINUTE, SLIDE 2 MINUTES], R [RANGE 1 MINUTE]", "SLIDE", "2 MINUTES"),
        (
            "SELECT L.k FROM L JOIN R ON L.k = R.k AND R.ts BETWEEN L.ts AND L.ts + INTERVAL 1 MONTH",
            "months and years have no fixed length",
            "INTERVAL 1 MONTH",
        ),
    ],
)
def test_what_is_ambiguous_or_not_supported_is_underlined(query, message, underlined):
    with pytest.raises(wr.QueryError) as refused:
        planned(query)
    first, _, line = str(refused.value).partition("\n")
    assert message in first
    text, carets = line.split("\n")
    found = text[len(carets) - len(carets.lstrip()) :][: carets.count("^")]
    assert underlined in found
    assert len(found) <= len(underlined) + 2  # brackets


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on": "k"}, "must bound how far apart times are"),
        ({"on": "k", "within": "5 seconds"}, "must be two lengths"),
        ({"on": "k", "within": ("x", "5 seconds")}, "is not a length"),
        ({"on": "k", "within": ("1 second", "-1 second")}, "can have no pairs"),
        ({"left_on": "k", "within": (0, 0)}, "the same number of keys, not 1 and 0"),
        ({"on": "dst", "within": (0, 0)}, "unknown column 'dst'"),
        ({"left_on": "src", "right_on": "v", "within": (0, 0)}, "cannot be equal"),
    ],
)
def test_a_join_in_python_that_cannot_be_is_refused(options, message):
    left, right = tables().values()
    with pytest.raises(wr.QueryError, match=message):
        left.join(right, **options)
