"""Each warning: a run that draws it once, with the numbers and the remedy, and its neighbour that does not."""

from dataclasses import replace
from datetime import datetime, timedelta

import polars as pl
import pytest
from staged import BEGIN, micros, rows, rules, said, source, spread

import windrow as wr
from windrow.hosts.outline import Outline, SourceOutline, StageOutline
from windrow.hosts.report import Part, Report, Source
from windrow.hosts.tally import Seen
from windrow.hosts.warnings import RULES, Looked, Watching, warned
from windrow.hosts.warnings.watching import MOST

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


def counts(stream, range="10 seconds", slide=None):
    return stream.window(range, slide).agg(n=wr.count())


def live(count, per=40, shift=timedelta(0), name="s"):
    """Micro-batches of a second of rows each, which come as they happen."""
    return [{name: rows(*spread(BEGIN + (n - 1) * SECOND + shift, SECOND, per))} for n in range(count)]


# -- nothing wrong -----------------------------------------------------------------------------------------------------
def test_a_healthy_stream_draws_no_warning():
    assert said(counts(source()), live(40), endless=("s",)) == []


def test_files_that_are_read_faster_than_they_were_written_draw_no_warning():
    """An hour of rows in each micro-batch, from long ago."""
    batches = [{"s": rows(*spread(BEGIN + n * HOUR, HOUR, 200))} for n in range(30)]
    assert said(counts(source()), batches, begin=BEGIN + timedelta(days=90), endless=("s",)) == []


def test_a_union_of_files_that_are_read_at_different_speeds_draws_no_warning():
    both = source("a").union(source("b"))
    batches = [
        {"a": rows(*spread(BEGIN + n * HOUR, HOUR, 150)), "b": rows(*spread(BEGIN + n * MINUTE, MINUTE, 150))}
        for n in range(20)
    ]
    assert said(counts(both), batches, begin=BEGIN + timedelta(days=90), endless=("a", "b")) == []


# -- slack of zero -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({"slack": 0}, True),
        ({"slack": "1 second"}, False),
        ({"slack": None, "punctuation": wr.promise.ordered()}, False),
        ({"slack": None, "punctuation": wr.promise.slack(0)}, True),
        ({"slack": None, "punctuation": wr.promise.partitions("k", 3)}, False),
    ],
)
def test_a_slack_of_zero_is_a_hint_where_the_stream_has_no_end(declared, expected):
    query = counts(source(**declared))
    found = said(query, live(4), endless=("s",))
    assert rules(found) == (["slack_of_zero"] if expected else [])
    assert said(query, live(4)) == []
    if expected:
        [(batch, hint)] = found
        assert batch == 0
        assert hint.hint
        assert "Source `s` has a slack of zero" in hint.says
        assert "slack='10 seconds'" in hint.says
        assert "wr.promise.ordered()" in hint.says


# -- units -------------------------------------------------------------------------------------------------------------
def at(seconds):
    return [seconds, seconds + 3600]


@pytest.mark.parametrize(
    ("values", "mistake"),
    [
        ([BEGIN.timestamp() / 1000], "looks like seconds since 1970 read as milliseconds"),
        ([BEGIN.timestamp() / 1e6], "looks like seconds since 1970 read as microseconds"),
        ([BEGIN.timestamp() / 1e6, 50 * 365 * 86400], None),
        ([0.0, 90.0, 600.0], None),
        ([0.0, 86400.0 * 30], None),
        ([BEGIN.timestamp()], None),
    ],
)
def test_timestamps_of_a_wrong_unit_are_seen_by_where_they_are(values, mistake):
    moments = [datetime(1970, 1, 1) + timedelta(seconds=v) for v in values]
    frame = rows(*moments)
    found = warned(Looked(planned_of(wr.stream(frame, "ts", slack=0, name="s"))))
    assert [each.rule for each in found] == (["epoch_unit"] if mistake else [])
    if mistake:
        assert mistake in found[0].says
        assert "timestamp_seconds(c)" in found[0].says


def test_milliseconds_read_as_seconds_are_thousands_of_years_ahead():
    outline = SourceOutline("s:ts", "s", "ts", "timestamp", "")
    far = 1_704_103_200_000 * 1_000_000
    seen = Seen(5, least=far, greatest=far + 10**9)
    report = Report(Outline((outline,), ()), -1, (Source(outline, seen, 5),), (), (), {}, {}, 0, 0)
    [found] = warned(Looked(report))
    assert "looks like milliseconds since 1970 read as seconds" in found.says


def planned_of(query):
    from windrow.hosts.warnings import planned

    return planned(query.plan(), query._samples())


EPOCH = 1_704_103_200


@pytest.mark.parametrize(
    ("unit", "length", "says"),
    [
        (1000, 60, "looks like milliseconds since 1970, and a window of 60 is 0.06 seconds then. "),
        (1000, 3600, "If 3600 seconds are meant, write 3600000."),
        (10**6, 60_000, "If 60 seconds are meant, write 60000000."),
        (10**9, 60, "If 60 seconds are meant, write 60000000000."),
        (1, 60_000, "a window of 60000 is 16.7 hours then. If 60 seconds are meant, write 60."),
        (1, 3_600_000, "If 3600 seconds are meant, write 3600."),
        (1, 60, None),
        (1, 3600, None),
        (1, 10_000, None),
        (1, 86_400, None),
        (1000, 60_000, None),
        (1000, 250, None),
        (1000, 1000, None),
        (10**6, 5_000_000, None),
    ],
)
def test_numbers_and_lengths_of_different_units_are_seen_together(unit, length, says):
    frame = [{"t": (EPOCH + n) * unit} for n in range(100)]
    query = wr.stream(frame, "t", slack=0, name="s").window(length).agg(n=wr.count())
    found = [each for each in warned(Looked(planned_of(query))) if each.rule == "epoch_unit"]
    assert [says in each.says for each in found] == ([True] if says else [])


def test_small_numbers_are_not_times():
    query = wr.stream([{"t": n} for n in range(50)], "t", slack=0).window(60).agg(n=wr.count())
    assert warned(Looked(planned_of(query))) == []


# -- windows and what rows cover ---------------------------------------------------------------------------------------
def test_all_rows_in_one_window_is_said_when_time_goes_on_and_the_column_does_not():
    """A creation date instead of the time of the event: all rows are within a few milliseconds."""
    batches = [{"s": rows(*spread(BEGIN + n * timedelta(milliseconds=1), SECOND / 1000, 100))} for n in range(40)]
    found = said(counts(source(), "1 hour"), batches)
    assert rules(found) == ["one_window"]
    says = found[0][1].says
    assert "rows of source `s` are in one window: their ts is from 2024-01-01 10:00:00 to 2024-01-01 10:00:00.0" in says
    assert "a window begins every 1 hour. Is ts the time of the rows, and in the right unit?" in says


def test_a_constant_column_needs_no_clock():
    found = said(counts(source(), "1 hour"), [{"s": rows(*[BEGIN] * 500)}] * 2)
    assert [(n, each.rule, each.hint) for n, each in found] == [(1, "one_window", False)]


def test_a_window_longer_than_the_rows_so_far_is_a_hint():
    half = 30 * MINUTE
    found = said(counts(source(), "1 hour"), live(90, shift=half), begin=BEGIN + half)
    assert [(n, each.rule, each.hint) for n, each in found] == [(60, "long_window", True)]
    says = found[0][1].says
    assert "No window of 1 hour is over yet: the rows of source `s` so far cover 1 minute (" in says
    assert "EMIT EARLY" in says
    at_the_end = said(counts(source(), "1 hour"), live(2, shift=half), begin=BEGIN + half, final=True)
    assert rules(at_the_end) == ["long_window"]
    assert said(counts(source(), "1 second"), live(10)) == []


# -- late rows ---------------------------------------------------------------------------------------------------------
def test_every_row_late_names_the_slack_that_would_do():
    old = [{"s": rows(*spread(BEGIN - HOUR, SECOND, 200))}]
    found = said(counts(source()), [*live(20), *old, *old])
    assert rules(found) == ["every_row_late"]
    batch, warning = found[0]
    assert batch == 20
    assert "The rows of source `s` are late: it has promised 2024-01-01 10:00:16" in warning.says
    assert "from 2024-01-01 09:00:00 to 2024-01-01 09:00:00.995" in warning.says
    assert "up to 1 hour" in warning.says or "3616 seconds" in warning.says
    assert "more slack" in warning.says


def test_some_late_rows_are_no_reason_for_a_warning():
    some = [{"s": rows(*spread(BEGIN - HOUR, SECOND, 20), *spread(BEGIN + 20 * SECOND, SECOND, 100))}]
    few = [{"s": rows(*spread(BEGIN - HOUR, SECOND, 20))}]
    assert said(counts(source()), [*live(20), *some, *few]) == []


# -- filters -----------------------------------------------------------------------------------------------------------
def test_a_filter_that_lets_nothing_pass():
    found = said(counts(source().where("x > 100")), live(40))
    assert rules(found) == ["nothing_passes"]
    batch, warning = found[0]
    assert batch == 24  # when there were a thousand rows
    assert "The condition x > 100 has removed all 1,000 rows of source `s`" in warning.says
    assert "NULL" in warning.says


def test_a_filter_that_lets_one_row_pass_is_a_filter():
    batches = live(40)
    batches[30]["s"] = pl.concat([batches[30]["s"], rows(BEGIN + 30 * SECOND, x=101)])
    assert "nothing_passes" not in rules(said(counts(source().where("x > 100"), "1 second"), batches[30:]))


# -- clocks ------------------------------------------------------------------------------------------------------------
def test_one_row_of_a_wrong_clock_is_the_cause_and_not_slack():
    wrong = {"s": rows(BEGIN + 3 * HOUR + 7 * MINUTE)}
    after = [{"s": rows(*spread(BEGIN + n * SECOND, SECOND, 200))} for n in range(10, 13)]
    found = said(counts(source()), [*live(10), wrong, *after])
    assert rules(found) == ["clock_ahead"]
    assert "13:07:00" in found[0][1].says
    assert "ahead='1 minute', arrival=.." in found[0][1].says


def test_rows_from_the_future():
    found = said(counts(source()), live(20, shift=5 * MINUTE))
    assert rules(found) == ["clock_ahead"]
    batch, warning = found[0]
    assert batch == 0
    assert "has rows from the future: ts 2024-01-01 10:04:59.975000 was read in micro-batch 0" in warning.says
    assert "began at 2024-01-01 10:00:00Z" in warning.says
    assert said(counts(source()), live(20, shift=30 * SECOND)) == []


@pytest.mark.parametrize("hours", [2, -5, 5.5])
def test_local_times_read_as_utc(hours):
    found = said(counts(source()), live(90, shift=timedelta(hours=hours)))
    assert rules(found) == ["time_zone"]
    batch, warning = found[0]
    assert batch == (0 if hours > 0 else 60)  # old rows look the same for a while
    assert f"are {'2 hours' if hours == 2 else '5 hours' if hours == -5 else '5 hours 30 minutes'}" in warning.says
    assert ("ahead of the clock" if hours > 0 else "behind the clock") in warning.says
    assert "to_utc_timestamp" in warning.says


def test_two_sources_an_hour_apart():
    both = source("a").union(source("b"))
    batches = [{**a, **b} for a, b in zip(live(90, name="a"), live(90, shift=-HOUR, name="b"), strict=True)]
    one = said(counts(both), batches)
    assert [(n, each.rule) for n, each in one] == [(60, "time_zone")]
    assert "All rows of source `b` are 1 hour behind the clock" in one[0][1].says
    # Where the clock says nothing, because the rows are from earlier, the other source does.
    two = said(counts(both), batches, begin=BEGIN + timedelta(days=2))
    assert rules(two) == ["time_zone"]
    assert 60 <= two[0][0] <= 70  # not all earlier reports are remembered
    assert "Source `b` is 1 hour behind source `a`, and rows of both keep coming" in two[0][1].says


# -- state -------------------------------------------------------------------------------------------------------------
def growing(count, size, moves=True, kind="timestamp", length=10_000_000, algorithm="paned"):
    """Reports of micro-batches of 100 rows whose state is ``size`` of the micro-batch in MiB."""
    outline = SourceOutline("s:ts", "s", "ts", kind, "", slack=0)
    stage = StageOutline(0, "", algorithm, kind, ("s:ts",), length, length)
    now, found = micros(BEGIN), []
    for n in range(count):
        done = n if moves else 0
        seen = Seen(100 * n, now + done * 10**6, now, now + n * 10**6, (100, now, now), 0, n, done)
        part = Part("stage0/1-x", bytes=int(size(n) * 2**20))
        sources = (Source(outline, seen, 100 * n),)
        found.append(Report(Outline((outline,), (stage,)), n, sources, (), (part,), {}, {}, 1, 0))
    return found


def over(reports):
    watching = Watching()
    return [(r.batch, each) for r in reports for each in watching.news(r) if each.rule == "growing_state"]


def test_state_that_grows_though_promises_go_on():
    [(batch, warning)] = over(growing(200, lambda n: 1 + n))
    assert batch >= 20  # two windows
    assert "The state grows with every micro-batch" in warning.says
    assert "most of it in x of stage 0" in warning.says
    assert "state_limit=" in warning.says


def test_state_that_grows_because_nothing_is_promised():
    [(batch, warning)] = over(growing(200, lambda n: 1 + n, moves=False))
    assert batch >= 8
    assert "source `s` has promised nothing more since micro-batch 0" in warning.says


@pytest.mark.parametrize(
    ("size", "more"),
    [
        (lambda n: 1 + n / 100, {}),  # small
        (lambda n: 50 + n % 7, {}),  # steady
        (lambda n: min(60, 1 + n), {"length": 60_000_000}),  # full after a window
        (lambda n: 1 + n, {"length": None, "algorithm": "sessions"}),  # nobody knows how long a session is
    ],
)
def test_state_as_it_should_be(size, more):
    assert over(growing(200, size, **more)) == []


def test_what_never_ends_is_named_without_a_length():
    assert len(over(growing(200, lambda n: 1 + n, length=None, algorithm="as-of-join"))) == 1


def test_more_state_for_more_rows_is_no_leak():
    reports = growing(200, lambda n: 1 + n)
    more = [
        replace(r, sources=tuple(replace(s, seen=replace(s.seen, recent=(100 * (n + 1), 0, 0))) for s in r.sources))
        for n, r in enumerate(reports)
    ]
    assert over(more) == []


def test_few_reports_are_remembered_and_the_first_is_among_them():
    watching = Watching()
    for report in growing(500, lambda n: 1):
        watching.news(report)
        watching.news(report)  # a second look changes nothing
    assert len(watching.before) <= MOST
    assert (watching.before[0].batch, watching.before[-1].batch) == (0, 499)


# -- all of them -------------------------------------------------------------------------------------------------------
def test_a_warning_is_one_line_and_is_given_once():
    batches = [*live(20, shift=5 * MINUTE), *[{"s": rows(*spread(BEGIN - HOUR, SECOND, 200))}] * 3]
    found = said(counts(source(slack=0), "1 hour"), batches, endless=("s",))
    assert len(found) == len({each.key for _, each in found}) > 2
    for _, each in found:
        assert "\n" not in each.line
        assert each.line.startswith("hint: " if each.hint else "warning: ")
        assert each.line.endswith(".") or each.line.endswith("?")


def test_each_rule_has_a_file_of_its_name():
    assert [rule.__module__.rpartition(".")[2] for rule in RULES] == [rule.__name__ for rule in RULES]
