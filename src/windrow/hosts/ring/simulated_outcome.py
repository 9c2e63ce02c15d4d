"""What comes to a simulated ring, what happens to it, and what a run of it gives."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windrow.operators.operator import Side
from windrow.operators.ring.holder import Work
from windrow.progress import Punctuation
from windrow.spec.batches import Batch

CAME, FOUND, COUNTED, NODE = "@came", "@found", "@counted", "@node"


class Come(NamedTuple):
    """Rows, or a promise, that come to an input at a time in seconds."""

    at: float
    port: int
    item: Batch | Punctuation


class Death(NamedTuple):
    """A node that dies."""

    at: float
    node: int


class Round(NamedTuple):
    """One that counts: when it was, the rows that it took, how many nodes were to hold state, and how many rows
    they had at the end.
    """

    began: float
    ended: float
    rows: int
    nodes: int
    live: int


@dataclass
class Outcome:
    """``found``: results of rounds that count. Beside the columns of the streams they have the times when the last of
    their rows came (``@came``), when they were found (``@found``) and at which node (``@node``), and when they counted
    (``@counted``). ``work``, ``busy``, ``most``: by node what it has done, the seconds it took, and the most rows that
    were there at once; ``most_rows``: at all nodes together. ``sent``: bytes by sender and receiver.
    """

    found: Batch = field(default_factory=pl.DataFrame)
    rounds: list[Round] = field(default_factory=list)
    sides: list[Side] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    most: list[int] = field(default_factory=list)
    most_rows: int = 0
    sent: dict[tuple[int, int], int] = field(default_factory=dict)
    recoveries: int = 0
    makespan: float = 0.0

    def latencies(self) -> NDArray[np.float64]:
        """Seconds from the last row of each result to the result."""
        return (self.found[FOUND] - self.found[CAME]).to_numpy() if self.found.height else np.empty(0)

    def rows(self) -> list[tuple[object, ...]]:
        """Results as the operator gives them."""
        return self.found.drop(CAME, FOUND, COUNTED, NODE).rows() if self.found.height else []


def exponential_deaths(mean: float, until: float, nodes: int, seed: int) -> list[Death]:
    """Deaths of any of the nodes, with so many seconds between them on average.

    >>> [(round(each.at, 1), each.node) for each in exponential_deaths(10, 20, 4, 1)]
    [(1.4, 0), (4.4, 3), (18.7, 3)]
    """
    rng, at, found = random.Random(seed), 0.0, list[Death]()
    while (at := at + rng.expovariate(1 / mean)) < until:
        found.append(Death(at, rng.randrange(nodes)))
    return found
