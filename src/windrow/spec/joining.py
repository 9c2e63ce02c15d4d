"""What a query can ask of a join beyond its meaning: how much of its time may be spent, and what it may keep."""

from __future__ import annotations

from dataclasses import dataclass


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
