"""A stream between two operators in numbers: how many rows, of how many groups, how far out of order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from windrow.planner.choose.statistics import GROUPS, TUPLES, WIDTH
from windrow.spec.names import PROGRESS

Basis = Literal["measured", "declared", "assumed"]
BASES: tuple[Basis, ...] = ("measured", "declared", "assumed")  # from the best to the weakest
SELECTIVITY = 1 / 3  # of a condition of which nothing is known
UNTIL_THE_END = math.inf


@dataclass(frozen=True)
class Flow:
    """Rates and lengths are in the smallest unit of progress.

    ``rate``: rows for each of them. ``groups``: distinct keys. ``disorder``: how far a row can be behind the greatest
    progress value before it. ``wait``: how far promises are behind that value; UNTIL_THE_END if there are none.
    ``width``: bytes of a row. ``rows``: a sample, as it comes here; None where nothing was measured, or no more.
    ``grain``: progress values are multiples of it, as those of windows are.
    """

    rate: float
    groups: float = GROUPS
    disorder: float = 0.0
    wait: float = 0.0
    width: float = WIDTH
    basis: Basis = "assumed"
    rows: pl.DataFrame | None = None
    grain: int = 1

    def passed(self, share: float, rows: pl.DataFrame | None = None) -> Flow:
        """The share of the rows that a step lets through; ``rows``: of the sample, if that went through it."""
        width = self.width if rows is None or not rows.height else rows.estimated_size() / rows.height
        return replace(self, rate=self.rate * share, rows=rows, width=width)

    def keys(self, names: Sequence[str]) -> float:
        """How many different keys its rows have; 1 without keys."""
        if not names:
            return 1.0
        if self.rows is not None and self.rows.height and set(names) <= set(self.rows.columns):
            return float(self.rows.select(names).n_unique())
        return max(1.0, self.groups)

    def keys_in(self, names: Sequence[str], length: float) -> float:
        """How many different keys there are in a stretch of progress, on average."""
        if not names:
            return min(1.0, self.rate * length)
        if length <= self.grain and self.grain > 1:  # a window has one result for each key
            return min(max(1.0, self.groups), self.rate * self.grain)
        if self.rows is not None and self.rows.height and set(names) <= set(self.rows.columns):
            stretch = (pl.col(PROGRESS) // max(1, round(length))).alias("@stretch")
            found = self.rows.select(stretch, *names)
            return found.n_unique() / found["@stretch"].n_unique()
        return occupied(max(1.0, self.groups), self.rate * length)


def occupied(keys: float, rows: float) -> float:
    """How many of some keys so many rows have, if each is as likely as any other.

    >>> round(occupied(100, 50), 1), round(occupied(100, 1000), 1)
    (39.3, 100.0)
    """
    return -keys * math.expm1(-rows / keys)


def together(flows: Iterable[Flow]) -> Flow:
    """A union: rates add up, and the slowest promise counts.

    >>> both = together([Flow(2.0, 10, 1.0, 5.0), Flow(1.0, 30, 4.0, 2.0, basis="declared")])
    >>> both.rate, both.groups, both.disorder, both.wait, both.basis
    (3.0, 30, 4.0, 5.0, 'assumed')
    """
    found = list(flows)
    if len(found) == 1:
        return found[0]
    rate = sum(f.rate for f in found)
    samples = [f.rows for f in found if f.rows is not None]
    return Flow(
        rate,
        max(f.groups for f in found),
        max(f.disorder for f in found),
        max(f.wait for f in found),
        sum(f.width * f.rate for f in found) / rate if rate else WIDTH,
        weakest(f.basis for f in found),
        _all(samples) if len(samples) == len(found) else None,
        min(f.grain for f in found),
    )


def weakest(bases: Iterable[Basis]) -> Basis:
    """What is not known of one is not known of all."""
    return max(bases, key=BASES.index, default="assumed")


def _all(samples: Sequence[pl.DataFrame]) -> pl.DataFrame | None:
    return pl.concat(samples) if len({tuple(s.schema.items()) for s in samples}) == 1 else None


def assumed(pane: float, width: float, wait: float) -> Flow:
    """A typical stream, as the choice of an algorithm assumes it."""
    return Flow(TUPLES / pane, GROUPS, 0.0 if wait == UNTIL_THE_END else wait, wait, width)
