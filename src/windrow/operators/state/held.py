"""Held: what every operator does that keeps rows until the promise about everyone has passed them."""

from __future__ import annotations

import polars as pl

from windrow.operators.operator import Item, Wait
from windrow.operators.state.chunks import Chunks
from windrow.operators.state.runs import Runs
from windrow.progress import START
from windrow.spec.batches import Changes, State

PROMISED = "promised"


class Held:
    """Rows in a store, and the promise up to which they have left it."""

    def __init__(self, store: Runs | Chunks) -> None:
        self.store = store
        self.promised = START
        self._saved = START

    def on_flush(self) -> list[Item]:
        return []

    def waiting(self, port: int, promise: int | None, since: int, rows: int) -> list[Wait]:
        """A wait for a promise; none if there is none to wait for."""
        return [] if promise is None else [Wait(port, promise, since, "rows", rows, self.state_bytes())]

    def snapshot(self) -> State:
        return {PROMISED: pl.DataFrame({"value": [self.promised]}), **self.store.snapshot()}

    def changes(self) -> Changes:
        found = self.store.changes()
        if self.promised != self._saved:
            found[PROMISED] = pl.DataFrame({"value": [self.promised]})
            self._saved = self.promised
        return found

    def restore(self, state: State) -> None:
        rows = dict(state)
        promised = rows.pop(PROMISED, None)
        self.promised = self._saved = START if promised is None else int(promised["value"][0])
        self.store.restore(rows)

    def state_bytes(self) -> int:
        return self.store.state_bytes()
