"""Rows from the future: a clock that is ahead, which closes windows before their rows have come."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.hosts.outline import TIME, ZONED
from windrow.hosts.report import Report, Source, clock
from windrow.hosts.warnings.time_zone import shift
from windrow.hosts.warnings.warned import SECOND, Looked, Warned, length_text

NEAR = 60 * SECOND  # clocks of machines differ


def clock_ahead(looked: Looked) -> Iterator[Warned]:
    """Compared with when the micro-batch began that read them. Whole hours are another zone, not a wrong clock."""
    for source in looked.report.sources:
        ahead = ahead_by(looked.report, source)
        if ahead is None or shift(looked.report, source) is not None:
            continue
        began = clock(looked.report.times[source.seen.came])
        yield Warned(
            "clock_ahead",
            source.declared.key,
            f"stream {source.name!r} has rows from the future: {source.declared.attribute} "
            f"{source.text(source.seen.recent[2])} was read in micro-batch {source.seen.came}, which began at {began}, "
            f"{length_text(ahead, source.declared.kind)} earlier. They promise too much, and others become late: keep them "
            "out with arrival= (the time at which a row arrived) and ahead='1 minute'",
        )


def ahead_by(report: Report, source: Source) -> int | None:
    """How far the greatest value of the last micro-batch with rows is ahead of its clock, if that is too far."""
    began, greatest = report.times.get(source.seen.came), source.seen.recent[2]
    if began is None or greatest is None or source.declared.kind not in (TIME, ZONED):
        return None
    ahead = greatest - began
    return ahead if ahead > NEAR + (source.declared.slack or 0) else None
