"""Runs: rows kept in sorted frames until progress has passed them; what order-sensitive operators and DupElim hold."""

from __future__ import annotations

import polars as pl

from windrow.spec.batches import Batch, Changes, State
from windrow.spec.names import PROGRESS


class Runs:
    """A log of frames, each sorted by ``@t``. A new one is merged with the one before it unless that is at least twice
    as large, so that a row is rewritten O(log n) times and a checkpoint writes what is new.

    Rows leave from the front of each run. A run is written again only when half of it has left; a restored one still
    has what had left by then, and the operator, which remembers how far it was, takes that out again.

    >>> runs = Runs()
    >>> runs.push(pl.DataFrame({"@t": [3, 1]})); runs.push(pl.DataFrame({"@t": [2]}))
    >>> runs.take(3)["@t"].to_list(), runs.height
    ([1, 2], 1)
    """

    def __init__(self) -> None:
        self.runs: list[Batch] = []
        self._written: list[int] = []  # how many rows each run had when it was last written
        self._dirty: set[int] = set()
        self._stored = 0

    @property
    def height(self) -> int:
        """How many rows are held."""
        return sum(run.height for run in self.runs)

    def push(self, rows: Batch) -> None:
        """Keep some rows, in any order."""
        if not rows.height:
            return
        merged = [rows]
        while self.runs and self.runs[-1].height < 2 * sum(f.height for f in merged):
            merged.append(self.runs.pop())
            self._written.pop()
        self.runs.append(pl.concat(merged[::-1]).sort(PROGRESS, maintain_order=True))
        self._written.append(self.runs[-1].height)
        self._dirty.add(len(self.runs) - 1)

    def take(self, limit: int) -> Batch | None:
        """Rows below ``limit`` in order, which leave; None if there are none."""
        found = []
        for at, run in enumerate(self.runs):
            count = _below(run, limit)
            if count:
                found.append(run[:count])
                self.runs[at] = run[count:]
        if not found:
            return None
        self._shrink()
        return found[0] if len(found) == 1 else pl.concat(found).sort(PROGRESS, maintain_order=True)

    def free(self, limit: int) -> None:
        """Forget the rows below ``limit``."""
        counts = [_below(run, limit) for run in self.runs]
        if any(counts):
            self.runs = [run[count:] for run, count in zip(self.runs, counts, strict=True)]
            self._shrink()

    def between(self, least: int, greatest: int) -> list[Batch]:
        """The rows of each run from ``least`` to ``greatest``."""
        parts = (run[_below(run, least) : _below(run, greatest + 1)] for run in self.runs)
        return [part for part in parts if part.height]

    def rewrite(self) -> None:
        """Write all runs again: rows have left them that are not below what was taken last."""
        self._dirty.update(range(len(self.runs)))

    def first(self) -> int | None:
        """The smallest progress value that is held."""
        return min((int(run[PROGRESS][0]) for run in self.runs), default=None)

    def _shrink(self) -> None:
        """Drop runs that are empty, and copy those of which half has left: a slice keeps all of its memory."""
        kept: list[Batch] = []
        for at, run in enumerate(self.runs):
            if not run.height:
                continue
            if len(kept) != at or 2 * run.height < self._written[at]:
                self._dirty.add(len(kept))
                run = pl.concat([run, run.clear()], rechunk=True)
                self._written[len(kept)] = run.height
            kept.append(run)
        self.runs, self._written = kept, self._written[: len(kept)]

    # -- state -------------------------------------------------------------------------------------------------
    def snapshot(self) -> State:
        return {str(at): run for at, run in enumerate(self.runs)}

    def changes(self) -> Changes:
        found: Changes = {str(at): self.runs[at] for at in sorted(self._dirty) if at < len(self.runs)}
        found |= {str(at): None for at in range(len(self.runs), self._stored)}
        self._dirty.clear()
        self._stored = len(self.runs)
        return found

    def restore(self, state: State) -> None:
        self.runs = [state[name] for name in sorted(state, key=int)]
        self._written = [run.height for run in self.runs]
        self._stored = len(self.runs)
        self._dirty.clear()

    def state_bytes(self) -> int:
        """With the rows that have left a run: their memory is free only when the run is copied."""
        sizes = zip(self.runs, self._written, strict=True)
        return round(sum(run.estimated_size() * written / run.height for run, written in sizes))


def _below(run: Batch, limit: int) -> int:
    """How many rows of a sorted run lie below a limit."""
    return int(run[PROGRESS].search_sorted(limit, side="left"))
