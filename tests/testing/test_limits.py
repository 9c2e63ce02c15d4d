"""Large and odd inputs have right answers: many groups, long windows, one key, windows larger than the data."""

import polars as pl
import pytest

import windrow as wr


def test_a_million_groups():
    n = 1_000_000
    frame = pl.DataFrame({"t": pl.int_range(n, eager=True) % 20, "k": pl.int_range(n, eager=True)})
    found = wr.stream(frame, progress="t").window(10).group_by("k").agg(n=wr.count(), w=wr.max("t")).collect()
    assert found.height == n
    assert found["n"].sum() == n
    assert found.filter(pl.col("k") == 999_999)["window_end"].to_list() == [20]


@pytest.mark.parametrize("aggregate", [wr.count(), wr.last("x"), wr.median("x"), wr.approx_count_distinct("x")])
def test_a_hundred_thousand_windows_per_row(aggregate):
    rows = [{"t": 0, "x": 1}, {"t": 50_000, "x": 5}, {"t": 150_000, "x": 9}]
    found = wr.stream(rows, progress="t").window(100_000, 1).agg(r=aggregate).collect()
    assert found.height == 250_000
    middle = found.filter(pl.col("window_end") == 60_000)["r"][0]
    assert middle == {"count": 2, "last": 5, "median": 3.0, "approx_count_distinct": 2}[aggregate.function]


def test_one_key_with_all_rows_and_a_window_larger_than_the_data():
    frame = pl.DataFrame({"t": pl.int_range(200_000, eager=True) // 1000, "k": ["only"] * 200_000})
    s = wr.stream(frame, progress="t")
    found = s.window(10**9, 10**9).group_by("k").agg(n=wr.count(), d=wr.count_distinct("t")).collect()
    assert found.rows() == [("only", 0, 10**9, 200_000, 200)]


def test_a_row_at_the_exact_boundary_belongs_to_the_window_that_begins_there():
    s = wr.stream([{"t": 0}, {"t": 10}, {"t": 20}], progress="t")
    assert s.window(10).agg(n=wr.count()).collect().rows() == [(0, 10, 1), (10, 20, 1), (20, 30, 1)]
    assert s.window(20, 10).agg(n=wr.count()).collect()["n"].to_list() == [1, 2, 2, 1]


def test_null_and_nan_groups_of_every_window_type():
    rows = [
        {"t": t, "n": t, "k": k, "g": g}
        for t, (k, g) in enumerate([(None, 1.5), ("a", None), (None, float("nan"))] * 3)
    ]
    s = wr.stream(rows, progress="t", row_num="n")
    shapes = [s.window(100), s.landmark(100), s.rows(100), s.rows(100, partition_by=["k", "g"]), s.session(100)]
    for shape in shapes:
        groups = () if shape.parts else ("k", "g")
        found = (shape.group_by(*groups) if groups else shape).agg(n=wr.count()).collect()
        assert sorted(map(repr, found.select("k", "g", "n").rows())) == [
            "('a', None, 3)",
            "(None, 1.5, 3)",
            "(None, nan, 3)",
        ]


def test_integer_sums_beyond_64_bits_are_errors_in_every_window_type():
    rows = [{"t": t, "n": t, "k": 1, "x": 2**62} for t in range(4)]
    s = wr.stream(rows, progress="t", row_num="n")
    for shape in (s.window(4), s.landmark(4), s.rows(4), s.rows(4, partition_by="k"), s.session(4), s.each_row(4)):
        with pytest.raises(wr.ResultError, match="does not fit into 64 bits"):
            shape.agg(total=wr.sum("x")).collect()
