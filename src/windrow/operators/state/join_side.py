"""The rows of one side of a join, in runs sorted by the hash of their keys and their time.

A log of runs: a new one is merged with the one before it unless that is at least twice as large, so that a row is
rewritten O(log n) times, a batch is probed against O(log n) runs, and a checkpoint writes what is new. Rows that are
past stay where they are until a third of a run has gone; a run that is written anyway is written without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from windrow.operators.kernels.key_hash import hashes
from windrow.operators.kernels.probe import Hashes, Places, is_sorted, probed, sorted_by
from windrow.progress import START
from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import PROGRESS
from windrow.windows.tuples import Bools, Ints

HASH = "@hash"
MARKS = "marks"  # of a run: which rows have found a partner, and which have left before their time


@dataclass
class Run:
    """Sorted rows. ``matched``: which have found a partner. ``gone``: which have left before their time."""

    frame: Batch
    matched: Bools
    gone: Bools

    def __post_init__(self) -> None:
        self.frame = self.frame.rechunk()
        self.hashes: Hashes = self.frame[HASH].to_numpy()
        self.times: Ints = self.frame[PROGRESS].to_numpy()
        self.first, self.last = int(self.times.min()), int(self.times.max())

    @classmethod
    def of(cls, frame: Batch, matched: Bools) -> Run:
        """From rows that are sorted, and all here."""
        return cls(frame, matched, np.zeros(frame.height, np.bool_))

    @property
    def marked(self) -> bool:
        """Whether anything is known of any row but that it is there."""
        return bool(self.matched.any() or self.gone.any())

    def here(self, limit: int) -> Bools:
        """Which rows have not left, where those below ``limit`` have."""
        return np.asarray((self.times >= limit) & ~self.gone)

    def state_bytes(self) -> int:
        return int(self.frame.estimated_size()) + 2 * len(self.times)


def hashes_of(rows: Batch, keys: Sequence[str]) -> Hashes:
    """The hashes by which runs are sorted. Without keys all rows have the same."""
    return (hashes(rows, keys) >> np.uint64(32)).astype(np.uint32) if keys else np.zeros(rows.height, np.uint32)


def hashed(rows: Batch, keys: Sequence[str]) -> Batch:
    """Rows sorted as runs are."""
    found = hashes_of(rows, keys)
    order = sorted_by(found, rows[PROGRESS].to_numpy())
    return rows.with_columns(pl.Series(HASH, found))[order]


class JoinSide:
    """What one side of a join keeps. Rows with a time below ``limit`` have left.

    >>> side = JoinSide(["k"])
    >>> side.push(hashed(pl.DataFrame({"k": [1, 2], "@t": [5, 9]}), ["k"]), np.zeros(2, np.bool_))
    >>> side.free(6)["k"].to_list(), side.height
    ([1], 1)

    Runs have numbers, which name their chunks of state: a run that goes does not rename another.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = list(keys)
        self.runs: dict[int, Run] = {}  # by number, the oldest first
        self.limit = START
        self.count = 0  # as ``height``, kept up to date
        self._next = 0
        self._dirty: set[int] = set()  # runs whose rows must be written
        self._marked: set[int] = set()  # runs whose marks must be written
        self._stored: set[str] = set()

    @property
    def height(self) -> int:
        """How many rows are held."""
        return sum(int(run.here(self.limit).sum()) for run in self.runs.values())

    def first(self) -> int | None:
        """The smallest time that is held."""
        found = [int(run.times[here].min()) for run in self.runs.values() if (here := run.here(self.limit)).any()]
        return min(found, default=None)

    # -- rows --------------------------------------------------------------------------------------------------
    def push(self, rows: Batch, matched: Bools) -> None:
        """Keep rows that ``hashed`` has sorted."""
        if not rows.height:
            return
        new = Run.of(rows, matched)
        self.count += rows.height
        while self.runs and self.runs[max(self.runs)].frame.height < 2 * new.frame.height:
            new = self._merged(self.runs.pop(max(self.runs)), new)
        self._add(self._next, new)

    def _add(self, number: int, run: Run) -> None:
        self.runs[number] = run
        self._dirty.add(number)
        self._next = max(self._next, number + 1)

    def _merged(self, old: Run, new: Run) -> Run:
        here = old.here(self.limit)
        if not here.any():
            return new
        whole = bool(here.all())
        kept = old.frame if whole else old.frame.filter(pl.Series(here))
        frame = pl.concat([kept, new.frame])
        matched = np.concatenate([old.matched if whole else old.matched[here], new.matched])
        order = sorted_by(frame[HASH].to_numpy(), frame[PROGRESS].to_numpy(), merging=True)
        return Run.of(frame[order], matched[order])

    def partners(self, rows: Batch, least: Ints, greatest: Ints) -> Iterator[tuple[int, Places, Places]]:
        """Of sorted rows of the other side, the pairs with rows that are held: the run, and places in both.

        Keys are equal, NULL equals nothing, and times are between the bounds that are given for each row.
        """
        given = rows[HASH].to_numpy()
        for number, run in self.runs.items():
            if run.last < least.min() or run.first > greatest.max():
                continue
            for mine, places in probed(run.hashes, run.times, given, least, greatest):
                same = self._same(rows, mine, run, places)
                yield (number, mine, places) if same.all() else (number, mine[same], places[same])

    def _same(self, rows: Batch, mine: Places, run: Run, places: Places) -> Bools:
        """Which pairs have equal keys, and a row that has not left: hashes alone prove nothing."""
        found = ~run.gone[places] if run.gone.any() else np.ones(len(places), np.bool_)
        if not self.keys:
            return found
        pairs = rows[pl.Series(mine), self.keys], run.frame[pl.Series(places), self.keys]
        for key in self.keys:
            equal = pairs[0][key] == pairs[1][key]
            found &= (equal.fill_null(False) if equal.null_count() else equal).to_numpy()
        return found

    def match(self, number: int, places: Places | Ints) -> Places:
        """Rows of a run have found a partner; the places of those that had none before."""
        run = self.runs[number]
        before = run.matched.copy()
        run.matched[places] = True
        news = np.flatnonzero(run.matched & ~before).astype(np.uint32)
        if len(news):
            self._marked.add(number)
        return news

    def leave(self, number: int, places: Places) -> None:
        """Rows of a run leave before their time."""
        self.runs[number].gone[places] = True
        self.count -= len(places)
        self._marked.add(number)

    def of_key(self, row: Batch, below: int) -> Iterator[tuple[int, Places]]:
        """The rows below a time that have the keys of one given row: the run, and their places."""
        at = hashed(row.with_columns(pl.lit(0, pl.Int64).alias(PROGRESS)), self.keys)
        bounds = np.array([self.limit]), np.array([below - 1])
        for number, _, places in self.partners(at, *bounds):
            yield number, places

    # -- leaving -----------------------------------------------------------------------------------------------
    def free(self, limit: int) -> Batch | None:
        """Rows below ``limit`` leave; those that never found a partner are returned, in the order of time."""
        if limit <= self.limit:
            return None
        alone = []
        for run in self.runs.values():
            if run.first < limit:
                leaving = (run.times < limit) & (run.times >= self.limit) & ~run.gone
                self.count -= int(leaving.sum())
                leaving &= ~run.matched
                if leaving.any():
                    alone.append(run.frame.filter(pl.Series(leaving)))
        self.limit = limit
        self.shrink()
        if not alone:
            return None
        return pl.concat(alone).sort(PROGRESS, maintain_order=True)

    def shrink(self) -> None:
        """Drop runs of which nothing is left, and rewrite those of which a third has gone.

        With half, a join would take more memory than one that holds its rows in order (``windrow bench join-skew``).
        """
        for number, run in list(self.runs.items()):
            left = int(run.here(self.limit).sum()) if run.last >= self.limit else 0
            if not left:
                del self.runs[number]
            elif 3 * left <= 2 * run.frame.height:
                self._add(number, self._compacted(run))

    def _compacted(self, run: Run) -> Run:
        here = run.here(self.limit)
        return Run.of(run.frame.filter(pl.Series(here)), run.matched[here])

    # -- state -------------------------------------------------------------------------------------------------
    def snapshot(self) -> State:
        found: State = {}
        for number, run in self.runs.items():
            found[str(number)] = run.frame
            if run.marked:
                found[f"{number}.{MARKS}"] = _marks(run)
        return found

    def _settle(self) -> None:
        """Before runs are written: one that is written anyway is written without what has left."""
        self.shrink()
        for number in self._dirty & set(self.runs):
            run = self.runs[number]
            if not run.here(self.limit).all():
                self.runs[number] = self._compacted(run)

    def changes(self) -> Changes:
        self._settle()
        found: Changes = {}
        for number in sorted((self._dirty | self._marked) & set(self.runs)):
            run = self.runs[number]
            found |= {str(number): run.frame} if number in self._dirty else {}
            found |= {f"{number}.{MARKS}": _marks(run)} if run.marked else {}
        now = {name for number, run in self.runs.items() for name in _names(number, run)}
        found |= dict.fromkeys(sorted(self._stored - now))
        self._stored = now
        self._dirty.clear()
        self._marked.clear()
        return found

    def restore(self, state: State, limit: int) -> None:
        """A run that was stored can still have rows that had left; ``limit`` says how far that was."""
        self.runs = {}
        for name in sorted((n for n in state if MARKS not in n), key=int):
            frame, marks = state[name], state.get(f"{name}.{MARKS}")
            flags = [
                np.array(marks[c].to_numpy()) if marks is not None else np.zeros(frame.height, np.bool_)
                for c in ("matched", "gone")
            ]
            self.runs[int(name)] = Run(frame, *flags)
        self._next = max(self.runs, default=-1) + 1
        self._dirty.clear()
        self._marked.clear()
        self._arrange()
        self.limit = limit
        self.count = self.height
        self.shrink()
        self._stored = set(state)

    def _arrange(self) -> None:
        """Sort runs that were stored by a side that keeps rows as they came."""
        for number, run in self.runs.items():
            if not is_sorted(run.hashes, run.times):
                order = sorted_by(run.hashes, run.times)
                self.runs[number] = Run(run.frame[order], run.matched[order], run.gone[order])
                self._dirty.add(number)

    def take_over(self, other: JoinSide) -> None:
        """Hold what another side holds, which may keep its rows in another way."""
        self.limit, self._next, self._stored = other.limit, other._next, set(other._stored)
        left = [run for run in other.runs.values() if run.here(self.limit).any()]
        if not left:
            return
        frame = pl.concat([run.frame.filter(pl.Series(run.here(self.limit))) for run in left])
        matched = np.concatenate([run.matched[run.here(self.limit)] for run in left])
        order = self._order(frame)
        self.push(frame[order], matched[order])

    def _order(self, rows: Batch) -> Ints:
        return sorted_by(rows[HASH].to_numpy(), rows[PROGRESS].to_numpy())

    def state_bytes(self) -> int:
        return sum(run.state_bytes() for run in self.runs.values())


def _names(number: int, run: Run) -> list[str]:
    """The chunks of a run."""
    return [str(number), *([f"{number}.{MARKS}"] if run.marked else [])]


def _marks(run: Run) -> Batch:
    return pl.DataFrame({"matched": pl.Series(run.matched), "gone": pl.Series(run.gone)})
