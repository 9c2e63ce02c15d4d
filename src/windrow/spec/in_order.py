"""What a query can ask of a join in order (Hammad et al.): which way it goes, and when the adaptive one changes."""

from __future__ import annotations

import math
from typing import Literal

Mode = Literal["sync-filter", "filter-order", "adaptive"]
MODES: tuple[Mode, ...] = ("sync-filter", "filter-order", "adaptive")
ALPHA = 0.3  # as in the experiments of the paper


def bad_alpha(alpha: float) -> str | None:
    """Why there is no such alpha, if there is none.

    >>> bad_alpha(0.3), bad_alpha(1)
    (None, 'alpha=1 must be at least 0 and less than 1: it is the share of its time that a join is busy')
    """
    if 0 <= alpha < 1:
        return None
    return f"alpha={alpha} must be at least 0 and less than 1: it is the share of its time that a join is busy"


def bad_cost(cost: float) -> str | None:
    """The same for the time of a comparison."""
    if cost > 0 and math.isfinite(cost):
        return None
    return f"cost={cost} must be more than 0: it is the time to compare two rows, in units of progress"
