"""Between progress values and what a result shows of them: column types, and the wall clock of a time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from windrow.errors import ResultError
from windrow.operators.operator import PROGRESS, Batch, Item, Rolling
from windrow.progress import END, START, Punctuation
from windrow.windows.tuples import Ints

EPOCH = datetime(1970, 1, 1)
MICRO = timedelta(microseconds=1)
DAY = 86_400_000_000
FAR = 60_000_000_000_000_000  # microseconds, about 1900 years; a datetime ends 8000 years after 1970, or 2000 before
HORIZON = timedelta(hours=26)  # no clock is ever put back by more


@dataclass(frozen=True)
class Bounds:
    """Values of the windowing attribute as a column of its type."""

    dtype: pl.DataType
    zone: str | None = None

    def column(self, name: str, values: Ints) -> pl.Series:
        """Integers, or wall-clock microseconds if there is a zone, as values of the attribute."""
        physical = pl.Series(name, values, dtype=pl.Int64)
        if self.dtype == pl.Date:
            if len(values) and max(-int(values.min()), int(values.max())) >= 1 << 31:
                raise ResultError("the bound of a window is beyond the last date that there is: the window is too long")
            return physical.cast(pl.Int32).cast(self.dtype)
        return from_wall_clock(physical, self.zone) if self.zone is not None else physical.cast(self.dtype)

    def value(self, value: int) -> int:
        """A single bound, as an integer of the attribute."""
        if self.zone is None or value in (START, END):
            return value
        return int(self.column("t", np.array([value])).to_physical()[0])


def wall_clock(instants: pl.Expr, zone: str) -> pl.Expr:
    """Microseconds since 1970 in UTC as the microseconds that a clock on the wall shows."""
    zoned = instants.cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
    return zoned.dt.replace_time_zone(None).to_physical()


def from_wall_clock(micros: pl.Series, zone: str) -> pl.Series:
    """The first instant at which a clock shows this, or, of what it skips, the instant it skips to."""
    local = micros.cast(pl.Datetime("us"))
    found = local.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null").dt.convert_time_zone("UTC")
    skipped = found.is_null() & local.is_not_null()
    if not skipped.any():
        return found
    tz = ZoneInfo(zone)
    skips = [[t.replace(tzinfo=tz, fold=fold).astimezone(UTC) for fold in (1, 0)] for t in local.filter(skipped)]
    instants = [_change(before, after, tz) for before, after in skips]
    return found.scatter(skipped.arg_true(), pl.Series(instants, dtype=found.dtype))


def wall_promise(value: int, zone: str) -> int:
    """What a promise on instants says about the wall clock, which can be put back: the least it will ever show."""
    if value in (START, END):
        return value
    tz = ZoneInfo(zone)
    if abs(value) > FAR:  # beyond the calendar of the zone: no clock is a whole day off
        return value - DAY
    now = (EPOCH + value * MICRO).replace(tzinfo=UTC)
    shown = now.astimezone(tz).replace(tzinfo=None)
    if now.astimezone(tz).utcoffset() == (now + HORIZON).astimezone(tz).utcoffset():
        return (shown - EPOCH) // MICRO
    after = _change(now, now + HORIZON, tz).astimezone(tz).replace(tzinfo=None)
    return min(shown - EPOCH, after - EPOCH) // MICRO


def shown(instant: int, zone: str) -> int:
    """What a clock shows at an instant."""
    return int(pl.select(wall_clock(pl.lit(instant), zone)).item())


def _change(low: datetime, high: datetime, tz: ZoneInfo) -> datetime:
    """The first instant in (low, high] with another offset from UTC than ``low`` has."""
    offset = low.astimezone(tz).utcoffset()
    while high - low > MICRO:
        middle = low + (high - low) // 2
        low, high = (middle, high) if middle.astimezone(tz).utcoffset() == offset else (low, middle)
    return high


class WallClock(Rolling):
    """Replaces the progress value by what the clock of a time zone shows.

    >>> rows = pl.DataFrame({"@t": [0]})
    >>> WallClock("Asia/Tokyo").on_batch(0, rows)[0]["@t"].item() // 3_600_000_000
    9
    """

    def __init__(self, zone: str) -> None:
        super().__init__()
        self.zone = zone

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        return [batch.with_columns(wall_clock(pl.col(PROGRESS), self.zone))]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        if promise.value == START:  # says nothing, anywhere
            return [promise]
        reached = None if promise.reached is None else shown(promise.reached, self.zone)
        return self.news(Punctuation(wall_promise(promise.value, self.zone), promise.group, reached=reached))
