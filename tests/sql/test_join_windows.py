"""Windows after the tables of a join: sliding, tumbling, of rows, and what happens to late rows. Issue 13."""

import pytest
from join_queries import BAND, MINUTE, check_refused, join_of, keys, planned, where

import windrow as wr
from windrow.windows.pairing import SameWindow, Within


@pytest.mark.parametrize(
    "tables",
    [
        "L, R [RANGE TUMBLING 5 MINUTES, WA ts] WHERE L.src = R.dst",
        "L, R [TUMBLING 5 MINUTES, WA ts] WHERE L.src = R.dst",
        "L, R [TUMBLING 5 MINUTES] WHERE L.src = R.dst",
        "L [TUMBLING 5 MINUTES, WA L.ts], R [RANGE TUMBLING 300 SECONDS, WA R.ts] WHERE L.src = R.dst",
        "L JOIN R [TUMBLING 5 MINUTES, WA ts] ON L.src = R.dst",
    ],
)
def test_both_tables_are_in_the_same_tumbling_window(tables):
    join = join_of(f"SELECT L.k FROM {tables}")
    assert (join.window, keys(join), join.where) == (SameWindow(5 * MINUTE), [("src", "dst")], None)


def test_a_tumbling_window_has_an_origin_and_a_band_beside_it_stays_a_condition():
    join = join_of(f"SELECT L.k FROM L LEFT JOIN R [TUMBLING 5 MINUTES, ORIGIN '1970-01-01 00:01:00'] ON {BAND}")
    assert join.window == SameWindow(5 * MINUTE, MINUTE)
    assert where(join) == BAND.replace("5 S", "'5' S").replace("10 S", "'10' S")


def test_windows_of_outer_joins_decide_who_is_a_partner():
    for how in ("LEFT", "RIGHT", "FULL", "SEMI", "ANTI"):
        join = join_of(f"SELECT x FROM L [RANGE 3 MINUTES] {how} JOIN R [RANGE 2 MINUTES] ON L.k = R.k")
        assert (join.how, join.window) == (how.lower(), Within(1 - 2 * MINUTE, 3 * MINUTE - 1))


def test_a_band_narrows_the_windows():
    join = join_of("SELECT x FROM L [RANGE 3 MINUTES], R [RANGE 2 MINUTES] WHERE R.ts >= L.ts")
    assert (join.window, join.where) == (Within(0, 3 * MINUTE - 1), None)
    assert join_of("SELECT x FROM L JOIN R ON R.ts = L.ts").window == Within(0, 0)


def test_windows_of_rows_count_back_in_one_numbering():
    query = "SELECT a.t, b.t AS u FROM N AS a [RANGE 3 ROWS, WA row_num] JOIN N AS b [RANGE 2 ROWS{}] ON a.k = b.k"
    for wa in ("", ", WA b.row_num", ", WA n"):
        join = join_of(query.format(wa) + " AND b.t > a.t")
        assert (join.window, join.by_rows, keys(join)) == (Within(-1, 2), True, [("k", "k")])
        assert where(join) == "b.t > a.t"


def test_rows_are_joined_by_their_numbers():
    rows = [{"n": i, "t": i % 7, "k": i % 3 % 2} for i in range(20)]
    query = "SELECT a.n, b.n AS m FROM N AS a [RANGE 5 ROWS] JOIN N AS b [RANGE 2 ROWS] ON a.k = b.k AND a.t < b.t"
    found = wr.sql(query, N=wr.stream(rows, "t", slack=9, row_num="n")).collect().rows()
    near = [(a, b) for a in rows for b in rows if a["k"] == b["k"] and -2 < b["n"] - a["n"] < 5 and a["t"] < b["t"]]
    assert sorted(found) == sorted((a["n"], b["n"]) for a, b in near)


def test_each_table_has_its_own_policy_for_late_rows():
    def late(tables):
        return join_of(f"SELECT x FROM {tables}").late

    assert late("L [RANGE 1 MINUTE, LATE SIDE], R [RANGE 1 MINUTE, LATE ERROR]") == ("side", "error")
    assert late("L [RANGE 1 MINUTE], R [RANGE 1 MINUTE, LATE SIDE]") == ("drop", "side")
    assert late(f"L [LATE SIDE] JOIN R ON {BAND}") == ("side", "drop")
    assert late("L, R [TUMBLING 1 MINUTE, LATE SIDE]") == ("side", "side")
    assert late("L [LATE ERROR], R [TUMBLING 1 MINUTE, LATE SIDE]") == ("error", "side")


def test_the_window_of_an_aggregation_follows_the_select_list_or_parentheses():
    counted = planned("SELECT count(*) AS n [RANGE 1 MINUTE, WA R.ts] FROM L [RANGE 5 SECONDS], R [RANGE 5 SECONDS]")
    assert (counted.window.range, counted.input.on) == (MINUTE, "R.ts")
    joined = f"(L JOIN R ON {BAND}) [TUMBLING 1 MINUTE, WA R.ts]"
    counted = planned(f"SELECT L.k, count(*) AS n FROM {joined} GROUP BY L.k")
    assert (counted.window.range, counted.input.on) == (MINUTE, "R.ts")


def test_a_tumbling_aggregation_can_be_written_with_range_too():
    assert planned("SELECT count(*) AS n FROM L [RANGE TUMBLING 1 MINUTE, WA ts]").window.slide == MINUTE


@pytest.mark.parametrize(
    ("tables", "message", "underlined"),
    [
        ("L [TUMBLING 5 MINUTES], R [TUMBLING 6 MINUTES]", "must be the same after each table", "TUMBLING 6 MINUTES"),
        ("L [TUMBLING 5 MINUTES], R", "or TUMBLING after the last one", "TUMBLING 5 MINUTES"),
        ("L [TUMBLING 5 MINUTES], R [RANGE 5 MINUTES]", "of one kind: TUMBLING, or RANGE", "RANGE 5 MINUTES"),
        ("L, R [RANGE 5 MINUTES]", "a window after both tables, or after none", "RANGE 5 MINUTES"),
        ("L, R [RANGE 5 MINUTES, TUMBLING 5 MINUTES]", "with RANGE or with TUMBLING, not both", "5 MINUTES"),
        ("L [RANGE 5 MINUTES, ORIGIN '2024-01-01'], R [RANGE 5 MINUTES]", "ORIGIN is where", "'2024-01-01'"),
        ("L [RANGE 0 SECONDS], R [RANGE 5 MINUTES]", "RANGE must be positive", "0 SECONDS"),
        ("L [RANGE 5 MINUTES], R [RANGE -1 MINUTES]", "RANGE must be positive", "-1 MINUTES"),
        ("L, R [TUMBLING 0 SECONDS]", "TUMBLING must be positive", "0 SECONDS"),
        ("L [RANGE ALL], R [RANGE 5 MINUTES]", "would keep all rows forever", "ALL"),
        ("L [RANGE 5 MINUTES, WA x], R [RANGE 5 MINUTES]", "a window needs a timestamp, date or integer", "x"),
        ("L [RANGE 5 MINUTES, WA R.ts], R [RANGE 5 MINUTES]", "unknown table 'R' in R.ts; available: L", "R"),
        ("L, N [TUMBLING 5 MINUTES, WA t]", "TUMBLING '5 MINUTES'", "5 MINUTES"),
        ("L, R [TUMBLING 5 MINUTES, LATE REVISE FOR 1 MINUTE]", "cannot revise its results", "REVISE"),
        ("L [RANGE 5 MINUTES, SLIDE 1 MINUTE], R [RANGE 5 MINUTES]", "not supported in the window of a", "1 MINUTE"),
        ("L [RANGE 3 ROWS], R [RANGE 3 ROWS]", "these are rows of different streams", "R [RANGE 3 ROWS"),
        ("N [RANGE 3 ROWS, WA t], R [RANGE 3 ROWS]", "a join over ROWS is over row_num", "t"),
        (
            "N AS a [RANGE 3 ROWS], N AS b [RANGE 3]",
            "which only a join that is spread over nodes does",
            "N AS b [RANGE 3",
        ),
        ("L [RANGE 3 ROWS], R [TUMBLING 3 MINUTES]", "of one kind: RANGE n ROWS, or TUMBLING", "TUMBLING 3 MINUTES"),
        (
            "L, R WHERE R.ts BETWEEN L.ts + INTERVAL 5 SECONDS AND L.ts",
            "the join can have no pairs",
            "R.ts BETWEEN L.ts + INTERVAL 5 SECONDS AND L.ts",
        ),
        (f"(L JOIN R ON {BAND}) [RANGE 1 MINUTE], C [RANGE 1 MINUTE]", "a window of a join in parentheses", BAND),
    ],
)
def test_windows_that_cannot_be_are_underlined(tables, message, underlined):
    if underlined == BAND:
        underlined = tables.split("(")[1].split(",")[0]
    check_refused(f"SELECT 1 AS c FROM {tables}", message, underlined)
