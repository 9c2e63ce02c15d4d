"""Lengths of time as people write them, in the unit of the progressing attribute."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from fractions import Fraction
from numbers import Real
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import polars as pl

from windrow.errors import QueryError, listing
from windrow.spec.flush import FLUSHES, FlushPolicy
from windrow.spec.options import POLICIES, Policy
from windrow.spec.units import UNITS, unit

Length = str | int | timedelta
DAY = UNITS["day"]
LONGEST = 2**63 - 1


def length(value: Length, dtype: pl.DataType, what: str, zero: bool = False) -> int:
    """A length as an integer: microseconds for timestamps, days for dates, itself for integers.

    >>> length("1.5 minutes", pl.Datetime("us"), "slack"), length("1 week", pl.Date(), "range")
    (90000000, 7)
    >>> length(0, pl.Int64(), "slide")
    Traceback (most recent call last):
      ...
    windrow.errors.QueryError: slide must be positive, not 0
    """
    number = _number(value, dtype, what)
    if number < 0 or (number == 0 and not zero):
        raise QueryError(f"{what} must be {'zero or more' if zero else 'positive'}, not {value}")
    if number.denominator != 1:
        raise QueryError(f"{what} {value!r} is finer than its attribute, which is of type {dtype}")
    if number > LONGEST:
        raise QueryError(f"{what} {value!r} is beyond 64 bits")
    return int(number)


def check_zone(zone: str) -> str:
    """The name of a time zone; raises QueryError for an unknown one."""
    if not isinstance(zone, str):  # ZoneInfo compares it with the names that it knows
        raise QueryError(f"unknown time zone {zone!r}: give a name such as 'Europe/Berlin' or 'UTC'")
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, TypeError, AttributeError, OSError):
        raise QueryError(f"unknown time zone {zone!r}: give a name such as 'Europe/Berlin' or 'UTC'") from None
    return zone


def policy(name: str) -> Policy:
    """The late policy of a name; raises QueryError for an unknown one."""
    for known in POLICIES:
        if isinstance(name, str) and known == name:
            return known
    raise QueryError(f"unknown late policy {name!r}; available: {listing(POLICIES)}")


def flush(name: str) -> FlushPolicy:
    """The flush policy of a name; raises QueryError for an unknown one."""
    for known in FLUSHES:
        if isinstance(name, str) and known == name:
            return known
    raise QueryError(f"unknown flush {name!r}; available: {listing(FLUSHES)}")


def _number(value: Length, dtype: pl.DataType, what: str) -> Fraction:
    timed = isinstance(dtype, (pl.Datetime, pl.Date))
    if isinstance(value, timedelta):
        amount, name = Fraction(value // timedelta(microseconds=1)), "microsecond"
    elif isinstance(value, str):
        amount, name = _text(value, what)
    elif isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value):
        amount, name = Fraction(value), ""
    else:
        raise QueryError(f"{what}={value!r} is not a length: give a number, a text such as '10 seconds' or a timedelta")
    if not timed:
        if name:
            raise QueryError(
                f"{what} {value!r} has a unit of time, but its attribute is of type {dtype}: give a number"
            )
        return amount
    if not name:
        if amount == 0:
            return amount
        raise QueryError(f"{what} {value!r} needs a unit of time: {listing(UNITS)}")
    micros = amount * UNITS[name]
    return micros / DAY if dtype == pl.Date else micros


def _text(value: str, what: str) -> tuple[Fraction, str]:
    found = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
    if not found:
        raise QueryError(f"{what} {value!r} is not a length: write a number and a unit, as in '10 seconds'")
    if not found[2]:
        return Fraction(found[1]), ""
    name = unit(found[2])
    if name is None:
        fixed = " (months and years have no fixed length)" if found[2].lower()[:4] in ("mont", "year") else ""
        raise QueryError(f"{what} {value!r}: unknown unit {found[2]!r}{fixed}; available: {listing(UNITS)}")
    return Fraction(found[1]), name
