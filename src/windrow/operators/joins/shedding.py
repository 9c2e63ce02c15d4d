"""How many rows a join with limits takes of each side, stretch by stretch (Kang et al., 4.2 and 4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

import polars as pl

from windrow.spec.allocation import BOTH_POLICIES, STATE_POLICIES, Two, allocate, output_rate, split, state_shares
from windrow.spec.batches import Batch
from windrow.spec.joining import BETTER, Limits, drawn

COUNTS = ("seen_left", "seen_right", "kept_left", "kept_right")
SEEN, KEPT = 0, 2  # where the counts of both sides begin


@dataclass(frozen=True)
class Share:
    """What one stretch may have: rows of each side, and how the windows share the memory.

    ``came``: rows of each side in it. ``seen``, ``held``: in the windows before it, all rows, and those not shed.
    """

    rows: tuple[int, int]
    memory: Two
    came: tuple[int, int]
    seen: tuple[int, int]
    held: tuple[int, int]

    @property
    def whole(self) -> int:
        """How many pairs of rows are near enough, were nothing shed: each row meets the other window (Kang, Eq. 9)."""
        return _met(self.came, (self.seen[0] + self.came[0] / 2, self.seen[1] + self.came[1] / 2))

    def kept(self, held: tuple[float | None, float | None]) -> int:
        """The same of what is kept. ``held``: how many rows a window has on average, if some of it had to go."""
        whole = self.held[0] + self.rows[0] / 2, self.held[1] + self.rows[1] / 2
        a, b = (w if h is None else min(h, w) for h, w in zip(held, whole, strict=True))
        return _met(self.rows, (a, b))


class Shedder:
    """Decides from the numbers of rows in each stretch alone, which do not depend on the order of arrival.

    ``limits``: rows for the smallest unit of progress, and rows of state. ``windows``: how long each side is held.

    A limit on the rate alone is shared anew in every stretch. With one on the state, the rates of the last window
    count, and which window comes first changes only for a gain of a tenth: each change empties a window.

    >>> shedder = Shedder(Limits(max_rate=10), (9, 1), 1)
    >>> [share.rows for share in shedder.shares([0, 1, 2], [(80, 20), (80, 2), (3, 4)])]
    [(5, 5), (8, 2), (3, 4)]
    """

    def __init__(self, limits: Limits, windows: tuple[int, int], length: int) -> None:
        self.limits = limits
        self.windows = windows
        self.length = length
        self.parts = -(-max(*windows, 1) // length)
        self.first: int | None = None  # the first stretch that had rows
        self.numbers: list[int] = []  # of the last stretches that had rows
        self.counts: list[tuple[int, int, int, int]] = []
        self.holder: int | None = None

    def shares(self, numbers: Sequence[int], seen: Sequence[tuple[int, int]]) -> list[Share]:
        """For stretches in order, and the rows of each side in them."""
        return [self._share(number, rows) for number, rows in zip(numbers, seen, strict=True)]

    def _share(self, number: int, seen: tuple[int, int]) -> Share:
        if self.first is None:
            self.first = number
        limit = self.limits.max_rate
        self._forget(number)
        before, held = self._before(number, SEEN), self._before(number, KEPT)
        self.numbers.append(number)
        self.counts.append((*seen, *seen))
        rates = self._rates(number)
        if self.limits.max_state is None:
            rates = seen[0] / self.length, seen[1] / self.length
        found, memory = self._allocated(rates)
        rows = seen
        if limit is not None:
            most = split(limit * self.length, found, seen)
            rows = self._whole(most[0], number, 0), self._whole(most[1], number, 1)
            self.counts[-1] = (*seen, *rows)
        return Share(rows, memory, seen, before, held)

    def _allocated(self, rates: Two) -> tuple[Two, Two]:
        """The rates that the sides may have, and their shares of the memory."""
        limits = self.limits
        if limits.max_state is None:
            return allocate(rates, self.windows, limits.max_rate, None, limits.policy).rates, (1.0, 1.0)
        known = STATE_POLICIES if limits.max_rate is None else BOTH_POLICIES
        policy = limits.policy or known[0]
        if policy not in ("slower", "best"):
            found = allocate(rates, self.windows, limits.max_rate, limits.max_state, policy)
            return found.rates, state_shares(rates, policy)
        both = [allocate(rates, self.windows, limits.max_rate, limits.max_state, policy, side) for side in (0, 1)]
        results = [output_rate(1.0, each.rates, each.windows) for each in both]
        best = 0 if results[0] >= results[1] else 1
        if self.holder is None or results[best] > BETTER * results[self.holder]:
            self.holder = best
        return both[self.holder].rates, state_shares(rates, policy, self.holder)

    def _whole(self, rows: float, number: int, side: int) -> int:
        """A whole number of rows, which is right on average: the seed decides about the rest."""
        least = floor(rows)
        return least + (drawn(self.limits.seed, number, side) < rows - least)

    # -- what is remembered ------------------------------------------------------------------------------------
    def _forget(self, number: int) -> None:
        """Stretches further back than the longer window."""
        while self.numbers and self.numbers[0] <= number - self.parts:
            del self.numbers[0], self.counts[0]

    def _rates(self, number: int) -> Two:
        """Rows that came for each unit of progress, over the last window, or since the beginning."""
        assert self.first is not None
        length = min(self.parts, number - self.first + 1) * self.length
        return sum(c[0] for c in self.counts) / length, sum(c[1] for c in self.counts) / length

    def _before(self, number: int, of: int) -> tuple[int, int]:
        """Rows of each side in its window before a stretch: as seen, or as kept."""
        found = []
        for side, window in enumerate(self.windows):
            since = number - -(-window // self.length)
            found.append(sum(c[of + side] for n, c in zip(self.numbers, self.counts, strict=True) if n >= since))
        return found[0], found[1]

    # -- state -------------------------------------------------------------------------------------------------
    def snapshot(self) -> Batch:
        own = self.first, self.holder
        rows = [(number, *counts, *own) for number, counts in zip(self.numbers, self.counts, strict=True)]
        schema = dict.fromkeys(("number", *COUNTS, "first", "holder"), pl.Int64)
        return pl.DataFrame(rows, schema=schema, orient="row")

    def restore(self, state: Batch | None) -> None:
        rows = [] if state is None else state.rows()
        self.numbers = [row[0] for row in rows]
        self.counts = [row[1:5] for row in rows]
        self.first, self.holder = rows[0][5:] if rows else (None, None)


def _met(rows: tuple[int, int], held: tuple[float, float]) -> int:
    return round(rows[0] * held[1] + rows[1] * held[0])
