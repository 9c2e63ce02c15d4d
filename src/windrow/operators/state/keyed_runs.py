"""What is known of each key, in runs sorted by hash: a run replaces all that older ones have about its hashes.

A log of runs as others: a new one is merged with the one before it unless that is at least twice as large. A key that
is touched is read, and written to the newest run; the others are not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windrow.progress import END
from windrow.spec.batches import Batch, Changes, State

HASH = "@hash"
UNTIL, DUE = "@until", "@due"  # of the key of a row: when it can be forgotten, and when it must be looked at again
MATCHED = "@matched"
KEYS = "keys"  # of a run: the hashes that it is about, with rows or without
Hashes = NDArray[np.uint64]


@dataclass
class _Run:
    rows: Batch
    about: Hashes  # sorted

    def __post_init__(self) -> None:
        self.hashes: Hashes = self.rows[HASH].to_numpy()
        self.due = int(self.rows[DUE].min()) if self.rows.height else None  # type: ignore[arg-type]

    @property
    def size(self) -> int:
        return self.rows.height + len(self.about)


class KeyedRuns:
    """Rows with a column ``@hash`` of 64 bits, sorted by it; those of one hash are read and written together."""

    def __init__(self) -> None:
        self.runs: dict[int, _Run] = {}  # by number, the oldest first
        self.freed = 0  # rows that left without being in a result since this was last taken
        self._next = 0
        self._dirty: set[int] = set()
        self._stored: set[str] = set()

    @property
    def height(self) -> int:
        return sum(run.rows.height for run in self._live())

    def fetch(self, about: Hashes) -> Batch | None:
        """All that is known about some hashes (sorted, each once), sorted by hash."""
        found, wanted = [], about
        for number in sorted(self.runs, reverse=True):
            run = self.runs[number]
            places = _among(run.hashes, wanted)
            if places.any():
                found.append(run.rows.filter(pl.Series(places)))
            wanted = wanted[~_among(wanted, run.about)]
            if not len(wanted):
                break
        return pl.concat(found).sort(HASH, maintain_order=True) if found else None

    def put(self, about: Hashes, rows: Batch, past: int) -> None:
        """All that is known about some hashes from now on. ``past``: what is known until then can be forgotten."""
        new = _Run(rows, about if self.runs else np.unique(rows[HASH].to_numpy()))
        while self.runs and self.runs[max(self.runs)].size < 2 * new.size:
            new = self._merged(self.runs.pop(max(self.runs)), new, past)
        if new.size:
            self._add(self._next, new)
        self.free(past)

    def free(self, past: int) -> None:
        """Forget what is known only until then, where that is a third of a run or more; with END everything."""
        if past == END:
            rest = [run.rows for run in self._live()]
            self.freed += sum(rows.height - int(rows[MATCHED].sum()) for rows in rest)
            self.runs = {}
        for number, run in list(self.runs.items()):
            over = run.rows[UNTIL] < past
            if run.rows.height and 3 * int(over.sum()) >= run.rows.height:
                self._add(number, self._without(run, over, number == min(self.runs)))

    def _add(self, number: int, run: _Run) -> None:
        self.runs[number] = run
        self._dirty.add(number)
        self._next = max(self._next, number + 1)

    def _without(self, run: _Run, over: pl.Series, oldest: bool) -> _Run:
        """Without what is past; the oldest run need not say about which keys nothing is known."""
        gone = run.rows.filter(over & ~pl.Series(self._hidden(run)))
        self.freed += gone.height - int(gone[MATCHED].sum())
        rows = run.rows.filter(~over)
        return _Run(rows, np.unique(rows[HASH].to_numpy()) if oldest else run.about)

    def _hidden(self, run: _Run) -> NDArray[np.bool_]:
        """Which rows of a run a newer one replaces."""
        found = np.zeros(run.rows.height, np.bool_)
        newer = False
        for other in self.runs.values():
            if newer:
                found |= _among(run.hashes, other.about)
            newer |= other is run
        return found

    def _merged(self, old: _Run, new: _Run, past: int) -> _Run:
        kept = old.rows.filter(pl.Series(~_among(old.hashes, new.about)))
        over = kept[UNTIL] < past
        if over.any():
            gone = kept.filter(over)
            self.freed += gone.height - int(gone[MATCHED].sum())
            kept = kept.filter(~over)
        rows = pl.concat([kept, new.rows]).sort(HASH, maintain_order=True)
        about = np.union1d(old.about, new.about) if self.runs else np.unique(rows[HASH].to_numpy())
        return _Run(rows, about)

    def due(self, below: int) -> Hashes:
        """The hashes that must be looked at when this is promised."""
        found = [
            run.hashes[(run.rows[DUE] < below).to_numpy() & ~self._hidden(run)]
            for run in self.runs.values()
            if run.due is not None and run.due < below
        ]
        return np.unique(np.concatenate(found)) if found else np.empty(0, np.uint64)

    def _live(self) -> list[_Run]:
        """Runs without the rows that newer ones replace."""
        found: list[_Run] = []
        seen = np.empty(0, np.uint64)
        for number in sorted(self.runs, reverse=True):
            run = self.runs[number]
            found.append(_Run(run.rows.filter(pl.Series(~_among(run.hashes, seen))), run.about))
            seen = np.union1d(seen, run.about)
        return found

    def number_of_keys(self, enough: int) -> int:
        """How many keys are held; not counted exactly where there are at most ``enough``."""
        most = sum(len(run.about) for run in self.runs.values())
        return most if most <= enough else sum(len(np.unique(run.hashes)) for run in self._live())

    def take_freed(self) -> int:
        found, self.freed = self.freed, 0
        return found

    # -- state -------------------------------------------------------------------------------------------------
    def snapshot(self) -> State:
        return {name: frame for number, run in self.runs.items() for name, frame in _named(number, run).items()}

    def changes(self) -> Changes:
        found: Changes = {}
        for number in sorted(self._dirty & set(self.runs)):
            found |= _named(number, self.runs[number])
        now = {name for number in self.runs for name in (str(number), f"{number}.{KEYS}")}
        found |= dict.fromkeys(sorted(self._stored - now))
        self._stored = now
        self._dirty.clear()
        return found

    def restore(self, state: State) -> None:
        self.runs = {
            int(name): _Run(state[name], state[f"{name}.{KEYS}"][HASH].to_numpy())
            for name in sorted((n for n in state if KEYS not in n), key=int)
        }
        self.freed = 0
        self._next = max(self.runs, default=-1) + 1
        self._stored = set(state)
        self._dirty.clear()

    def state_bytes(self) -> int:
        return int(sum(run.rows.estimated_size() + run.about.nbytes for run in self.runs.values()))


def _named(number: int, run: _Run) -> State:
    return {str(number): run.rows, f"{number}.{KEYS}": pl.DataFrame({HASH: run.about})}


def _among(hashes: Hashes, some: Hashes) -> NDArray[np.bool_]:
    """Which hashes are among some that are sorted."""
    if not len(some) or not len(hashes):
        return np.zeros(len(hashes), np.bool_)
    at = np.searchsorted(some, hashes)
    at[at == len(some)] = 0
    return np.asarray(some[at] == hashes)
