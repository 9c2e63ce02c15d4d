"""SELECT with a window: keys, aggregates and expressions over both, their names and their order."""

import polars as pl
import pytest

import windrow as wr
from windrow.errors import QueryError
from windrow.logical.nodes import WindowAggregate

ROWS = [{"t": t, "k": k, "x": x} for t, k, x in ((1, "a", 5), (2, "b", 7), (3, "a", 1), (12, "b", 2), (13, None, 9))]


def s(**options):
    return wr.stream(ROWS, "t", name="s", **options)


def rows(select, tail="", clause="[TUMBLING 10]"):
    return sorted(wr.sql(f"SELECT {select} FROM s {clause} {tail}", s=s()).collect().rows(), key=repr)


def columns(select, tail="", clause="[TUMBLING 10]"):
    return list(wr.sql(f"SELECT {select} FROM s {clause} {tail}", s=s()).schema)


def window(query):
    node = query.node
    while not isinstance(node, WindowAggregate):
        node = node.input
    return node


# -- keys --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("by", ["upper(k)", "u", "1", "UPPER(k)"])
def test_a_key_is_an_expression_a_name_or_a_position(by):
    expected = [("A", 0, 10, 2), ("B", 0, 10, 1), ("B", 10, 20, 1), (None, 10, 20, 1)]
    assert rows("upper(k) AS u, count(*) AS n", f"GROUP BY {by}") == expected


def test_a_column_comes_before_an_alias_of_the_same_name():
    found = window(wr.sql("SELECT x AS k, count(*) AS n FROM s [TUMBLING 10] GROUP BY x", s=s()))
    assert [tree.name for _, tree in found.keys] == ["x"]


def test_a_key_need_not_be_selected_and_an_unnamed_one_gets_a_name():
    assert columns("count(*) AS n", "GROUP BY k") == ["window_start", "window_end", "n"]
    assert rows("count(*) AS n", "GROUP BY k") == [(0, 10, 1), (0, 10, 2), (10, 20, 1), (10, 20, 1)]
    made = wr.sql("SELECT count(*) AS n FROM s [TUMBLING 10] GROUP BY x % 2, k", s=s())
    assert [name for name, _ in window(made).keys] == ["key0", "k"]


@pytest.mark.parametrize(
    ("select", "tail", "message"),
    [
        ("count(*) AS n", "GROUP BY n", "keys cannot contain aggregates"),
        ("count(*) AS n", "GROUP BY 1", "keys cannot contain aggregates"),
        ("k, count(*) AS n", "GROUP BY 3", "3"),
        ("k, count(*) AS n", "GROUP BY 0", "0"),
        ("k, count(*) AS n", "GROUP BY z", "unknown column 'z'"),
        ("x, count(*) AS n", "GROUP BY k", "'x' is neither grouped nor aggregated"),
        ("x + 1 AS y, count(*) AS n", "GROUP BY k", "'x' is neither grouped nor aggregated"),
        ("z, count(*) AS n", "GROUP BY k", "unknown column 'z'"),
        ("*", "GROUP BY k", r"SELECT \* is not supported over groups"),
        ("k, count(*) AS k", "GROUP BY k", "given twice: k"),
        ("nope(x) AS y", "GROUP BY k", "unknown function 'nope'"),
        ("count(*) AS n", "LIMIT 3", "needs an ORDER BY"),
        ("count(*) AS n", "ORDER BY n LIMIT 0", "positive"),
        ("count(*) AS n", "ORDER BY n LIMIT x", "LIMIT must be a number"),
        ("k", "GROUP BY k", "at least one aggregate"),
    ],
)
def test_what_does_not_fit_is_refused(select, tail, message):
    with pytest.raises(QueryError, match=message):
        rows(select, tail)


# -- aggregates and expressions over them ------------------------------------------------------------------------------
def test_expressions_are_over_keys_aggregates_and_bounds():
    found = rows("upper(k) AS u, sum(x) / count(*) AS mean, window_end - window_start AS len", "GROUP BY k")
    assert found == [(0, 10, "A", 3.0, 10), (0, 10, "B", 7.0, 10), (10, 20, "B", 2.0, 10), (10, 20, None, 9.0, 10)]


def test_an_aggregate_that_is_asked_for_twice_is_computed_once():
    made = wr.sql("SELECT sum(x) AS a, sum(x) + 1 AS b, count(*) AS n FROM s [TUMBLING 10] HAVING sum(x) > 0", s=s())
    assert [call.function for call in window(made).calls] == ["sum", "count"]


def test_having_names_aliases_aggregates_and_keys():
    for condition in ("n > 1", "count(*) > 1", "n > 1 AND k = 'a'", "n * 2 > 2"):
        assert rows("k, count(*) AS n", f"GROUP BY k HAVING {condition}") == [("a", 0, 10, 2)]


def test_filter_is_of_one_aggregate():
    assert rows("count(*) FILTER (WHERE x > 5) AS big, count(*) AS n") == [(0, 10, 1, 3), (10, 20, 1, 2)]


def test_the_bounds_come_after_the_keys_unless_they_are_listed():
    assert columns("count(*) AS n, k", "GROUP BY k") == ["k", "window_start", "window_end", "n"]
    assert columns("count(*) AS n, window_end, k", "GROUP BY k") == ["n", "window_end", "k"]
    assert columns("count(*) AS n, window_time", "") == ["n", "window_time"]


def test_results_in_versions_always_say_which():
    assert columns("count(*) AS n", "EMIT EARLY EVERY 2")[-2:] == ["version", "status"]
    assert columns("status, count(*) AS n", "EMIT EARLY EVERY 2")[-1:] == ["version"]
    with pytest.raises(QueryError, match="status"):
        columns("status, count(*) AS n")


# -- order and DISTINCT ------------------------------------------------------------------------------------------------
def test_a_limit_is_of_each_window():
    assert rows("k, sum(x) AS total", "GROUP BY k ORDER BY total DESC LIMIT 1") == [("b", 0, 10, 7), (None, 10, 20, 9)]
    assert rows("k, sum(x) AS total", "GROUP BY k ORDER BY 2 LIMIT 1") == [("a", 0, 10, 6), ("b", 10, 20, 2)]


def test_results_are_ordered_by_the_bounds_of_their_windows():
    for by in ("window_end", "window_start", "window_time"):
        made = wr.sql(f"SELECT k, count(*) AS n FROM s [TUMBLING 10] GROUP BY k ORDER BY {by}, n DESC, k", s=s())
        assert [row[0] for row in made.collect().rows()] == ["a", "b", None, "b"]
    with pytest.raises(QueryError, match="ordered by what it progresses on"):
        rows("k, count(*) AS n", "GROUP BY k ORDER BY n")


def test_distinct_without_aggregates_gives_the_different_rows_of_each_window():
    assert rows("DISTINCT k") == [("a", 0, 10), ("b", 0, 10), ("b", 10, 20), (None, 10, 20)]


def test_distinct_with_aggregates_is_of_the_results():
    assert rows("DISTINCT count(*) AS n", "GROUP BY k") == [(0, 10, 1), (0, 10, 2), (10, 20, 1)]


# -- without a clause --------------------------------------------------------------------------------------------------
def test_groups_by_the_progressing_attribute_are_windows_of_one_instant():
    twice = pl.DataFrame({"t": [1, 1, 2], "x": [3, 4, 5]})
    made = wr.sql("SELECT t, sum(x) AS total FROM s GROUP BY t HAVING t < 2", s=wr.stream(twice, "t", name="s"))
    assert made.collect().rows() == [(1, 7)]
    with pytest.raises(QueryError, match="EMIT EARLY needs a window clause"):
        rows("t, count(*) AS n", "GROUP BY t EMIT EARLY EVERY 2", clause="")
