"""What the ring's experiments join: Poisson streams, chained by conditions that are true for a share of all pairs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windrow.hosts.ring.simulated_outcome import CAME, FOUND, Come
from windrow.operators.ring.joining import Check, Joining
from windrow.progress import Punctuation
from windrow.spec.batches import Batch
from windrow.spec.functions import Function
from windrow.spec.names import PROGRESS
from windrow.windows.multiway import Ranges

NAMES = "abcdefghi"
MICROS = 1_000_000
COMPARED = 5  # streams
Bools = NDArray[np.bool_]


@dataclass
class Likely:
    """True for a share of all pairs of numbers, always the same ones, after ``wait`` seconds for each pair. It waits,
    and does not work, so that more nodes than cores can do it side by side.
    """

    share: float
    wait: float = 0.0
    _over: float = 0.0  # seconds that have been waited too long

    def __call__(self, x: pl.Series, y: pl.Series) -> Bools:
        if self.wait:
            began, asked = time.perf_counter(), len(x) * self.wait - self._over
            if asked > 0:
                time.sleep(asked)
            self._over = time.perf_counter() - began - asked
        left, right = x.to_numpy(), y.to_numpy()
        mixed = (left * 7919 + right * 6101 + left * right % 977 * 31) % 1000
        return np.asarray(mixed < 1000 * self.share)


@dataclass(frozen=True)
class Load:
    """``rate``: rows of each stream a second; ``later``: since when there are how many, in order. ``window``,
    ``seconds``: how long rows are held, and how long they come.
    """

    ways: int
    selectivity: float
    rate: float
    window: float
    seconds: float
    later: tuple[tuple[float, float], ...] = ()
    seed: int = 1

    def joining(self, wait: float = 0.0) -> Joining:
        """``wait``: seconds that each pair really takes."""
        names = NAMES[: self.ways]
        tests = tuple(
            Check(
                pair, function=Function("likely", Likely(self.selectivity, wait), pair, pl.Boolean(), vectorized=True)
            )
            for pair in pairwise(names)
        )
        window = round(self.window * MICROS)
        return Joining(Ranges((window,) * self.ways), tuple((name,) for name in names), tests)

    def orders(self) -> tuple[tuple[int, ...], ...]:
        """Along the chain, from each stream to its end and then to its beginning. All orders of many streams take long
        to compare, so with more than five streams this one is given.

        >>> Load(7, 0.1, 1.0, 1.0, 1.0).orders()[4], Load(3, 0.1, 1.0, 1.0, 1.0).orders()
        ((5, 6, 3, 2, 1, 0), ())
        """
        if self.ways <= COMPARED:
            return ()
        return tuple((*range(n + 1, self.ways), *range(n - 1, -1, -1)) for n in range(self.ways))

    def come(self) -> list[Come]:
        """Each row with the promise of all streams that nothing earlier comes."""
        rng = np.random.default_rng(self.seed)
        arrivals = sorted((at, port) for port in range(self.ways) for at in self._times(rng))
        found, last = list[Come](), -1
        for at, port in arrivals:
            last = max(last + 1, round(at * MICROS))
            row = pl.DataFrame({PROGRESS: [last], NAMES[port]: [int(rng.integers(MICROS))]})
            found.append(Come(at, port, row))
            found += [Come(at, other, Punctuation(last + 1)) for other in range(self.ways)]
        return found

    def _times(self, rng: np.random.Generator) -> list[float]:
        """When the rows of a stream come."""
        parts = [(0.0, self.rate), *self.later, (self.seconds, 0.0)]
        return [at for (since, rate), (until, _) in pairwise(parts) for at in _poisson(rng, rate, since, until)]


def _poisson(rng: np.random.Generator, rate: float, since: float, until: float) -> list[float]:
    gaps = rng.exponential(1 / rate, int(2 * rate * (until - since)) + 50)
    times = since + np.cumsum(gaps)
    return [float(at) for at in times[times < until]]


def response(found: Batch, since: float) -> float:
    """Milliseconds from the last row of a result to the result, on average, of what comes after some time."""
    took = latencies(found, since)
    return float(1000 * took.mean()) if len(took) else float("nan")


def latencies(found: Batch, since: float) -> NDArray[np.float64]:
    """The same of each result, in seconds."""
    late = found.filter(pl.col(CAME) >= since)
    return (late[FOUND] - late[CAME]).to_numpy()


def response_by(found: Batch, edges: Sequence[float]) -> list[float]:
    """The same between two times each."""
    came, took = found[CAME].to_numpy(), (found[FOUND] - found[CAME]).to_numpy()
    inside = [took[(came >= first) & (came < last)] for first, last in pairwise(edges)]
    return [float(1000 * each.mean()) if len(each) else float("nan") for each in inside]
