"""Sliding windows with options: early and revised results, empty and partial windows, late policies, generous slack."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replays import CUTS, EVERY, GROUPS, ROWS, check_drop, check_replay, feed, frame, query

import windrow as wr
from windrow.planner import ALGORITHMS
from windrow.testing import compare, oracle
from windrow.testing.replay import latest
from windrow.windows import Sliding, Tuple

CHECK = settings(deadline=None, derandomize=True, max_examples=30)
FEWER = settings(CHECK, max_examples=15)  # of each algorithm
WINDOWS = st.tuples(st.integers(1, 25), st.integers(1, 25))
SLACK = st.sampled_from([0, 9, 100])


@pytest.mark.parametrize("using", ALGORITHMS)
@FEWER
@given(window=WINDOWS, rows=ROWS, groups=GROUPS, seed=st.integers(0, 9), slack=SLACK)
def test_every_kind_of_state_equals_the_oracle(window, rows, groups, seed, slack, using):
    few = {"med": wr.median("q"), "w": wr.max("w"), "n": wr.count()}
    if using == "two-level":  # its table holds numbers only
        few = {"v": wr.var("q"), "hi": wr.max("f"), "n": wr.count()}
    check_replay(lambda s: s.window(*window, using=using), rows, groups, seed, slack, few)


@settings(CHECK, max_examples=4)
@given(WINDOWS, ROWS, st.integers(0, 9))
def test_every_aggregate(window, rows, seed):
    check_replay(lambda s: s.window(*window), rows, ("k",), seed, 11, EVERY)


@CHECK
@given(WINDOWS, st.integers(1, 12), ROWS, GROUPS, st.integers(0, 9), SLACK)
def test_whoever_keeps_the_highest_version_ends_with_the_final_answer(window, every, rows, groups, seed, slack):
    check_replay(lambda s: s.window(*window).emit_early(every), rows, groups, seed, slack)


@CHECK
@given(WINDOWS, st.integers(1, 12), ROWS, CUTS, GROUPS, st.booleans())
def test_with_revisions_late_rows_are_in_the_final_answer_too(window, every, rows, cuts, groups, early):
    """Slack 0 over rows in any order: most are late, and all of them count in the end."""

    def shape(s):
        revised = s.window(*window).late("revise", keep=1000)
        return revised.emit_early(every) if early else revised

    built = query(shape, rows, groups)
    released = []
    for run in feed(built, rows, cuts):
        released.append(run.results())
    assert run.counts["rows_late"] == run.counts["rows_revised"]
    compare(latest(pl.concat(released), built), oracle(built), "revised")


@CHECK
@given(WINDOWS, st.integers(1, 30), ROWS, CUTS, GROUPS, st.booleans())
def test_a_row_that_can_be_revised_is_whatever_comes_with_it(window, keep, rows, cuts, groups, early):
    """Issue 11: a batch with such a row and one that moves the promise past the time kept lost the first."""
    size, slide = window

    def shape(s):
        revised = s.window(size, slide).late("revise", keep=keep)
        return revised.emit_early(3) if early else revised

    built = query(shape, rows, groups)
    released, dropped, promised, at = [], [], None, 0
    for run in feed(built, rows, cuts):
        released.append(run.results())
        batch = rows[at : run.counts["rows_in"]]
        for number, row in enumerate(batch, at):
            final = None if promised is None else promised // slide - -(-keep // slide)
            if final is not None and row["t"] // slide < final and Sliding(*window).wids(Tuple(row["t"])):
                dropped.append(number)
        promised = max((r["t"] for r in rows[: run.counts["rows_in"]]), default=None)
        at = run.counts["rows_in"]
    assert run.counts["rows_late"] - run.counts["rows_revised"] == len(dropped)
    kept = frame(rows).filter(~pl.col("n").is_in(dropped))
    compare(latest(pl.concat(released), built), oracle(built, {"s": kept}), "revised")
    versions = pl.concat(released).select(*groups, "window_end", "version")
    assert not versions.is_duplicated().any()


@CHECK
@given(WINDOWS, ROWS, CUTS)
def test_having_over_versions_takes_back_what_no_longer_qualifies(window, rows, cuts):
    built = query(lambda s: s.window(*window).late("revise", keep=1000).emit_early(3), rows, ("k",)).where("n < 3")
    released = [run.results() for run in feed(built, rows, cuts)]
    compare(latest(pl.concat(released), built), oracle(built), "having")


@CHECK
@given(WINDOWS, ROWS, GROUPS, st.integers(0, 9), SLACK)
def test_empty_windows_on_request(window, rows, groups, seed, slack):
    check_replay(lambda s: s.window(*window).with_empty(), rows, groups, seed, slack)


@CHECK
@given(WINDOWS, st.integers(-15, 15), ROWS, GROUPS, st.integers(0, 9), SLACK)
def test_windows_that_begin_before_the_origin_can_be_left_out(window, origin, rows, groups, seed, slack):
    check_replay(lambda s: s.window(*window, origin=origin or 1).without_partial(), rows, groups, seed, slack)


@pytest.mark.parametrize("using", ALGORITHMS)
@FEWER
@given(window=WINDOWS, rows=ROWS, cuts=CUTS)
def test_late_rows_are_dropped_or_leave_by_the_side(window, rows, cuts, using):
    check_drop(lambda s: s.window(*window, using=using), rows, cuts, ("k",))


@pytest.mark.parametrize("using", ALGORITHMS)
@FEWER
@given(window=WINDOWS, rows=ROWS, cuts=CUTS, policy=st.sampled_from(["drop", "side"]))
def test_under_generous_slack_a_row_misses_only_its_released_windows(window, rows, cuts, using, policy):
    """Each row counts in each of its windows, but for those that the late records say."""
    built = query(lambda s: s.window(*window, using=using).late(policy, generous=True), rows)
    counted = 0
    for run in feed(built, rows, cuts):
        counted += run.results()["n"].sum()
    late = run.late_rows()
    assert late["rows"].sum() == run.counts["rows_late"]
    missed = (late["rows"] * late["windows"]).sum()
    assert counted + missed == sum(len(Sliding(*window).wids(Tuple(t))) for t in frame(rows)["t"])


def test_the_policy_error_stops_the_query_and_names_the_group_and_window():
    s = wr.stream(pl.DataFrame(schema={"t": pl.Int64, "k": pl.String}), progress="t", slack=0, name="s")
    run = s.window(10).late("error").group_by("k").agg(n=wr.count()).run()
    run.push("s", pl.DataFrame({"t": [1, 25], "k": ["a", "b"]}))
    with pytest.raises(wr.LateError, match=r"1 late rows, the first of {'k': 'a'} in the released window \[0, 10\)"):
        run.push("s", pl.DataFrame({"t": [2], "k": ["a"]}))


def test_revisions_are_kept_as_long_as_asked_and_then_freed():
    s = wr.stream(pl.DataFrame(schema={"t": pl.Int64}), progress="t", slack=0, name="s")
    run = s.window(10).late("revise", keep=25).agg(n=wr.count()).run()
    for t in range(0, 1000, 5):
        run.push("s", pl.DataFrame({"t": [t]}))
    held = [f for name, f in run.snapshot().items() if name.split("/")[-1][0].isdigit()]
    assert sum(f.height for f in held) <= 6
    run.push("s", pl.DataFrame({"t": [3, 961]}))
    assert run.results().filter(pl.col("status") == "revised").rows() == [(960, 970, 3, 2, "revised")]
    assert run.late_rows().rows() == [(0, 10, 1, None, 1)]
    assert (run.counts["rows_late"], run.counts["rows_revised"]) == (2, 1)
