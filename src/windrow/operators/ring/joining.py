"""What a distributed join is asked for: its streams, how long their rows are held, and what must be true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations

import polars as pl

from windrow.spec.functions import Function
from windrow.windows.multiway import Moment, Ranges

PLACE, GLOBAL = "@k", "@g"  # of a row in its train, and in the order of all streams


def time_of(stream: int) -> str:
    """The column with the progress value of the row of a stream."""
    return f"@t{stream}"


def number_of(stream: int) -> str:
    """The column with the place of a row in its stream."""
    return f"@n{stream}"


@dataclass(frozen=True)
class Check:
    """A condition: an expression, or a user's function, which may fail. ``columns``: what it is of. ``last``: it is
    tried when all rows are there.
    """

    columns: tuple[str, ...]
    expression: pl.Expr | None = None
    function: Function | None = None
    last: bool = False


@dataclass(frozen=True)
class Joining:
    """``columns``: those of each stream that results and conditions have. ``keys``: columns of all streams that must be
    equal. ``on``: which time of a result is its progress value.
    """

    ranges: Ranges
    columns: tuple[tuple[str, ...], ...]
    tests: tuple[Check, ...] = ()
    keys: tuple[str, ...] = ()
    on: Moment | None = None
    late: tuple[str, ...] = ()
    types: tuple[dict[str, pl.DataType], ...] = field(default=(), compare=False)

    @property
    def streams(self) -> int:
        return len(self.columns)

    @property
    def moment(self) -> Moment:
        return self.on or Moment(tuple(range(self.streams)))

    @cached_property
    def owner(self) -> dict[str, int]:
        """The stream of each column."""
        return {name: number for number, names in enumerate(self.columns) for name in names}

    @cached_property
    def asked(self) -> tuple[frozenset[int], ...]:
        """The streams that each condition is about; one about none is tried when all rows are there."""
        every = frozenset(range(self.streams))
        of = [frozenset(self.owner[c] for c in test.columns) for test in self.tests]
        return tuple(own if own and not test.last else every for own, test in zip(of, self.tests, strict=True))

    def due(self, members: frozenset[int], target: int) -> list[int]:
        """The conditions that can be tried when a row of ``target`` is added to rows of ``members``.

        One about the stream of the probe alone is tried with its first step.
        """
        now, first = members | {target}, len(members) == 1
        return [n for n, of in enumerate(self.asked) if of <= now and (first or not of <= members)]

    def orders(self, origin: int) -> list[tuple[int, ...]]:
        """All orders in which rows of a stream can probe the others."""
        return list(permutations(n for n in range(self.streams) if n != origin))


def tag(origin: int, members: Sequence[int]) -> str:
    """The schema tag of intermediate results: the stream of the row that probes, and all streams there are rows of."""
    return f"{origin}:{'.'.join(map(str, sorted(members)))}"


def read_tag(text: str) -> tuple[int, frozenset[int]]:
    """What ``tag`` has written.

    >>> read_tag(tag(2, [2, 0]))
    (2, frozenset({0, 2}))
    """
    origin, members = text.split(":")
    return int(origin), frozenset(int(each) for each in members.split("."))
