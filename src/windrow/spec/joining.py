"""What a query can ask of a join beyond its meaning: how much of its time may be spent, and what it may keep.

Limits are kept in stretches of progress, [n length, (n + 1) length). What is shed follows from the rows of a stretch
and of those before it, whatever the order of arrival: docs/how-to/limited-joins.md has the definition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from windrow.errors import PlanError
from windrow.windows.pairing import Pairing, SameWindow, Side

SIDES: tuple[Side, Side] = (0, 1)
PARTS = 16  # stretches in the longer window
FEW = 8  # rows that a stretch may have at the least, if it is not longer than the window
BETTER = 1.1  # how many times as many results there must be before the other window comes first
SEED = "@seed"  # the column that makes a hash of a row one of the seed, too
MIX, FIRST, SECOND, BITS = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 2**64 - 1


@dataclass(frozen=True)
class Limits:
    """Rows per unit of progress that both inputs together may bring (``max_rate``), and rows that both windows together
    may hold (``max_state``). ``policy``: how the inputs share what that leaves; the best way, if it is None. ``seed``:
    rows are picked by a hash of it and the row.
    """

    max_rate: float | None = None
    max_state: int | None = None
    policy: str | None = None
    seed: int = 0

    def of_shard(self, shards: int) -> Self:
        """What one of so many shards may have.

        >>> Limits(max_rate=10, max_state=7).of_shard(2)
        Limits(max_rate=5.0, max_state=3, policy=None, seed=0)
        """
        rate = None if self.max_rate is None else self.max_rate / shards
        state = None if self.max_state is None else self.max_state // shards
        if state == 0:
            raise PlanError(
                f"max_state={self.max_state} is less than one row for each of {shards} shards: give a higher limit, or "
                "fewer shards"
            )
        return replace(self, max_rate=rate, max_state=state)


def held_for(window: Pairing) -> tuple[int, int]:
    """How long rows of each side are held at the most: until the last partner comes.

    >>> from windrow.windows.pairing import Within
    >>> held_for(Within(-9, 4)), held_for(SameWindow(10, origin=1))
    ((5, 10), (10, 10))
    """
    if isinstance(window, SameWindow):
        return window.length, window.length
    left, right = (max(0, int(window.partners(side, 0)[1]) + 1) for side in SIDES)
    return left, right


def stretch_length(windows: tuple[int, int], max_rate: float | None) -> int:
    """The stretches of progress that limits are kept in: a small part of the windows, and long enough for some rows.

    ``windows``: how long each side is held. ``max_rate``: rows for the smallest unit of progress.

    >>> stretch_length((160, 80), None), stretch_length((160, 80), 0.1), stretch_length((160, 80), 0.01)
    (10, 80, 160)
    """
    longest = max(*windows, 1)
    least = 1 if max_rate is None else int(min(-(-FEW // max_rate), longest))
    return max(longest // PARTS, least, 1)


def drawn(seed: int, number: int, side: int) -> float:
    """A number from 0 to 1 that follows from its arguments (splitmix64).

    >>> [round(drawn(seed, 5, 0), 3) for seed in (0, 1)]
    [0.396, 0.748]
    """
    x = (seed * MIX + number * 2 + side + 1) * MIX & BITS
    for shift, factor in ((30, FIRST), (27, SECOND)):
        x = (x ^ x >> shift) * factor & BITS
    return (x ^ x >> 31) / 2**64
