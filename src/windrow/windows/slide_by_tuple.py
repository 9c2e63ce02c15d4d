"""Slide-by-tuple windows: RANGE over the progressing attribute, one window for every n-th tuple."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from windrow.windows.numbers import ByValue
from windrow.windows.tuples import Bools, Ints, Tuple, positive
from windrow.windows.window_type import WindowType


@dataclass(frozen=True, slots=True)
class SlideByTuple(ByValue, WindowType):
    """Window w, the ``a`` of an n-th tuple, holds the tuples with ``w - range < a <= w`` (Eq. 5.10 to 5.18).

    ``by="row_num"`` counts tuples by arrival, ``by="rank"`` by (a, row_num). The n-th tuples are those whose
    position, from 0, is a multiple of n. Tuples with equal ``a`` are peers: they see each other.

    >>> rows = [Tuple(10, 0), Tuple(7, 1), Tuple(12, 2)]
    >>> sorted(SlideByTuple(5, 2).windows(rows)), sorted(SlideByTuple(5, 2, by="rank").windows(rows))
    ([10, 12], [7, 12])
    """

    inclusive = True

    range: int
    slide: int = 1
    by: Literal["row_num", "rank"] = "row_num"

    def __post_init__(self) -> None:
        positive(RANGE=self.range, SLIDE=self.slide)

    @property
    def counts_rows(self) -> bool:
        return self.by == "row_num" and self.slide > 1

    def windows(self, tuples: Sequence[Tuple]) -> set[Hashable]:
        if self.by == "row_num":
            return {t.a for t in tuples if t.row_num % self.slide == 0}
        ordered = sorted(tuples, key=lambda t: (t.a, t.row_num))
        return {t.a for rank, t in enumerate(ordered) if rank % self.slide == 0}

    def extent(self, w: Hashable, tuples: Sequence[Tuple]) -> list[Tuple]:
        assert isinstance(w, int)
        return [u for u in tuples if w - self.range < u.a <= w]

    def wids(self, t: Tuple, tuples: Sequence[Tuple]) -> set[Hashable]:
        return {w for w in self.windows(tuples) if isinstance(w, int) and t.a <= w < t.a + self.range}

    def windows_array(self, a: Ints, row_num: Ints) -> Ints:
        """The window ids, sorted, without repeats."""
        if self.by == "row_num":
            return np.unique(a[row_num % self.slide == 0])
        return np.unique(a[np.lexsort((row_num, a))][:: self.slide])

    def wids_array(self, a: Ints, row_num: Ints) -> tuple[Ints, Ints]:
        """For each tuple, its half-open range of positions in ``windows_array``."""
        ids = self.windows_array(a, row_num)
        return (
            np.searchsorted(ids, a).astype(np.int64),
            np.searchsorted(ids, a + self.range).astype(np.int64),
        )

    def extent_mask(self, w: int, a: Ints) -> Bools:
        """Which of the values belong to window ``w``."""
        return np.asarray((a > w - self.range) & (a <= w))

    # -- which rows are late: the number of a window is its end ----------------------------------------------------
    def numbers_array(self, a: Ints) -> tuple[Ints, Ints]:
        return a, a + self.range

    def bounds_array(self, number: Ints) -> tuple[Ints, Ints]:
        return number - self.range, number
