"""The cheapest order of probes, without a look at all orders: of eight other streams there are 40,320."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod

FEW = 5  # streams, of which all orders are compared


def cheapest_order(
    held: Sequence[float], asked: Sequence[frozenset[int]], tests: Sequence[tuple[float, float]], origin: int
) -> tuple[int, ...]:
    """What ``best_orders`` finds among all orders. How many rows there are after some streams does not depend on their
    order, so the cheapest way to have some streams is one to have all but the last of them, and that one.

    >>> cheapest_order([9, 9, 9], [frozenset({0, 1}), frozenset({0, 2})], [(.5, 1), (.1, 1)], 0)
    (2, 1)
    """
    others = [n for n in range(len(held)) if n != origin]
    found: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {frozenset([origin]): (0.0, ())}
    for count in range(1, len(held)):
        for each in combinations(others, count):
            members = frozenset([origin, *each])
            found[members] = min(
                (cost + _step(held, asked, tests, members - {last}, last, origin), (*order, last))
                for last in each
                for cost, order in [found[members - {last}]]
            )
    return found[frozenset(range(len(held)))][1]


def _step(
    held: Sequence[float],
    asked: Sequence[frozenset[int]],
    tests: Sequence[tuple[float, float]],
    before: frozenset[int],
    target: int,
    origin: int,
) -> float:
    """What it costs to add a row of one more stream to the rows of others."""
    first, members = len(before) == 1, before | {target}
    known = 1.0 if first else prod(share for of, (share, _) in zip(asked, tests, strict=True) if of <= before)
    rows, cost = known * prod(held[n] for n in members if n != origin), 0.0
    for of, (share, seconds) in zip(asked, tests, strict=True):
        if of <= members and (first or not of <= before):
            cost += rows * seconds
            rows *= share
    return cost
