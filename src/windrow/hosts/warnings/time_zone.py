"""Timestamps of another time zone than UTC, read as if they were in UTC: all are shifted by the same whole quarters of
an hour.
"""

from __future__ import annotations

from collections.abc import Iterator

from windrow.hosts.outline import TIME, ZONED
from windrow.hosts.report import Report, Source
from windrow.hosts.warnings.warned import SECOND, Looked, Warned, from_cause
from windrow.hosts.why.case import Case, Cause, length
from windrow.hosts.why.causes import wrong_time_zone

QUARTER, NEAR = 15 * 60 * SECOND, 60 * SECOND
LEAST, MOST = 2 * QUARTER, 14 * 4 * QUARTER  # of the offsets of time zones
LONG = 60 * SECOND  # for how long a shift must stay the same, or
BATCHES = 20  # in how many micro-batches, where nobody knows how long that took


def time_zone(looked: Looked) -> Iterator[Warned]:
    """Compared with another source, or with the clock. Ahead of the clock one micro-batch tells. All else can be old
    rows that are read, until the shift has not changed for some time while rows came.
    """
    if (found := wrong_time_zone(Case(looked.report))) is not None and _lasts_apart(looked, found):
        yield from_cause("time_zone", found)
        return
    for source in looked.report.sources:
        shifted = shift(looked.report, source)
        if shifted is None or (shifted < 0 and not _lasts(looked, source, shifted)):
            continue
        way = "ahead of" if shifted > 0 else "behind"
        yield Warned(
            "time_zone",
            source.name,
            f"All rows of source `{source.name}` are {length(abs(shifted), TIME)} {way} the clock: "
            f"{source.declared.attribute} looks like the local time of another zone, read as UTC. Give it its zone: "
            "to_utc_timestamp(c, 'Europe/Berlin') in Spark SQL, parse='%Y-%m-%d %H:%M:%S%z' for text that names it.",
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


def _lasts_apart(looked: Looked, found: Cause) -> bool:
    """Whether two sources have been apart by the same for as long, while the one behind went on as the clock does."""
    now = next(source for source in looked.report.sources if source.name == found.source)
    began, reached = looked.report.times.get(now.seen.came), now.seen.recent[2]
    for back, report in enumerate(reversed(looked.before), 1):
        earlier, same = report.source(now.declared.key), wrong_time_zone(Case(report))
        if earlier is None or same is None or _claim(same) != _claim(found):
            return False
        then, before = report.times.get(earlier.seen.came), earlier.seen.recent[2]
        if began is None or then is None:
            if back >= BATCHES:
                return True
        elif began - then >= LONG and reached is not None and before is not None:
            return abs(reached - before - (began - then)) <= (began - then) // 2
    return False


def _claim(cause: Cause) -> str:
    """How far which source is behind which."""
    return cause.sentence.partition(",")[0]


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
