"""Rows from the future: a clock that is ahead, which closes windows before their rows have come."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.hosts.outline import TIME, ZONED
from windrow.hosts.report import Report, Source, clock
from windrow.hosts.warnings.time_zone import shift
from windrow.hosts.warnings.warned import SECOND, Looked, Warned, from_cause
from windrow.hosts.why.case import Case, Cause, length
from windrow.hosts.why.causes import future_clock

NEAR = 60 * SECOND  # clocks of machines differ


def clock_ahead(looked: Looked) -> Iterator[Warned]:
    """One row that has made the others late; or rows that are ahead of the micro-batch that reads them, unless by whole
    hours, which is another zone and not a wrong clock.
    """
    if (found := one_row(looked)) is not None:
        yield from_cause("clock_ahead", found)
        return
    for source in looked.report.sources:
        ahead = ahead_by(looked.report, source)
        if ahead is None or shift(looked.report, source) is not None:
            continue
        began = clock(looked.report.times[source.seen.came])
        yield Warned(
            "clock_ahead",
            source.name,
            f"Source `{source.name}` has rows from the future: {source.declared.attribute} "
            f"{source.text(source.seen.recent[2])} was read in micro-batch {source.seen.came}, which began at {began}, "
            f"{length(ahead, source.declared.kind)} earlier. Such rows promise too much, and make others late: correct "
            "the clock, and keep them out with wr.stream(.., ahead='1 minute', arrival=..).",
        )


def one_row(looked: Looked) -> Cause | None:
    """Where one row far ahead has made the others late, and not a source that sends old rows again: then the greatest
    value has come with a jump.
    """
    found = future_clock(Case(looked.report))
    source = next((s for s in looked.report.sources if found is not None and s.name == found.source), None)
    if source is None or source.seen.greatest is None:
        return None
    before = [r.source(source.declared.key) for r in looked.before]
    lower = [b.seen.greatest for b in before if b is not None and b.seen.greatest is not None]
    last = max((value for value in lower if value < source.seen.greatest), default=None)
    ahead = source.seen.greatest - (source.seen.recent[2] or 0)
    return found if last is None or 2 * (source.seen.greatest - last) > ahead else None


def ahead_by(report: Report, source: Source) -> int | None:
    """How far the greatest value of the last micro-batch with rows is ahead of its clock, if that is too far."""
    began, greatest = report.times.get(source.seen.came), source.seen.recent[2]
    if began is None or greatest is None or source.declared.kind not in (TIME, ZONED):
        return None
    return greatest - began if greatest - began > NEAR + (source.declared.slack or 0) else None
