"""Timestamps of another time zone than UTC, read as if they were in UTC: all are shifted by the same whole quarters of
an hour.
"""

from __future__ import annotations

from collections.abc import Iterator

from windrow.hosts.outline import TIME, ZONED
from windrow.hosts.report import Report, Source
from windrow.hosts.warnings.warned import SECOND, Looked, Warned

QUARTER, NEAR = 15 * 60 * SECOND, 60 * SECOND
LEAST, MOST = 2 * QUARTER, 14 * 4 * QUARTER  # of the offsets of time zones
LONG = 60 * SECOND  # for how long a shift into the past must stay the same


def time_zone(looked: Looked) -> Iterator[Warned]:
    """Ahead of the clock, one micro-batch tells. Behind it, old rows look the same until the shift has not changed for
    some time, while rows came.
    """
    for source in looked.report.sources:
        found = shift(looked.report, source)
        if found is None or (found < 0 and not _lasts(looked, source, found)):
            continue
        hours = f"{found / (4 * QUARTER):+g}"
        yield Warned(
            "time_zone",
            source.declared.key,
            f"{source.declared.attribute} of stream {source.name!r} differs from the clock by {hours} hours in all rows: "
            "that looks like local times read as UTC. Give them their zone: to_utc_timestamp(c, 'Europe/Berlin') in Spark "
            "SQL, parse='%Y-%m-%d %H:%M:%S%z' for text that names it",
        )


def shift(report: Report, source: Source) -> int | None:
    """By which offset of a time zone the rows of the last micro-batch with rows are shifted, if they all are."""
    began = report.times.get(source.seen.came)
    _, least, greatest = source.seen.recent
    if began is None or least is None or greatest is None or source.declared.kind not in (TIME, ZONED):
        return None
    found = round((greatest - began) / QUARTER) * QUARTER
    alike = abs(greatest - began - found) <= NEAR and LEAST <= abs(found) <= MOST
    return found if alike and (found < 0 or least > began + NEAR) else None


def _lasts(looked: Looked, source: Source, found: int) -> bool:
    """Whether the shift has been the same in all reports of the last minute and more."""
    now = looked.report.times[source.seen.came]
    for report in reversed(looked.before):
        earlier = report.source(source.declared.key)
        if earlier is None or shift(report, earlier) != found:
            return False
        if now - report.times[earlier.seen.came] >= LONG:
            return True
    return False
