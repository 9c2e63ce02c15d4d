"""Every row late: something has promised too much, or slack is too small."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.hosts.report import Report, Source, stage_of
from windrow.hosts.tally import Aside
from windrow.hosts.warnings.warned import Looked, Warned, length_text

LEAST = 100  # rows


def every_row_late(looked: Looked) -> Iterator[Warned]:
    """In the last micro-batch that brought rows."""
    report = looked.report
    for where, aside in report.late.items():
        for source in late_sources(report, where, aside):
            needed = source.promised + (source.declared.slack or 0) - (source.seen.recent[1] or 0)
            length = length_text(needed, source.declared.kind)
            yield Warned(
                "every_row_late",
                f"{where} {source.declared.key}",
                f"all {source.seen.recent[0]:,} rows of stream {source.name!r} in micro-batch {source.seen.came} are late: "
                f"{source.declared.attribute} is from {source.text(source.seen.recent[1])} to "
                f"{source.text(source.seen.recent[2])}, and {source.text(source.promised)} is promised. A slack of "
                f"{length} would have taken them; if one row with a wrong clock is the cause, arrival= and ahead= keep "
                "such rows out. --late-rows shows them",
            )


def late_sources(report: Report, where: str, aside: Aside) -> Iterator[Source]:
    """The sources of which every row was late in the last micro-batch that brought rows, at one operator."""
    stage = report.stage(stage_of(where))
    sources = [s for key in (stage.sources if stage is not None else ()) if (s := report.source(key)) is not None]
    came = [source for source in sources if source.seen.came == aside.batch and source.seen.recent[0]]
    rows = sum(source.seen.recent[0] for source in came)
    if rows >= LEAST and aside.recent >= rows:
        yield from came
