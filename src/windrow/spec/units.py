"""Units of time: their names and lengths."""

from __future__ import annotations

UNITS = {  # microseconds; months and years have no fixed length and are refused
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
ABBREVIATIONS = {"us": "microsecond", "ms": "millisecond", "s": "second", "sec": "second", "m": "minute"}
ABBREVIATIONS |= {"min": "minute", "h": "hour", "hr": "hour", "d": "day", "w": "week"}


def unit(name: str) -> str | None:
    """The unit of time by any of its names.

    >>> unit("Minutes"), unit("s"), unit("month")
    ('minute', 'second', None)
    """
    lower = name.lower()
    lower = ABBREVIATIONS.get(lower, lower)
    singular = lower if lower in UNITS else lower.removesuffix("s")
    singular = ABBREVIATIONS.get(singular, singular)
    return singular if singular in UNITS else None
