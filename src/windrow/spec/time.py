"""Time: progress values as integers, what they can be, how text is read as one, and the wall clock of a time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TypeVar
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from windrow.errors import ResultError
from windrow.progress import END, FARTHEST, START
from windrow.spec.names import WINDOW_END, WINDOW_START
from windrow.windows.tuples import Ints

Column = TypeVar("Column", pl.Expr, pl.Series)

MICROS = (pl.Int64(), pl.Datetime("us", "UTC"), pl.Datetime("us"))  # types whose integers are progress values

ISO_ZONED = ("%+", "%Y-%m-%dT%H:%M:%S%.f%z")

ISO_BARE = ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M")

OUT_OF_RANGE = "the {} is out of range: it must be between -2^{} and 2^{}{}"


def physical(column: Column, dtype: pl.DataType) -> Column:
    """A progress value as an integer: microseconds since 1970, days since 1970, or itself.

    Finer timestamps are floored to microseconds, which no window edge can tell apart.
    """
    if isinstance(column, pl.Series) and column.dtype in MICROS:
        return column.cast(pl.Int64)  # the same without evaluating an expression
    if isinstance(dtype, pl.Datetime):
        return column.dt.cast_time_unit("us").to_physical().cast(pl.Int64)
    return column.to_physical().cast(pl.Int64, strict=False)


def reach(dtype: pl.DataType) -> tuple[int, int, str]:
    """How far progress values of a type can be from zero, that as a power of 2, and the unit in words.

    Bounds of windows lie around them, and must have room in 64 bits, or of a date in 32.
    """
    if dtype == pl.Date:
        return 1 << 30, 30, " days from 1970"
    power = FARTHEST.bit_length() - 1
    return FARTHEST, power, " microseconds from 1970" if isinstance(dtype, pl.Datetime) else ""


def forever(dtype: pl.DataType) -> int:
    """A promise of at least this about one key says that it is finished: the year 9999 of a time, 2^61 of a number, or
    the greatest number of its type.

    >>> forever(pl.Int16()), forever(pl.Date())
    (32767, 2932532)
    """
    if dtype.is_integer():
        return min(int(pl.Series([0], dtype=dtype).upper_bound()[0]), 1 << 61)
    days = (date(9999, 1, 1) - date(1970, 1, 1)).days
    return days if dtype == pl.Date else days * 86_400_000_000


def within(value: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Whether a progress value, as an integer, is one that can be worked with. NULL for NULL."""
    most = reach(dtype)[0]
    return value.is_between(-most, most, closed="none")


def out_of_range(what: str, dtype: pl.DataType) -> str:
    """The reason of a bad row whose value is out of range."""
    _, power, unit = reach(dtype)
    return OUT_OF_RANGE.format(what, power, power, unit)


def iso_timestamp(text: pl.Expr) -> pl.Expr:
    """Each text by itself as an instant in UTC, or NULL. A zone is optional; without one the text is UTC.

    Polars would guess one format from the first value, and call every other format unreadable.

    >>> texts = pl.DataFrame({"s": ["2024-01-01T10:00:00+02:00", "2024-01-01 08:00:00.5", "2024-01-01", "soon"]})
    >>> texts.select(iso_timestamp(pl.col("s")).dt.strftime("%d %H:%M:%S%.3f"))["s"].to_list()
    ['01 08:00:00.000', '01 08:00:00.500', '01 00:00:00.000', None]
    """
    joined = text.str.strip_chars().str.replace(r"^(\d{4}-\d\d-\d\d) ", "${1}T")
    zoned = [joined.str.to_datetime(f, time_unit="us", time_zone="UTC", strict=False) for f in ISO_ZONED]
    bare = [joined.str.to_datetime(f, time_unit="us", strict=False).dt.replace_time_zone("UTC") for f in ISO_BARE]
    day = joined.str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    return pl.coalesce(*zoned, *bare, day)


def parsed(text: pl.Expr, parse: str | None) -> pl.Expr:
    """Progress values as a source declares that they are to be read; NULL where that fails."""
    if parse is None:
        return text
    if parse == "iso8601":
        return iso_timestamp(text)
    found = text.str.to_datetime(parse, time_unit="us", strict=False)
    return found.dt.convert_time_zone("UTC") if "%z" in parse else found.dt.replace_time_zone("UTC")


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
                raise ResultError(
                    "a window bound is beyond the last date that can be represented: the window is too long"
                )
            return physical.cast(pl.Int32).cast(self.dtype)
        return from_wall_clock(physical, self.zone) if self.zone is not None else physical.cast(self.dtype)

    def columns(self, starts: Ints | None, ends: Ints) -> list[pl.Series]:
        """Where windows start and end, as the columns of results; no ``starts``: windows have no start."""
        end = self.column(WINDOW_END, ends)
        if starts is None:
            return [pl.Series(WINDOW_START, [None] * len(ends), dtype=self.dtype), end]
        return [self.column(WINDOW_START, starts), end]

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
