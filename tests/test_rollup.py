"""Windows over windows: results progress on the last instant of their window, so rolling up in steps is exact."""

from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.testing import compare, replay

PROGRESS = {
    "integer": lambda at: at,
    "date": lambda at: date(2024, 1, 1) + timedelta(days=at),
    "timestamp": lambda at: datetime(2024, 1, 1, tzinfo=UTC) + timedelta(microseconds=at),
}
UNIT = {"integer": "", "date": " days", "timestamp": " microseconds"}


def rows_of(kind, times):
    dtype = {"integer": pl.Int64, "date": pl.Date, "timestamp": pl.Datetime("us", "UTC")}[kind]
    at = pl.Series("t", [PROGRESS[kind](t) for t in times], dtype)
    return pl.DataFrame([at, pl.Series("k", [t % 2 for t in times]), pl.Series("n", range(len(times)), pl.Int64)])


def length(kind, value):
    return f"{value}{UNIT[kind]}" if kind != "integer" else value


def rolled(stream, kind, steps, last):
    """The count of rows in windows of ``last`` = (range, slide), over windows of each of ``steps``."""
    found, amount = stream, wr.count()
    for step in steps:
        found = found.window(length(kind, step)).group_by("k").agg(n=amount)
        amount = wr.sum("n")
    return found.window(*(length(kind, x) for x in last)).group_by("k").agg(n=amount)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(sorted(PROGRESS)),
    times=st.lists(st.integers(-40, 60), max_size=30),
    factors=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    outer=st.tuples(st.integers(1, 4), st.integers(1, 4)),
)
def test_rolling_up_in_any_number_of_steps_equals_doing_it_at_once(kind, times, factors, outer):
    steps = []
    for factor in factors:
        steps.append(factor * (steps[-1] if steps else 1))
    last = tuple(steps[-1] * x for x in outer)
    rows = rows_of(kind, times)
    stream = wr.stream(rows, progress="t")
    compare(rolled(stream, kind, steps, last).collect(), rolled(stream, kind, [], last).collect())


@settings(max_examples=15, deadline=None)
@given(times=st.lists(st.integers(0, 60), min_size=1, max_size=25), seed=st.integers(0, 1000))
@pytest.mark.parametrize("inner", ["window", "sliding", "each_row", "session"])
@pytest.mark.parametrize("outer", ["window", "each_row", "session"])
def test_windows_over_every_window_in_any_order_of_arrival(inner, outer, times, seed):
    stream = wr.stream(rows_of("integer", times), progress="t", slack=7)
    windows = {
        "window": lambda s: s.window(10),
        "sliding": lambda s: s.window(9, 3),
        "each_row": lambda s: s.each_row(5),
        "session": lambda s: s.session(4),
    }
    results = windows[inner](stream).group_by("k").agg(n=wr.count())
    replay(windows[outer](results).agg(n=wr.sum("n"), parts=wr.count()), runs=2, seed=seed)


def test_the_first_windows_of_ten_hold_two_of_five():
    """Issue 11: they held one, two and one."""
    rows = pl.DataFrame({"t": range(20)})
    s = wr.stream(rows, progress="t")
    twice = s.window(5).agg(n=wr.count()).window(10).agg(n=wr.sum("n"), parts=wr.count())
    assert twice.collect().rows() == [(0, 10, 10, 2), (10, 20, 10, 2)]


def test_windows_of_rows_roll_up():
    rows = pl.DataFrame({"t": range(23), "number": range(23)})
    s = wr.stream(rows, progress="t", row_num="number")
    steps = s.rows(5).agg(n=wr.count()).window(10).agg(n=wr.sum("n"))
    compare(steps.collect(), s.rows(10).agg(n=wr.count()).collect())


def test_days_of_a_time_zone_hold_its_hours():
    start = datetime(2024, 3, 30, 12, tzinfo=UTC)  # the clocks change on the next day, and there are 23 hours
    rows = pl.DataFrame({"t": [start + timedelta(minutes=7 * i) for i in range(600)]})
    s = wr.stream(rows, progress="t")
    hours = s.window("1 hour", time_zone="Europe/Berlin").agg(n=wr.count())
    steps = hours.window("1 day", time_zone="Europe/Berlin").agg(n=wr.sum("n"))
    compare(steps.collect(), s.window("1 day", time_zone="Europe/Berlin").agg(n=wr.count()).collect())


class TestWindowTime:
    rows = pl.DataFrame({"t": range(20), "k": ["a", "b"] * 10})
    inner = "SELECT k, count(*) AS n{} FROM s [RANGE 5, SLIDE 5, WA t] GROUP BY k"

    def sql(self, query):
        return wr.sql(query, s=wr.stream(self.rows, progress="t"))

    def over(self, clause, more=""):
        return self.sql(f"SELECT sum(n) AS n FROM ({self.inner.format(more)}) {clause}").collect().rows()

    def test_is_the_default_and_can_be_named(self):
        assert self.over("[RANGE 10, SLIDE 10]") == [(0, 10, 10), (10, 20, 10)]
        assert self.over("[RANGE 10, SLIDE 10, WA window_time]") == [(0, 10, 10), (10, 20, 10)]
        assert self.over("[RANGE 10, SLIDE 10, WA window_time]", ", window_time, window_end") == [
            (0, 10, 10),
            (10, 20, 10),
        ]

    def test_window_end_means_its_value(self):
        shifted = [(0, 10, 5), (10, 20, 10), (20, 30, 5)]
        assert self.over("[RANGE 10, SLIDE 10, WA window_end]") == shifted
        assert self.over("[RANGE 10, SLIDE 10, WA window_end]", ", window_time, window_end") == shifted
        assert self.over("[RANGE 10, SLIDE 10, WA e]", ", window_end AS e") == shifted

    def test_the_same_in_python(self):
        results = wr.stream(self.rows, progress="t").window(5).group_by("k").agg(n=wr.count())
        sums = {"n": wr.sum("n")}
        assert results.window(10, on="window_end").agg(**sums).collect().rows() == [
            (0, 10, 5),
            (10, 20, 10),
            (20, 30, 5),
        ]
        for on in (None, "window_time"):
            assert results.window(10, on=on).agg(**sums).collect().rows() == [(0, 10, 10), (10, 20, 10)]
        with pytest.raises(wr.QueryError, match=r"on='n' is not a progressing column of the stream"):
            results.window(10, on="n")

    def test_it_can_be_selected_ordered_and_compared(self):
        query = self.sql(
            "SELECT k, window_time, window_end FROM s [RANGE 5, SLIDE 5, WA t] GROUP BY k "
            "HAVING window_time > 4 AND count(*) > 0 ORDER BY window_time, k"
        )
        assert query.collect().rows()[:2] == [("a", 9, 10), ("b", 9, 10)]
        results = wr.stream(self.rows, progress="t").window(5).agg(n=wr.count())
        assert results.where("window_time = 9").select("n", "window_time").collect().rows() == [(5, 9)]
        assert results.order_by("window_time").collect()["window_end"].to_list() == [5, 10, 15, 20]

    def test_groups_by_it_are_the_windows(self):
        both = {}
        for column in ("window_time", "window_end"):
            query = f"SELECT {column}, sum(n) AS n FROM ({self.inner.format('')}) GROUP BY {column}"
            both[column] = self.sql(query).collect().sort(column).rows()
        assert both["window_time"] == [(4, 5), (9, 5), (14, 5), (19, 5)]
        assert both["window_end"] == [(5, 5), (10, 5), (15, 5), (20, 5)]

    def test_expressions_of_it_progress(self):
        query = (
            "SELECT sum(n) AS n FROM (SELECT n, window_time + 100 AS later FROM ({})) [RANGE 10, SLIDE 10, WA later]"
        )
        assert self.sql(query.format(self.inner.format(""))).collect().rows() == [(100, 110, 10), (110, 120, 10)]

    def test_the_last_instant_of_a_window_back_from_a_row_is_its_end(self):
        s = wr.stream(self.rows, progress="t")
        query = s.each_row(3).agg(n=wr.count()).select("window_time", "window_end")
        assert all(a == b for a, b in query.collect().rows())

    def test_a_branch_of_a_split_keeps_it(self):
        results = wr.stream(self.rows, progress="t").window(5).group_by("k").agg(n=wr.count())
        split = results.split("k = 'a'", otherwise=lambda rest: rest.where("n > 0"))
        assert split.window(10).agg(n=wr.sum("n")).collect().rows() == [(0, 10, 10), (10, 20, 10)]

    def test_a_function_of_the_end_takes_its_value(self):
        results = wr.stream(self.rows, progress="t").window(5).agg(n=wr.count())
        later = results.apply(window_end=wr.udf(lambda e: e + 1, "BIGINT", "window_end", monotone=True))
        assert later.window(10).agg(n=wr.sum("n")).collect().rows() == [(0, 10, 5), (10, 20, 10), (20, 30, 5)]

    def test_ends_and_times_cannot_be_united(self):
        s = wr.stream(self.rows, progress="t", name="s")
        ends = s.window(5).agg(n=wr.count()).select("window_end", "n")
        rows = pl.DataFrame({"window_end": [1], "n": [1]})
        with pytest.raises(wr.QueryError, match="the end of a window on one side"):
            ends.union(wr.stream(rows, progress="window_end", name="other"))
