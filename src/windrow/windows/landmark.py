"""Landmark windows (RANGE ALL): every window starts at the beginning of the stream, ends advance by SLIDE."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from windrow.windows.numbers import ById
from windrow.windows.tuples import UNBOUNDED, Bools, Ints, Tuple, near, positive
from windrow.windows.window_type import WindowType


@dataclass(frozen=True, slots=True)
class Landmark(ById, WindowType):
    """Window w holds the tuples with ``a < origin + (w+1)*slide``; a tuple is in every window from its first on.

    >>> 7 in Landmark(60).wids(Tuple(5)), -1 in Landmark(60).wids(Tuple(5))
    (True, False)
    """

    slide: int
    origin: int = 0

    def __post_init__(self) -> None:
        positive(SLIDE=self.slide)
        near(self.origin)

    def windows(self, tuples: Sequence[Tuple]) -> set[Hashable]:
        """Without end from the first tuple on; the ones up to the last tuple's first window differ."""
        firsts = [(t.a - self.origin) // self.slide for t in tuples]
        return set(range(min(firsts), max(firsts) + 1)) if firsts else set()

    def extent(self, w: Hashable, tuples: Sequence[Tuple]) -> list[Tuple]:
        assert isinstance(w, int)
        return [t for t in tuples if t.a < self.end(w)]

    def wids(self, t: Tuple, tuples: Sequence[Tuple] = ()) -> range:
        return range((t.a - self.origin) // self.slide, UNBOUNDED)

    def wids_array(self, a: Ints) -> tuple[Ints, Ints]:
        """First window id of each value; the one-past-last is unbounded."""
        return (a - self.origin) // self.slide, np.full(a.shape, UNBOUNDED, np.int64)

    def extent_mask(self, w: int, a: Ints) -> Bools:
        """Which of the values belong to window ``w``."""
        return np.asarray(a < self.end(w))

    # -- which rows are late -------------------------------------------------------------------------------------
    def numbers_array(self, a: Ints) -> tuple[Ints, Ints]:
        return self.wids_array(a)

    def bounds_array(self, number: Ints) -> tuple[Ints | None, Ints]:
        ends = self.origin + (number + 1) * self.slide
        return None, ends
