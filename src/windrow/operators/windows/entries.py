"""Entries: the hash table of a fixed number of slots under the fixed table, as arrays for the compiled kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windrow.operators.state.limits import LIMIT
from windrow.spec.flush import Flush
from windrow.windows.tuples import Ints


class Entries:
    """Rows of words in, entries out. ``grain``: the panes that grow old together.

    >>> entries = Entries(1, 1, [0], 1, Flush())
    >>> entries.put(np.array([[0, 7, 1], [0, 7, 1], [0, 8, 1]])).tolist(), entries.all().tolist()
    ([[0, 7, 2]], [[0, 8, 1]])
    """

    def __init__(self, slots: int, words: int, ops: Sequence[int], grain: int, flush: Flush) -> None:
        from windrow.operators.kernels import table_kernel

        self.kernel = table_kernel
        self.slots, self.words, self.grain, self.flush = slots, words, grain, flush
        self.ops = np.array(ops, np.int64)
        self.late = {"at once": 0}.get(flush.policy, -1 if flush.late is None else flush.late)
        self.every = flush.every if flush.policy == "slow" else 0
        self.tally = np.zeros(self.late + 1 if self.late > 0 else 1, np.int64)
        self.marks = np.zeros(6, np.int64)
        self.clear()

    def clear(self) -> None:
        """Forget everything. There is no table before the first row: not all copies of an operator get any."""
        self.cells = np.empty((0, 1 + self.words + len(self.ops)), np.int64)
        self.counts = np.zeros(0, np.int64)
        self.tally[:] = self.marks[:] = 0
        self.marks[self.kernel.NOW] = -LIMIT // self.grain

    def _allocate(self) -> None:
        if not len(self.cells):
            self.cells = np.empty((self.slots, self.cells.shape[1]), np.int64)
            self.cells[:, 0] = self.kernel.EMPTY
            self.counts = np.zeros(-(-self.slots // (1 << self.kernel.BLOCK)), np.int64)

    def put(self, rows: Ints, floor: int = -LIMIT, out: Ints | None = None) -> Ints:
        """Take rows; what leaves the table. Nothing of an age below ``floor`` may wait in it."""
        self._allocate()
        out = self._out(len(rows)) if out is None else out
        count = self.kernel.put(
            rows,
            self.cells,
            self.ops,
            self.words,
            self.counts,
            self.tally,
            self.marks,
            out,
            self.grain,
            self.late,
            self.every,
            self.flush.ordered,
            floor,
        )
        return out[:count]

    def turn(self, age: int) -> Ints:
        """No row below this age is to come; what leaves the table for that."""
        age, out = min(age, LIMIT // self.grain), self._out()
        shape = self.cells, self.counts, self.tally, self.marks, out, 0, self.grain
        if age > self.now:
            return out[: self.kernel.turn(*shape, self.late, self.flush.ordered, age)]
        return out[: self.kernel.sweep(*shape, age)] if self.late == 0 else out[:0]

    def all(self) -> Ints:
        """Empty the table: the old entries, then those of the newest age."""
        out, at = self._out(), 0
        for limit in (self.now, LIMIT // self.grain):
            shape = self.counts, self.tally, self.marks
            at = self.kernel.sweep(self.cells, *shape, out, at, self.grain, limit)
        return out[:at]

    def _out(self, rows: int = 0) -> Ints:
        """Room for all that can leave: each row puts out one entry at most, and else what is there."""
        return np.empty((rows + self.resident, self.cells.shape[1]), np.int64)

    # -- what is there ---------------------------------------------------------------------------------------------
    @property
    def now(self) -> int:
        """The newest age that rows or promises have come to."""
        return int(self.marks[self.kernel.NOW])

    @property
    def resident(self) -> int:
        return int(self.marks[self.kernel.RESIDENT])

    def occupied(self) -> Ints:
        """The slots that have an entry."""
        return np.flatnonzero(self.cells[:, 0] != self.kernel.EMPTY)

    def oldest(self) -> int | None:
        """The least age in the table."""
        if not self.resident:
            return None
        if self.late > 0:
            return next(a for a in range(self.now - self.late, self.now + 1) if self.tally[a % len(self.tally)])
        return int(self.cells[self.occupied(), 0].min()) // self.grain

    def place(self, slots: Ints, rows: Ints, now: int, place: int, since: int) -> None:
        """Take over entries, each in its slot, as they were when the table was at ``now``."""
        self.clear()
        kernel = self.kernel
        if len(slots):
            self._allocate()
        self.cells[slots] = rows
        ages = rows[:, 0] // self.grain
        np.add.at(self.counts, slots >> kernel.BLOCK, 1)
        if len(self.tally) > 1:
            np.add.at(self.tally, ages % len(self.tally), 1)
        self.marks[:] = now, len(slots), int((ages < now).sum()), place, since, 0

    def state_bytes(self) -> int:
        return sum(a.nbytes for a in (self.cells, self.counts, self.tally, self.marks))
