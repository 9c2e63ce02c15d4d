"""A line that shows how a streaming query is doing."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from windrow.hosts.counters import NAMES, recall
from windrow.hosts.spark.exchange import METRICS

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

COUNTS = tuple(name for name in NAMES if name != "state_bytes")


@dataclass
class Totals:
    """What a query has done since it started."""

    batches: int = 0
    seconds: float = 0.0
    state_bytes: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    seen: set[int] = field(default_factory=set)

    def update(self, query: StreamingQuery) -> bool:
        """Take in finished micro-batches; true if there were any."""
        news = [p for p in query.recentProgress if p.batchId not in self.seen]
        for progress in news:
            self.seen.add(progress.batchId)
            metrics: Any = (progress.observedMetrics or {}).get(METRICS)
            if metrics is None:
                continue
            self.batches += 1
            self.seconds += progress.durationMs.get("triggerExecution", 0) / 1000
            self.state_bytes = metrics["state_bytes"] or 0
            for name in COUNTS:
                self.counts[name] += metrics[name] or 0
        return bool(news)

    def line(self) -> str:
        """One line for the terminal."""
        rate = self.counts["rows_in"] / self.seconds if self.seconds else 0.0
        return (
            f"{self.batches} micro-batches, {self.counts['rows_in']:,} rows in ({rate:,.0f}/s), "
            f"{self.counts['rows_out']:,} results, {self.counts['rows_late']:,} late, {self.counts['rows_bad']:,} bad, "
            f"{self.state_bytes / 1024:,.0f} KiB of state, {self.promised:.1%} of the traffic promises{self._rare()}"
        )

    @property
    def promised(self) -> float:
        """The share of promises among what went through the exchange."""
        return self.counts["promises_sent"] / max(1, self.counts["rows_sent"] + self.counts["promises_sent"])

    def _rare(self) -> str:
        """Counts that are shown only if they are not zero."""
        rare = {"files_bad": "bad files", "promises_ignored": "promises ignored", "promises_unmatched": "about nobody"}
        found = "".join(f", {self.counts[name]:,} {label}" for name, label in rare.items() if self.counts[name])
        if not self.counts["pairs_near"]:
            return found
        return f"{found}, {self.counts['rows_shed']:,} shed, recall about {recall(self.counts):.0%}"


def end_line(console: Console) -> None:
    """Where the output is not a terminal, a live display ends without a newline."""
    if not console.is_terminal:
        console.line()


def follow(queries: list[tuple[str, StreamingQuery]], console: Console, each: Any = None) -> list[Totals]:
    """Show a line per query until all have ended; ``each`` is called when one has made progress."""
    totals = [Totals() for _ in queries]
    with Live(console=console, refresh_per_second=8, transient=False) as live:
        while True:
            active = False
            for (name, query), total in zip(queries, totals, strict=True):
                running = query.isActive
                if total.update(query) and each is not None:
                    each(name)
                active = active or running
            lines = [f"{name}: {total.line()}" for (name, _), total in zip(queries, totals, strict=True)]
            live.update(Text("\n".join(lines)))
            if not active:
                break
            time.sleep(0.2)
    end_line(console)
    for _, query in queries:
        if (error := query.exception()) is not None:
            raise error
    return totals
