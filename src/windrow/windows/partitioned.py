"""Partitioned row windows (PA p): the last RANGE rows of each partition, every SLIDE rows of it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from windrow.windows.numbers import ByValue
from windrow.windows.sliding import Sliding
from windrow.windows.tuples import Ints, Tuple, positive
from windrow.windows.window_type import WindowType


def rank_array(row_num: Ints, codes: Ints) -> Ints:
    """The position of each tuple by ``row_num`` among the tuples with the same partition code, from 0.

    >>> rank_array(np.array([10, 11, 12, 13]), np.array([0, 1, 0, 0])).tolist()
    [0, 0, 1, 2]
    """
    order = np.lexsort((row_num, codes))
    sorted_codes = codes[order]
    starts = np.flatnonzero(np.r_[True, sorted_codes[1:] != sorted_codes[:-1]]) if len(order) else order
    counts = np.diff(np.r_[starts, len(order)])
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order)) - np.repeat(starts, counts)
    return ranks


@dataclass(frozen=True, slots=True)
class Partitioned(ByValue, WindowType):
    """Window (w, p) is the sliding window w over the ranks of p's tuples by ``row_num`` (Eq. 5.4 to 5.6).

    >>> rows = [Tuple(0, 0, "x"), Tuple(0, 1, "y"), Tuple(0, 2, "x")]
    >>> [t.row_num for t in Partitioned(2, 1).extent((1, "x"), rows)]
    [0, 2]
    """

    by_rows = True
    ends_in_order = False
    takes_late = False
    in_partitions = True

    range: int
    slide: int

    def __post_init__(self) -> None:
        positive(RANGE=self.range, SLIDE=self.slide)

    @property
    def over_rank(self) -> Sliding:
        """The window over the rank inside a partition."""
        return Sliding(self.range, self.slide)

    def _ranks(self, tuples: Sequence[Tuple]) -> dict[Tuple, int]:
        seen: dict[Hashable, int] = {}
        ranks = {}
        for t in sorted(tuples, key=lambda t: t.row_num):
            ranks[t] = seen.get(t.p, 0)
            seen[t.p] = ranks[t] + 1
        return ranks

    def windows(self, tuples: Sequence[Tuple]) -> set[Hashable]:
        ranks = self._ranks(tuples)
        return {(w, t.p) for t in tuples for w in self.over_rank.wids(Tuple(ranks[t]))}

    def extent(self, w: Hashable, tuples: Sequence[Tuple]) -> list[Tuple]:
        assert isinstance(w, tuple)
        number, p = w
        ranks = self._ranks(tuples)
        inner = self.over_rank
        return [t for t in tuples if t.p == p and inner.start(number) <= ranks[t] < inner.end(number)]

    def wids(self, t: Tuple, tuples: Sequence[Tuple]) -> set[Hashable]:
        return {(w, t.p) for w in self.over_rank.wids(Tuple(self._ranks(tuples)[t]))}

    def wids_array(self, row_num: Ints, codes: Ints) -> tuple[Ints, Ints]:
        """First and one-past-last window number of each tuple inside its partition."""
        return self.over_rank.wids_array(rank_array(row_num, codes))

    # -- which rows are late: a row below a promise has lost its rank, whatever windows it would be in ---------------
    def numbers_array(self, a: Ints) -> tuple[Ints, Ints]:
        return a, a + 1

    def bounds_array(self, number: Ints) -> tuple[Ints, Ints]:
        return number, number + 1
