"""Punctual: what every operator does that keeps rows, not windows: a row below the promise is late, and never taken."""

from __future__ import annotations

import polars as pl

from windrow.errors import LateError
from windrow.operators.operator import Item, Side
from windrow.operators.state.runs import Runs
from windrow.operators.windows.released import LATE_BY, LATE_ROWS
from windrow.progress import START
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import PROGRESS

TIMES = "@times"  # how many equal rows a row stands for, where they were put together


class Punctual:
    """Rows in runs, the promise for everyone, and the policy for rows that break it: "drop" or "error"."""

    def __init__(self, late: str = "drop") -> None:
        self.late = late
        self.promised = START
        self.runs = Runs()
        self._saved = START

    def in_time(self, batch: Batch) -> tuple[Batch, list[Item]]:
        """The rows that keep the promise, and a record of each of the others."""
        late = batch[PROGRESS] < self.promised
        if not late.any():
            return batch, []
        rows = batch.filter(late)
        together = TIMES in batch.columns
        times, count = (pl.col(TIMES), int(rows[TIMES].sum())) if together else (pl.lit(1, pl.Int64), rows.height)
        if self.late == "error":
            first = {name: value for name, value in rows.row(0, named=True).items() if not name.startswith("@")}
            raise LateError(
                f"{count} rows came after a promise that no more would come below {self.promised}, the first is "
                f"{self.promised - int(rows[PROGRESS][0])} late{f': {first}' if first else ''}. Give the source more "
                "slack, or choose the policy drop"
            )
        known = rows.select(
            pl.exclude("^@.*$"),
            (self.promised - pl.col(PROGRESS)).alias(LATE_BY),
            times.alias(LATE_ROWS),
        )
        return batch.filter(~late), [Side("late", count, known)]

    def on_flush(self) -> list[Item]:
        return []

    def snapshot(self) -> State:
        return {"promised": pl.DataFrame({"value": [self.promised]}), **self.runs.snapshot()}

    def changes(self) -> Changes:
        found = self.runs.changes()
        if self.promised != self._saved:
            found["promised"] = pl.DataFrame({"value": [self.promised]})
            self._saved = self.promised
        return found

    def restore(self, state: State) -> None:
        runs = dict(state)
        told = runs.pop("promised", None)
        self.promised = self._saved = START if told is None else int(told["value"][0])
        self.runs.restore(runs)

    def state_bytes(self) -> int:
        return self.runs.state_bytes()
