"""What a ring costs, and how long it should be (Wang and Rundensteiner, Section 5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import mul
from typing import Literal

Objective = Literal["latency", "output"]
LEAST_GAIN = 0.98  # of the time of a shorter ring, below which one more node is worth it


@dataclass(frozen=True)
class Unit:
    """Seconds: to join a pair (T_j), to send and receive a row (T_s), for one hop (T_n), to insert and to purge one
    (T_i, T_p). The defaults are those of a machine with two cores; ``windrow bench ring-speed`` measures them.
    """

    join: float = 1e-3
    send: float = 30e-6
    hop: float = 60e-6
    insert: float = 2e-6
    purge: float = 2e-6


@dataclass(frozen=True)
class Streams:
    """By stream: rows a second, the seconds that they are held, and the share of pairs that are found when its state
    is probed.
    """

    rates: tuple[float, ...]
    windows: tuple[float, ...]
    selectivities: tuple[float, ...]

    @property
    def ways(self) -> int:
        return len(self.rates)

    def held(self) -> list[float]:
        """Rows in each window."""
        return [rate * window for rate, window in zip(self.rates, self.windows, strict=True)]

    def order(self) -> list[int]:
        """The streams in the order of lambda W S: what probes a small state first has little to carry on."""
        weights = [h * s for h, s in zip(self.held(), self.selectivities, strict=True)]
        return sorted(range(self.ways), key=lambda n: weights[n])


def probes(streams: Streams) -> tuple[float, float]:
    """Of one input row: the pairs that it is compared with, and the intermediate results that are carried round.

    >>> one = Streams((10, 10, 10), (1, 1, 1), (.1, .1, .1))
    >>> [round(each, 6) for each in probes(one)]
    [20.0, 1.0]
    """
    order = streams.order()[: streams.ways - 1]
    held = streams.held()
    found = list(accumulate((held[n] * streams.selectivities[n] for n in order), mul, initial=1.0))
    pairs = sum(before * held[n] for before, n in zip(found, order, strict=False))
    return pairs, sum(found[1:-1])


def central(streams: Streams, unit: Unit) -> float:
    """L_C, Eq. 1: the seconds that one input row takes on one machine."""
    return unit.insert + unit.purge + unit.join * probes(streams)[0]


def workload(streams: Streams, unit: Unit, nodes: int) -> float:
    """L_PSP, Eq. 1: the seconds that one input row takes on all nodes together."""
    return central(streams, unit) + unit.send * nodes * (1 + probes(streams)[1])


def simplified(streams: Streams, unit: Unit, nodes: int) -> float:
    """L_PSP by Eq. 2, which stands for streams that are alike: L_C (1 + T_s N / (lambda W T_j))."""
    held = streams.held()[0]
    return central(streams, unit) * (1 + unit.send * nodes / (held * unit.join))


def service_rate(streams: Streams, unit: Unit, nodes: int) -> float:
    """Input rows a second that all nodes together keep up with. Eq. 3 has 1 / L_PSP, the rate of one of them."""
    return nodes / workload(streams, unit, nodes)


def output_rate(streams: Streams, unit: Unit, nodes: int) -> float:
    """Eq. 4: the results of N nodes as a multiple of those of one machine, if the input queue is never empty."""
    return nodes * central(streams, unit) / workload(streams, unit, nodes)


def latency(streams: Streams, unit: Unit, nodes: int) -> float:
    """Eq. 5: the mean time from reading a row to sending its results."""
    rounds = streams.ways * nodes * unit.hop
    return (nodes - 1) / 2 * unit.hop + max(workload(streams, unit, nodes) / nodes, rounds)


def best(streams: Streams, unit: Unit, most: int, objective: Objective = "latency") -> int:
    """The ring length with the least latency, or the shortest one with nearly the most output.

    >>> one = Streams((50, 50, 50), (10, 10, 10), (.1, .1, .1))
    >>> best(one, Unit(join=1e-9), 8), best(one, Unit(join=1e-3), 8)
    (1, 8)
    """
    cost = latency if objective == "latency" else _per_result
    chosen = 1
    for nodes in range(2, most + 1):
        if cost(streams, unit, nodes) < LEAST_GAIN * cost(streams, unit, chosen):
            chosen = nodes
    return chosen


def _per_result(streams: Streams, unit: Unit, nodes: int) -> float:
    return 1 / output_rate(streams, unit, nodes)


def stationary(streams: Streams, unit: Unit) -> tuple[float, float]:
    """N_1 and N_2 of Section 5.2: where the two parts of the latency meet, and where its sum is flat."""
    total, hop = central(streams, unit), unit.hop
    carried = unit.send * (1 + probes(streams)[1])
    # L_C / N + carried = M N T_n, a quadratic in N; and (N - 1) / 2 T_n = L_C / N.
    ways = streams.ways * hop
    first = (carried + math.sqrt(carried * carried + 4 * ways * total)) / (2 * ways)
    second = (1 + math.sqrt(1 + 8 * total / hop)) / 2
    return first, second


def bandwidth(streams: Streams, unit: Unit, nodes: int, row_bytes: float) -> float:
    """Eq. 6: bytes a second from which on the network does not slow the nodes down."""
    least = min(held / nodes for held in streams.held())
    return row_bytes / (unit.join * least)


def loads(streams: Streams, unit: Unit, lengths: Sequence[int]) -> list[float]:
    """The seconds that one input row takes at each node, where so many nodes share the state of each stream: the mean
    over the rows of all streams. With equal lengths they add up to L_PSP of streams that are alike, and what it takes
    to pass on the copies that build.

    >>> three = Streams((10, 10, 10), (1, 1, 1), (.1, .1, .1))
    >>> [round(each * 1000, 2) for each in loads(three, Unit(), (2, 2, 1))]
    [13.42, 6.73]
    """
    nodes, held, total = max(lengths), streams.held(), sum(streams.rates)
    found = [0.0] * nodes
    for origin, rate in enumerate(streams.rates):
        weight, rows, carried = rate / total, 1.0, 1.0
        order = [n for n in streams.order() if n != origin]
        for step, stream in enumerate(order):
            for node in range(lengths[stream]):
                found[node] += weight * rows * held[stream] / lengths[stream] * unit.join
            rows *= held[stream] * streams.selectivities[stream]
            carried += rows if step < len(order) - 1 else 0.0
        for node in range(nodes):
            found[node] += weight * unit.send * (carried + (node < lengths[origin] - 1))
        for node in range(lengths[origin]):
            found[node] += weight * (unit.insert + unit.purge)
    return found


def latency_of(streams: Streams, unit: Unit, lengths: Sequence[int]) -> float:
    """Eq. 5 for lengths that differ: the busiest node sets the pace."""
    nodes = max(lengths)
    return (nodes - 1) / 2 * unit.hop + max(*loads(streams, unit, lengths), streams.ways * nodes * unit.hop)


def lengths(streams: Streams, unit: Unit, most: int, objective: Objective = "latency") -> tuple[int, ...]:
    """Section 5.4: how many nodes share the state of each stream. Stream by stream in the order of lambda W S the best
    length is taken; a stream that comes later counts as long as the one that is looked at.

    >>> even = Streams((50, 50, 50), (10, 10, 10), (.1, .1, .1))
    >>> lengths(even, Unit(), 4), lengths(replace(even, rates=(50, 50, .2)), Unit(), 4)
    ((4, 4, 4), (4, 4, 2))
    """
    known: dict[int, int] = {}
    held = streams.held()
    for stream in streams.order():
        # No node with less than a row.
        least = [max(1, math.ceil(rows)) for rows in held]

        def cost(length: int, stream: int = stream, least: Sequence[int] = least) -> float:
            each = [known.get(n, length if n == stream else min(length, least[n])) for n in range(streams.ways)]
            return latency_of(streams, unit, each) if objective == "latency" else max(loads(streams, unit, each))

        chosen = 1
        for length in range(2, min(most, least[stream]) + 1):
            if cost(length) < LEAST_GAIN * cost(chosen):
                chosen = length
        known[stream] = chosen
    return tuple(known[n] for n in range(streams.ways))


def with_join_time(unit: Unit, seconds: float) -> Unit:
    """The unit with a measured T_j."""
    return replace(unit, join=max(seconds, 1e-9))


def best_orders(
    held: Sequence[float],
    asked: Sequence[frozenset[int]],
    tests: Sequence[tuple[float, float]],
    origin: int,
    orders: Sequence[tuple[int, ...]],
) -> list[tuple[float, tuple[int, ...]]]:
    """What each order of probes of the rows of a stream costs, the cheapest first. ``asked``: the streams of each
    condition; ``tests``: the share of pairs for which it is true, and the seconds to try it. They are taken to be
    independent, as in Babu et al.

    >>> costs = best_orders([9, 9, 9], [frozenset({0, 1}), frozenset({0, 2})], [(.5, 1), (.1, 1)], 0, [(1, 2), (2, 1)])
    >>> [(round(cost, 2), order) for cost, order in costs]
    [(17.1, (2, 1)), (49.5, (1, 2))]
    """
    found = []
    for order in orders:
        members, rows, cost = {origin}, 1.0, 0.0
        for target in order:
            rows *= held[target]
            before = frozenset(members)
            members.add(target)
            for of, (share, seconds) in zip(asked, tests, strict=True):
                if of <= members and (len(before) == 1 or not of <= before):
                    cost += rows * seconds
                    rows *= share
        found.append((cost, order))
    return sorted(found)
