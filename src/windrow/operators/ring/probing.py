"""Rows beside the rows of a slice that they can be joined with, and the conditions that are tried then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windrow.operators.operator import Side
from windrow.operators.ring.joining import Check, Joining, number_of, time_of
from windrow.operators.ring.picking import picked, renamed
from windrow.operators.ring.slices import NUMBER, TIME, Slice
from windrow.operators.rows.tried import bad_rows, tried
from windrow.spec.batches import Batch
from windrow.spec.names import REASON
from windrow.windows.tuples import Bools, Ints

PAIRS = 1 << 16  # that are tried together
BYTES = 1 << 26  # of what a function is given at once
AT_ONCE = 0.02  # seconds of work after which what has been found goes on to the next node


class Watch(Protocol):
    """Sees which pairs a function is about to be tried for, so that one that kills the process can be found out."""

    def refused(self, test: int, numbers: Sequence[Ints]) -> Bools | None:
        """Which of them are set aside; None if none is."""

    def before(self, test: int, numbers: Sequence[Ints]) -> int:
        """These come next; says how many of them to try together."""

    def after(self) -> None:
        """They have been tried."""


@dataclass
class Tried:
    """Of one condition: how often it was tried, how often it was true, and the time it took."""

    tried: int = 0
    passed: int = 0
    seconds: float = 0.0


@dataclass
class Prober:
    """One for each node. ``clock`` gives seconds; without one nothing is timed."""

    joining: Joining
    clock: Callable[[], float] | None = None
    watch: Watch | None = None
    counts: list[Tried] = field(default_factory=list)
    pairs: int = 0  # all that were looked at
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [Tried() for _ in self.joining.tests]

    def reset(self) -> None:
        """Count anew."""
        self.counts = [Tried() for _ in self.joining.tests]
        self.pairs, self.seconds = 0, 0.0

    def beside(
        self, rows: Batch, members: frozenset[int], target: int, state: Slice, low: Ints, high: Ints
    ) -> Iterator[Batch | Side]:
        """Rows of ``members`` with each of the rows at [low, high) of a slice for which all that is known is true."""
        due = self.joining.due(members, target)
        counts = np.maximum(high - low, 0)
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        done = 0
        while done < total:
            upto = min(total, done + self._piece(due, rows, state))
            pair = np.arange(done, upto)
            mine = np.searchsorted(ends, pair, side="right")
            at = low[mine] + (pair - (ends[mine] - counts[mine]))
            done = upto
            began = self._now()
            for item in self._tested(rows, members, target, state, due, mine, at):
                self.seconds, began = self.seconds + self._now() - began, self._now()
                yield item
                began = self._now()
            self.seconds += self._now() - began

    def _now(self) -> float:
        return 0.0 if self.clock is None else self.clock()

    def _piece(self, due: Sequence[int], rows: Batch, state: Slice) -> int:
        """How many pairs to try together: not too much memory, and not for too long."""
        piece = PAIRS
        functions = [n for n in due if self.joining.tests[n].function is not None]
        if functions:
            names = {c for n in functions for c in self.joining.tests[n].columns}
            assert state.frame is not None
            each = sum(
                f.get_column(c).estimated_size() / f.height
                for f in (rows, state.frame)
                for c in f.columns
                if c in names
            )
            piece = min(piece, max(1, int(BYTES / max(1.0, each))))
        if self.clock is not None and self.pairs:
            piece = min(piece, max(1, int(AT_ONCE * self.pairs / max(self.seconds, 1e-9))))
        elif self.clock is not None:
            piece = min(piece, 64)
        return piece

    def _tested(
        self,
        rows: Batch,
        members: frozenset[int],
        target: int,
        state: Slice,
        due: Sequence[int],
        mine: Ints,
        at: Ints,
    ) -> Iterator[Batch | Side]:
        self.pairs += len(mine)
        for key in self.joining.keys:
            assert state.frame is not None
            [own], [met] = picked(rows, [key], mine), picked(state.frame, [key], at)
            equal = _true(own == met)
            mine, at = mine[equal], at[equal]
        for number in due:
            if not len(mine):
                return
            holds, sides = self._holds(number, rows, members, target, state, mine, at)
            yield from sides
            mine, at = mine[holds], at[holds]
        if len(mine):
            yield self._joined(rows, target, state, mine, at)

    def _holds(
        self, number: int, rows: Batch, members: frozenset[int], target: int, state: Slice, mine: Ints, at: Ints
    ) -> tuple[Bools, list[Side]]:
        test, count, began = self.joining.tests[number], self.counts[number], self._now()
        frame = _arguments(test, rows, state, mine, at)
        if test.function is None:
            assert test.expression is not None
            found = frame.select(test.expression).to_series()
            holds = _true(found if found.len() == frame.height else found.new_from_index(0, frame.height))
            sides: list[Side] = []
        else:
            holds, sides = self._called(number, test, frame, self._numbers(rows, members, target, state, mine, at))
        count.tried += len(mine)
        count.passed += int(holds.sum())
        count.seconds += self._now() - began
        return holds, sides

    def _numbers(
        self, rows: Batch, members: frozenset[int], target: int, state: Slice, mine: Ints, at: Ints
    ) -> list[Ints]:
        """Which rows they are: their places in their streams, stream by stream."""
        if self.watch is None:
            return []
        known: dict[int, Ints] = {n: rows[number_of(n)].to_numpy()[mine] for n in members}
        known[target] = state.numbers[at]
        return [known[n] if n in known else np.full(len(mine), -1) for n in range(self.joining.streams)]

    def _called(self, number: int, test: Check, frame: Batch, numbers: list[Ints]) -> tuple[Bools, list[Side]]:
        assert test.function is not None
        if self.watch is None:
            return _of_function(test, frame)
        refused = self.watch.refused(number, numbers)
        asked: NDArray[np.int64] = np.arange(frame.height) if refused is None else np.flatnonzero(~refused)
        found, sides, done = np.zeros(frame.height, np.bool_), list[Side](), 0
        while done < len(asked):
            some = asked[done : done + self.watch.before(number, [n[asked[done:]] for n in numbers])]
            holds, more = _of_function(test, frame[some])
            self.watch.after()
            found[some] = holds
            sides, done = [*sides, *more], done + len(some)
        if refused is not None and refused.any():
            reason = f"{test.function.name} has killed its process {KILLS} times for these rows: they are set aside"
            reasons = {int(at): reason for at in np.flatnonzero(refused)}
            sides.append(Side("bad", len(reasons), bad_rows(frame, reasons, REASON)))
        return found, sides

    def _joined(self, rows: Batch, target: int, state: Slice, mine: Ints, at: Ints) -> Batch:
        """Rows with a row of one more stream."""
        assert state.frame is not None
        met = picked(state.frame, [NUMBER, TIME, *self.joining.columns[target]], at)
        new = renamed(met, {NUMBER: number_of(target), TIME: time_of(target)})
        return pl.DataFrame([*picked(rows, rows.columns, mine), *new])


KILLS = 3  # of a process by one row, after which it is set aside


def _arguments(test: Check, rows: Batch, state: Slice, mine: Ints, at: Ints) -> Batch:
    """The columns that a condition is about."""
    assert state.frame is not None
    own = [c for c in test.columns if c in rows.columns]
    met = [c for c in test.columns if c not in own]
    if not test.columns:
        return pl.DataFrame({NUMBER: at})
    return pl.DataFrame([*picked(rows, own, mine), *picked(state.frame, met, at)])


def _true(found: pl.Series) -> Bools:
    """Which values are true; NULL is not."""
    return np.asarray((found.fill_null(False) if found.null_count() else found).to_numpy(), np.bool_)


def _of_function(test: Check, frame: Batch) -> tuple[Bools, list[Side]]:
    assert test.function is not None
    values, reasons = tried(test.function, frame)
    sides = [Side("bad", len(reasons), bad_rows(frame, reasons, REASON))] if reasons else []
    return _true(values), sides
