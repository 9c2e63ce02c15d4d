"""For each left row the right row that is nearest in one direction, of all runs of the right side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from windrow.operators.kernels.nearest import Spots, same_hash, spots, spots_of_integers
from windrow.operators.kernels.probe import Hashes
from windrow.operators.state.as_of_side import AsOfSide
from windrow.operators.state.join_side import Run, hashes_of
from windrow.operators.state.tied import last_of_two
from windrow.progress import END
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS
from windrow.windows.tuples import Bools, Ints

# Which pairs of left rows and places in a run are no pairs, though their keys are equal and their times fit.
Test = Callable[[Batch, Spots, Run, Spots], Bools]


@dataclass
class Found:
    """For each left row the number of a run, a place in it and the time there; -1 is the number where there is none."""

    run: Ints
    place: Spots
    time: Ints

    @classmethod
    def nothing(cls, size: int) -> Found:
        return cls(np.full(size, -1), np.full(size, -1), np.zeros(size, np.int64))

    @property
    def there(self) -> Bools:
        return np.asarray(self.run >= 0)


class _Left:
    """Left rows. ``integers``: their keys, if these are integers of one column, without NULL."""

    def __init__(self, rows: Batch, keys: Sequence[str]) -> None:
        self.rows = rows
        self.keys = keys
        self.times: Ints = rows[PROGRESS].to_numpy()
        self.integers: Ints | None = None
        if len(keys) == 1 and rows.schema[keys[0]] == pl.Int64 and not rows[keys[0]].null_count():
            self.integers = rows[keys[0]].to_numpy()

    @cached_property
    def hashes(self) -> Hashes:
        return hashes_of(self.rows, self.keys)


@dataclass(frozen=True)
class Looking:
    """``back``: for the latest row up to the time of the left one, else for the earliest from it on, below ``below``.

    Of rows with equal times the last is taken looking back, the first looking ahead. ``equal``: whether the time may be
    that of the left row. ``far``: the greatest distance. ``test``: what else must be true.
    """

    back: bool
    equal: bool
    far: int | None = None
    test: Test | None = None

    def nearest(self, side: AsOfSide, rows: Batch, below: int = END) -> Found:
        """The nearest rows of a side, one for each left row at most."""
        left = _Left(rows, side.keys)
        best: Found | None = None
        for number, run in side.runs.items():
            places = self._in_run(side, number, run, left, below)
            if best is None:
                best = Found(np.where(places >= 0, number, -1), places, run.times[places])
            else:
                self._better(best, side, number, places)
        return Found.nothing(rows.height) if best is None else best

    def _in_run(self, side: AsOfSide, number: int, run: Run, left: _Left, below: int) -> Spots:
        """The nearest place in a run. Places that are no partners are passed over, one after the other."""
        both, index = (run.hashes, run.times), side.index(number)
        if left.integers is not None and self.test is None and not run.gone.any():
            keys = side.integers(number)
            found, others = spots_of_integers(index, both, keys, left.integers, left.times, self.back, self.equal)
            if not others:
                return self._near(run, left.times, found, below)
        found = spots(index, both, left.hashes, left.times, self.back, self.equal)
        found = self._near(run, left.times, found, below)
        step = -1 if self.back else 1
        at = np.flatnonzero(found >= 0)
        while len(at):
            refused = at[~self._partners(side, left.rows, at, run, found[at])]
            moved = same_hash(run.hashes, left.hashes[refused], found[refused] + step)
            found[refused] = self._near(run, left.times[refused], moved, below)
            at = refused[found[refused] >= 0]
        return found

    def _near(self, run: Run, times: Ints, places: Spots, below: int) -> Spots:
        """The places whose times are near enough."""
        if self.far is None and below == END:
            return places
        at = run.times[np.clip(places, 0, None)] if len(run.times) else places
        fits = places >= 0
        if self.far is not None:
            fits &= np.abs(at - times) <= self.far
        return np.where(fits & (at < below), places, -1)

    def _partners(self, side: AsOfSide, rows: Batch, at: Spots, run: Run, places: Spots) -> Bools:
        found = ~run.gone[places]
        mine, others = pl.Series(at), pl.Series(places)
        everything = len(at) == rows.height
        for key in side.keys:
            given = rows[key] if everything else rows[key].gather(mine)
            equal = given == run.frame[key].gather(others)
            found &= (equal.fill_null(False) if equal.null_count() else equal).to_numpy()
        if self.test is not None and found.any():
            where = np.flatnonzero(found)
            found[where] = self.test(rows, at[where], run, places[where])
        return found

    def _better(self, best: Found, side: AsOfSide, number: int, places: Spots) -> None:
        """Take the places that are nearer than what was found in other runs."""
        run = side.runs[number]
        there = np.flatnonzero(places >= 0)
        if not len(there):
            return
        time, before = run.times[places[there]], best.time[there]
        nearer = (best.run[there] < 0) | ((time > before) if self.back else (time < before))
        if (tied := ~nearer & (time == before)).any():
            nearer[tied] = self._wins(best, side, there[tied], number, places[there[tied]])
        chosen = there[nearer]
        best.run[chosen], best.place[chosen], best.time[chosen] = number, places[chosen], time[nearer]

    def _wins(self, best: Found, side: AsOfSide, rows: Spots, number: int, places: Spots) -> Bools:
        """Whether rows of another run win over those with the same time that were found before."""
        before = pl.concat(
            [
                side.runs[n].frame[best.place[rows[mine]]].with_columns(pl.Series("@in", np.flatnonzero(mine)))
                for n in np.unique(best.run[rows]).tolist()
                if (mine := best.run[rows] == n).any()
            ]
        ).sort("@in")
        later = last_of_two(before, side.runs[number].frame[places], side.ties)
        return later if self.back else ~later
