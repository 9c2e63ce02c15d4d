"""Kinds of joins in SQL: ON decides who is a partner, WHERE is over the results. Issue 13."""

from datetime import date

import pytest
from join_queries import BAND, SECOND, check_refused, filters, join_of, joins_of, keys, planned, where

import windrow as wr
from windrow.windows.pairing import Within


@pytest.mark.parametrize(
    ("words", "how"),
    [
        ("JOIN", "inner"),
        ("INNER JOIN", "inner"),
        ("CROSS JOIN", "inner"),
        ("LEFT JOIN", "left"),
        ("LEFT OUTER JOIN", "left"),
        ("RIGHT JOIN", "right"),
        ("RIGHT OUTER JOIN", "right"),
        ("FULL JOIN", "full"),
        ("FULL OUTER JOIN", "full"),
        ("SEMI JOIN", "semi"),
        ("LEFT SEMI JOIN", "semi"),
        ("ANTI JOIN", "anti"),
        ("LEFT ANTI JOIN", "anti"),
    ],
)
def test_the_words_of_a_join_are_its_kind(words, how):
    join = join_of(f"SELECT x FROM L {words} R ON L.k = R.k AND {BAND}")
    assert (join.how, keys(join), join.window) == (how, [("k", "k")], Within(-5 * SECOND, 10 * SECOND))


@pytest.mark.parametrize(
    ("kind", "before", "rest"),
    [
        ("", ["x > 3", "v > 4"], "x < v"),
        ("LEFT", [None, "v > 4"], "x > 3 AND x < v"),
        ("RIGHT", ["x > 3", None], "v > 4 AND x < v"),
        ("FULL", [None, None], "x > 3 AND v > 4 AND x < v"),
        ("SEMI", ["x > 3", "v > 4"], "x < v"),
        ("ANTI", [None, "v > 4"], "x > 3 AND x < v"),
    ],
)
def test_a_condition_of_on_is_checked_first_only_where_rows_need_a_partner_to_come_out(kind, before, rest):
    join = join_of(f"SELECT x FROM L {kind} JOIN R ON L.k = R.k AND x > 3 AND v > 4 AND x < v AND {BAND}")
    assert (filters(join), where(join)) == (before, rest)


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL", "SEMI", "ANTI"])
def test_where_is_over_the_results_of_all_but_inner_joins(kind):
    node = planned(f"SELECT x FROM L {kind} JOIN R ON L.k = R.k AND {BAND} WHERE x > 3").input
    assert (type(node).__name__, node.predicate.sql("spark")) == ("Filter", "x > 3")
    assert filters(node.input) == [None, None]
    inner = join_of(f"SELECT x FROM L JOIN R ON L.k = R.k AND {BAND} WHERE x > 3")
    assert filters(inner) == ["x > 3", None]


def test_a_join_needs_no_equality():
    for query in (f"L JOIN R ON {BAND}", f"L, R WHERE {BAND}", f"L CROSS JOIN R WHERE {BAND}"):
        join = join_of(f"SELECT x, v FROM {query}")
        assert (keys(join), join.window.high, join.where) == ([], 10 * SECOND, None)
    assert where(join_of(f"SELECT x, v FROM L JOIN R ON x * 2 < v + 1 AND {BAND}")) == "x * 2 < v + 1"


def test_a_side_can_be_tested_alone_or_not_at_all():
    assert where(join_of(f"SELECT x FROM L JOIN R ON TRUE AND {BAND} WHERE TRUE")) is None
    assert where(join_of(f"SELECT x FROM L LEFT JOIN R ON 1 = 1 AND {BAND}")) == "1 = 1"


def test_differences_of_times_are_bands():
    for band in (
        "R.ts - L.ts BETWEEN INTERVAL -5 SECONDS AND INTERVAL 10 SECONDS",
        "L.ts - R.ts <= INTERVAL 5 SECONDS AND R.ts - L.ts - INTERVAL 4 SECONDS <= INTERVAL 6 SECONDS",
        "INTERVAL -10 SECONDS <= L.ts - R.ts AND -(R.ts - L.ts) <= INTERVAL 5 SECONDS",
    ):
        join = join_of(f"SELECT x FROM L LEFT JOIN R ON L.k = R.k AND {band}")
        assert (join.window, join.where) == (Within(-5 * SECOND, 10 * SECOND), None)


def test_days_are_added_to_dates():
    streams = {name: wr.stream([{"d": date(2024, 1, 1)}], progress="d") for name in ("A", "B")}
    node = wr.sql("SELECT A.d FROM A JOIN B ON B.d BETWEEN A.d - 2 AND A.d + INTERVAL 3 DAYS", **streams).node
    assert node.input.window == Within(-2, 3)


def test_a_hint_names_the_physical_join():
    joined = f"FROM L JOIN R ON L.k = R.k AND {BAND}"
    for name in ("oa", "iop", "opob", "opib"):
        assert join_of(f"SELECT /*+ USING({name}) */ L.k {joined}").using == name
    assert join_of(f"SELECT L.k {joined}").using is None
    counted = planned(f"SELECT /*+ USING(wid) */ count(*) AS n [TUMBLING 1 MINUTE, WA L.ts] {joined}")
    assert (counted.using, counted.input.using) == ("wid", None)
    both = joins_of(f"SELECT /*+ USING(iop) */ w {joined} JOIN C ON C.ts = R.ts")
    assert [join.using for join in both] == ["iop", "iop"]


@pytest.mark.parametrize(
    ("query", "message", "underlined"),
    [
        ("SELECT v FROM L SEMI JOIN R ON {B}", "only the columns of the left side come out of a SEMI JOIN", "v"),
        ("SELECT R.ts FROM L ANTI JOIN R ON {B}", "only the columns of the left side come out of an ANTI", "R.ts"),
        ("SELECT ts FROM L SEMI JOIN R ON {B} WHERE dst = 'a'", "dst of R cannot be named here", "dst"),
        ("SELECT L.ts FROM L LEFT JOIN R ON L.k = R.k WHERE {B}", "write it in ON, or [RANGE ..]", "{B}"),
        ("SELECT L.ts FROM L FULL JOIN R ON L.k = R.k WHERE R.ts = L.ts", "does not bound", "R.ts = L.ts"),
        ("SELECT x FROM L SEMI JOIN R ON L.k = R.k", "must bound how far apart the times are", "R ON L.k = R.k"),
        ("SELECT x FROM L CROSS JOIN R", "must bound how far apart the times are", "R"),
        ("SELECT x FROM L LEFT JOIN R ON R.ts > L.ts", "must bound the times on both sides", "R ON R.ts > L.ts"),
        ("SELECT x FROM L JOIN R ON R.ts > L.ts AND R.ts < L.ts", "can have no pairs", "R.ts > L.ts AND R.ts < L.ts"),
        ("SELECT x FROM L LEFT JOIN R ON {B} AND x", "a condition must be true or false", "x"),
        ("SELECT x FROM L LEFT JOIN R ON {B} AND v", "a condition must be true or false", "v"),
        ("SELECT x FROM L LEFT JOIN R ON {B} AND max(x) > 1", "ON cannot contain aggregates", "max(x)"),
        ("SELECT x FROM L JOIN R ON L.src = R.v AND {B}", "cannot be equal: cast one", "R.v"),
        ("SELECT x FROM L JOIN R ON R.ts < L.ts + 5 AND R.ts > L.ts", "needs a unit of time", "5"),
        (
            "SELECT x FROM L JOIN N ON L.k = N.k",
            "the times of a join must be of one type: L.ts is Date",
            "N ON L.k = N.k",
        ),
        ("SELECT x FROM L FULL SEMI JOIN R ON {B}", "not supported: FULL SEMI JOIN; INNER, LEFT, RIGHT", "R ON {B}"),
        ("SELECT x FROM L ASOF JOIN R ON {B}", "an ASOF JOIN needs MATCH_CONDITION", "ASOF"),
        ("SELECT x FROM L NATURAL LEFT JOIN R", "it would compare every column", "R"),
        (
            "SELECT /*+ USING(wid) */ x FROM L JOIN R ON {B}",
            "no join is called wid; available: adaptive, atr, ctr, filter-order, hhj, hhj-lazy, hnj, hnj-lazy, iop, multi",
            "USING(wid)",
        ),
        ("SELECT /*+ MEMORY('1 MB') */ x FROM L JOIN R ON {B}", "MEMORY is about windows", "MEMORY('1 MB')"),
    ],
)
def test_what_cannot_be_is_underlined(query, message, underlined):
    check_refused(query.replace("{B}", BAND), message, underlined.replace("{B}", BAND))
