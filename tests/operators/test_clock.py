"""Wall clocks: instants to what a clock shows and back, and promises through clocks that are put back."""

import datetime as dt
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.operators import WallClock
from windrow.progress import END, START, Punctuation
from windrow.spec.time import (
    MICRO,
    from_wall_clock,
    wall_clock,
    wall_promise,
)
from windrow.testing import compare, oracle, replay

ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"]
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
INSTANTS = st.datetimes(dt.datetime(2024, 1, 1), dt.datetime(2024, 12, 31)).map(lambda d: d.replace(tzinfo=dt.UTC))
CHECK = settings(deadline=None, derandomize=True, max_examples=60)


def micros(at):
    return (at - EPOCH) // MICRO


def shown(values, zone):
    return pl.DataFrame({"t": values}, schema={"t": pl.Int64}).select(wall_clock(pl.col("t"), zone))["t"].to_list()


@CHECK
@given(INSTANTS, st.sampled_from(ZONES))
def test_a_clock_shows_what_python_says(at, zone):
    local = at.astimezone(ZoneInfo(zone)).replace(tzinfo=dt.UTC)
    assert shown([micros(at)], zone) == [micros(local)]


@CHECK
@given(INSTANTS, INSTANTS, st.sampled_from(ZONES))
def test_no_later_instant_shows_less_than_promised(at, later, zone):
    at, later = sorted((at, later))
    promised = wall_promise(micros(at), zone)
    assert shown([micros(later)], zone)[0] >= promised
    # And it is the strongest such promise: some instant shows exactly that.
    hours = [micros(at) + i * 900_000_000 for i in range(4 * 30)]
    edge = from_wall_clock(pl.Series([promised]), zone).to_physical()[0]
    assert promised in shown([micros(at), edge, *hours, edge + 3_600_000_000, edge + 1_800_000_000], zone)


@pytest.mark.parametrize("zone", ZONES)
def test_bounds_come_in_the_order_of_the_clock(zone):
    year = [micros(dt.datetime(2024, 1, 1, tzinfo=dt.UTC)) + i * 600_000_000 for i in range(6 * 24 * 366)]
    back = from_wall_clock(pl.Series(year), zone)
    assert back.is_sorted()
    assert back.null_count() == 0


def test_start_end_and_what_no_calendar_has():
    clock = WallClock("Europe/Berlin")
    for value in (START, END):
        assert clock.on_punctuation(0, Punctuation(value)) == [Punctuation(value)]
    far = micros(dt.datetime(9999, 12, 31, tzinfo=dt.UTC))
    assert 0 < far - wall_promise(far, "Europe/Berlin") <= 86_400_000_000


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_days_and_quarters_of_days_over_both_changes_of_a_year(zone):
    changes = [dt.datetime(2024, m, d, tzinfo=dt.UTC) for m, d in ((3, 9), (3, 30), (10, 26), (11, 2))]
    rows = [{"ts": c + dt.timedelta(minutes=37 * i)} for c in changes for i in range(80)]
    for size in ("1 day", "6 hours", "1 hour"):
        query = wr.stream(rows, progress="ts", slack="5 hours").window(size, time_zone=zone).agg(n=wr.count())
        replay(query, runs=2)
        compare(query.collect(), oracle(query))
    days = wr.stream(rows, progress="ts").window("1 day", time_zone=zone).agg(n=wr.count()).collect()
    lengths = (days["window_end"] - days["window_start"]).dt.total_hours().unique().sort().to_list()
    assert lengths == [23, 24, 25]
