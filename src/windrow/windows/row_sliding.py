"""Row-based sliding windows: the last RANGE rows by arrival, every SLIDE rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from windrow.windows.sliding import Sliding
from windrow.windows.tuples import Ints, Tuple, positive
from windrow.windows.window_type import WindowType


@dataclass(frozen=True, slots=True)
class RowSliding(WindowType):
    """As Sliding, over ``row_num`` instead of the progressing attribute.

    >>> [t.row_num for t in RowSliding(2, 1).extent(1, [Tuple(9, 0), Tuple(7, 1), Tuple(8, 2)])]
    [0, 1]
    """

    by_rows = True

    range: int
    slide: int

    def __post_init__(self) -> None:
        positive(RANGE=self.range, SLIDE=self.slide)

    @property
    def sliding(self) -> Sliding:
        return self.over_rows

    @property
    def over_rows(self) -> Sliding:
        """The window over arrival positions."""
        return Sliding(self.range, self.slide)

    def windows(self, tuples: Sequence[Tuple]) -> set[Hashable]:
        return {w for t in tuples for w in self.over_rows.wids(Tuple(t.row_num))}

    def extent(self, w: Hashable, tuples: Sequence[Tuple]) -> list[Tuple]:
        assert isinstance(w, int)
        start, end = self.over_rows.start(w), self.over_rows.end(w)
        return [t for t in tuples if start <= t.row_num < end]

    def wids(self, t: Tuple, tuples: Sequence[Tuple] = ()) -> set[Hashable]:
        return set(self.over_rows.wids(Tuple(t.row_num)))

    def wids_array(self, row_num: Ints) -> tuple[Ints, Ints]:
        """First and one-past-last window id of each arrival position."""
        return self.over_rows.wids_array(row_num)
