"""The tuple as a window sees it, and what every window type can answer."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from windrow.errors import QueryError
from windrow.progress import LONGEST

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
