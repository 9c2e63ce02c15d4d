"""The end of a finite stream is the greatest progress value of any row that was read, of any member of a union."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.testing import compare, oracle, replay

SCHEMA = {"t": pl.Int64, "k": pl.String, "n": pl.Int64}
TIMES = st.lists(st.integers(-20, 60), max_size=8)
SHAPES = {
    "landmark": lambda s: s.landmark(10),
    "empty": lambda s: s.window(10).with_empty(),
    "empty sliding": lambda s: s.window(15, 5).with_empty(),
    "empty hopping": lambda s: s.window(3, 10).with_empty(),
    "empty over results": lambda s: s.window(5).group_by("k").agg(n=wr.count()).window(10).with_empty(),
}


def member(name, times, slack=None):
    rows = {"t": times, "k": ["ab"[t % 2] for t in times], "n": list(range(len(times)))}
    return wr.stream(pl.DataFrame(rows, schema=SCHEMA), progress="t", slack=slack, name=name)


def built(shape, streams, condition):
    united = streams[0].union(*streams[1:])
    kept = united if condition is None else united.where(condition)
    return SHAPES[shape](kept).group_by("k").agg(c=wr.count())


@settings(deadline=None, derandomize=True, max_examples=25)
@given(
    members=st.lists(TIMES, min_size=1, max_size=3),
    slack=st.sampled_from([None, 0, 7, 1000]),
    condition=st.sampled_from([None, "k = 'a'", "t < 30", "t > 100"]),
    seed=st.integers(0, 9),
)
@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_nothing_but_the_rows_read_says_where_a_stream_ends(shape, members, slack, condition, seed):
    """Issue 11: the order of members, an empty one, the slack and what WHERE removed did."""
    streams = [member(f"s{i}", times, slack) for i, times in enumerate(members)]
    one = built(shape, streams, condition)
    expected = oracle(one)
    compare(one.collect(), expected, "as written")
    compare(built(shape, streams[::-1], condition).collect(), expected, "the other way round")
    compare(built(shape, [*streams, member("none", [], slack)], condition).collect(), expected, "and an empty one")
    if slack is not None:
        replay(one, runs=2, seed=seed)


def test_landmarks_and_empty_windows_go_on_to_the_end_of_the_longest_member():
    short, long = member("short", [5]), member("long", [5, 34])
    for query in (short.union(long), long.union(short)):
        ends = query.where("n = 0").landmark(10).agg(c=wr.count()).collect()["window_end"].to_list()
        assert ends == [10, 20, 30, 40]
        empty = query.where("n = 0").window(10).with_empty().agg(c=wr.count()).collect()["window_end"].to_list()
        assert empty == [10, 20, 30]


def test_a_promise_beyond_the_last_row_adds_no_window_at_the_end():
    run = member("s", []).landmark(10).agg(c=wr.count()).run()
    run.push("s", pl.DataFrame({"t": [5], "k": ["a"], "n": [0]}, schema=SCHEMA)).promise("s", 30)
    assert run.results()["window_end"].to_list() == [10, 20, 30]
    assert run.end().results().height == 0


@settings(deadline=None, derandomize=True, max_examples=20)
@given(times=TIMES, keep=st.integers(1, 3))
def test_windows_of_rows_too(times, keep):
    s = wr.stream(member("s", times).sources["s"].data, progress="t", row_num="n", name="s")
    query = s.where(f"n % {keep} = 0").rows(3, 2).with_empty().group_by("k").agg(c=wr.count())
    compare(query.collect(), oracle(query))
