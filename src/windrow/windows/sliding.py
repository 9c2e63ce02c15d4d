"""Sliding windows: RANGE r, SLIDE s over one attribute. Tumbling is r = s, hopping with gaps is s > r."""

from __future__ import annotations

import builtins
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from windrow.windows.numbers import ById
from windrow.windows.tuples import Bools, Ints, Tuple, near, positive
from windrow.windows.window_type import WindowType


@dataclass(frozen=True, slots=True)
class Sliding(ById, WindowType):
    """Window w holds the tuples with ``origin + (w+1)*slide - range <= a < origin + (w+1)*slide``.

    >>> minute = 60
    >>> list(Sliding(10 * minute, minute).wids(Tuple(5)))      # the thesis's own example: 10:00:05 is in 0 to 9
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    range: int
    slide: int
    origin: int = 0

    def __post_init__(self) -> None:
        positive(RANGE=self.range, SLIDE=self.slide)
        near(self.origin)

    @property
    def sliding(self) -> Sliding:
        return self

    # -- the bounds of one window ------------------------------------------------------------------------------
    def start(self, w: int) -> int:
        """The first value that belongs to window ``w``."""
        return self.end(w) - self.range

    # -- the three functions -----------------------------------------------------------------------------------
    def windows(self, tuples: Sequence[Tuple]) -> set[Hashable]:
        return {w for t in tuples for w in self.wids(t)}

    def extent(self, w: Hashable, tuples: Sequence[Tuple]) -> list[Tuple]:
        assert isinstance(w, int)
        return [t for t in tuples if self.start(w) <= t.a < self.end(w)]

    def wids(self, t: Tuple, tuples: Sequence[Tuple] = ()) -> builtins.range:
        return builtins.range((t.a - self.origin) // self.slide, (t.a - self.origin + self.range) // self.slide)

    # -- the same, vectorised ----------------------------------------------------------------------------------
    def wids_array(self, a: Ints) -> tuple[Ints, Ints]:
        """First and one-past-last window id of each value; equal where a value lies in a gap (s > r)."""
        return (a - self.origin) // self.slide, (a - self.origin + self.range) // self.slide

    def extent_mask(self, w: int, a: Ints) -> Bools:
        """Which of the values belong to window ``w``."""
        return np.asarray((a >= self.start(w)) & (a < self.end(w)))

    # -- panes (Li 6.2) ----------------------------------------------------------------------------------------
    @property
    def pane(self) -> int:
        """The length of a pane: windows are whole numbers of panes, and no window edge lies inside one."""
        return math.gcd(self.range, self.slide)

    def panes_array(self, a: Ints) -> Ints:
        """The pane of each value."""
        return (a - self.origin) // self.pane

    # -- progress ----------------------------------------------------------------------------------------------
    def closed_below(self, promise: int) -> int:
        """Every window with a smaller id is complete once all later tuples have ``a >= promise``."""
        return (promise - self.origin) // self.slide

    # -- which rows are late -------------------------------------------------------------------------------------
    def numbers_array(self, a: Ints) -> tuple[Ints, Ints]:
        return self.wids_array(a)

    def bounds_array(self, number: Ints) -> tuple[Ints, Ints]:
        ends = self.origin + (number + 1) * self.slide
        return ends - self.range, ends
