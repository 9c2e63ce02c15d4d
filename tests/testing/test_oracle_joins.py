"""What the oracle says of joins, against results that were worked out by hand."""

import polars as pl
import pytest

import windrow as wr
from windrow.testing import oracle
from windrow.testing.oracle import bad_rows

LEFT = [{"a": 0, "k": 1}, {"a": 5, "k": 1}, {"a": 10, "k": 2}, {"a": 10, "k": None}]
RIGHT = [{"b": b, "j": j} for b, j in ((3, 1.0), (5, 1.0), (9, 1.0), (10, 2.0), (10, None))]


def joined(left=LEFT, right=RIGHT, **options):
    """Keys of two types of numbers."""
    sides = wr.stream(left, "a", name="l"), wr.stream(right, "b", name="r")
    keys = {} if options.pop("keyless", False) else {"left_on": "k", "right_on": "j"}
    return sides[0].join(sides[1], **keys, **options)


def rows(query):
    return sorted(oracle(query).rows(), key=str)


def test_a_band_has_all_pairs_whose_keys_are_equal_in_any_type_of_number():
    assert [(a, b) for a, _, b, _ in rows(joined(within=(0, 4)))] == [(0, 3), (10, 10), (5, 5), (5, 9)]
    assert [(a, b) for a, _, b, _ in rows(joined(within=(-2, 0)))] == [(10, 10), (5, 3), (5, 5)]
    assert [(a, b) for a, _, b, _ in rows(joined(within=(1, 4)))] == [(0, 3), (5, 9)]  # no window ids describe it
    assert [(a, b) for a, _, b, _ in rows(joined(within=(0, 4), where="b > 5"))] == [(10, 10), (5, 9)]


def test_outer_joins_have_rows_without_partner_and_null_is_never_a_partner():
    pairs = [(0, 1, 3, 1.0), (10, 2, 10, 2.0)]
    left, right = [(10, None, None, None), (5, 1, None, None)], [(None, None, 10, None), (None, None, 9, 1.0)]
    more = [(None, None, 5, 1.0)]
    found = {how: rows(joined(within=(0, 3), where="b <> 5", how=how)) for how in ("left", "right", "full")}
    assert found["left"] == sorted([*pairs, *left], key=str)
    assert found["right"] == sorted([*pairs, *right, *more], key=str)
    assert found["full"] == sorted([*pairs, *left, *right, *more], key=str)


def test_semi_and_anti_joins_have_each_left_row_once():
    twice = [*LEFT, LEFT[1]]
    assert rows(joined(twice, within=(0, 4), how="semi")) == [(0, 1), (10, 2), (5, 1), (5, 1)]
    assert rows(joined(twice, within=(0, 4), how="anti")) == [(10, None)]
    assert list(oracle(joined(within=(0, 4), how="anti")).columns) == ["a", "k"]


def test_tumbling_windows_have_an_origin():
    assert [(a, b) for a, _, b, _ in rows(joined(tumbling=5))] == [(0, 3), (10, 10), (5, 5), (5, 9)]
    assert [(a, b) for a, _, b, _ in rows(joined(tumbling=5, origin=4))] == [(0, 3), (10, 10), (5, 5)]


def test_without_keys_all_near_rows_are_partners():
    assert len(rows(joined(within=(0, 0), keyless=True))) == 1 + 4
    assert len(rows(joined(within=(-100, 100), keyless=True))) == 20


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_pair_for_which_the_condition_fails_is_bad_and_its_rows_are_no_partners(vectorized):
    def even(a, b):
        if vectorized:
            a, b = a.item(), b.item()
        if b == 9:
            raise ValueError("nine")
        found = None if b == 5 else (a + b) % 2 == 0
        return pl.Series([found], dtype=pl.Boolean) if vectorized else found

    query = joined(within=(0, 4), where=wr.udf(even, "BOOLEAN", "a", "b", vectorized=vectorized), how="left")
    found = [(0, 1, None, None), (10, 2, 10, 2.0), (10, None, None, None), (5, 1, None, None)]
    assert rows(query) == found
    ((reason, count),) = bad_rows(query).items()
    assert reason.endswith("even failed: ValueError: nine")
    assert count == 1


def test_row_numbers_are_the_times_of_a_join_over_rows():
    data = [{"t": t, "n": n, "k": k} for t, n, k in ((9, 0, 1), (3, 1, 1), (None, 2, 1), (7, 3, 1), (1, None, 1))]
    s = wr.stream(data, "t", row_num="n", name="s")
    query = s.join(s, on="k", within=("1 rows", "2 rows"))
    assert sorted((n, m) for _, n, _, _, m, _ in oracle(query).rows()) == [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
    assert dict(bad_rows(query)) == {"the row number n is NULL": 1}


@pytest.mark.parametrize(
    ("time", "windows"),
    [("a", 2), ("b", 5), ("greatest(a, b)", 5), ("least(a, b)", 2)],
)
def test_windows_without_rows_go_on_to_the_end_of_the_time_that_they_are_over(time, windows):
    """The left side ends at 25, the right one at 59."""
    query = joined([{"a": 5, "k": 1}, {"a": 25, "k": 7}], [{"b": 5, "j": 1.0}, {"b": 59, "j": 8.0}], within=(0, 4))
    timed = query.select(u=time)
    assert oracle(timed.window(10, on="u").with_empty().agg(n=wr.count())).height == windows
