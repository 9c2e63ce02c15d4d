"""Session windows: maximal runs of a key's tuples, neighbours less than the gap apart (ours, not the thesis's)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from windrow.windows.numbers import ByValue
from windrow.windows.tuples import Ints, Tuple, positive
from windrow.windows.window_type import WindowType


@dataclass(frozen=True, slots=True)
class Session(ByValue, WindowType):
    """Session (key, first a) is ``[first a, last a + gap)``; a distance of exactly ``gap`` starts a new one.

    >>> rows = [Tuple(0), Tuple(4), Tuple(9)]
    >>> sorted(Session(5).windows(rows))
    [(None, 0), (None, 9)]
    """

    takes_late = False

    gap: int

    def __post_init__(self) -> None:
        positive(GAP=self.gap)

    def _sessions(self, tuples: Sequence[Tuple]) -> dict[Hashable, list[Tuple]]:
        by_key: dict[Hashable, list[Tuple]] = {}
        for t in sorted(tuples, key=lambda t: t.a):
            by_key.setdefault(t.p, []).append(t)
        found: dict[Hashable, list[Tuple]] = {}
        for key, run in by_key.items():
            current: list[Tuple] = []
            for t in run:
                if not current or t.a - current[-1].a >= self.gap:
                    current = found.setdefault((key, t.a), [])
                current.append(t)
        return found

    def windows(self, tuples: Sequence[Tuple]) -> set[Hashable]:
        return set(self._sessions(tuples))

    def extent(self, w: Hashable, tuples: Sequence[Tuple]) -> list[Tuple]:
        return self._sessions(tuples).get(w, [])

    def wids(self, t: Tuple, tuples: Sequence[Tuple]) -> set[Hashable]:
        """The one session of ``t``: the latest start of its key at or before it."""
        return {max((w for w in self._sessions(tuples) if _key(w) == t.p and _start(w) <= t.a), key=_start)}

    def starts_array(self, a: Ints, codes: Ints) -> Ints:
        """The first value of each tuple's session; ``codes`` number the keys."""
        order = np.lexsort((a, codes))
        sorted_a, sorted_codes = a[order], codes[order]
        new = np.ones(len(a), bool)
        new[1:] = (np.diff(sorted_a) >= self.gap) | (np.diff(sorted_codes) != 0)
        starts = np.empty(len(a), np.int64)
        starts[order] = sorted_a[np.flatnonzero(new)][np.cumsum(new) - 1] if len(a) else sorted_a
        return starts

    # -- which rows are late: a row below a promise can reach into a session that is released ------------------------
    def numbers_array(self, a: Ints) -> tuple[Ints, Ints]:
        return a, a + 1

    def bounds_array(self, number: Ints) -> tuple[Ints, Ints]:
        return number, number + self.gap


def _key(w: Hashable) -> Hashable:
    assert isinstance(w, tuple)
    key: Hashable = w[0]
    return key


def _start(w: Hashable) -> int:
    assert isinstance(w, tuple)
    return int(w[1])
