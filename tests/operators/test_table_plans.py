"""Whole queries with ``using="two-level"``: the results of the oracle, late rows, explain, and what is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replays import CUTS, GROUPS, ROWS, check_drop, check_replay, check_side

import windrow as wr
from windrow.errors import PlanError, QueryError

CHECK = settings(deadline=None, derandomize=True, max_examples=15)
SHAPES = st.sampled_from([(10, 10), (10, 5), (7, 3), (4, 9)])
MEMORY = st.sampled_from([1, 500, 10_000])
DATA = [{"t": i, "k": f"k{i % 5}", "x": i} for i in range(50)]


def two_level(size, step, memory, flush=None):
    return lambda s: s.window(size, step, using="two-level", memory=memory, flush=flush)


def stream():
    return wr.stream(DATA, progress="t", slack=2, name="s")


@pytest.mark.parametrize("flush", ["at once", "slow", "lazy"])
@CHECK
@given(shape=SHAPES, memory=MEMORY, rows=ROWS, groups=GROUPS, seed=st.integers(0, 99), slack=st.integers(0, 20))
def test_every_arrival_order_gives_what_the_oracle_says(flush, shape, memory, rows, groups, seed, slack):
    check_replay(two_level(*shape, memory, flush), rows, groups, seed, slack)


@CHECK
@given(shape=SHAPES, memory=MEMORY, rows=ROWS, cuts=CUTS, groups=GROUPS)
def test_late_rows_leave_by_the_side_or_are_counted(shape, memory, rows, cuts, groups):
    check_side(two_level(*shape, memory), rows, cuts, groups)
    check_drop(two_level(*shape, memory), rows, cuts, groups)


def test_results_come_with_the_same_promise_as_those_of_panes():
    ways = ("two-level", "paned")
    both = [stream().window(10, 5, using=using).group_by("k").agg(n=wr.count()).run() for using in ways]
    for start in range(0, 50, 7):
        one, other = (run.push("s", DATA[start : start + 7]).results().sort("k", "window_end") for run in both)
        assert one.equals(other)
    assert both[0].end().results().height == both[1].end().results().height > 0


def test_explain_says_how_large_the_table_is_and_how_it_is_flushed():
    table = {"using": "two-level", "memory": "2 KiB"}
    plain = stream().window(10, **table).group_by("k").agg(n=wr.count()).explain()
    assert "in a table of 64 entries (2,048 bytes); old entries leave at once" in plain
    slow = stream().window(10, **table, flush="slow").group_by("k").agg(n=wr.count()).explain()
    assert "one old entry leaves every 160 rows, for at most 2 windows" in slow


@pytest.mark.parametrize("spelled", ["two_level", "'two-level'"])
def test_a_hint_asks_for_it(spelled):
    hint = f"/*+ USING({spelled}), MEMORY('2 KiB') */"
    query = wr.sql(f"SELECT {hint} k, count(*) AS n FROM s [RANGE 10, SLIDE 5, WA t] GROUP BY k", s=stream())
    assert "in a table of 64 entries (2,048 bytes)" in query.explain()
    plain = stream().window(10, 5).group_by("k").agg(n=wr.count()).collect()
    assert query.collect().sort("k", "window_end").equals(plain.sort("k", "window_end"))


def test_it_is_never_chosen_for_anyone():
    told = wr.Statistics(rate=1e6, groups=260_000)
    s = wr.stream(DATA, progress="t", slack=2, name="s", statistics=told)
    assert s.window(10, memory=1).group_by("k").agg(n=wr.count()).plan().stages()[0].algorithm != "two-level"


def test_what_a_table_cannot_hold_is_refused_with_what_can():
    windowed = stream().window(10, using="two-level")
    with pytest.raises(PlanError, match=r"'median' is not numbers.*use 'paned'"):
        windowed.agg(m=wr.median("x")).plan()
    with pytest.raises(PlanError, match="so 'paned'"):
        windowed.with_empty().agg(n=wr.count()).plan()
    with pytest.raises(PlanError, match="so 'paned'"):
        windowed.late("revise", keep=10).agg(n=wr.count()).plan()
    with pytest.raises(wr.QueryError, match="flush='slow' applies to the table"):
        stream().window(10, flush="slow")
    with pytest.raises(QueryError, match="unknown flush 'soon'"):
        stream().window(10, using="two-level", flush="soon")
