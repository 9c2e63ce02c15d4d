"""Rows that wait for a promise to pass them. Those that do not outlive their batch are never sorted or stored."""

from __future__ import annotations

import polars as pl

from windrow.operators.state.keyed import matched
from windrow.operators.state.runs import Runs
from windrow.progress import START
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import PROGRESS


class Waiting:
    """``Runs``, with the newest rows as they came: most of them leave before they must be stored.

    >>> rows = Waiting()
    >>> rows.push(pl.DataFrame({"@t": [3, 1]}))
    >>> rows.take(3)["@t"].to_list(), rows.height
    ([1], 1)
    """

    def __init__(self) -> None:
        self.runs = Runs()
        self._new: list[Batch] = []

    @property
    def height(self) -> int:
        return self.runs.height + sum(rows.height for rows in self._new)

    def push(self, rows: Batch) -> None:
        if rows.height:
            self._new.append(rows)

    def take(self, limit: int) -> Batch | None:
        """The rows below ``limit``, which leave; in no order."""
        found = [old] if (old := self.runs.take(limit)) is not None else []
        kept: list[Batch] = []
        for rows in self._new:
            below = rows[PROGRESS] < limit
            if below.all():
                found.append(rows)
            elif below.any():
                found.append(rows.filter(below))
                kept.append(rows.filter(~below))
            else:
                kept.append(rows)
        self._new = kept
        self._store()
        return pl.concat(found) if found else None

    def take_key(self, key: Batch, limit: int) -> Batch | None:
        """The rows below ``limit`` with the key of one given row, which leave."""
        self._store()
        mine = [rows for run in self.runs.between(START, limit - 1) if (rows := _of(run, key)).height]
        if not mine:
            return None
        rest = self.runs.take(limit)
        assert rest is not None
        self.runs.push(matched(rest, key, key.columns, "anti"))
        self.runs.rewrite()
        return pl.concat(mine)

    def first(self) -> int | None:
        """The smallest progress value that waits."""
        self._store()
        return self.runs.first()

    def _store(self) -> None:
        """Into runs with what is new."""
        if self._new:
            self.runs.push(pl.concat(self._new))
            self._new = []

    # -- state -------------------------------------------------------------------------------------------------
    def snapshot(self) -> State:
        self._store()
        return self.runs.snapshot()

    def changes(self) -> Changes:
        self._store()
        return self.runs.changes()

    def restore(self, state: State, limit: int) -> None:
        """``limit``: what had left by then; a stored run can still have it."""
        self._new = []
        self.runs.restore(state)
        self.runs.free(limit)

    def state_bytes(self) -> int:
        return self.runs.state_bytes() + int(sum(rows.estimated_size() for rows in self._new))


def _of(rows: Batch, key: Batch) -> Batch:
    return matched(rows, key, key.columns, "semi")
