"""What a moving window join costs per unit of time, hash or nested loops per direction (Kang, Eqs. 1 to 8).

The cost of a direction is the number of tuples that are touched, times the cost of touching one. A join A to B probes
the window of B with the tuples of A, and keeps that window: it never depends on how B is joined to A.

Two things have changed since 2002. A bucket to which tuples are appended is in the order of time, so that what has
expired is at its front, and invalidation costs 1 instead of the size of the bucket (``hash_in_order``). Then the rate
of B is in every term, and no ratio of rates makes nested loops win (``silent_rows`` says when they still do).

Three statements of the paper do not hold as printed; ``tests/planner/test_asymmetric_costs.py`` shows each. Eq. 7 calls
the constants small, but with a bucket of one tuple they halve its denominator. The number of keys is not the only
variable that decides: the tuples of A per window of B do as well. And the lazy formula charges a search to every
probe, so that lazy invalidation costs more than active where the probing stream is the faster one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Algorithm = Literal["hash", "nested"]
Full = Literal["HHJ", "HNJ", "NHJ", "NNJ"]
FULL: tuple[Full, ...] = ("HHJ", "HNJ", "NHJ", "NNJ")


@dataclass(frozen=True)
class Side:
    """A stream and its window: tuples per unit of time, the length of the window, and its distinct keys.

    >>> Side(rate=100, window=60, keys=10).bucket
    600.0
    """

    rate: float
    window: float
    keys: float

    @property
    def rows(self) -> float:
        """B: the tuples in the window."""
        return self.rate * self.window

    @property
    def bucket(self) -> float:
        """B/|B|: the tuples of one key."""
        return self.rows / self.keys


@dataclass(frozen=True)
class Streams:
    """The two inputs of a join."""

    a: Side
    b: Side


@dataclass(frozen=True)
class Weights:
    """What it costs to touch a tuple: C_n in a scan, C_h in a bucket. The paper's own, unless others are given."""

    nested: float = 0.5
    hashed: float = 0.65

    @property
    def ratio(self) -> float:
        """C_h/C_n, all that a choice depends on."""
        return self.hashed / self.nested


PAPER = Weights()
OneWay = Callable[[Side, Side, Weights], float]


# -- one way: a probes the window of b ---------------------------------------------------------------------------------
def one_way(a: Side, b: Side, probe: float, insert: float, invalidate: float) -> float:
    """Eq. 1: each tuple of A probes B; each of B is inserted, and makes one expire."""
    return a.rate * probe + b.rate * (insert + invalidate)


def nested_loops(a: Side, b: Side, weights: Weights = PAPER) -> float:
    """Eq. 2: a probe scans the window.

    >>> nested_loops(Side(10, 60, 10), Side(100, 60, 10))
    30100.0
    """
    return one_way(a, b, b.rows, 1, 1) * weights.nested


def nested_loops_lazy(a: Side, b: Side, weights: Weights = PAPER) -> float:
    """A probe first finds by binary search which of the tuples since the last probe have expired (section 3.1).

    >>> nested_loops_lazy(Side(10, 60, 10), Side(100, 60, 10))
    30070.0
    """
    search = math.floor(math.log2(max(math.ceil(b.rate / a.rate), 1)) + 1) if a.rate else 0
    return one_way(a, b, b.rows + search, 1, 0) * weights.nested


def hash_join(a: Side, b: Side, weights: Weights = PAPER) -> float:
    """Eq. 3: a probe scans a bucket, and so does an invalidation.

    >>> hash_join(Side(10, 60, 10), Side(100, 60, 10))
    42965.0
    """
    return one_way(a, b, b.bucket, 1, b.bucket) * weights.hashed


def hash_lazy(a: Side, b: Side, weights: Weights = PAPER) -> float:
    """A probe scans a bucket together with what has expired there since the last probe of it (section 3.2, in words).

    A bucket is probed by one in |B| tuples of A, and one in |B| of B expires in it: b.rate / a.rate in between.

    >>> hash_lazy(Side(10, 60, 10), Side(100, 60, 10)) == hash_in_order(Side(10, 60, 10), Side(100, 60, 10))
    True
    """
    expired = b.rate / a.rate if a.rate else 0.0
    return one_way(a, b, b.bucket + expired, 1, 0) * weights.hashed


def hash_lazy_rows(a: Side, b: Side) -> float:
    """The expired tuples that lazy invalidation still holds, on average: half of what comes between two probes."""
    return b.keys * b.rate / (2 * a.rate) if a.rate else math.inf


def hash_in_order(a: Side, b: Side, weights: Weights = PAPER) -> float:
    """Eq. 3 with buckets in the order of time: what has expired is at the front.

    >>> hash_in_order(Side(10, 60, 10), Side(100, 60, 10))
    4030.0
    """
    return one_way(a, b, b.bucket, 1, 1) * weights.hashed


# -- both ways ---------------------------------------------------------------------------------------------------------
def full_join(form: Full, streams: Streams, weights: Weights = PAPER, hashing: OneWay = hash_join) -> float:
    """Eqs. 4 to 6: the first letter is the window of A, which B probes; the second is the window of B.

    >>> streams = Streams(Side(10, 60, 10), Side(100, 60, 10))
    >>> {form: round(full_join(form, streams)) for form in FULL}
    {'HHJ': 47262, 'HNJ': 34396, 'NHJ': 72975, 'NNJ': 60110}
    """
    of_a, of_b = (hashing if letter == "H" else nested_loops for letter in form[:2])
    return of_b(streams.a, streams.b, weights) + of_a(streams.b, streams.a, weights)


def cheapest(streams: Streams, weights: Weights = PAPER, hashing: OneWay = hash_join) -> Full:
    """The full join with the smallest cost."""
    return min(FULL, key=lambda form: full_join(form, streams, weights, hashing))


# -- where nested loops begin to win -----------------------------------------------------------------------------------
def crossover(keys: float, weights: Weights = PAPER) -> float:
    """Eq. 7, approximate: the ratio of the rates of B and A above which nested loops beat hashing.

    >>> round(crossover(10), 2), round(crossover(20), 2)
    (6.69, 14.38)
    """
    return (keys - weights.ratio) / weights.ratio


def crossover_of(rows: float, keys: float, weights: Weights = PAPER) -> float:
    """Eq. 7 as printed, before its constants are dropped, for a window of B of so many rows.

    >>> round(crossover_of(4200, 10), 2), round(crossover_of(10, 10), 2)
    (6.7, 14.5)
    """
    bucket = rows / keys
    rest = (bucket + 1) * weights.hashed - 2 * weights.nested
    return (rows * weights.nested - bucket * weights.hashed) / rest if rest > 0 else math.inf


def crossover_exact(a: Side, b: Side, weights: Weights = PAPER) -> float:
    """Eq. 7 solved for the ratio, as the rows of B grow with its rate. Only the window and the keys of B count.

    >>> round(crossover_exact(Side(10, 60, 10), Side(1, 60, 10)), 3)
    6.701
    """
    met = a.rate * b.window  # tuples of A in the time of B's window
    constants = b.keys * (2 / weights.ratio - 1) / met if met else math.inf
    return max(crossover(b.keys, weights) + constants, 0.0)


def silent_rows(keys: float, weights: Weights = PAPER) -> float:
    """With buckets in the order of time: nested loops win only if fewer tuples of A come per window of B than this.

    >>> round(silent_rows(10), 2), silent_rows(1)
    (0.69, inf)
    """
    gain = weights.nested - weights.hashed / keys
    return max(2 * (weights.hashed - weights.nested), 0.0) / gain if gain > 0 else math.inf


def determinant(a: Side, b: Side, weights: Weights = PAPER) -> Algorithm:
    """Eq. 8: how to join A to B.

    >>> determinant(Side(5, 60, 10), Side(45, 60, 10)), determinant(Side(5, 60, 10), Side(45, 60, 20))
    ('nested', 'hash')
    """
    return "nested" if b.rate > a.rate * crossover(b.keys, weights) else "hash"


def determined(streams: Streams, weights: Weights = PAPER) -> Full:
    """Eq. 8 in both directions.

    >>> determined(Streams(Side(10, 60, 10), Side(60, 60, 10))), determined(Streams(Side(10, 60, 10), Side(80, 60, 10)))
    ('HHJ', 'HNJ')
    """
    of_a = determinant(streams.b, streams.a, weights) == "hash"
    of_b = determinant(streams.a, streams.b, weights) == "hash"
    return FULL[2 * (not of_a) + (not of_b)]
