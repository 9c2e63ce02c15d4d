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
    session.push("s", rows(0, 0))
    session.add("b", SUMS)
    two = nodes(session)
    assert (one.count("admit"), two.count("admit")) == (1, 1)
    assert two.count("paned") == 2  # they did not begin with the same row
    filtered.clear()
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


@pytest.mark.parametrize("hint", ["/*+ USING(sync-filter) */", "/*+ USING(adaptive), COST(0.1) */", ""])
def test_a_join_in_order_beside_the_same_join_without(session, hint):
    session.add(any=JOINED, order=f"SELECT {hint} s.x, greatest(s.ts, u.ts) AS at {JOINED[31:]} ORDER BY at")
    for at in range(0, 60, 7):
        session.push("u", rows(at, at + 7))
        session.push("s", rows(at, at + 7))
    found = session.results("order")
    assert found["at"].is_sorted()
    assert found.height > 50
    assert abs(found.height - session.results("any").height) < 20


@pytest.mark.parametrize("one_by_one", [False, True])
def test_queries_that_begin_together_share_panes(session, one_by_one):
    queries = {"a": COUNTS, "c": JOINED, "b": SUMS}
    for given in [{name: text} for name, text in queries.items()] if one_by_one else [queries]:
        session.add(**given)
    assert [name for name in nodes(session) if name.endswith("panes")] == ["panes", "shared-panes"]
    with pytest.raises(PlanError, match="share state: pause all of them: a, b"):
        session.pause("a")
    session.pause("a", "b")
    assert {n: q.status for n, q in session.queries().items()} == {"a": "paused", "b": "paused", "c": "running"}


def test_equal_joins_and_windows_of_one_call_are_one(session):
    over = f"SELECT count(*) AS n FROM ({JOINED}) [RANGE 10, SLIDE 10, WA ts]"
    session.add(a=JOINED, b=JOINED, c=over)
    assert nodes(session).count("join") == 1
    assert session.explain("a").startswith("shares state with b, c\n")
    session.push("u", rows(0, 0))
    session.add("d", JOINED)  # it did not begin with the same row
    assert nodes(session).count("join") == 2
    session.drop("a", "b")
    assert nodes(session).count("join") == 2
    for first in (0, 10, 20):
        session.push("s", rows(first, first + 10)).push("u", rows(first, first + 10))
    alone = wr.sql(over, s=stream("s"), u=stream("u")).run()
    for first in (0, 10, 20):
        alone.push("s", rows(first, first + 10)).push("u", rows(first, first + 10))
    assert session.results("c").rows() == alone.results().rows()


def test_a_name_that_is_used_again_is_another_query(session):
    session.add(a=COUNTS, b=SUMS)
    session.drop("a")
    session.add("a", COUNTS)
    session.drop("b")  # of the group of the first a
    session.push("s", rows(0, 60))
    assert session.results("a").height


def test_the_name_of_a_python_query_whose_state_others_share_is_taken(session):
    s = session.streams["s"].where("x > 1")
    session.add(p=s.window(20, 10).group_by("k").agg(n=wr.count()), q=COUNTS)
    session.drop("p")
    with pytest.raises(QueryError, match="there was a query 'p', and q still share its state: use another name"):
        session.add("p", SUMS)
    with pytest.raises(QueryError, match=r"give it again, p=\.\.\. It was dropped, and others still share its state"):
        wr.Session(s=stream("s"), u=stream("u")).restore(session.snapshot())
    session.drop("q")
    session.add("p", SUMS)


def test_a_dropped_python_query_alone_is_not_asked_for_again(session):
    session.add(p=session.streams["s"].window(10).agg(most=wr.max("x")), q=COUNTS)
    session.drop("p")
    again = wr.Session(s=stream("s"), u=stream("u")).restore(session.snapshot())
    assert list(again.queries()) == ["q"]


def test_late_and_bad_rows_are_counted_and_kept_by_query(session):
    session.add("early", SUMS)
    session.push("s", rows(0, 60))
    session.add("later", SUMS)
    session.push("s", [*rows(5, 8), {"ts": "soon", "k": 1, "x": 2}, {"ts": None, "k": 1, "x": 2}])
    found = session.queries()
    # Only the row at 7 passes the filter of the queries; for the one that has seen nothing before, it is not late.
    assert {n: (q.rows_late, q.rows_bad) for n, q in found.items()} == {"early": (1, 2), "later": (0, 2)}
    assert session.late_rows("early")["rows"].sum() == 1
    assert session.late_rows("early").is_empty()
    assert session.bad_rows("later")["reason"].to_list() == session.bad_rows("early")["reason"].to_list()
    again = wr.Session(s=stream("s"), u=stream("u")).restore(session.snapshot())
    assert again.queries()["early"].rows_late == 1


def test_a_promise_is_about_the_progress_of_the_stream_only():
    s = wr.stream(pl.DataFrame(schema=SCHEMA), progress="ts", slack=2, also={"x": 0}, name="s")
    session = wr.Session(s=s)
    session.add("by_x", s.window(10, on="x").agg(n=wr.count()))
    session.add("by_ts", s.window(10).agg(n=wr.count()))
    session.push("s", [{"ts": 1, "k": 0, "x": 1}]).promise("s", 50)
    session.push("s", [{"ts": 55, "k": 0, "x": 2}, {"ts": 56, "k": 0, "x": 12}])
    assert session.results("by_x").rows() == [(0, 10, 2)]
    assert session.results("by_ts").rows() == [(0, 10, 1)]


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
        (lambda s: s.results("a", after=3), QueryError, "after=3. is for sessions on Spark"),
        (lambda s: s.add("-b", SUMS), QueryError, "of which the first is not '-'"),
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
        ({"s": stream(), "clock": 7}, "clock=7 must be a function that returns a datetime"),
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


def test_a_query_that_shares_panes_fails_alone(session):
    strict = SUMS.replace("WA ts]", "WA ts, LATE ERROR]")
    huge = SUMS.replace("sum(x)", "sum(x * 4611686018427387904)")
    session.add(a=COUNTS, strict=strict, huge=huge)
    session.push("s", rows(0, 45))
    session.push("s", rows(2, 3))
    found = session.queries()
    assert {n: q.status for n, q in found.items()} == {"a": "running", "strict": "failed", "huge": "failed"}
    assert "LateError: 1 late rows" in found["strict"].error
    assert "does not fit into 64 bits" in found["huge"].error
    assert found["a"].rows_late == 1
    session.push("s", rows(45, 70))
    alone = wr.sql(COUNTS, s=stream()).run().push("s", rows(0, 45)).push("s", rows(2, 3)).push("s", rows(45, 70))
    assert sorted(session.results("a").rows()) == sorted(alone.results().rows())


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
