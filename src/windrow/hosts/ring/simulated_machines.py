"""The machines and cables of a simulated ring: what each piece of work takes, and when a message arrives."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from windrow.operators.ring.costs import Unit
from windrow.operators.ring.holder import Holder
from windrow.operators.ring.joining import read_tag
from windrow.operators.ring.messages import Message
from windrow.operators.ring.sliced_join import BUILD, MOVED, PROBE

GIGABIT = 125e6  # bytes a second


@dataclass(frozen=True)
class Machines:
    """``unit``: what work takes; T_j for each pair that is looked at, T_s for each message, half at either end, and
    T_n from one node to the next. ``tests``: seconds of each condition for a pair that it is tried for, in place of
    T_j. ``probe``: of each message with rows that try any pair. ``byte``: of either end for each byte. ``row_bytes``:
    of each input row beyond what its columns have, so that large rows need no memory here. ``jitter``: seconds that a
    message may take longer. ``slow``: by node, how many times as long all work takes there.

    >>> machines = Machines(Unit(send=2e-3), slow={1: 3.0})
    >>> machines.factor(0), machines.factor(1)
    (1.0, 3.0)
    """

    unit: Unit = field(default_factory=Unit)
    tests: tuple[float, ...] = ()
    probe: float = 0.0
    byte: float = 0.0
    row_bytes: int = 0
    bandwidth: float = GIGABIT
    jitter: float = 0.0
    slow: Mapping[int, float] = field(default_factory=dict)

    def factor(self, node: int) -> float:
        return self.slow.get(node, 1.0)

    def size(self, message: Message) -> int:
        """Bytes of a message."""
        size = message.size()
        if self.row_bytes:
            rows = sum(_rows_of(name) * payload.frame.height for name, payload in message.frames.items())
            size += rows * self.row_bytes
        return size

    def end(self, size: int) -> float:
        """What a message of so many bytes takes at either end."""
        return self.unit.send / 2 + self.byte * size


def _rows_of(name: str) -> int:
    """Of how many input rows each row of a frame is made."""
    if name.startswith((BUILD, PROBE, MOVED)):
        return 1
    return len(read_tag(name)[1]) if ":" in name else 0


class Cables:
    """Messages from one node to another arrive in the order in which they were sent. ``sent``: bytes of each cable."""

    def __init__(self, machines: Machines, seed: int) -> None:
        self.machines = machines
        self.sent: dict[tuple[int, int], int] = {}
        self._random = random.Random(seed)
        self._free: dict[tuple[int, int], float] = {}  # since when nothing goes over a cable
        self._last: dict[tuple[int, int], float] = {}  # when the last message of a cable arrives

    def arrival(self, source: int, to: int, at: float, size: int) -> float:
        """When a message arrives that is sent now."""
        if source == to:
            return at
        cable, machines = (source, to), self.machines
        self.sent[cable] = self.sent.get(cable, 0) + size
        gone = self._free[cable] = max(at, self._free.get(cable, 0.0)) + size / machines.bandwidth
        late = self._random.uniform(0.0, machines.jitter) if machines.jitter else 0.0
        found = self._last[cable] = max(gone + machines.unit.hop + late, self._last.get(cable, 0.0))
        return found

    def cut(self) -> None:
        """What was on its way is lost."""
        self._free.clear()
        self._last.clear()


class Meter:
    """What the piece of work that a node has under way has taken so far, by the operator's own counters."""

    def __init__(self, machines: Machines) -> None:
        self.machines = machines
        self._holder: Holder | None = None

    def start(self, holder: Holder, spent: float) -> None:
        """``spent``: seconds that it has taken before any of it was done."""
        self._holder, self.spent = holder, spent
        work, prober = holder.work, holder.prober
        tried = [count.tried for count in prober.counts] if self.machines.tests else []
        self._before = work.inserted, work.purged, prober.pairs, tried
        self._factor = self.machines.factor(holder.node)

    def seconds(self) -> float:
        if self._holder is None:
            return 0.0
        unit, work, prober = self.machines.unit, self._holder.work, self._holder.prober
        inserted, purged, pairs, tried = self._before
        found = self.spent + unit.insert * (work.inserted - inserted) + unit.purge * (work.purged - purged)
        if self.machines.tests:  # counters are set to zero when a node reports, and then it has tried nothing
            for each, count, before in zip(self.machines.tests, prober.counts, tried, strict=True):
                found += each * max(0, count.tried - before)
        else:
            found += unit.join * max(0, prober.pairs - pairs)
        if prober.pairs > pairs:
            found += self.machines.probe
        return found * self._factor
