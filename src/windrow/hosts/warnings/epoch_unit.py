"""Timestamps in another unit than they are used in: seconds since 1970 taken for milliseconds, or the other way."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.hosts.outline import INTEGER, TIME, ZONED
from windrow.hosts.report import Source
from windrow.hosts.warnings.warned import SECOND, Looked, Warned

FIRST, LAST = 978_307_200, 4_102_444_800  # 2001 and 2100, in seconds since 1970: when data are from
UNITS = {"seconds": 1, "milliseconds": 1000, "microseconds": SECOND, "nanoseconds": 1000 * SECOND}  # of them a second
# Lengths that people write in seconds; as milliseconds nobody would.
IN_SECONDS = frozenset(
    (1, 5, 15, 30, 60, 120, 180, 300, 600, 900, 1200, 1800, 3600, 7200, 21_600, 43_200, 86_400, 604_800)
)
LEAST = 15  # and those that nobody means in seconds once they are a thousand times as long

# By how much timestamps are too small, or too large if negative, and what has happened to them.
MISREAD = (
    (1000, "seconds since 1970 read as milliseconds, or milliseconds read as microseconds"),
    (SECOND, "seconds since 1970 read as microseconds"),
    (-1000, "milliseconds since 1970 read as seconds"),
    (-SECOND, "microseconds since 1970 read as seconds"),
)


def epoch_unit(looked: Looked) -> Iterator[Warned]:
    """By the values alone where they are timestamps; by the lengths of windows, too, where they are numbers."""
    for source in looked.report.sources:
        if source.declared.kind in (TIME, ZONED) and (says := _misread(source)):
            yield Warned("epoch_unit", source.declared.key, says)
    for stage, length, source in looked.windows():
        if source.declared.kind == INTEGER and (says := _unlike(source, length)):
            yield Warned("epoch_unit", f"{source.declared.key} {stage.number}", says)


def _misread(source: Source) -> str | None:
    """Why all timestamps of a source are in 1970, or thousands of years ahead."""
    for factor, mistake in MISREAD:
        low, high = FIRST * SECOND, LAST * SECOND
        if _all_in(source, *((low // factor, high // factor) if factor > 0 else (low * -factor, high * -factor))):
            least, greatest = source.text(source.seen.least), source.text(source.seen.greatest)
            return (
                f"Column {source.declared.attribute} of source `{source.name}` is from {least} to {greatest}: that "
                f"looks like {mistake}. Make timestamps of the numbers in their own unit: timestamp_seconds(c), "
                "timestamp_millis(c) or timestamp_micros(c) in Spark SQL, pl.from_epoch(c, time_unit=..) in Polars."
            )
    return None


def _unlike(source: Source, length: int) -> str | None:
    """Why numbers and a length are not in the same unit."""
    unit = next((u for u, many in UNITS.items() if _all_in(source, FIRST * many, LAST * many)), None)
    if unit is None:
        return None
    many = UNITS[unit]
    if many > 1:
        mistaken = next((k for k in (1, 1000) if k < many and length % k == 0 and length // k in IN_SECONDS), None)
        if mistaken is None:
            return None
        shown, right = f"{length / many:g} seconds", f"{length * many // mistaken}"
        meant = f"{length // mistaken} seconds"
    else:
        if length % 1000 or length // 1000 not in IN_SECONDS or length // 1000 < LEAST:
            return None
        shown, right, meant = f"{length / 3600:.1f} hours", f"{length // 1000}", f"{length // 1000} seconds"
    return (
        f"Column {source.declared.attribute} of source `{source.name}` looks like {unit} since 1970, and a window of "
        f"{length} is {shown} then. If {meant} are meant, write {right}."
    )


def _all_in(source: Source, low: int, high: int) -> bool:
    least, greatest = source.seen.least, source.seen.greatest
    return least is not None and greatest is not None and low <= least and greatest <= high
