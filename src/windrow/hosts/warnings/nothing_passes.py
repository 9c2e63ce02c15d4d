"""A filter that lets nothing pass."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.hosts.report import Part, Report, operator_of
from windrow.hosts.warnings.warned import ENOUGH, Looked, Warned

FILTER = "select"


def nothing_passes(looked: Looked) -> Iterator[Warned]:
    """Of many rows not one has passed since the start."""
    for part in closed(looked.report):
        if part.rows_in >= ENOUGH:
            yield Warned(
                "nothing_passes",
                part.name,
                f"none of {part.rows_in:,} rows has passed a filter ({part.name}). Compare the condition with what is in "
                "the rows: capital letters, spaces, units, NULL (which is never equal to anything)",
            )


def closed(report: Report) -> Iterator[Part]:
    """The filters that have let nothing pass."""
    for part in report.parts:
        if operator_of(part.name) == FILTER and part.rows_in and not part.rows_out:
            yield part
