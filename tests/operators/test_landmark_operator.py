"""Landmark windows: running totals, in any order of arrival."""

import polars as pl
import pytest
from harness import first_wait
from hypothesis import given, settings
from hypothesis import strategies as st
from replays import CUTS, EVERY, GROUPS, ROWS, check_drop, check_replay, check_side

import windrow as wr
from windrow.errors import ResultError

CHECK = settings(deadline=None, derandomize=True, max_examples=25)
SLIDES = st.sampled_from([1, 7, 50])


@CHECK
@given(SLIDES, ROWS, GROUPS, st.integers(0, 9), st.sampled_from([0, 9, 100]))
def test_equals_the_oracle_in_every_order(slide, rows, groups, seed, slack):
    check_replay(lambda s: s.landmark(slide, origin=3), rows, groups, seed, slack)


@settings(CHECK, max_examples=4)
@given(ROWS, st.integers(0, 9))
def test_every_aggregate(rows, seed):
    check_replay(lambda s: s.landmark(9), rows, ("k",), seed, 11, EVERY)


@CHECK
@given(SLIDES, ROWS, CUTS)
def test_late_rows_are_dropped_from_all_windows_or_leave_by_the_side(slide, rows, cuts):
    check_drop(lambda s: s.landmark(slide), rows, cuts, ("k",))
    check_side(lambda s: s.landmark(slide), rows, cuts)


def fed(windowed, *batches):
    run = windowed.agg(n=wr.count()).run()
    for batch in batches:
        run.push("s", pl.DataFrame({"t": batch}, schema={"t": pl.Int64}))
    return run


def landmark(**options):
    return wr.stream(pl.DataFrame(schema={"t": pl.Int64}), progress="t", slack=0, name="s").landmark(10, **options)


def test_under_generous_slack_a_late_row_counts_from_the_first_open_window_on():
    run = fed(landmark().late("drop", generous=True), [1, 15], [2])
    assert run.end().results().sort("window_end").rows() == [(None, 10, 1), (None, 20, 3)]
    assert run.counts["rows_late"] == 1


def test_every_group_has_a_result_in_every_window_from_its_first_on():
    assert fed(landmark(), [1, 45]).results()["n"].to_list() == [1, 1, 1, 1]


def test_state_is_one_total_per_group():
    run = fed(landmark(), *([t] for t in range(0, 400, 3)))
    small = run.state_bytes()
    for t in range(400, 1200, 3):
        run.push("s", pl.DataFrame({"t": [t]}))
    assert run.state_bytes() <= 2 * small


def test_a_promise_at_the_end_of_time_is_refused_and_says_why():
    run = fed(landmark(), [1])
    with pytest.raises(ResultError, match="far in the future"):
        run.promise("s", 1 << 60)


def test_waits_for_is_the_end_of_the_next_window():
    run = fed(landmark(), [17])
    assert first_wait(run.graph) == 20
    run.push("s", pl.DataFrame({"t": [25]}))
    assert first_wait(run.graph) == 30
