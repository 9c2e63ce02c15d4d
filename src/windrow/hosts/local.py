"""The in-process host: the whole plan as one graph, fed by hand. For tests, development and millisecond latency."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from windrow.operators.operator import Item, Side, State
from windrow.planner import Plan, whole_graph
from windrow.progress import END, Punctuation


class LocalRun:
    """A running query. Push rows and promises in any order; take what has been released so far.

    It can stop anywhere: ``snapshot()`` is all there is to know, and ``restore`` goes on from it.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.graph = whole_graph(plan)
        self._results: list[pl.DataFrame] = []
        self._bad: list[pl.DataFrame] = []
        self.counts = {"rows_in": 0, "rows_bad": 0, "rows_late": 0, "rows_out": 0}
        self.promised: int | None = None

    def push(self, source: str, rows: pl.DataFrame) -> LocalRun:
        """Rows of one source."""
        self.counts["rows_in"] += rows.height
        for port in self._ports(source):
            self._take(self.graph.on_batch(port, rows))
        return self

    def promise(self, source: str, value: int) -> LocalRun:
        """Every later row of this source has at least this progress value (an integer, as in ``@t``)."""
        for port in self._ports(source):
            self._take(self.graph.on_punctuation(port, Punctuation(value)))
        return self

    def end(self) -> LocalRun:
        """All sources have ended: whatever is open is released."""
        for port in range(len(self.graph.inputs)):
            self._take(self.graph.on_punctuation(port, Punctuation(END)))
        return self

    def results(self) -> pl.DataFrame:
        """What was released since the last call."""
        found, self._results = self._results, []
        empty = pl.DataFrame(schema=self.plan.schema)
        return pl.concat([empty, *found])

    def bad_rows(self) -> pl.DataFrame:
        """Rows without a readable progress value, with the reason; all since the start."""
        return pl.concat(self._bad, how="diagonal") if self._bad else pl.DataFrame()

    def snapshot(self) -> State:
        return self.graph.snapshot()

    def restore(self, state: Mapping[str, pl.DataFrame]) -> LocalRun:
        self.graph.restore(dict(state))
        return self

    def state_bytes(self) -> int:
        return self.graph.state_bytes()

    def _ports(self, source: str) -> list[int]:
        return [port for port, scan in enumerate(self.plan.scans()) if scan.name == source]

    def _take(self, items: Iterable[Item]) -> None:
        for item in items:
            if isinstance(item, Punctuation):
                self.promised = item.value
            elif isinstance(item, Side):
                self.counts[f"rows_{item.kind}"] += item.count
                if item.rows.width:
                    self._bad.append(item.rows)
            elif item.height:
                self.counts["rows_out"] += item.height
                self._results.append(item)


def collect(plan: Plan, sources: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """The result over finite sources: everything, then the end."""
    run = LocalRun(plan)
    for name, frame in sources.items():
        run.push(name, frame)
    return run.end().results()


def bad_rows(plan: Plan, sources: Mapping[str, Any]) -> pl.DataFrame:
    """The rows of finite sources that have no readable progress value."""
    run = LocalRun(plan)
    for name, frame in sources.items():
        run.push(name, frame)
    return run.bad_rows()
