"""A filter that removes everything."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.hosts.warnings.warned import ENOUGH, Looked, Warned, from_cause
from windrow.hosts.why.case import Case
from windrow.hosts.why.causes import filter_removes_everything


def nothing_passes(looked: Looked) -> Iterator[Warned]:
    """Of many rows not one has passed since the start. What is looked for can be rare, so a few rows say nothing."""
    found = filter_removes_everything(Case(looked.report))
    source = next((s for s in looked.report.sources if found is not None and s.name == found.source), None)
    if found is not None and source is not None and source.seen.rows >= ENOUGH:
        yield from_cause("nothing_passes", found)
