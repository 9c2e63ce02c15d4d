"""The clock on the wall of a time zone, one instant at a time. All times are microseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICRO = timedelta(microseconds=1)
DAY = 86_400_000_000
CYCLE = 146_097 * DAY  # 400 years, after which the calendar repeats
EARLIEST, LATEST = -700_000 * DAY, 2_900_000 * DAY  # what Python's calendar holds with room to spare


def ahead(instant: int, zone: str) -> int:
    """How far the clock of a zone is ahead of UTC."""
    near = max(instant, EARLIEST)
    near -= max(0, -(-(near - LATEST) // CYCLE)) * CYCLE
    offset = (EPOCH + near * MICRO).astimezone(ZoneInfo(zone)).utcoffset()
    assert offset is not None
    return offset // MICRO


def shown(instant: int, zone: str) -> int:
    """What the clock shows at an instant, as if it were UTC.

    >>> shown(0, "Asia/Tokyo") // 3_600_000_000
    9
    """
    return instant + ahead(instant, zone)


def change(low: int, high: int, zone: str) -> int | None:
    """The first instant in (low, high] at which the clock is put on or back; None if it is not."""
    before = ahead(low, zone)
    if ahead(high, zone) == before:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if ahead(middle, zone) == before else (low, middle)
    return high


def first_shown(wall: int, zone: str) -> int:
    """The first instant at which the clock shows this; of what it skips, the instant it skips to."""
    low, high = wall - DAY - 1, wall + DAY + 1  # no clock is a whole day off
    changed = change(low, high, zone)
    early = wall - ahead(low, zone)
    if changed is None or early < changed:
        return early
    return max(changed, wall - ahead(changed, zone))


def least_shown(instant: int, zone: str) -> int:
    """The least that the clock shows from an instant on: it may be about to be put back."""
    changed = change(instant, instant + 26 * 3_600_000_000, zone)
    later = [] if changed is None else [shown(changed, zone)]
    return min([shown(instant, zone), *later])
