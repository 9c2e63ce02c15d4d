"""Sessions in this process: what is shared, what is refused, and that a refusal disturbs nothing."""

import polars as pl
import pytest

import windrow as wr
from windrow.errors import CheckpointError, PlanError, QueryError
from windrow.operators import Select

SCHEMA = {"ts": pl.Int64(), "k": pl.Int64(), "x": pl.Int64()}
COUNTS = "SELECT k, count(*) AS n FROM s [RANGE 20, SLIDE 10, WA ts] WHERE x > 1 GROUP BY k"
SUMS = "SELECT k, sum(x) AS total FROM s [RANGE 30, SLIDE 10, WA ts] WHERE x > 1 GROUP BY k"
JOINED = "SELECT s.ts, s.x, u.x AS other FROM s [RANGE 5] JOIN u [RANGE 5] ON s.k = u.k"


def stream(name="s", slack=2):
    return wr.stream(pl.DataFrame(schema=SCHEMA), progress="ts", slack=slack, name=name)


def rows(first, last):
    return [{"ts": t, "k": t % 2, "x": t % 5} for t in range(first, last)]


@pytest.fixture
def session():
    return wr.Session(s=stream("s"), u=stream("u"))


def nodes(session):
    return [node.name.split("-", 1)[1] for node in session._local.graph.nodes]


def test_a_stream_is_read_and_filtered_once_for_all_queries(session, monkeypatch):
    filtered = []
    select = Select.on_batch
    monkeypatch.setattr(Select, "on_batch", lambda *args: filtered.append(args[2].height) or select(*args))
    session.add("a", COUNTS)
    one = nodes(session)
    session.add("b", SUMS)
    two = nodes(session)
    assert (one.count("admit"), two.count("admit")) == (1, 1)
    assert two.count("paned") == 2  # they did not begin with the same row
    session.push("s", rows(0, 100))
    assert filtered == [100]
    session.drop("a")
    assert sorted(nodes(session)) == sorted(one)
    session.push("s", rows(100, 110))
    assert filtered == [100, 10]
    session.drop("b")
    assert nodes(session) == []
    assert not session._local.common.reads
    assert not session._local.common.filtered


def test_queries_added_together_share_panes(session):
    session.add(a=COUNTS, b=SUMS, c=JOINED)
    assert [name for name in nodes(session) if name.endswith("panes")] == ["panes", "shared-panes"]
    with pytest.raises(PlanError, match="share state: pause all of them: a, b"):
        session.pause("a")
    session.pause("a", "b")
    assert {n: q.status for n, q in session.queries().items()} == {"a": "paused", "b": "paused", "c": "running"}


def test_state_of_a_dropped_query_is_freed(session):
    session.add("a", COUNTS)
    session.push("s", rows(0, 100))
    alone = session._local.state_bytes()
    session.add("b", SUMS)
    session.push("s", rows(100, 105))
    session.drop("b")
    session.push("s", rows(105, 110))
    assert 0 < session._local.state_bytes() < 2 * alone


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.drop("nobody"), QueryError, "there is no query 'nobody' in this session; available: a"),
        (lambda s: s.drop(), QueryError, "drop.. takes the name of a query"),
        (lambda s: s.drop("a", "nobody"), QueryError, "there is no query 'nobody'"),
        (lambda s: s.pause("nobody"), QueryError, "there is no query 'nobody'"),
        (lambda s: s.resume("a"), QueryError, "'a' is running, and only a query that is paused can be resumed"),
        (lambda s: s.explain("nobody"), QueryError, "there is no query 'nobody'"),
        (lambda s: s.results("nobody"), QueryError, "there is no query 'nobody'"),
        (lambda s: s.add("a", SUMS), QueryError, "there is a query 'a' already"),
        (lambda s: s.add(b=SUMS, a=SUMS), QueryError, "there is a query 'a' already"),
        (lambda s: s.add("../b", SUMS), QueryError, "is not a name for a query"),
        (lambda s: s.add(), QueryError, "takes a name and a query"),
        (lambda s: s.add("b"), QueryError, "takes a name and a query"),
        (lambda s: s.add("b", 7), QueryError, "must be SQL or a query made from streams, not int"),
        (lambda s: s.add("b", "SELECT 1 FROM nowhere"), QueryError, "nowhere"),
        (lambda s: s.add("b", stream("s").where("x > 1")), QueryError, "not a stream of this session"),
        (lambda s: s.drop_stream("s"), QueryError, "stream 's' has queries: drop them first: a"),
        (lambda s: s.drop_stream("v"), QueryError, "there is no stream 'v' in this session; available: s, u"),
        (lambda s: s.push("v", []), QueryError, "there is no stream 'v' in this session; available: s, u"),
        (lambda s: s.set_strategy("LIFO"), QueryError, "'LIFO' is not a strategy"),
        (lambda s: s.set_strategy("DFS-0"), QueryError, "at least one row"),
        (lambda s: s.set_strategy("BFS", "nobody"), QueryError, "there is no query 'nobody'"),
        (lambda s: s.start(), PlanError, "is for sessions over endless Spark sources"),
        (lambda s: s.restore({}), CheckpointError, "is not a snapshot of a session"),
    ],
)
def test_what_is_refused_disturbs_nothing(session, call, error, message):
    session.add("a", COUNTS)
    session.push("s", rows(0, 15))
    with pytest.raises(error, match=message):
        call(session)
    session.push("s", rows(15, 45))
    alone = wr.sql(COUNTS, s=stream()).run()
    alone.push("s", rows(0, 15)).push("s", rows(15, 45))
    assert session.results("a").sort("k", "window_end").rows() == alone.results().sort("k", "window_end").rows()
    assert list(session.queries()) == ["a"]


def test_a_query_over_a_dropped_stream(session):
    session.drop_stream("u")
    with pytest.raises(QueryError, match="'b' is over the stream 'u', which was dropped from this session"):
        session.add("b", JOINED)
    with pytest.raises(QueryError, match="there is no stream 'u' in this session; available: s"):
        session.push("u", rows(0, 1))
    again = wr.Session(s=stream("s"), u=stream("u")).restore(session.snapshot())
    with pytest.raises(QueryError, match="which was dropped"):
        again.add("b", JOINED)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "a session needs at least one stream"),
        ({"s": 3}, "must be a stream as wr.stream"),
        ({"t": stream("s")}, "is a stream with the name 's': use that name"),
        ({"s": stream().where("x > 1")}, "add what is computed from it as a query"),
        ({"s": stream(), "folder": "x"}, "folder= is for sessions over endless Spark sources"),
        ({"s": stream(), "tasks": 2}, "tasks= is for sessions over endless Spark sources"),
    ],
)
def test_sessions_that_are_refused(options, message):
    with pytest.raises(QueryError, match=message):
        wr.Session(**options)


def test_a_python_query_must_be_given_again(session):
    longest = session.streams["s"].window(10).agg(most=wr.max("x"))
    session.add("longest", longest)
    session.push("s", rows(0, 9))
    state = session.snapshot()
    again = wr.Session(s=stream("s"), u=stream("u"))
    with pytest.raises(QueryError, match="'longest' was not given as SQL: give it again, longest="):
        again.restore(state)
    other = again.streams["s"].window(20).agg(most=wr.max("x"))
    with pytest.raises(CheckpointError, match="is not what it was"):
        again.restore(state, longest=other)
    again.restore(state, longest=again.streams["s"].window(10).agg(most=wr.max("x")))
    again.push("s", rows(9, 30))
    assert again.results("longest").rows()[0] == (0, 10, 4)


def test_an_error_of_one_query_stops_it_alone(session):
    def lower(state):
        if state > 10:
            raise ValueError("no more")
        return state

    brittle = wr.aggregate("brittle", int, max, lower, state="BIGINT", result="BIGINT")
    session.add(a=COUNTS, bad=session.streams["s"].window(10).agg(m=brittle("ts")))
    session.push("s", rows(0, 13))
    assert session.results("bad").rows() == [(0, 10, 9)]
    session.push("s", rows(13, 60))
    found = session.queries()
    assert (found["a"].status, found["bad"].status) == ("running", "failed")
    assert "no more" in found["bad"].error
    assert session.results("a").height
    session.drop("bad")
    assert list(session.queries()) == ["a"]
    session.add("bad", COUNTS)  # the name is free again
    assert session.queries()["bad"].status == "running"
