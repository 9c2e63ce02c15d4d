"""The right side of an as-of join: the rows that a left row can still be paired with.

Runs as those of other joins. Of the rows below the least time that a left row can still have, only the latest of each
key is needed: the others are superseded, and leave when their run is merged, or when a third of it is superseded. So
what is held is the latest row of each key and the rows of the time that is still open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from windrow.operators.kernels.nearest import Index, indexed
from windrow.operators.state.join_side import HASH, JoinSide, Run
from windrow.operators.state.tied import tied_order
from windrow.progress import START
from windrow.spec.batches import Batch, State
from windrow.spec.names import PROGRESS
from windrow.windows.tuples import Bools, Ints


class AsOfSide(JoinSide):
    """``ties``: the columns that order rows with equal keys and times. ``latest``: whether the latest row of a key is
    enough below ``settled``.
    """

    def __init__(self, keys: Sequence[str], ties: Sequence[str], latest: bool) -> None:
        super().__init__(keys)
        self.ties = list(ties)
        self.latest = latest
        self.settled = START
        self.freed = 0  # rows that left without a partner since this was last taken
        self._checked: dict[int, int] = {}  # of a run: superseded rows are counted up to this time
        self._indexes: dict[int, tuple[Run, Index]] = {}

    def push(self, rows: Batch, matched: Bools) -> None:
        order = tied_order(rows, [HASH, PROGRESS], self.ties)
        super().push(*((rows, matched) if order is None else (rows[order], matched[order])))

    def index(self, number: int) -> Index:
        """The index of a run, made when it is first asked for."""
        run = self.runs[number]
        known = self._indexes.get(number)
        if known is None or known[0] is not run:
            self._indexes = {n: each for n, each in self._indexes.items() if n in self.runs}
            known = self._indexes[number] = (run, indexed(run.hashes))
        return known[1]

    def integers(self, number: int) -> Ints:
        """The keys of a run, which are 64-bit integers of one column. Rows with a NULL key are not here."""
        return self.runs[number].frame[self.keys[0]].to_numpy()

    def settle(self, limit: int) -> None:
        """No left row below ``limit`` is still to be paired."""
        if limit <= self.settled:
            return
        self.settled = limit
        for number, run in list(self.runs.items()) if self.latest else ():
            if run.first < limit and run.last >= self._checked.get(number, START):
                self._checked[number] = limit
                self._drop_superseded(number, run)

    def _drop_superseded(self, number: int, run: Run) -> None:
        """If they are a third of a run or more."""
        if 3 * int(np.count_nonzero(self._followed(run))) < run.frame.height:
            return
        gone = self._superseded(run)
        if 3 * int(np.count_nonzero(gone)) >= run.frame.height:
            self._add(number, self._without(run, gone))

    def forget(self, limit: int) -> None:
        """Rows below ``limit`` leave."""
        alone = self.free(limit)
        self.freed += alone.height if alone is not None else 0

    def number_of_keys(self, enough: int) -> int:
        """How many keys are held; not counted exactly where there are at most ``enough``."""
        most = sum(1 + int(np.count_nonzero(np.diff(run.hashes))) for run in self.runs.values())
        if most <= enough:
            return most
        return pl.concat([run.frame.select(self.keys) for run in self.runs.values()]).n_unique() if self.keys else 1

    def take_freed(self) -> int:
        """How many rows have left without a partner since the last call."""
        found, self.freed = self.freed, 0
        return found

    def _merged(self, old: Run, new: Run) -> Run:
        run = super()._merged(old, new)
        if (order := tied_order(run.frame, [HASH, PROGRESS], self.ties)) is not None:
            run = Run.of(run.frame[order], run.matched[order])
        gone = self._superseded(run) if self.latest else np.zeros(0, np.bool_)
        return self._without(run, gone) if gone.any() else run

    def _superseded(self, run: Run) -> Bools:
        """Which rows have a later one of the same key that no left row to come is before."""
        found = np.zeros(len(run.times), np.bool_)
        at = np.flatnonzero(self._followed(run))
        for key in self.keys:
            if len(at):
                values = run.frame[key]
                same = values.gather(at) == values.gather(at + 1)
                at = at[same.fill_null(False).to_numpy()]
        found[at] = True
        return found

    def _followed(self, run: Run) -> Bools:
        """Which rows have a next one with the same hash below what is settled; the last row is left out."""
        return np.asarray((run.hashes[1:] == run.hashes[:-1]) & (run.times[1:] < self.settled))

    def _without(self, run: Run, gone: Bools) -> Run:
        here = run.here(self.limit)
        self.freed += int((gone & ~run.matched & here).sum())
        kept = ~gone & here
        return Run.of(run.frame.filter(pl.Series(kept)), run.matched[kept])

    def restore(self, state: State, limit: int, settled: Any = START) -> None:
        super().restore(state, limit)
        self.settled, self.freed = settled, 0
        self._checked, self._indexes = {}, {}
