"""How the state is spread over the ring, from round to round (Wang and Rundensteiner, Sections 5.4 to 6)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from windrow.operators.ring.costs import Objective, Streams, Unit, best_orders, latency_of, lengths, with_join_time
from windrow.operators.ring.joining import Joining
from windrow.operators.ring.sliced_join import Layout
from windrow.operators.ring.which_order import FEW, cheapest_order
from windrow.windows.tuples import Ints, positive

SMOOTHING, RELOCATION = ("count", "time"), ("passive", "aggressive")
LARGEST = 1 << 28  # bytes of a row: several of them are in memory at once
NEW = 0.5  # the weight of what was measured last
CHANGE = 0.8  # of the cost: an order, or a length, is changed for another one if that costs less than this
MANY = 100.0  # rows of each stream, where nothing is known
STEADY = 1.25  # how far the size of a state may be from that for which its slices were cut

Cuts = list[list[int]]


@dataclass(frozen=True)
class Wishes:
    """``nodes``: how many hold state; None: as many as cost least, up to ``most``. ``smoothing``: slices of as many
    rows, or of as much time. ``relocation``: when the number of nodes changes, state follows as it grows old, or at
    once. ``objective``: what an automatic length is chosen for. ``lengths``: how many nodes share the state of each
    stream at first, if something is known of them (Section 5.4). ``segment``, ``copies``: of the ways with copies of
    the state, how long a segment is, and how many nodes hold it.
    """

    most: int = 1
    nodes: int | None = None
    smoothing: Literal["count", "time"] = "count"
    relocation: Literal["passive", "aggressive"] = "passive"
    objective: Objective = "latency"
    unit: Unit = field(default_factory=Unit)
    lengths: tuple[int, ...] = ()
    segment: int | None = None
    copies: int = 2
    largest: int = LARGEST
    ordered: tuple[tuple[int, ...], ...] = ()  # how rows of each stream probe the others, if that is given

    def __post_init__(self) -> None:
        positive(copies=self.copies)
        if self.segment is not None:
            positive(segment=self.segment)


class Tuning:
    """What the head decides between two rounds, from what the nodes have reported. Whatever is decided, results are the
    same; all of it is state, so that a round that runs again has the same layout.
    """

    def __init__(self, joining: Joining, wishes: Wishes) -> None:
        self.joining, self.wishes = joining, wishes
        functions = any(test.function is not None for test in joining.tests)
        self.nodes = wishes.nodes or max(wishes.lengths, default=wishes.most if functions else 1)
        self.lengths = wishes.lengths or (self.nodes,) * joining.streams
        self.held = [0.0] * joining.streams  # rows of each stream as the slices are cut
        self.live = [0] * joining.streams
        self.first = [0] * joining.streams  # the oldest row of each stream that is held
        self.tests: list[tuple[float, float]] = [(0.5, 1e-6) for _ in joining.tests]
        self.join = 0.0  # T_j as measured; 0: not yet
        # As if all conditions were alike: rows probe streams first that a condition connects them with. A finite query
        # is a single round, so it has no other order.
        alike = [(0.5, 1.0)] * len(joining.tests)
        same = [MANY] * joining.streams
        first = [cheapest_order(same, joining.asked, alike, n) for n in range(joining.streams)]
        self.orders: list[tuple[int, ...]] = list(wishes.ordered) or first
        self.moved = True  # whether state is where the lengths say

    # -- what comes next ---------------------------------------------------------------------------------------
    def next(self, times: Sequence[Ints], seen: Sequence[int]) -> tuple[Layout, Cuts | None]:
        """The layout for a round with rows of these times, and, if state is to move at once, where it is cut."""
        if self.wishes.nodes not in (None, self.nodes):  # others are asked for than when the state was written
            self.resize(self.wishes.nodes or 1)
        for stream, own in enumerate(times):
            size = max(1.0, float(self._expected(stream, own)))
            if not self.held[stream] / STEADY <= size <= self.held[stream] * STEADY:
                self.held[stream] = size
        layout = Layout(self.nodes, self._counts(), self._ages(), tuple(self.orders))
        cuts = None
        if not self.moved and self.wishes.relocation == "aggressive" and any(self.live):
            cuts = [self._cuts(stream, seen[stream]) for stream in range(self.joining.streams)]
        self.moved = True
        return layout, cuts

    def _expected(self, stream: int, times: Ints) -> int:
        """How many rows are held after the round, about: those of the last window, or those that are held already."""
        length = self.joining.ranges.lengths[stream]
        if self.joining.ranges.counts(stream):
            return min(length, self.live[stream] + len(times))
        inside = len(times) - int(np.searchsorted(times, times[-1] - length, side="right")) if len(times) else 0
        return max(inside, self.live[stream])

    def _counts(self) -> tuple[tuple[int | None, ...], ...]:
        found = []
        for stream, length in enumerate(self.lengths):
            by_count = self.wishes.smoothing == "count" or self.joining.ranges.counts(stream)
            most = math.ceil(self.held[stream] / length) if by_count else None
            found.append((*((most,) * (length - 1)), None))
        return tuple(found)

    def _ages(self) -> tuple[tuple[int | None, ...], ...]:
        """Even slices of time: the end of each, counted from the row that probes."""
        found: list[tuple[int | None, ...]] = []
        for stream, length in enumerate(self.lengths):
            window = self.joining.ranges.lengths[stream]
            by_time = self.wishes.smoothing == "time" and not self.joining.ranges.counts(stream)
            ends = [-(-window * (node + 1) // length) if by_time else None for node in range(length - 1)]
            found.append((*ends, None))
        return tuple(found)

    def _cuts(self, stream: int, stop: int) -> list[int]:
        """Slices of as many rows: the first row of each, from the head on."""
        first, length = self.first[stream], self.lengths[stream]
        size = -(-max(0, stop - first) // length)
        return [*(max(first, stop - size * (node + 1)) for node in range(length - 1)), first]

    # -- what was measured -------------------------------------------------------------------------------------
    def learn(self, reports: Sequence[Mapping[str, Any]]) -> None:
        """Take the reports of all nodes at the end of a round."""
        streams = range(self.joining.streams)
        self.live = [sum(report["live"][n] for report in reports) for n in streams]
        self.first = [min(report["start"][n] for report in reports) for n in streams]
        for number, before in enumerate(self.tests):
            tried, passed, seconds = (sum(report["tests"][number][i] for report in reports) for i in range(3))
            if tried:
                now = passed / tried, seconds / tried or before[1]
                shares, times = zip(before, now, strict=True)
                self.tests[number] = _mixed(*shares), _mixed(*times)
        pairs, seconds = (sum(report[name] for report in reports) for name in ("pairs", "seconds"))
        if pairs and seconds:
            self.join = seconds / pairs if not self.join else _mixed(self.join, seconds / pairs)
        if not self.wishes.ordered:
            self._reorder()
        if self.wishes.nodes is None:
            self._resize()

    def _reorder(self) -> None:
        held = [max(1.0, float(n)) for n in self.live]
        for stream in range(self.joining.streams):
            if self.joining.streams <= FEW:
                orders = self.joining.orders(stream)
            else:
                orders = [self.orders[stream], cheapest_order(held, self.joining.asked, self.tests, stream)]
            found = best_orders(held, self.joining.asked, self.tests, stream, orders)
            now = next(cost for cost, order in found if order == self.orders[stream])
            if found[0][0] < CHANGE * now:
                self.orders[stream] = found[0][1]

    def measured(self) -> Streams:
        """The streams for the cost model: only the number of rows that are held matters."""
        share = math.prod(passed for passed, _ in self.tests) ** (1 / max(1, self.joining.streams - 1))
        held = tuple(max(1.0, float(n)) for n in self.live)
        return Streams(held, (1.0,) * len(held), (share,) * len(held))

    def _resize(self) -> None:
        """Another length of the ring, if that is worth it."""
        if not self.join or not any(self.live):
            return
        streams, unit = self.measured(), with_join_time(self.wishes.unit, self.join)
        each = lengths(streams, unit, self.wishes.most, self.wishes.objective)
        if max(each) != self.nodes and latency_of(streams, unit, each) < CHANGE * latency_of(
            streams, unit, self.lengths
        ):
            self.resize(max(each), each)

    def resize(self, nodes: int, each: Sequence[int] | None = None) -> None:
        """From the next round on so many nodes hold state."""
        self.nodes, self.moved = nodes, False
        self.lengths = tuple(each) if each is not None else (nodes,) * self.joining.streams
        self.held = [0.0] * self.joining.streams

    # -- state -------------------------------------------------------------------------------------------------
    def saved(self) -> dict[str, Any]:
        """All that changes."""
        names = ("nodes", "lengths", "held", "live", "first", "tests", "join", "orders", "moved")
        return {name: getattr(self, name) for name in names}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """What ``saved`` gave, after a way through JSON."""
        self.nodes = int(saved["nodes"])
        self.lengths = tuple(saved["lengths"])
        self.held, self.live, self.first = (list(saved[name]) for name in ("held", "live", "first"))
        self.tests = [tuple(each) for each in saved["tests"]]
        self.orders = [tuple(each) for each in saved["orders"]]
        self.join, self.moved = float(saved["join"]), bool(saved["moved"])


def _mixed(before: float, now: float) -> float:
    return (1 - NEW) * before + NEW * now
