"""The picture of a query: marks and bars at the right columns."""

from datetime import datetime

import polars as pl
import pytest

import windrow as wr
from windrow.testing import timeline

ROWS = [{"t": t, "k": "ab"[t % 2], "n": i} for i, t in enumerate([1, 4, 7, 7, 12])]
STREAM = wr.stream(ROWS, progress="t", row_num="n")


def test_marks_and_bars_stand_at_their_values():
    assert timeline(STREAM.window(range=10, slide=5).agg(n=wr.count())).splitlines() == [
        "          -5   0    5    10   15   20",
        "rows            x  x  2    x",
        "[-5, 5)   [=========)",
        "[0, 10)        [=========)",
        "[5, 15)             [=========)",
        "[10, 20)                 [=========)",
    ]


def test_a_group_has_a_line_of_its_own():
    text = timeline(STREAM.session(4).group_by("k").agg(n=wr.count()))
    assert [line.split("  ")[0] for line in text.splitlines()[1:]] == [
        "a",
        "a [4, 8)",
        "a [12, 16)",
        "b",
        "b [1, 5)",
        "b [7, 11)",
    ]


def test_windows_that_end_at_a_row_hold_it():
    assert "(2, 7]   " in timeline(STREAM.each_row(5).agg(n=wr.count()))


def test_landmark_windows_begin_with_the_stream():
    assert timeline(STREAM.landmark(10).agg(n=wr.count())).splitlines()[2:] == [
        ".., 10)  <========)",
        ".., 20)  <==================)",
    ]


def test_windows_of_rows_count_rows():
    text = timeline(STREAM.rows(2, partition_by="k").agg(n=wr.count()))
    assert text.splitlines()[1:] == [
        "a         xx",
        "a [0, 2)  [=)",
        "b         xxx",
        "b [0, 2)  [=)",
        "b [2, 4)    [=)",
    ]


def test_only_the_last_versions_are_drawn():
    text = timeline(STREAM.window(range=10).emit_early(1).agg(n=wr.count()))
    assert text.count("[0, 10)") == 1


def test_long_lines_are_drawn_to_scale():
    far = wr.stream([{"t": 0}, {"t": 10**6}], progress="t").window(range=10**5).agg(n=wr.count())
    text = timeline(far)
    assert max(map(len, text.splitlines())) < 130
    assert text.count("x") == 2


def test_nothing_can_be_drawn():
    assert timeline(wr.stream(pl.DataFrame({"t": []}, schema={"t": pl.Int64}), "t").window(5).agg(n=wr.count()))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (STREAM, "with a window"),
        (wr.stream([{"t": datetime(2024, 1, 1)}], "t").window("1 hour").agg(n=wr.count()), "an integer"),
        (STREAM.window(5).agg(n=wr.count()).select("window_end", "n"), "bounds"),
    ],
)
def test_what_cannot_be_drawn_is_refused(query, message):
    with pytest.raises(wr.QueryError, match=message):
        timeline(query)
