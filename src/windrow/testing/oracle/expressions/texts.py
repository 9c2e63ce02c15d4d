"""Texts as Spark reads them, and values as it writes them."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from windrow.testing.oracle.expressions import kinds

SECOND, DAY = 1_000_000, 86_400_000_000
CYCLE = 146_097  # days of 400 years, after which the calendar repeats
EPOCH = date(1970, 1, 1).toordinal()
AROUND = "".join(map(chr, [*range(0x21), 0x7F]))  # Spark strips control characters, too
NUMBER = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?")
SPECIAL = re.compile(r"([+-]?)(?:inf|infinity)")
DATE = r"([+-]?[0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})%s)?)?"
DATES = re.compile(DATE % "(?:[ T].*)?", re.DOTALL)
CLOCK = r"(?:[ T](?:([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?(.*))?)?))?"
STAMPS = re.compile(DATE % CLOCK, re.DOTALL)
OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?")
WORDS = {**dict.fromkeys(["true", "t", "yes", "y", "1"], True), **dict.fromkeys(["false", "f", "no", "n", "0"], False)}


def read(text: str, dtype: pl.DataType) -> Any:
    """The value of a type that a text stands for; None if it stands for none."""
    text = text.strip(AROUND)
    if dtype.is_integer():
        return int(text) if re.fullmatch("[+-]?[0-9]+", text) else None
    if dtype.is_float():
        return _float(text, dtype)
    if kinds.stamp(dtype):
        return _stamp(text, isinstance(dtype, pl.Datetime) and dtype.time_zone is not None)
    if dtype == pl.Date:
        found = DATES.fullmatch(text)
        return None if found is None else days_of(*(int(g or 1) for g in found.groups()))
    assert dtype == pl.Boolean
    return WORDS.get(text.lower())


def _float(text: str, dtype: pl.DataType) -> float | None:
    if found := NUMBER.fullmatch(text):
        return float(found[1]) if dtype == pl.Float64 else single(found[1])
    if found := SPECIAL.fullmatch(text.lower()):
        return -math.inf if found[1] == "-" else math.inf
    return math.nan if text.lower() == "nan" else None


def single(value: Any) -> float:
    """The nearest number of 32 bits."""
    with np.errstate(over="ignore"):
        whole = isinstance(value, int) and abs(value) < 2**63
        return float(np.int64(value).astype(np.float32) if whole else np.float32(value))


def days_of(year: int, month: int, day: int) -> int | None:
    """Days since 1970; None if the calendar has no such day."""
    cycles, short = divmod(year - 2000, 400)
    try:
        return date(2000 + short, month, day).toordinal() - EPOCH + cycles * CYCLE
    except ValueError:
        return None


def calendar(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970."""
    cycles, rest = divmod(days, CYCLE)
    found = date.fromordinal(EPOCH + rest)
    return found.year + 400 * cycles, found.month, found.day


def _stamp(text: str, zoned: bool) -> int | None:
    found = STAMPS.fullmatch(text)
    if found is None:
        return None
    days = days_of(*(int(g or 1) for g in found.groups()[:3]))
    hour, minute, second = (int(g or 0) for g in found.groups()[3:6])
    if days is None or hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int((found[7] or "").ljust(6, "0")[:6])
    local = days * DAY + (hour * 3600 + minute * 60 + second) * SECOND + fraction
    ahead = _ahead((found[8] or "").strip(AROUND), local)
    return None if ahead is None else local - ahead * zoned


def _ahead(zone: str, local: int) -> int | None:
    """How far a clock that shows ``local`` is ahead of UTC, in microseconds; None if there is no such zone."""
    if zone in ("", "Z", "UTC", "GMT", "UT"):
        return 0
    if found := OFFSET.fullmatch(zone):
        hours, minutes, seconds = (int(g or 0) for g in found.groups()[1:])
        ahead = hours * 3600 + minutes * 60 + seconds
        valid = minutes < 60 and seconds < 60 and ahead <= 18 * 3600
        return (-ahead if found[1] == "-" else ahead) * SECOND if valid else None
    try:
        region = ZoneInfo(zone)
        shown = datetime(1970, 1, 1) + timedelta(microseconds=local)
    except (KeyError, ValueError, OSError, OverflowError):
        return None
    offset = shown.replace(tzinfo=region).utcoffset()
    assert offset is not None
    return offset // timedelta(microseconds=1)


# -- as texts --------------------------------------------------------------------------------------------------------
def write(value: Any, dtype: pl.DataType) -> str:
    """A value as CAST(.. AS STRING) writes it."""
    if dtype == pl.Boolean:
        return "true" if value else "false"
    if dtype.is_float():
        return _written_float(value, dtype)
    if dtype == pl.Date:
        year, month, day = calendar(value)
        return f"{'+' if year > 9999 else '-' if year < 0 else ''}{abs(year):04}-{month:02}-{day:02}"
    if kinds.stamp(dtype):
        days, rest = divmod(value, DAY)
        clock = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=rest)).strftime("%H:%M:%S.%f")
        return f"{write(days, kinds.DATE)} {clock.rstrip('0').rstrip('.')}"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def shortest(value: float, dtype: pl.DataType) -> str:
    """The fewest digits that give a number again."""
    return repr(value) if dtype == pl.Float64 else str(np.float32(value))


def _written_float(value: float, dtype: pl.DataType) -> str:
    """As Java does: with an exponent below 0.001 and from ten millions on."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = Decimal(shortest(value, dtype)).normalize().as_tuple()
    assert isinstance(exponent, int)
    minus = "-" if sign else ""
    if value == 0:
        return f"{minus}0.0"
    written = "".join(map(str, digits))
    if 1e-3 <= abs(value) < 1e7:
        plain = f"{Decimal((0, digits, exponent)):f}"
        return f"{minus}{plain}" if "." in plain else f"{minus}{plain}.0"
    return f"{minus}{written[0]}.{written[1:] or '0'}E{len(digits) - 1 + exponent}"
