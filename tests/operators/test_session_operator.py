"""Session windows: runs of a key's rows in any order of arrival, out when the gap has passed."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from replays import CUTS, EVERY, GROUPS, ROWS, check_drop, check_replay

import windrow as wr

CHECK = settings(deadline=None, derandomize=True, max_examples=40)
GAPS = st.sampled_from([1, 2, 5, 13, 100])


@CHECK
@given(GAPS, ROWS, GROUPS, st.integers(0, 9), st.sampled_from([0, 9, 100]))
def test_equals_the_oracle_in_every_order(gap, rows, groups, seed, slack):
    check_replay(lambda s: s.session(gap), rows, groups, seed, slack)


@settings(CHECK, max_examples=4)
@given(ROWS, st.integers(0, 9))
def test_every_aggregate(rows, seed):
    check_replay(lambda s: s.session(5), rows, ("k",), seed, 11, EVERY)


@CHECK
@given(GAPS, ROWS, CUTS)
def test_late_rows_are_dropped_or_leave_by_the_side(gap, rows, cuts):
    check_drop(lambda s: s.session(gap), rows, cuts, ("k",))


def sessions(gap=10):
    s = wr.stream(pl.DataFrame(schema={"t": pl.Int64, "k": pl.Int64}), progress="t", slack=0, name="s")
    return s.session(gap).group_by("k").agg(n=wr.count())


def test_a_distance_of_exactly_the_gap_begins_a_new_session():
    run = sessions(5).run()
    run.push("s", pl.DataFrame({"t": [0, 4, 9], "k": [1, 1, 1]}))
    assert run.end().results().sort("window_end").rows() == [(1, 0, 9, 2), (1, 9, 14, 1)]


def test_state_is_one_run_per_key_however_long_it_lasts():
    run = sessions().run()
    for t in range(0, 600, 3):
        run.push("s", pl.DataFrame({"t": [t], "k": [7]}))
    assert sum(f.height for name, f in run.snapshot().items() if "runs/" in name) == 1
    assert run.end().results().rows() == [(7, 0, 607, 200)]


def test_quiet_keys_are_released_and_freed():
    run = sessions().run()
    for k in range(50):
        run.push("s", pl.DataFrame({"t": [20 * k], "k": [k]}))
    assert run.results().height == 49
    assert sum(f.height for name, f in run.snapshot().items() if "/" in name.split("-")[-1] and f.height) < 8
