"""What joins of several streams cost: as one operator, and as binary joins in any order.

With rates r, ranges w and s(S), the share of all combinations of rows of the inputs in S whose keys are equal, S has
prod(r) * s(S) * sum over i of prod(w of all but i) results per unit of progress: i is the row that comes last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

ROW, PROBE, PAIR = 0.35, 0.12, 0.06  # microseconds: a row that is kept, one that probes, one that is found
SENT = 2.0  # microseconds: a row that goes to another stage where state is elsewhere
TESTED = 1 / 3  # the share of rows for which a condition is true of which nothing is known
ROWS, KEYS = 1000.0, 100.0  # in a range, of streams of which nothing is known


@dataclass(frozen=True)
class Streams:
    """Inputs in numbers. ``rates``: rows per unit of progress. ``shares``: a line for each input, with the share of its
    rows that have each key. ``tests``: the inputs that each further condition is about.
    """

    rates: tuple[float, ...]
    lengths: tuple[int, ...]
    shares: NDArray[np.float64]
    basis: Literal["measured", "declared", "assumed"]
    tests: tuple[frozenset[int], ...] = ()
    exchanged: bool = False
    _equal: dict[frozenset[int], float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def equal(self, inputs: Iterable[int]) -> float:
        """The share of combinations of rows with equal keys for which all conditions are true."""
        chosen = frozenset(inputs)
        if chosen not in self._equal:
            true = TESTED ** sum(test <= chosen for test in self.tests)
            self._equal[chosen] = true * float(self.shares[sorted(chosen)].prod(axis=0).sum())
        return self._equal[chosen]

    def results(self, inputs: Sequence[int]) -> float:
        """How many results a join of some inputs has per unit of progress."""
        if len(inputs) == 1:
            return self.rates[inputs[0]]
        held = sum(prod(self.lengths[j] for j in inputs if j != i) for i in inputs)
        return prod(self.rates[i] for i in inputs) * self.equal(inputs) * held

    @property
    def says(self) -> str:
        rows = ", ".join(f"{rate * length:,.1f}" for rate, length in zip(self.rates, self.lengths, strict=True))
        pairs = self.equal(range(len(self.rates)))
        return f"{self.basis}: {rows} rows held of the inputs, and {pairs:.2g} of all combinations are results"


def uniform(keys: Sequence[float]) -> NDArray[np.float64]:
    """Shares of keys that are equally frequent; of an input with fewer keys they are some of those of the others."""
    most = max(1, round(max(keys)))
    found = np.zeros((len(keys), most))
    for number, own in enumerate(keys):
        found[number, : max(1, round(own))] = 1 / max(1, round(own))
    return found


def multi_cost(streams: Streams) -> float:
    """Microseconds per unit of progress of one operator. A row of each input probes the others in the best order."""
    best = probe_orders(streams)
    return sum(rate * (ROW + _probing(streams, i, best[i])) for i, rate in enumerate(streams.rates))


def probe_orders(streams: Streams) -> tuple[tuple[int, ...], ...]:
    """For each input the best order in which its rows probe the others."""
    numbers = range(len(streams.rates))
    return tuple(
        min(permutations(n for n in numbers if n != number), key=partial(_probing, streams, number))
        for number in numbers
    )


def _probing(streams: Streams, number: int, order: Sequence[int]) -> float:
    """What one row of an input costs that probes the others in this order."""
    found, rows, cost, met = 1.0, 1.0, 0.0, [number]
    for target in order:
        cost += found * PROBE
        met.append(target)
        rows *= streams.rates[target] * streams.lengths[target]
        found = rows * streams.equal(met)
        cost += found * PAIR
    return cost


def pipeline_cost(streams: Streams, order: Sequence[int]) -> float:
    """The same of binary joins in an order: the rows of a join are kept by the next one."""
    total = 0.0
    for at in range(1, len(order)):
        left, right = order[:at], order[at]
        rows, own = streams.results(left), streams.rates[right]
        band = streams.lengths[right] + min(streams.lengths[i] for i in left)
        pairs = rows * own * band * streams.equal([*left, right]) / max(streams.equal(left), 1e-300)
        total += (rows + own) * (ROW + PROBE) + pairs * PAIR
        total += rows * SENT if streams.exchanged and at > 1 else 0.0
    return total


def orders(count: int) -> Iterator[tuple[int, ...]]:
    """All orders of binary joins, each after the other; which of the first two is the left one makes no difference."""
    yield from (order for order in permutations(range(count)) if order[0] < order[1])


def costs(streams: Streams) -> Mapping[tuple[int, ...], float]:
    """Of one operator under ``()``, and of every order of a pipeline."""
    found = {order: pipeline_cost(streams, order) for order in orders(len(streams.rates))}
    return {(): multi_cost(streams), **found}
