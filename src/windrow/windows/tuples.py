"""The tuple as a window sees it, and what every window type can answer."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from windrow.errors import QueryError
from windrow.progress import END, FARTHEST, LONGEST

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

UNBOUNDED = 1 << 62  # the end of a ``range`` of window ids that has none (landmark windows)


@dataclass(frozen=True, slots=True)
class Tuple:
    """``a`` is the progressing attribute, ``row_num`` the arrival position, ``p`` a partition or session key."""

    a: int
    row_num: int = 0
    p: Hashable = None


class Window(Protocol):
    """Three functions define a window type; ``tuples`` is the set T of the papers, in any order."""

    def windows(self, tuples: Sequence[Tuple]) -> set[Hashable]:
        """The ids of all windows with at least one tuple."""

    def extent(self, w: Hashable, tuples: Sequence[Tuple]) -> list[Tuple]:
        """The tuples of window ``w``."""

    def wids(self, t: Tuple, tuples: Sequence[Tuple]) -> set[Hashable] | range:
        """The windows that tuple ``t`` belongs to."""


class Numbered(Protocol):
    """How a window type numbers its windows, in the order in which promises release them: what decides who is late."""

    def numbers_array(self, a: Ints) -> tuple[Ints, Ints]:
        """First and one-past-last number of the windows that a value can be in."""

    def released_array(self, promise: Ints) -> Ints:
        """Windows with smaller numbers than this are released by a promise."""

    def bounds_array(self, number: Ints) -> tuple[Ints | None, Ints]:
        """Where windows start, unless they have no start, and where they end."""

    def missed_array(self, first: Ints, last: Ints) -> Ints:
        """How many windows have numbers in [first, last); one, where that is not known before all rows are there."""


class ByValue:
    """Numbers of window types whose windows depend on the rows: each progress value is one.

    A row can only be in windows that end at or after it, and all that end before a promise are released.
    """

    __slots__ = ()

    def released_array(self, promise: Ints) -> Ints:
        return promise

    def missed_array(self, first: Ints, last: Ints) -> Ints:
        return np.ones(len(first), np.int64)


def released_by(promise: Ints, origin: int, slide: int) -> Ints:
    """Below this id, all windows that end at ``origin`` plus multiples of ``slide`` are released by a promise."""
    near = np.clip(promise, -FARTHEST, FARTHEST)  # no value is beyond, and 64 bits hold what is left of it
    return np.where(promise == END, END, (near - origin) // slide)


def positive(**values: int) -> None:
    """Raise unless every value is a positive integer: windows of no length contain nothing and never end."""
    for name, value in values.items():
        if value <= 0:
            raise ValueError(f"{name} must be positive, not {value}")
        if value > LONGEST:
            raise QueryError(
                f"{name} must be at most 2^60, not {value}: 64 bits cannot hold the bounds of such windows"
            )


def near(origin: int) -> None:
    """Raise if an origin is so far from zero that what lies between it and a progress value leaves 64 bits."""
    if abs(origin) > 2 * LONGEST:
        raise QueryError(f"ORIGIN must be between -2^61 and 2^61, not {origin}")
