"""Staged situations, in process and on the simulated Spark: the sentence names the culprit, and says what is true."""

from datetime import datetime, timedelta

import polars as pl
import pytest

import windrow as wr
from windrow import count
from windrow.hosts.reporting import merged
from windrow.hosts.why import why
from windrow.testing.simulated import SimulatedSpark

NOON = datetime(2024, 1, 1, 12)
SCHEMA = {"ts": pl.Datetime("us"), "k": pl.String, "n": pl.Int64}


def rows(*minutes, k="a", shift=0.0):
    times = [NOON + timedelta(minutes=m + shift) for m in minutes]
    return pl.DataFrame({"ts": times, "k": k, "n": range(len(times))}, schema=SCHEMA)


class InProcess:
    """Each source of a micro-batch is pushed by itself."""

    def source(self, name, schema=None, **how):
        return wr.stream(pl.DataFrame(schema=schema or SCHEMA), "ts", name=name, **how)

    def start(self, query):
        self.run = query.run()

    def push(self, **given):
        for name, frame in given.items():
            self.run.push(name, frame)

    def why(self):
        return self.run.why()

    def restart(self, query):
        state = self.run.snapshot()
        self.start(query)
        self.run.restore(state)


class OnSpark:
    """The Spark host, without Spark."""

    def __init__(self):
        self.spark = SimulatedSpark(shards=3)

    def source(self, name, schema=None, **how):
        return wr.stream(self.spark.stream(schema or SCHEMA), "ts", name=name, **how)

    def start(self, query):
        self.running = self.spark.start(query)

    def push(self, **given):
        self.last = self.running.push(given)

    def why(self):
        return why(merged(self.last.reports))

    def restart(self, query):
        self.running = self.spark.start(query, self.running.checkpoint)


@pytest.fixture(params=[InProcess, OnSpark])
def host(request):
    return request.param()


def per_minute(stream, length="5 minutes"):
    return stream.window(length).group_by("k").agg(rows=count())


def found(host, name, *facts):
    answer = host.why()
    assert answer.cause.name == name, answer.text
    for fact in facts:
        assert fact in answer.cause.sentence, answer.cause.sentence
    assert answer.text.startswith(answer.cause.sentence)
    return answer.cause


def test_an_idle_source(host):
    data, control = host.source("data", slack="1 minute"), host.source("control", slack="1 minute")
    host.start(per_minute(data.union(control)))
    host.push(data=rows(0, 1), control=rows(5))
    for at in (10, 20, 30):
        host.push(data=rows(*range(at, at + 10)))
    cause = found(
        host,
        "idle source",
        "Waiting for source `control`: last promise 2024-01-01 12:04:00",
        "7 windows up to 2024-01-01 12:35:00 are ready but for it",
    )
    assert (cause.source, cause.last, cause.needs) == ("control", "2024-01-01 12:04:00", "2024-01-01 12:05:00")
    assert (cause.ready, cause.upto, cause.held) == (7, "2024-01-01 12:35:00", 8)
    host.push(control=rows(40))
    assert host.why().cause.name != "idle source"


def test_a_source_that_has_never_sent_anything(host):
    data, control = host.source("data", slack="0 seconds"), host.source("control", slack="0 seconds")
    host.start(per_minute(data.union(control)))
    host.push(data=rows(0, 12))
    host.push(data=rows(13, 14))
    cause = found(host, "idle source", "source `control`: it has promised nothing yet, no row has come from it")
    assert cause.since == "the start"


def test_a_stuck_partition(host):
    data = host.source("data", punctuation=wr.promise.partitions("k", 3, "1 minute"))
    host.start(data.window("5 minutes").agg(rows=count()))
    host.push(data=pl.concat([rows(0, 20, k="p0"), rows(1, 19, k="p1")]))
    found(host, "stuck partition", "Waiting for 1 of the 3 partitions of source `data` (by k): nothing has come")
    host.push(data=pl.concat([rows(25, k="p0"), rows(24, k="p1"), rows(8, k="p2")]))
    assert host.why().cause.name == "waiting"  # all of them go on
    host.push(data=pl.concat([rows(26, k="p0"), rows(25, k="p1")]))
    cause = found(
        host,
        "stuck partition",
        "Waiting for partition p2 of source `data`: it has come to 2024-01-01 12:08:00, and no further",
        "since micro-batch 1;",
        "the furthest one has come to 2024-01-01 12:26:00",
        "last promise 2024-01-01 12:07:00",
    )
    assert (cause.source, cause.at, cause.needs) == ("data", "p2", "2024-01-01 12:10:00")


MARKED = {**SCHEMA, "mark": pl.Datetime("us")}


def unmarked(frame):
    return frame.with_columns(pl.lit(None, pl.Datetime("us")).alias("mark"))


def marker(minute, **values):
    at = NOON + timedelta(minutes=minute)
    return pl.DataFrame([{"ts": None, "k": None, "n": None, "mark": at, **values}], schema=MARKED)


def test_missing_punctuation(host):
    host.start(per_minute(host.source("data", MARKED, punctuation="mark")))
    host.push(data=unmarked(rows(0, 7, 30)))
    found(host, "missing punctuation", "first marker of source `data`: 3 rows have come and no marker", "3 partials")
    host.push(data=marker(6))
    found(host, "waiting", "source `data`: last promise 2024-01-01 12:06:00, 2024-01-01 12:10:00 is needed")


def test_slack_that_is_too_large(host):
    host.start(per_minute(host.source("data", slack="1 hour")))
    host.push(data=rows(0, 10))
    host.push(data=rows(20, 30))
    cause = found(
        host,
        "slack too large",
        "source `data`: its rows cover 30 minutes, and it promises 1 hour behind the greatest ts",
        "the first release needs a row at 2024-01-01 13:05:00 or later",
    )
    assert cause.needs == "2024-01-01 12:05:00"
    host.push(data=rows(65))
    assert host.why().cause.name == "waiting"
    assert host.why().report.results == 1


def test_a_clock_in_the_future(host):
    host.start(per_minute(host.source("data", slack="1 minute")))
    host.push(data=rows(0, 1, 2))
    host.push(data=rows(3, 60 * 24 * 365))
    host.push(data=rows(4, 5, 6))
    cause = found(
        host,
        "future clock",
        "A row of source `data` is at 2024-12-31 12:00:00",
        "ahead of the rows that come now (2024-01-01 12:06:00)",
        "3 rows have been late",
    )
    assert cause.source == "data"
    assert "ahead=" in cause.remedy


def test_a_clock_that_is_ahead_of_another(host):
    first, second = host.source("first", slack="10 seconds"), host.source("second", slack="10 seconds")
    host.start(per_minute(first.union(second), "1 minute"))
    for at in range(5):
        host.push(first=rows(at), second=rows(at, shift=17))
    cause = found(
        host,
        "clock ahead",
        "Source `second` is 17 minutes ahead of source `first`",
        "5 windows up to 2024-01-01 12:20:00 are ready",
    )
    assert cause.source == "first"


def test_all_rows_late(host):
    host.start(per_minute(host.source("data", MARKED, punctuation="mark")))
    host.push(data=pl.concat([unmarked(rows(0, 1)), marker(60)]))
    host.push(data=unmarked(rows(2, 3)))
    cause = found(
        host,
        "all rows late",
        "source `data` are late: it has promised 2024-01-01 13:00:00",
        "from 2024-01-01 12:02:00 to 2024-01-01 12:03:00",
        "2 rows have been late",
    )
    assert "58 minutes behind the promise" in cause.remedy


def test_old_rows_that_are_read_again_are_late_and_no_clock_is_wrong(host):
    host.start(per_minute(host.source("data", slack="1 minute")))
    host.push(data=rows(60, 70, 80))
    host.push(data=rows(0, 1, 2))
    found(host, "all rows late", "it has promised 2024-01-01 13:19:00")


def test_a_filter_that_removes_everything(host):
    host.start(per_minute(host.source("data", slack="1 minute").where("k = 'b' AND n > 1")))
    host.push(data=rows(0, 10, 20))
    cause = found(host, "filter removes everything", "The condition k = 'b' AND n > 1 has removed all 3 rows of source")
    assert cause.source == "data"
    host.push(data=rows(25, 30, 40, k="b"))
    assert host.why().cause.name == "waiting"


def test_a_silent_group_under_group_wise_punctuation(host):
    data = host.source("data", MARKED, punctuation=wr.promise.markers("mark", by="k"))
    host.start(per_minute(data))
    host.push(data=pl.concat([unmarked(rows(0, 7, k="a")), unmarked(rows(0, 7, k="b"))]))
    host.push(data=pl.concat([marker(12, k="a"), unmarked(rows(13, k="a"))]))
    cause = found(host, "silent group", 'marker about k = "b" of source `data`: it has never been promised anything')
    assert (cause.source, cause.at) == ("data", '"b"')
    host.push(data=marker(6, k="b"))
    found(host, "silent group", 'k = "b" of source `data`: closed up to 2024-01-01 12:05:00')


def test_a_wrong_time_zone(host):
    local, utc = host.source("local", slack="10 seconds"), host.source("utc", slack="10 seconds")
    host.start(per_minute(local.union(utc), "1 minute"))
    for at in range(0, 12, 3):
        host.push(utc=rows(at, at + 1, at + 2), local=rows(at, at + 2, shift=-5.5 * 60))
    cause = found(host, "wrong time zone", "Source `local` is 5 hours 30 minutes behind source `utc`")
    assert cause.source == "local"


def test_nothing_has_been_read(host):
    host.start(per_minute(host.source("data", slack="1 minute")))
    host.push(data=rows())
    found(host, "nothing read", "Nothing has been read from source `data`")


def test_nothing_waits(host):
    host.start(per_minute(host.source("data", slack="0 seconds"), "1 minute").where("rows > 0"))
    host.push(data=rows(0))
    found(host, "waiting", "source `data`: last promise 2024-01-01 12:00:00, 2024-01-01 12:01:00 is needed")


def test_what_is_known_survives_a_restart(host):
    query = per_minute(host.source("data", slack="1 minute").union(host.source("control", slack="1 minute")))
    host.start(query)
    host.push(data=rows(0, 1), control=rows(5))
    host.push(data=rows(20, 30))
    host.push(data=rows(32))
    before = host.why()
    host.restart(query)
    host.push(data=rows(34))
    after = host.why()
    assert after.cause.name == before.cause.name == "idle source"
    assert [source.read for source in after.report.sources] == [6, 1]
    then, now = (each.report.source("control:ts").seen for each in (before, after))
    assert (now.missed, now.came, now.promised) == (then.missed + 1, then.came, then.promised)


def test_late_and_bad_rows_have_examples(host):
    host.start(per_minute(host.source("data", slack="0 seconds")))
    host.push(data=rows(0, 20))
    bad = pl.DataFrame({"ts": [None, NOON], "k": ["nul", "late"], "n": [7, 8]}, schema=SCHEMA)
    host.push(data=bad)
    report = host.why().report
    [late] = report.late.values()
    [(where, aside)] = report.bad.items()
    assert (late.count, aside.count) == (1, 1)
    assert '"late"' in late.examples[0]
    assert where.endswith("the progress value is NULL")
    assert '"k": "nul"' in aside.examples[0]


def test_a_filter_that_leaves_nothing_to_join_with(host):
    left, right = host.source("left", slack="1 minute"), host.source("right", slack="1 minute")
    host.start(left.join(right.where("n > 100"), on="k", within=("0 minutes", "5 minutes")))
    for at in (0, 10, 20):
        host.push(left=rows(at), right=rows(at))
    found(host, "filter removes everything", "The condition n > 100 has removed all 3 rows of source `right`")


def test_a_filter_that_removes_one_of_several_streams_is_not_why_the_others_wait(host):
    data, other = host.source("data", slack="1 minute"), host.source("other", slack="1 minute")
    host.start(per_minute(data.union(other.where("n > 100"))))
    host.push(data=rows(0, 1), other=rows(0))
    found(host, "waiting", "2024-01-01 12:05:00 is needed")


def test_a_window_over_windows_asks_its_source_for_what_the_outer_one_needs(host):
    first = per_minute(host.source("data", slack="1 minute"))
    host.start(first.window("1 hour", on="window_time").agg(rows=wr.sum("rows")))
    host.push(data=rows(0, 20))
    host.push(data=rows(30))
    report = host.why().report
    [outer] = [held for held in report.held if held.stage == 1]
    assert report.source("data:ts").text(outer.asks["data:ts"]) == "2024-01-01 13:00:00"
