"""Which rows of two streams are near enough to be a pair: the window of a join, as pure functions of two times.

``partners`` is the definition: all times of the other side that a row can be paired with lie between two bounds, and
both grow with the time of the row. Everything else follows from that: what to keep, what to free, what to promise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

Side = Literal[0, 1]  # the left one, the right one


class Pairing(ABC):
    """The times are integers, or arrays of them."""

    @abstractmethod
    def partners(self, side: Side, time: Any) -> tuple[Any, Any]:
        """The first and the last time of a partner of a row of ``side`` that has this time, both included."""

    @abstractmethod
    def first_kept(self, side: Side, promised: Any) -> Any:
        """The least time of a row of ``side`` whose last partner is not below what the other side has promised."""

    @property
    @abstractmethod
    def width(self) -> int:
        """How many times the partners of a row can have."""

    def near(self, left: int, right: int) -> bool:
        """Whether a left and a right row with these times can be a pair."""
        first, last = self.partners(0, left)
        return bool(first <= right <= last)


@dataclass(frozen=True)
class Within(Pairing):
    """``low <= right time - left time <= high``: a band, or the windows of a sliding-window join.

    >>> Within(-2, 3).partners(0, 10), Within(-2, 3).partners(1, 10)
    ((8, 13), (7, 12))
    >>> Within(-2, 3).first_kept(0, 14)       # a left row at 10 can be paired up to 13
    11
    """

    low: int
    high: int

    def partners(self, side: Side, time: Any) -> tuple[Any, Any]:
        return (time + self.low, time + self.high) if side == 0 else (time - self.high, time - self.low)

    def first_kept(self, side: Side, promised: Any) -> Any:
        return promised - (self.high if side == 0 else -self.low)

    @property
    def width(self) -> int:
        return self.high - self.low + 1


@dataclass(frozen=True)
class SameWindow(Pairing):
    """Both times are in the same tumbling window: ``floor((time - origin) / length)`` is the same.

    >>> SameWindow(10).partners(0, 17), SameWindow(10).first_kept(0, 17), SameWindow(10).first_kept(0, 20)
    ((10, 19), 10, 20)
    """

    length: int
    origin: int = 0

    def partners(self, side: Side, time: Any) -> tuple[Any, Any]:
        first = self._start(time)
        return first, first + self.length - 1

    def first_kept(self, side: Side, promised: Any) -> Any:
        return self._start(promised)

    def _start(self, time: Any) -> Any:
        return (time - self.origin) // self.length * self.length + self.origin

    @property
    def width(self) -> int:
        return self.length
