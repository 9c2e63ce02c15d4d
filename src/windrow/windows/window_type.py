"""What every window type answers about itself, so that no code asks for its class."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windrow.windows.sliding import Sliding


class WindowType:
    """The answers of a plain window over the progressing attribute; a type overrides those that differ."""

    __slots__ = ()

    by_rows = False  # whether it is over row numbers and not over the progressing attribute
    ends_in_order = True  # whether the windows of all groups end in one order, so that results progress
    inclusive = False  # whether its end is its last instant, and not the first after it
    takes_late = True  # whether a late row can still belong to an open window
    in_partitions = False  # whether each partition has windows of its own

    @property
    def sliding(self) -> Sliding | None:
        """The window as fixed lengths over integers, which panes and window ids are made for; None for the others."""
        return None

    @property
    def counts_rows(self) -> bool:
        """Whether it needs to know the arrival position of every row."""
        return self.by_rows
