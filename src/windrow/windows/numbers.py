"""Numbers of windows, in the order in which promises release them: what decides which rows are late."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from windrow.progress import END, FARTHEST
from windrow.windows.tuples import Ints


class Numbered(Protocol):
    """What a window type answers about its windows by number."""

    def end(self, w: int) -> int:
        """Where window ``w`` ends."""

    def releasing(self, w: int) -> int:
        """The smallest promise that releases all windows below ``w``."""

    def numbers_array(self, a: Ints) -> tuple[Ints, Ints]:
        """First and one-past-last number of the windows that a value can be in."""

    def released_array(self, promise: Ints) -> Ints:
        """Windows with smaller numbers than this are released by a promise."""

    def bounds_array(self, number: Ints) -> tuple[Ints | None, Ints]:
        """Where windows start, unless they have no start, and where they end."""

    def missed_array(self, first: Ints, last: Ints) -> Ints:
        """How many windows have numbers in [first, last); one, where that is not known before all rows are there."""


class ById:
    """Numbers of window types whose windows end at ``origin`` plus multiples of ``slide``: their ids."""

    __slots__ = ()
    origin: int
    slide: int

    def end(self, w: int) -> int:
        """The first value after window ``w``: a promise of at least this much closes it."""
        return self.origin + (w + 1) * self.slide

    def releasing(self, w: int) -> int:
        return self.end(w - 1)

    def released_array(self, promise: Ints) -> Ints:
        near = np.clip(promise, -FARTHEST, FARTHEST)  # no value is beyond, and 64 bits hold what is left of it
        return np.where(promise == END, END, (near - self.origin) // self.slide)

    def missed_array(self, first: Ints, last: Ints) -> Ints:
        return last - first


class ByValue:
    """Numbers of window types whose windows depend on the rows: each progress value is one.

    A row can only be in windows that end at or after it, and all that end before a promise are released.
    """

    __slots__ = ()

    def end(self, w: int) -> int:
        return w

    def releasing(self, w: int) -> int:
        return w

    def released_array(self, promise: Ints) -> Ints:
        return promise

    def missed_array(self, first: Ints, last: Ints) -> Ints:
        return np.ones(len(first), np.int64)
