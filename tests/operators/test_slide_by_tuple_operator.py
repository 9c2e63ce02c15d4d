"""Slide-by-tuple windows: by arrival and by rank, with windows of the stream and of partitions."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from replays import CUTS, EVERY, GROUPS, ROWS, check_drop, check_replay

import windrow as wr

CHECK = settings(deadline=None, derandomize=True, max_examples=30)
SHAPES = st.tuples(st.sampled_from([1, 6, 30]), st.sampled_from([1, 2, 5]), st.sampled_from(["rank", "row_num"]))
PARTS = st.sampled_from([[], ["k"], ["k", "q"]])


@CHECK
@given(SHAPES, ROWS, GROUPS, PARTS, st.integers(0, 9), st.sampled_from([0, 9, 100]))
def test_equals_the_oracle_in_every_order(shape, rows, groups, parts, seed, slack):
    size, every, by = shape
    check_replay(lambda s: s.each_row(size, every, by=by, partition_by=parts), rows, groups, seed, slack)


@settings(CHECK, max_examples=4)
@given(ROWS, st.integers(0, 9))
def test_every_aggregate(rows, seed):
    check_replay(lambda s: s.each_row(12, 2), rows, ("k",), seed, 11, EVERY)


@CHECK
@given(st.sampled_from([1, 6, 30]), ROWS, CUTS, st.sampled_from(["rank", "row_num"]))
def test_late_rows_are_dropped_or_leave_by_the_side(size, rows, cuts, by):
    check_drop(lambda s: s.each_row(size, 1, by=by), rows, cuts, ("k",))


def each(**options):
    return wr.stream(pl.DataFrame(schema={"t": pl.Int64}), progress="t", slack=0, name="s").each_row(5, **options)


def test_state_holds_one_range_of_rows():
    run = each().agg(n=wr.count()).run()
    for t in range(300):
        run.push("s", pl.DataFrame({"t": [t]}))
    assert sum(f.height for name, f in run.snapshot().items() if name.split("/")[-1][0].isdigit()) <= 8


def test_under_generous_slack_a_late_row_counts_in_later_windows():
    run = each().late("drop", generous=True).agg(n=wr.count()).run()
    for batch in ([1, 6], [5], [7]):
        run.push("s", pl.DataFrame({"t": batch}))
    assert run.end().results().sort("window_end").rows() == [(-4, 1, 1), (1, 6, 2), (2, 7, 3)]
    assert run.counts["rows_late"] == 1


def test_wake_at_is_just_after_the_first_row_not_covered():
    run = each().agg(n=wr.count()).run()
    run.push("s", pl.DataFrame({"t": [3, 9]}))
    assert run.graph.wake_at() == 10
