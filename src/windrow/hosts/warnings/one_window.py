"""All rows in one window, though there are many: the progress column hardly moves."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.hosts.outline import TIME, ZONED
from windrow.hosts.report import Report, Source
from windrow.hosts.warnings.warned import ENOUGH, SECOND, Looked, Warned
from windrow.hosts.why.case import length as in_words

SMALL = 1000  # a slide is so many times as long as what the rows cover
LONG = 10 * SECOND  # how long it must have taken them to come


def one_window(looked: Looked) -> Iterator[Warned]:
    """A stream that has just begun covers little, too: so it is said only if rows came for much longer than that."""
    for stage, _, source in looked.windows():
        covered, slide = covers(source), stage.slide or 0
        if covered is None or source.seen.rows < ENOUGH or covered * SMALL >= slide:
            continue
        if looked.report.batch < 0 or covered == 0 or _stands_still(looked.report, source, covered):
            yield Warned(
                "one_window",
                f"{source.declared.key} {stage.number}",
                f"All {source.seen.rows:,} rows of source `{source.name}` are in one window: their "
                f"{source.declared.attribute} is from {source.text(source.seen.least)} to "
                f"{source.text(source.seen.greatest)}, and a window begins every {in_words(slide, stage.kind)}. Is "
                f"{source.declared.attribute} the time of the rows, and in the right unit?",
                hint=looked.report.batch < 0,
            )


def covers(source: Source) -> int | None:
    """How much progress the rows so far cover."""
    least, greatest = source.seen.least, source.seen.greatest
    return None if least is None or greatest is None else greatest - least


def _stands_still(report: Report, source: Source, covered: int) -> bool:
    first, last = report.times.get(source.seen.first), report.times.get(source.seen.came)
    if first is None or last is None or source.declared.kind not in (TIME, ZONED):
        return False
    return last - first >= max(LONG, 10 * covered)
