"""Warnings on the terminal: one line each on standard error, once, also over restarts from a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from rich.console import Console

from windrow.api.query import Query
from windrow.hosts.report import EPOCH, Report
from windrow.hosts.reporting import merged
from windrow.hosts.spark.kept import Kept
from windrow.hosts.spark.reports import reports_in
from windrow.hosts.warnings import Warned, Watching

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

MOST = 1000  # micro-batches of which is remembered when they began


class Shown:
    """The warnings of one query: before it runs, and from the reports of its micro-batches."""

    def __init__(self, query: Query, kept: Kept, console: Console) -> None:
        self.kept, self.console = kept, console
        self.watching = Watching(query._endless(), kept.said())
        self.batch, self.times = -1, dict[int, int]()
        self.last: Report | None = None
        self._print(self.watching.fresh(query._found(kept)))

    def update(self, running: StreamingQuery) -> None:
        """Say what the micro-batches show that have ended since the last time."""
        for progress in running.recentProgress:
            if progress.batchId > self.batch and (reports := reports_in(progress)):
                self.batch = progress.batchId
                self.times = trimmed({**self.times, self.batch: micros(progress.timestamp)})
                self.last = merged(reports, self.times)
                self._print(self.watching.news(self.last))

    def end(self) -> None:
        """Nothing will follow."""
        if self.last is not None:
            self._print(self.watching.news(self.last, final=True))

    def _print(self, found: Iterable[Warned]) -> None:
        news = list(found)
        for each in news:
            self.console.print(each.line, markup=False, highlight=False, soft_wrap=True)
        if news:
            self.kept.say(sorted(self.watching.said))


def trimmed(times: dict[int, int]) -> dict[int, int]:
    """When the first and the last micro-batches began, however long a query runs.

    >>> len(trimmed({batch: 0 for batch in range(5000)})), trimmed({7: 1})
    (1000, {7: 1})
    """
    batches = list(times)
    kept = batches if len(batches) <= MOST else (*batches[: MOST // 2], *batches[-MOST // 2 :])
    return {batch: times[batch] for batch in kept}


def micros(timestamp: str) -> int:
    """When a micro-batch began, in microseconds since 1970.

    >>> micros("1970-01-01T00:00:01.500Z")
    1500000
    """
    return (datetime.fromisoformat(timestamp) - EPOCH) // timedelta(microseconds=1)
