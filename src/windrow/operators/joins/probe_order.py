"""The order in which rows of one input of a multi-way join probe the other inputs: by fan-out, as it is measured.

It follows from rows alone, so that a replay finds the same order. Whatever the order, the results are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

PERIOD = 250  # rows of the input between two looks at the order
ENOUGH = 64  # probes that say something about a fan-out
SMOOTH = 0.5  # how much the last period counts
GAIN = 0.8  # another order must cost less than this part of what the present one costs

Saved = tuple[int, int, int, int, float | None]  # of a target in its place: its number, rows, probes, finds, fan-out


@dataclass
class Measured:
    """What is known of one target: how many rows it gives for each that probes it."""

    probed: int = 0
    found: int = 0
    fanout: float | None = None

    def settle(self) -> None:
        """The end of a period; one with few probes is part of the next."""
        if self.probed >= ENOUGH:
            now = self.found / self.probed
            self.fanout = now if self.fanout is None else SMOOTH * now + (1 - SMOOTH) * self.fanout
            self.probed = self.found = 0


@dataclass
class ProbeOrder:
    """The order for rows of one input. The target with the least fan-out comes first, which is the cheapest order.

    >>> order = ProbeOrder([1, 2])
    >>> order.count(1, probed=250, found=1250), order.count(2, probed=1250, found=125), order.look(250)
    (None, None, None)
    >>> order.targets, order.cost([1, 2]), order.cost([2, 1])
    ([2, 1], 6.0, 1.1)
    """

    targets: list[int]
    of: dict[int, Measured] = field(init=False)
    rows: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.of = {target: Measured() for target in self.targets}

    def count(self, target: int, probed: int, found: int) -> None:
        """Rows have probed a target, and have found so many."""
        self.of[target].probed += probed
        self.of[target].found += found

    def look(self, rows: int) -> None:
        """Rows of the input have come: after enough of them, another order may be better."""
        self.rows += rows
        if self.rows < PERIOD:
            return
        self.rows = 0
        for measured in self.of.values():
            measured.settle()
        best = sorted(self.targets, key=self._fanout)
        if self.cost(best) < GAIN * self.cost(self.targets):
            self.targets = best

    def cost(self, targets: Iterable[int]) -> float:
        """How many probes one row of the input causes in this order."""
        total, width = 0.0, 1.0
        for target in targets:
            total += width
            width *= self._fanout(target)
        return total

    def compared(self, held: Sequence[float]) -> float:
        """How many rows one row of the input is compared with in nested loops over what the targets hold."""
        total, width = 0.0, 1.0
        for target in self.targets:
            total += width * held[target]
            width *= self._fanout(target)
        return total

    def _fanout(self, target: int) -> float:
        found = self.of[target].fanout
        return 1.0 if found is None else found

    # -- state -------------------------------------------------------------------------------------------------
    def saved(self) -> list[Saved]:
        """All that is known, in the order of the targets."""
        return [(t, self.rows, m.probed, m.found, m.fanout) for t in self.targets for m in [self.of[t]]]

    def restore(self, saved: Sequence[Saved]) -> None:
        self.targets = [target for target, *_ in saved]
        self.rows = saved[0][1] if saved else 0
        self.of = {target: Measured(probed, found, fanout) for target, _, probed, found, fanout in saved}
