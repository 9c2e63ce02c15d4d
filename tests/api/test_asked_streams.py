"""What can be declared of a stream that is asked how far it has come."""

from datetime import date, datetime, timedelta

import polars as pl
import pytest

import windrow as wr

NOON = datetime(2024, 1, 1, 12)
ROWS = pl.DataFrame({"t": [NOON], "d": [date(2024, 1, 1)], "i": [1], "text": ["2024-01-01T12:00:00"]})


def declared(progress="t", **options):
    return wr.stream(ROWS, progress, name="s", **options).node.source


def test_lengths_are_of_the_clock_whatever_the_stream_progresses_on():
    assert declared(delay="5 seconds").delay == 5_000_000
    assert declared("d", slack="1 day", delay="5 seconds", idle_after=timedelta(minutes=1)).idle_after == 60_000_000
    assert declared("text", parse="iso8601", delay="1 second").promises
    both = declared(punctuation=wr.promise.delay("5 seconds"), idle_after="1 minute")
    assert (both.delay, both.idle_after) == (5_000_000, 60_000_000)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"progress": "i", "delay": 5}, "delay=5 compares 'i' with the time of day, and it is of type Int64"),
        ({"progress": "i", "slack": 5, "idle_after": 5}, "idle_after=5 compares 'i'"),
        ({"progress": "i", "punctuation": wr.promise.delay(5)}, "delay compares 'i'"),
        ({"delay": 5}, "needs a unit of time"),
        ({"delay": "-5 seconds"}, "delay must be zero or more"),
        ({"slack": "1 second", "idle_after": "0 seconds"}, "idle_after must be positive"),
        ({"idle_after": "1 minute"}, "nothing says how far it is while it has rows"),
        ({"progress": "arrival_ts", "delay": "5 seconds"}, "rows get arrival_ts as they arrive, so none is delayed"),
        ({"progress": "arrival_ts", "idle_after": "5 seconds"}, "rows get arrival_ts as they arrive"),
    ],
)
def test_what_has_no_meaning_is_refused(options, reason):
    with pytest.raises(wr.QueryError, match=reason):
        declared(**{"progress": "t", **options})


def test_dates_progress_by_whole_days():
    clock = iter([datetime(2024, 1, 3, 11), datetime(2024, 1, 3, 13)])
    s = wr.stream(ROWS, "d", delay="12 hours", name="s").window("1 day").agg(n=wr.count())
    run = s.run(clock=lambda: next(clock)).push("s", ROWS)
    assert [run.ask().results()["n"].to_list() for _ in range(2)] == [[1], []]  # at 11: the 2nd, 23:00


def test_rows_that_get_their_times_as_they_arrive_are_over_while_nothing_comes():
    clock = iter([NOON, NOON + timedelta(seconds=59), NOON + timedelta(seconds=60)])
    s = wr.stream(ROWS.drop("t"), "arrival_ts", name="s").window("1 minute").agg(n=wr.count())
    run = s.run(clock=lambda: next(clock)).push("s", ROWS.drop("t"))
    assert [run.ask().results()["n"].to_list() for _ in range(2)] == [[], [1]]


def test_a_clock_that_is_put_back_takes_nothing_back():
    clock = iter([NOON + timedelta(minutes=2), NOON - timedelta(days=1)])
    s = wr.stream(ROWS, "t", delay="5 seconds", name="s").window("1 minute").agg(n=wr.count())
    run = s.run(clock=lambda: next(clock)).push("s", ROWS)
    assert run.ask().results()["n"].to_list() == [1]
    assert run.ask().push("s", ROWS).counts["rows_late"] == 1


def test_a_session_asks_all_its_streams():
    clock = iter([NOON + timedelta(seconds=62), NOON + timedelta(seconds=65)])
    one = wr.stream(ROWS, "t", delay="5 seconds", name="one")
    two = wr.stream(ROWS, "t", slack="0 seconds", idle_after="1 second", name="two")
    session = wr.Session(one=one, two=two, clock=lambda: next(clock))
    session.add("both", "SELECT count(*) AS n FROM one UNION two [RANGE 1 MINUTE, WA t]")
    session.add("again", "SELECT count(*) AS n FROM one UNION two [RANGE 1 MINUTE, WA t]")
    session.push("one", ROWS).push("two", ROWS)
    assert session.ask().results("both").height == 0
    assert [session.ask().results("both")["n"].to_list(), session.results("again")["n"].to_list()] == [[2], [2]]
    session.drop("again")


def test_a_query_without_such_a_stream_can_be_asked_in_vain():
    run = wr.stream(ROWS, "t", slack="0 seconds", name="s").window("1 minute").agg(n=wr.count()).run()
    assert run.push("s", ROWS).ask().results().height == 0
