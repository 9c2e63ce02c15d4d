"""Early: when open windows show what they have so far (EMIT EARLY)."""

from __future__ import annotations

from typing import ClassVar

from windrow.operators.windows.grid import Grid
from windrow.progress import END, START
from windrow.spec.batches import Batch
from windrow.spec.names import PANE

GREATEST, SHOWN = "greatest", "shown"


class Early:
    """Open windows are shown once the stream has come past the next multiple of ``every``.

    ``marks`` belong to the operator, which saves them: the greatest pane seen, and the last multiple shown.
    """

    FIRST: ClassVar[dict[str, int]] = {GREATEST: START, SHOWN: START}  # of the marks

    def __init__(self, every: int, pane: int, grid: Grid, marks: dict[str, int]) -> None:
        self.every = every
        self.pane = pane
        self.grid = grid
        self.marks = marks

    def note(self, kept: Batch) -> None:
        """Note partials."""
        self.marks[GREATEST] = max(self.marks[GREATEST], int(kept[PANE].max()))  # type: ignore[arg-type]

    def due(self, closed: int) -> int | None:
        """One past the last window to show now; None if nothing is due. Then nothing is until the next multiple."""
        greatest = self.marks[GREATEST]
        if closed == END or greatest == START or (multiple := greatest * self.pane // self.every) <= self.marks[SHOWN]:
            return None
        self.marks[SHOWN] = multiple
        return (greatest + self.grid.length) // self.grid.step
