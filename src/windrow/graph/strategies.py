"""Next-operator selection: the rules by which a graph picks the operator that runs next (Bai et al., section 2.3).

A strategy is a table: for each kind of state, the rules to try in turn. Nothing else about a strategy is code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum

from windrow.errors import QueryError


class Rule(IntEnum):
    """What may come next after an operator has run. The first rule of a state that applies decides."""

    FORWARD = 0  # if it yields: its successor
    ENCORE = 1  # if there is more: itself
    BACKTRACK = 2  # the predecessor of an input that is empty, on which the rules are tried again
    EXIT = 3  # nobody: control goes back to the scheduler


class Kind(Enum):
    """Where an operator is: what feeds it and what it feeds. A virtual break node is a sink and a source."""

    SOURCE = "Source"
    NOS = "NOS"
    SINK = "Sink"
    SOURCE_SINK = "Source-Sink"
    FORK = "Fork"  # no operator, but the place where one buffer has several readers


@dataclass(frozen=True)
class Strategy:
    """The rules of each kind of state. ``rows``: the most rows that a step takes, None for an item as it came.

    ``paths``: its scheduling units are paths, so that forks and operators with several inputs get break nodes.
    """

    name: str
    rules: Mapping[Kind, tuple[Rule, ...]]
    rows: int | None = None
    paths: bool = False

    def __str__(self) -> str:
        return self.name


_FORWARD, _ENCORE, _BACKTRACK, _EXIT = Rule

# Tuples leave as early as they can, and buffers stay short.
DFS = Strategy(
    "DFS",
    {
        Kind.SOURCE: (_FORWARD, _ENCORE, _EXIT),
        Kind.NOS: (_FORWARD, _ENCORE, _BACKTRACK),
        Kind.SINK: (_ENCORE, _BACKTRACK),
        Kind.SOURCE_SINK: (_ENCORE, _EXIT),
        Kind.FORK: (_FORWARD, _BACKTRACK),
    },
)

# An operator finishes its input before the next one starts: fewer changes of operator, longer buffers.
BFS = Strategy(
    "BFS",
    {
        Kind.SOURCE: (_ENCORE, _FORWARD, _EXIT),
        Kind.NOS: (_ENCORE, _FORWARD, _BACKTRACK),
        Kind.SINK: (_ENCORE, _BACKTRACK),
        Kind.SOURCE_SINK: (_ENCORE, _EXIT),
        Kind.FORK: (_FORWARD, _BACKTRACK),
    },
)

# As BFS, but an operator that has nothing to do gives control back instead of looking for more.
RR = Strategy(
    "RR",
    {
        Kind.SOURCE: (_ENCORE, _FORWARD, _EXIT),
        Kind.NOS: (_ENCORE, _FORWARD, _EXIT),
        Kind.SINK: (_ENCORE, _EXIT),
        Kind.SOURCE_SINK: (_ENCORE, _EXIT),
        Kind.FORK: (_FORWARD, _EXIT),
    },
    paths=True,
)


def batching(rows: int) -> Strategy:
    """DFS in which a step takes up to so many rows, joined or sliced to one batch; a promise closes it early.

    The paper counts tuples that were taken one by one and decides after k of them. Here they are one call.
    Operators that promise by what they have seen, such as Punctuate, promise after each of these batches.

    >>> batching(100).name
    'DFS-100'
    """
    if rows < 1:
        raise QueryError(f"a batch has at least one row, not {rows}")
    return Strategy(f"DFS-{rows}", DFS.rules, rows=rows)


def named(name: str) -> Strategy:
    """The strategy with a name: DFS, BFS, RR, or DFS-k with batches of k rows.

    >>> named("bfs").name, named("DFS-64").rows
    ('BFS', 64)
    """
    given = name.upper() if isinstance(name, str) else ""
    if found := {"DFS": DFS, "BFS": BFS, "RR": RR}.get(given):
        return found
    rows = given.removeprefix("DFS-")
    if rows == given or not rows.isdecimal():
        raise QueryError(f"{name!r} is not a strategy: give 'DFS', 'BFS', 'RR', or 'DFS-k' for batches of k rows")
    return batching(int(rows))
