"""What ``wr.stream(.., punctuation=wr.promise...)`` takes, in process."""

import polars as pl
import pytest

import windrow as wr
from windrow.testing import accounted

ROWS = [{"t": t, "p": p} for t, p in ((1, "a"), (6, "a"), (3, "b"), (8, "b"), (5, "a"), (12, "b"))]
EMPTY = pl.DataFrame(schema={"t": pl.Int64, "p": pl.String})


@pytest.mark.parametrize(
    ("punctuation", "expected", "late"),
    [
        (wr.promise.ordered(), [[], [2], [], [8], [], [10]], 2),
        (wr.promise.slack(3), [[], [2], [], [4], [], [6, 8]], 0),
        (wr.promise.rows(2), [[], [], [], [2, 4], [], [8]], 1),
        (wr.promise.rows(3), [[], [], [], [], [2, 4, 6], []], 0),
        (wr.promise.partitions("p", 2), [[], [], [2], [4], [], []], 1),
        (wr.promise.partitions("p", 2, slack=1), [[], [], [2], [4], [], []], 0),
        (wr.promise.partitions("p", 3), [[], [], [], [], [], []], 0),
        (wr.promise.estimated(4), [[], [2], [], [4], [], [6, 8]], 0),
        (wr.promise.function(lambda seen: seen.all_greatest - 6), [[], [], [], [2], [], [4, 6]], 0),
    ],
)
def test_windows_close_as_the_stream_says(punctuation, expected, late):
    run = wr.stream(EMPTY, "t", punctuation=punctuation, name="s").window(range=2).agg(n=wr.count()).run()
    released = [run.push("s", [row]).results() for row in ROWS]
    assert [results["window_end"].sort().to_list() for results in released] == expected
    assert run.counts["rows_late"] == late
    accounted(run.end().counts, pl.concat([*released, run.results()]))
    assert run.counts["rows_in"] == len(ROWS)
    assert run.counts["promises_ignored"] == 0


def test_heartbeats_promise_what_their_clock_shows_less_the_skew():
    empty = EMPTY.with_columns(beat=pl.lit(None, pl.Int64))
    beats = wr.stream(empty, "t", punctuation=wr.promise.heartbeats("beat", skew=3), name="s")
    run = beats.window(range=2).agg(n=wr.count()).run()
    run.push("s", [{"t": 1, "beat": None}, {"t": 5, "beat": None}, {"t": None, "beat": 7}])
    assert run.results()["window_end"].to_list() == [2]
    run.push("s", [{"t": None, "beat": 9}])
    released = run.results()
    assert released["window_end"].to_list() == [6]
    run.push("s", [{"t": 5, "beat": None}, {"t": 9, "beat": None}, {"t": None, "beat": 8}])
    assert (run.counts["rows_late"], run.counts["promises_ignored"]) == (1, 1)
    first = pl.DataFrame({"n": [1]})  # the window that was released before
    accounted(run.end().counts, pl.concat([first, released.select("n"), run.results().select("n")]), markers=3)
    assert "promises from column beat, less 3" in beats.explain()


def test_explain_says_where_promises_come_from():
    def shown(punctuation, **options):
        return wr.stream(EMPTY, "t", punctuation=punctuation, **options).window(range=2).agg(n=wr.count()).explain()

    assert "promises the greatest t of all rows but the last 4" in shown(wr.promise.rows(4))
    assert "all rows but the last 4 by t" in shown(wr.promise.rows(4), row_num="t")
    assert "promises 1 behind the greatest t of the slowest p, as soon as 2 are" in shown(
        wr.promise.partitions("p", 2, 1)
    )
    assert "a slack estimated to cover 0.99 of the rows, 5 at first" in shown(wr.promise.estimated(5, 0.99))
    assert "promises what the function max says" in shown(wr.promise.function(max))


@pytest.mark.parametrize(
    ("declared", "reason"),
    [
        (lambda: wr.promise.rows(-1), "zero or more, not -1"),
        (lambda: wr.promise.partitions("p", 0), "at least one partition, not 0"),
        (lambda: wr.promise.partitions("q", 2), "partitions: 'q' is not a column; available: p, t"),
        (lambda: wr.promise.estimated(5, 1.5), "above 0 and at most 1, not 1.5"),
        (lambda: wr.promise.estimated("5 seconds"), "initial"),
        (lambda: wr.promise.heartbeats("q"), "'q' is not a column"),
        (lambda: wr.promise.heartbeats("p"), "is of type String, 't' of type Int64"),
        (lambda: wr.promise.slack(-2), "slack must be zero or more"),
    ],
)
def test_a_way_that_does_not_fit_is_refused(declared, reason):
    with pytest.raises(wr.QueryError, match=reason):
        wr.stream(EMPTY, "t", punctuation=declared())


def test_two_ways_at_once_are_refused():
    with pytest.raises(wr.QueryError, match="either slack or punctuation"):
        wr.stream(EMPTY, "t", slack=3, punctuation=wr.promise.rows(3))
    with pytest.raises(wr.QueryError, match="has no markers"):
        wr.stream(EMPTY, "t", punctuation=wr.promise.rows(3), punctuation_by="p")
    with pytest.raises(wr.QueryError, match="one order of all rows"):
        wr.stream(EMPTY, "t", punctuation=wr.promise.rows(3), row_num=("p", "t"))


def test_a_snapshot_keeps_what_was_seen():
    def query():
        return wr.stream(EMPTY, "t", punctuation=wr.promise.rows(2), name="s").window(range=2).agg(n=wr.count()).run()

    run, found = query(), []
    for row in ROWS:
        found.append(run.push("s", [row]).results()["window_end"].sort().to_list())
        run = query().restore(run.snapshot())
    assert found == [[], [], [], [2, 4], [], [8]]


def test_a_quiet_key_closes_when_its_source_has_progressed_and_not_before():
    rows = pl.DataFrame(schema={"t": pl.Int64, "p": pl.Int64, "k": pl.String})
    made = wr.stream(rows, "t", punctuation=wr.promise.partitions("p", 2, slack=1), name="s")
    run = made.window(5).group_by("p", "k").agg(n=wr.count()).run()
    run.push("s", [{"t": 1, "p": 1, "k": "quiet"}, {"t": 2, "p": 2, "k": "slow"}, {"t": 5, "p": 1, "k": "loud"}])
    assert run.results().height == 0, "5 with slack 1: a row at 4 may still come"
    state = run.snapshot()
    run = made.window(5).group_by("p", "k").agg(n=wr.count()).run().restore(state)
    run.push("s", [{"t": 6, "p": 1, "k": "loud"}])
    assert run.results().rows() == [(1, "quiet", 0, 5, 1)], "source 2 is silent, and no matter for source 1"
    run.push("s", [{"t": 3, "p": 1, "k": "quiet"}, {"t": 3, "p": 2, "k": "slow"}])
    assert run.counts["rows_late"] == 1, "late in its own source only"
    assert sorted(run.end().results().rows()) == [(1, "loud", 5, 10, 2), (2, "slow", 0, 5, 2)]


def test_a_union_closes_a_group_when_all_its_inputs_have_promised_for_it():
    rows = pl.DataFrame(schema={"t": pl.Int64, "p": pl.Int64})
    a = wr.stream(rows, "t", punctuation=wr.promise.partitions("p", 2), name="a")
    b = wr.stream(rows, "t", slack=0, name="b")
    run = a.union(b).window(5).group_by("p").agg(n=wr.count()).run()
    run.push("a", [{"t": 1, "p": 1}, {"t": 7, "p": 1}, {"t": 2, "p": 2}])
    assert run.results().height == 0, "b may still send rows of any group"
    run.push("b", [{"t": 6, "p": 2}])
    assert run.results().rows() == [(1, 0, 5, 1)], "b has passed 5 for everyone, a for group 1 only"


def test_the_share_of_promises_in_the_traffic_is_small_and_none_is_sent_twice():
    rows = pl.DataFrame({"t": list(range(2000))})
    made = wr.stream(rows.clear(), "t", slack=0, name="s").window(100).agg(n=wr.count())
    run = made.run()
    for at in range(0, 2000, 10):
        run.push("s", rows[at : at + 10])
    steps = len(run.graph.nodes) - 1
    assert run.counts["rows_in"] == 2000
    # 200 batches raise the greatest value; 20 windows close. Panes rolls promises down to what closes a window, so
    # that only the operators before it see the first number: there is no need for one that does nothing else.
    names = [n.name.split("-")[1] for n in run.graph.nodes]
    before = names.index("prepare+panes")
    assert run.traffic().promises <= 200 * (before - names.index("punctuate")) + 20 * (steps - before)
    assert run.traffic().share == run.traffic().promises / (run.traffic().promises + run.traffic().rows)
