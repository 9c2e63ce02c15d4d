"""Windows longer than what the rows so far cover: no result can be there yet."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.hosts.outline import TIME, ZONED
from windrow.hosts.report import Report, Source
from windrow.hosts.warnings.one_window import one_window
from windrow.hosts.warnings.warned import SECOND, Looked, Warned
from windrow.hosts.why.case import length as in_words

LONG = 60 * SECOND  # for how long rows must have come, or
BATCHES = 20  # in how many micro-batches, where nobody knows how long that took


def long_window(looked: Looked) -> Iterator[Warned]:
    """After some time, or at the end. Not if all rows are in one window, which has another reason."""
    report = looked.report
    if report.results or report.batch < 0 or any(True for _ in one_window(looked)):
        return
    for stage, length, source in looked.windows():
        least, greatest = source.seen.least, source.seen.greatest
        if least is None or greatest is None or greatest - least >= length:
            continue
        if not (looked.final or _is_late(report, source)) or not _holds(report, stage.number):
            continue
        span = greatest - least
        covered = in_words(
            span // SECOND * SECOND if stage.kind in (TIME, ZONED) and span > SECOND else span, stage.kind
        )
        yield Warned(
            "long_window",
            f"{source.declared.key} {stage.number}",
            f"No window of {in_words(length, stage.kind)} is over yet: the rows of source `{source.name}` so far cover "
            f"{covered} ({source.text(least)} to {source.text(greatest)}). Wait, make RANGE shorter, or look at "
            "windows before their end with EMIT EARLY.",
            hint=True,
        )


def _holds(report: Report, stage: int) -> bool:
    return any(held.stage == stage and held.count for held in report.held)


def _is_late(report: Report, source: Source) -> bool:
    first, last = report.times.get(source.seen.first), report.times.get(source.seen.came)
    if first is not None and last is not None:
        return last - first >= LONG
    return source.seen.came - source.seen.first >= BATCHES
