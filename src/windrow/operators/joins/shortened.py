"""The window of a join whose state is limited: of each side only the newest rows are still there."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.progress import START
from windrow.windows.pairing import Pairing, Side
from windrow.windows.tuples import Ints


class Shortened(Pairing):
    """A pairing in which a row that has left finds no partner any more.

    ``oldest``: of each side the least time that is still kept. It grows from stretch to stretch, and so do the bounds
    of partners, as a pairing must have it.

    >>> from windrow.windows.pairing import Within
    >>> window = Shortened(Within(-10, 10))
    >>> window.move(np.array([0, 5]), np.array([[0, 0], [0, 4]]), (3, 5), 10)
    >>> [window.partners(0, t) for t in (2, 7, 12)]  # right rows below 4 are gone from time 5 on, below 5 from 10 on
    [(0, 9), (4, 17), (5, 22)]
    """

    def __init__(self, window: Pairing) -> None:
        self.window = window
        self.oldest: tuple[int, int] = (START, START)
        self.rest()

    def rest(self) -> None:
        """Only rows to come are asked for from now on."""
        self._starts: Ints = np.empty(0, np.int64)
        self._before: Ints = np.array([self.oldest], np.int64)

    def move(self, starts: Ints, before: Ints, oldest: tuple[int, int], end: int) -> None:
        """Stretches are joined: where each begins, what was the oldest of each side before it, and after the last."""
        self.oldest = oldest
        self._starts = np.append(starts, end)
        self._before = np.vstack([before[:1], before, [oldest]])

    @property
    def width(self) -> int:
        return self.window.width

    def partners(self, side: Side, time: Any) -> tuple[Any, Any]:
        first, last = self.window.partners(side, time)
        at = np.searchsorted(self._starts, time, "right")
        first = np.maximum(first, self._before[at, 1 - side])
        gone = np.searchsorted(self._before[1:, side], time, "right")  # the first stretch that it does not live to see
        until = np.append(self._starts, np.iinfo(np.int64).max)[np.minimum(gone, len(self._starts))]
        last = np.minimum(last, until - 1)
        return (first, last) if isinstance(time, np.ndarray) else (int(first), int(last))

    def first_kept(self, side: Side, promised: Any) -> Any:
        return max(int(self.window.first_kept(side, promised)), self.oldest[side])
