"""Every row late, or nearly: something has promised too much, or slack is too small."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.hosts.warnings.clock_ahead import one_row
from windrow.hosts.warnings.warned import Looked, Warned, from_cause
from windrow.hosts.why.case import Case
from windrow.hosts.why.causes import all_late

LEAST = 100  # rows of a micro-batch


def every_row_late(looked: Looked) -> Iterator[Warned]:
    """In the last micro-batch that brought rows, unless one row with a wrong clock is the cause."""
    case = Case(looked.report)
    found = all_late(case)
    if found is not None and late_now(looked) >= LEAST and one_row(looked) is None:
        yield from_cause("every_row_late", found)


def late_now(looked: Looked) -> int:
    """How many rows were late in the last micro-batch with any."""
    late = looked.report.late.values()
    newest = max((aside.batch for aside in late), default=-1)
    return sum(aside.recent for aside in late if aside.batch == newest)
