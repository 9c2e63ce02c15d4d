"""When entries of old windows leave the table of two-level aggregation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FlushPolicy = Literal["at once", "slow", "lazy"]

FLUSHES: tuple[FlushPolicy, ...] = ("at once", "slow", "lazy")

EVERY, LATE = 160, 2  # of the thesis's experiment: an entry every 160 tuples, at most two windows late (Li 8.4.1)


@dataclass(frozen=True)
class Flush:
    """When entries of a window that is over leave: at once, one ``every`` so many tuples, or as others need the slot.

    None stays more than ``late`` windows (None: no bound) after its own, as far as rows and promises have come.
    ``ordered``: input is in order and output must be (IOP, Figure 8-6).
    """

    policy: FlushPolicy = "at once"
    every: int = EVERY
    late: int | None = LATE
    ordered: bool = False

    def __str__(self) -> str:
        if self.policy == "at once":
            return "old entries leave at once"
        kept = "until the end" if self.late is None else f"for at most {self.late} windows"
        one = f"one old entry leaves every {self.every} rows" if self.policy == "slow" else "old entries stay"
        return f"{one}, {kept}"
